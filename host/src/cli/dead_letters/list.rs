//! `sluice dead-letters list`.

use std::io::IsTerminal;

use tokio_util::sync::CancellationToken;

use super::render::{Row, table};
use super::{Failure, Place, failed, partitions, unexpected};
use crate::cli::Exit;
use crate::link::letters::Letter;

/// Arguments of `sluice dead-letters list`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The first offset in the dead-letter topic.
    #[arg(long, default_value_t = 0, value_name = "OFFSET")]
    from: u64,
    /// Most letters to list.
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
    /// Letters of every link that shares the topic.
    #[arg(long)]
    all: bool,
    /// One JSON object a line, also on a terminal.
    #[arg(long)]
    json: bool,
}

pub async fn execute(arguments: &Arguments, stop: CancellationToken) -> Result<Exit, Failure> {
    let selected = arguments.place.select(arguments.all)?;
    let mut mailbox = selected.mailbox(stop);
    let wanted = (!arguments.all).then_some(selected.link.name.as_str());
    let mut rows = Vec::new();
    let mut more = false;
    for partition in partitions(&mut mailbox, None).await? {
        let mut next = arguments.from;
        let mut reader = mailbox.reader(&partition);
        while !more {
            let Some(polled) = reader.next(next).await.map_err(failed)? else {
                break;
            };
            for frame in polled.frames() {
                let letter = Letter::read(&polled, frame);
                let ours = wanted.is_none_or(|name| {
                    // Whose a message is that cannot be read, nobody knows.
                    letter
                        .origin
                        .as_ref()
                        .is_ok_and(|origin| origin.link == name)
                        || letter.origin.is_err()
                });
                next = next.max(frame.offset).saturating_add(1);
                if !ours {
                    continue;
                }
                more = rows.len() == arguments.limit;
                if more {
                    break;
                }
                rows.push(Row::new(partition.id, &letter));
            }
        }
    }
    print(&rows, more, arguments.json).map_err(|error| unexpected(error.into()))?;
    Ok(Exit::Success)
}

fn print(rows: &[Row], more: bool, json: bool) -> std::io::Result<()> {
    use std::io::Write;

    let mut stdout = std::io::stdout().lock();
    if json || !stdout.is_terminal() {
        for row in rows {
            serde_json::to_writer(&mut stdout, row)?;
            writeln!(stdout)?;
        }
        return stdout.flush();
    }
    if rows.is_empty() {
        return writeln!(stdout, "no dead letters");
    }
    writeln!(stdout, "{}", table(rows))?;
    if more && let Some(last) = rows.last() {
        writeln!(stdout, "there are more: --from {}", last.offset + 1)?;
    }
    Ok(())
}
