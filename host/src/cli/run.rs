//! `sluice run`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::gateway::{self, Reloader, Reloads, Unsaved};
use crate::link::LinkReport;

/// Arguments of `sluice run`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The configuration file.
    #[arg(long, short, env = "SLUICE_CONFIG")]
    config: PathBuf,
}

/// Replicates until a signal, or until every link has ended.
///
/// # Errors
/// The exit code and its reason when the gateway cannot start or save its checkpoints.
pub async fn execute(arguments: &Arguments) -> Result<Exit, (Exit, anyhow::Error)> {
    let config = super::load(&arguments.config).map_err(|error| (Exit::Usage, error.into()))?;
    let unexpected = |error| (Exit::Unexpected, error);
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone()).map_err(unexpected)?;
    let path = arguments.config.clone();
    let reloads = Reloads::new(move || super::load(&path));
    reload_on_signal(reloads.reloader()).map_err(unexpected)?;
    let ended = gateway::run(config, reloads, stop)
        .await
        .map_err(|error| (Exit::from(&error), error.into()))?;
    print(&ended.reports).map_err(unexpected)?;
    if let Some(error) = ended.unsaved {
        let exit = match error {
            Unsaved::Store(_) => Exit::Checkpoint,
            Unsaved::TooSlow(_) => Exit::Undrained,
        };
        return Err((exit, error.into()));
    }
    let failure = ended
        .reports
        .iter()
        .find_map(|report| report.error.as_ref());
    Ok(failure.map_or(Exit::Success, Exit::from))
}

/// The first signal drains, the second ends the process.
pub(super) fn stop_on_signals(stop: CancellationToken) -> anyhow::Result<()> {
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut terminations = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
            }
            if stop.is_cancelled() {
                tracing::warn!(
                    "second signal: ending at once; the next start goes on from the checkpoint"
                );
                std::process::exit(Exit::Aborted as i32);
            }
            tracing::info!("draining; a second signal ends at once");
            stop.cancel();
        }
    });
    Ok(())
}

fn reload_on_signal(reloader: Reloader) -> anyhow::Result<()> {
    let mut hangups = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            // What came of it is in the log.
            let _ = reloader.reload().await;
        }
    });
    Ok(())
}

fn print(reports: &[LinkReport]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if stdout.is_terminal() {
        writeln!(stdout, "{}", table(reports))?;
    } else {
        serde_json::to_writer(&mut stdout, reports)?;
        writeln!(stdout)?;
    }
    Ok(())
}

fn table(reports: &[LinkReport]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "link",
        "source",
        "forwarded",
        "dropped",
        "dead",
        "gaps",
        "found",
        "next offset",
    ]);
    for report in reports {
        for lane in &report.lanes {
            table.add_row([
                report.link.clone(),
                lane.source.clone(),
                lane.forwarded.to_string(),
                lane.dropped.to_string(),
                lane.dead_lettered.to_string(),
                lane.gaps.to_string(),
                lane.found.to_string(),
                lane.next_offset.to_string(),
            ]);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
