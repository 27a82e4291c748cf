//! `sluice guest test`.

use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use bytesize::ByteSize;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde::Serialize;

use crate::batch::Polled;
use crate::cli::{Exit, printable};
use crate::config::{self, SampleSource};
use crate::guest::samples::{self, Answer, Expected};
use crate::guest::{Chain, Component, Engine};

/// Longest text in a cell of the table, in characters.
const CELL: usize = 200;

/// Arguments of `sluice guest test`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The component file.
    file: PathBuf,
    /// The messages, as JSON lines.
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// What must become of them, as JSON lines.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// A line for the guest's section of the configuration, such as 'config = { keep = "eu" }' or 'grants.clock = true';
    /// may be given several times.
    #[arg(long, short, value_name = "LINE")]
    set: Vec<String>,
    /// The source partition that the messages are said to come from.
    #[arg(long, value_name = "CLUSTER:STREAM/TOPIC/PARTITION", value_parser = source)]
    source: Option<SampleSource>,
    /// JSON lines, also on a terminal.
    #[arg(long)]
    json: bool,
}

fn source(text: &str) -> Result<SampleSource, String> {
    let parse = || {
        let (cluster, place) = text.split_once(':')?;
        let (names, partition) = place.rsplit_once('/')?;
        let (stream, topic) = names.split_once('/')?;
        Some(SampleSource {
            cluster: cluster.to_owned(),
            stream: stream.to_owned(),
            topic: topic.to_owned(),
            partition: partition.parse().ok()?,
        })
    };
    parse().ok_or_else(|| "it has the form CLUSTER:STREAM/TOPIC/PARTITION".to_owned())
}

/// A message's answer and what it took.
#[derive(Debug, Serialize)]
struct Measured<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    /// Time in the guest.
    nanoseconds: u64,
    /// Memory that the guest held afterwards, in bytes.
    memory: usize,
}

/// Runs the guest over the messages.
///
/// # Errors
/// The exit code and its reason.
pub fn execute(arguments: &Arguments) -> Result<Exit, (Exit, anyhow::Error)> {
    let usage = |reason: String| (Exit::Usage, anyhow!(reason));
    let unusable = |reason: String| (Exit::Guest, anyhow!(reason));
    let settings = settings(arguments).map_err(usage)?;
    let batch = samples::read(&arguments.input).map_err(usage)?;
    let expected = arguments.expect.as_deref().map(Expected::read);
    let expected = expected.transpose().map_err(usage)?;
    let cache = super::cache().ok().map(|folder| folder.join("compiled"));
    let engine = Engine::new(cache.as_deref()).map_err(|error| unusable(format!("{error:#}")))?;
    let name = arguments.file.file_stem().unwrap_or_default();
    let component = Component::load(&engine, &name.to_string_lossy(), &settings)
        .map_err(|error| unusable(error.to_string()))?;
    let source = arguments.source.clone().unwrap_or_default();
    let mut chain = samples::chain(&component, &source).map_err(unusable)?;
    let (answers, costs) = ask(&mut chain, batch).map_err(unusable)?;
    print(&answers, &costs, arguments.json).map_err(|error| (Exit::Unexpected, error.into()))?;
    let wrong = match &expected {
        Some(expected) => expected.differences(&answers),
        None => samples::failures(&answers),
    };
    if wrong.is_empty() {
        return Ok(Exit::Success);
    }
    Err(unusable(format!(
        "{} of {} messages did not come out as they should:\n  {}",
        wrong.len().min(answers.len()),
        answers.len(),
        wrong.join("\n  ")
    )))
}

/// The guest's section, as the configuration would have it.
fn settings(arguments: &Arguments) -> Result<config::Guest, String> {
    let mut table: toml::Table = arguments
        .set
        .join("\n")
        .parse()
        .map_err(|error: toml::de::Error| format!("--set: {}", error.to_string().trim_end()))?;
    let file = arguments.file.display().to_string();
    if table.insert("component".to_owned(), file.into()).is_some() {
        return Err("--set: the component is the file that is tested".to_owned());
    }
    let mut settings: config::Guest = table
        .try_into()
        .map_err(|error: toml::de::Error| format!("--set: {}", error.to_string().trim_end()))?;
    let problems = config::guest_problems("the guest", &settings);
    if !problems.is_empty() {
        return Err(format!("--set: {}", problems.join("; ")));
    }
    // Here every message gets an answer, however many the guest fails on.
    settings.breaker.faults = u32::MAX;
    Ok(settings)
}

/// Time and memory of a message.
type Cost = (Duration, usize);

/// Asks about one message at a time, to tell what each takes.
fn ask(chain: &mut Chain, batch: Polled) -> Result<(Vec<Answer>, Vec<Cost>), String> {
    let (mut answers, mut costs) = (Vec::new(), Vec::new());
    let mut rest = batch;
    while !rest.is_empty() {
        let (one, others) = rest.split_at(1);
        rest = others;
        let begun = Instant::now();
        answers.extend(samples::answers(chain, &one)?);
        costs.push((begun.elapsed(), chain.memory()));
    }
    Ok((answers, costs))
}

fn print(answers: &[Answer], costs: &[Cost], json: bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if !json && stdout.is_terminal() {
        return writeln!(stdout, "{}", table(answers, costs));
    }
    for (answer, (time, memory)) in answers.iter().zip(costs) {
        let measured = Measured {
            answer,
            nanoseconds: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            memory: *memory,
        };
        serde_json::to_writer(&mut stdout, &measured)?;
        writeln!(stdout)?;
    }
    Ok(())
}

fn table(answers: &[Answer], costs: &[Cost]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["offset", "verdict", "details", "time", "memory"])
        .set_constraints([
            ColumnConstraint::ContentWidth,
            ColumnConstraint::ContentWidth,
            ColumnConstraint::LowerBoundary(Width::Fixed(20)),
            ColumnConstraint::ContentWidth,
            ColumnConstraint::ContentWidth,
        ]);
    for (answer, (time, memory)) in answers.iter().zip(costs) {
        let details: String = answer.details().chars().take(CELL).collect();
        let memory = ByteSize::b(u64::try_from(*memory).unwrap_or(u64::MAX));
        table.add_row([
            answer.offset.to_string(),
            answer.verdict.to_owned(),
            printable(&details),
            format!("{time:.1?}"),
            memory.display().iec().to_string(),
        ]);
    }
    for column in [0, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_partition_is_read_from_its_text() {
        let read = source("eu:orders/a/b/3").expect("well-formed");
        assert_eq!(
            (read.stream.as_str(), read.topic.as_str()),
            ("orders", "a/b")
        );
        assert_eq!((read.cluster.as_str(), read.partition), ("eu", 3));
        for wrong in ["", "eu", "eu:orders/3", "eu:orders/t/x"] {
            assert!(source(wrong).is_err(), "{wrong}");
        }
    }
}
