//! What the demo shows at its end.

use std::time::Duration;

use comfy_table::{CellAlignment, Table};

use super::check::Findings;
use super::gateway::Report;
use super::traffic::STREAM;

/// Prints what went where, one message before and after, and how long it took.
pub fn print(findings: &Findings, all: u64, took: Duration, report: &Report) {
    println!("{}", table(findings, all));
    if let Some((before, topic, after)) = &findings.example {
        println!("before, in events: {}", before.describe());
        println!("after, in {topic}:  {}", after.describe());
    }
    println!(
        "gateway counted {} forwarded, {} dropped, {} dead-lettered, {} gaps",
        report.forwarded, report.dropped, report.dead_lettered, report.gaps
    );
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    println!(
        "{} messages/s: {all} in {milliseconds} ms from start to last confirmation, on {} cores shared with the clusters",
        all * 1000 / milliseconds,
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    println!("every message checked: count, order, id, time, headers, payload");
}

fn table(findings: &Findings, all: u64) -> Table {
    let share = |count: u64| {
        let tenths = count * 1000 / all;
        format!("{}.{} %", tenths / 10, tenths % 10)
    };
    let mut table = Table::new();
    table.set_header(["went to", "messages", "share", "payload bytes"]);
    for (topic, (messages, bytes)) in &findings.arrived {
        table.add_row([
            format!("{STREAM}/{topic}"),
            messages.to_string(),
            share(*messages),
            bytes.to_string(),
        ]);
    }
    table.add_row([
        "dropped by the filter".to_owned(),
        findings.dropped.to_string(),
        share(findings.dropped),
        String::new(),
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
