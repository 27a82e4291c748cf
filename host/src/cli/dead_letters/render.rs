//! Dead letters as tables, text and JSON.

use std::time::{Duration, UNIX_EPOCH};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::cli::printable;
use crate::link::letters::{Letter, Summary};

/// Seconds from the Unix epoch to the year 10000, which RFC 3339 cannot write.
const YEAR_10000: u64 = 253_402_300_800;

/// A letter in a list.
#[derive(Debug, Serialize)]
pub struct Row {
    partition: u32,
    /// The letter's offset in the dead-letter topic.
    pub offset: u64,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content {
    Letter(Box<Fields>),
    Unreadable { unreadable: String },
}

#[derive(Debug, Serialize)]
struct Fields {
    time: Option<String>,
    link: String,
    source: Place,
    guest: Option<String>,
    stage: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<u64>,
}

/// Where a message came from.
#[derive(Debug, Serialize)]
struct Place {
    cluster: String,
    stream: String,
    topic: String,
    partition: u32,
    offset: u64,
}

impl Row {
    /// A letter of a partition of the dead-letter topic.
    pub fn new(partition: u32, letter: &Letter<'_>) -> Self {
        let content = match &letter.origin {
            Ok(origin) => Content::Letter(Box::new(Fields {
                time: origin.time.map(rfc3339),
                link: origin.link.to_owned(),
                source: Place {
                    cluster: origin.cluster.to_owned(),
                    stream: origin.stream.to_owned(),
                    topic: origin.topic.to_owned(),
                    partition: origin.partition,
                    offset: origin.offset,
                },
                guest: origin.guest.map(str::to_owned),
                stage: origin.stage.to_owned(),
                reason: origin.reason.to_owned(),
                omitted: origin.omitted.map(str::to_owned),
                replayed: origin.replayed,
            })),
            Err(reason) => Content::Unreadable {
                unreadable: reason.clone(),
            },
        };
        Self {
            partition,
            offset: letter.offset,
            content,
        }
    }

    /// Offset, time, source, and why.
    pub fn cells(&self) -> [String; 4] {
        let offset = match self.partition {
            0 => self.offset.to_string(),
            partition => format!("{partition}@{}", self.offset),
        };
        match &self.content {
            Content::Letter(fields) => fields.cells(offset),
            Content::Unreadable { unreadable } => [
                offset,
                String::new(),
                String::new(),
                format!("no dead letter: {unreadable}"),
            ],
        }
    }
}

impl Fields {
    fn cells(&self, offset: String) -> [String; 4] {
        let place = &self.source;
        let source = format!(
            "{}:{}/{}/{}@{}",
            place.cluster, place.stream, place.topic, place.partition, place.offset
        );
        let mut why = match &self.guest {
            Some(guest) => format!("{guest}: {}: {}", self.stage, self.reason),
            None => format!("{}: {}", self.stage, self.reason),
        };
        if let Some(omitted) = &self.omitted {
            why.push_str("; without its ");
            why.push_str(omitted);
        }
        // The table has no room for parts of a second.
        let time = self.time.as_ref().map_or(String::new(), |time| {
            let seconds = time
                .split_once('.')
                .map(|(seconds, _)| format!("{seconds}Z"));
            seconds.unwrap_or_else(|| time.clone())
        });
        [offset, time, source, why]
    }
}

/// Letters as a table that is as wide as the terminal.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["offset", "time", "source", "guest, stage, reason"])
        .set_constraints([
            ColumnConstraint::ContentWidth,
            ColumnConstraint::ContentWidth,
        ]);
    for row in rows {
        table.add_row(row.cells().map(|cell| printable(&cell)));
    }
    if let Some(offsets) = table.column_mut(0) {
        offsets.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A time as RFC 3339, or the microseconds themselves where that cannot write it.
pub fn rfc3339(micros: u64) -> String {
    if micros / 1_000_000 >= YEAR_10000 {
        return micros.to_string();
    }
    let time = UNIX_EPOCH + Duration::from_micros(micros);
    humantime::format_rfc3339_micros(time).to_string()
}

/// What a replay did, as a table.
pub fn summary_table(summary: &Summary) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header([
            if summary.dry_run {
                "dry run: letters"
            } else {
                "letters"
            },
            summary.dead_letters.as_str(),
        ]);
    let left_out = summary.left_out.len() as u64;
    for (name, count) in [
        ("replayed", summary.replayed),
        ("dropped by a guest", summary.dropped),
        ("dead-lettered again", summary.dead_lettered),
        ("replayed before", summary.already_replayed),
        ("left out: not whole", left_out),
        ("no dead letters", summary.unreadable),
        ("not there", summary.missing),
        ("found, not sent again", summary.found),
    ] {
        table.add_row([name.to_owned(), count.to_string()]);
    }
    for letter in &summary.left_out {
        let text = format!("without its {}: {}", letter.omitted, letter.remedy);
        table.add_row([
            format!("left out {}@{}", letter.partition, letter.offset),
            text,
        ]);
    }
    if summary.interrupted {
        table.add_row(["interrupted", "the next replay goes on"]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Outgoing;
    use crate::link::letters::{LeftOut, Origin};

    fn row(offset: u64, reason: &str) -> Row {
        let origin = Origin {
            link: "shop",
            cluster: "eu",
            stream: "shop",
            topic: "orders",
            partition: 2,
            offset: 1_234_567,
            replayed: None,
            guest: Some("redact"),
            stage: "reject",
            reason,
            time: Some(1_700_000_000_000_001),
            omitted: None,
            headers: Vec::new(),
        };
        Row::new(0, &letter(offset, Ok(origin)))
    }

    fn letter(offset: u64, origin: Result<Origin<'_>, String>) -> Letter<'_> {
        Letter {
            offset,
            message: Outgoing {
                id: 1,
                origin_timestamp: 0,
                headers: &[],
                payload: &[],
            },
            origin,
        }
    }

    #[test]
    fn a_list_fits_80_columns() {
        let unreadable = Row::new(
            0,
            &letter(8, Err("the user headers do not parse".to_owned())),
        );
        let rows = [row(7, "the field `card` is not\u{1b}[31m text"), unreadable];
        let mut table = table(&rows);
        table.set_width(80);
        let expected = "\
┌────────┬──────────────────────┬───────────────────────┬──────────────────────┐
│ offset ┆ time                 ┆ source                ┆ guest, stage, reason │
╞════════╪══════════════════════╪═══════════════════════╪══════════════════════╡
│      7 ┆ 2023-11-14T22:13:20Z ┆ eu:shop/orders/2@1234 ┆ redact: reject: the  │
│        ┆                      ┆ 567                   ┆ field `card` is      │
│        ┆                      ┆                       ┆ not\\u{1b}[31m text   │
│      8 ┆                      ┆                       ┆ no dead letter: the  │
│        ┆                      ┆                       ┆ user headers do not  │
│        ┆                      ┆                       ┆ parse                │
└────────┴──────────────────────┴───────────────────────┴──────────────────────┘";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_list_elsewhere_is_one_object_a_line() {
        let json = serde_json::to_string(&row(7, "no")).expect("plain data");
        let expected = r#"{"partition":0,"offset":7,"time":"2023-11-14T22:13:20.000001Z","link":"shop","source":{"cluster":"eu","stream":"shop","topic":"orders","partition":2,"offset":1234567},"guest":"redact","stage":"reject","reason":"no"}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn times_beyond_rfc_3339_are_shown_as_they_are() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn a_summary_names_every_end() {
        let summary = Summary {
            dead_letters: "us:sluice/dead-letters".to_owned(),
            replayed: 3,
            left_out: vec![LeftOut {
                partition: 0,
                offset: 9,
                source: "eu:s/t/0@7".to_owned(),
                omitted: "payload of 66000000 bytes".to_owned(),
                remedy: "copy it from the source".to_owned(),
            }],
            interrupted: true,
            ..Summary::default()
        };
        let mut table = summary_table(&summary);
        table.set_width(80);
        let expected = "\
┌───────────────────────┬──────────────────────────────────────────────────────┐
│ letters               ┆ us:sluice/dead-letters                               │
╞═══════════════════════╪══════════════════════════════════════════════════════╡
│ replayed              ┆ 3                                                    │
│ dropped by a guest    ┆ 0                                                    │
│ dead-lettered again   ┆ 0                                                    │
│ replayed before       ┆ 0                                                    │
│ left out: not whole   ┆ 1                                                    │
│ no dead letters       ┆ 0                                                    │
│ not there             ┆ 0                                                    │
│ found, not sent again ┆ 0                                                    │
│ left out 0@9          ┆ without its payload of 66000000 bytes: copy it from  │
│                       ┆ the source                                           │
│ interrupted           ┆ the next replay goes on                              │
└───────────────────────┴──────────────────────────────────────────────────────┘";
        assert_eq!(table.to_string(), expected);
    }
}
