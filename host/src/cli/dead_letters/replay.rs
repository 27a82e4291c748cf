//! `sluice dead-letters replay`.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;

use super::render::summary_table;
use super::{Failure, Place, unexpected};
use crate::checkpoint::{ReplayStore, Selection};
use crate::cli::Exit;
use crate::gateway::{self, Guests};
use crate::link::letters::{self, Parts, Request, Summary};

/// Arguments of `sluice dead-letters replay`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The first offset in the dead-letter topic.
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
    /// The last offset.
    #[arg(long, value_name = "OFFSET")]
    to: Option<u64>,
    /// This letter alone; may be given several times.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "to"])]
    offset: Vec<u64>,
    /// A partition of the dead-letter topic; every one when left out.
    #[arg(long)]
    partition: Option<u32>,
    /// Send the messages by the link's destination template, without asking its guests.
    #[arg(long)]
    no_guests: bool,
    /// Also letters that were replayed before. A replay that was interrupted goes on when it is given the same
    /// arguments.
    #[arg(long)]
    again: bool,
    /// Ask the guests and print what would become of the letters, but send nothing.
    #[arg(long)]
    dry_run: bool,
    /// JSON, also on a terminal.
    #[arg(long)]
    json: bool,
}

pub async fn execute(arguments: &Arguments, stop: CancellationToken) -> Result<Exit, Failure> {
    let request = arguments.request()?;
    let selected = arguments.place.select(false)?;
    let refused = |error: gateway::Error| (Exit::from(&error), error.into());
    let store = ReplayStore::open(&selected.config.gateway.state_dir);
    let store = store.map_err(|error| refused(error.into()))?;
    let scopes = store.interrupted().map_err(|error| refused(error.into()))?;
    // What a replay was sending through the guests is finished through them, whatever comes after.
    let unfinished = scopes
        .iter()
        .any(|(scope, sending)| scope.link == selected.link.name && sending.guests);
    let guests = if request.guests || unfinished {
        let loaded = Guests::load(&selected.config).await.map_err(refused)?;
        loaded.of(&selected.link)
    } else {
        Arc::new([])
    };
    let parts = Parts {
        link: selected.link,
        destination: selected.destination,
        guests,
        store,
    };
    let bar = progress_bar();
    let advance = |done, end| {
        bar.set_length(end);
        bar.set_position(done);
    };
    let summary = letters::replay(parts, request, &advance, stop).await;
    bar.finish_and_clear();
    print(&summary, arguments.json).map_err(|error| unexpected(error.into()))?;
    match summary.error {
        Some(error) => Err((Exit::from(&error), error.into())),
        None => Ok(Exit::Success),
    }
}

impl Arguments {
    fn request(&self) -> Result<Request, Failure> {
        let from = self.from.unwrap_or(0);
        if self.to.is_some_and(|to| to < from) {
            return Err((
                Exit::Usage,
                anyhow!("--to is below --from: it names the last offset"),
            ));
        }
        let mut offsets = self.offset.clone();
        offsets.sort_unstable();
        offsets.dedup();
        Ok(Request {
            selection: Selection {
                from,
                to: self.to,
                offsets,
                again: self.again,
            },
            partition: self.partition,
            guests: !self.no_guests,
            dry_run: self.dry_run,
        })
    }
}

/// Drawn on stderr, where that is a terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("replaying {bar:40} {pos}/{len} {eta}");
    let bar = ProgressBar::new(0);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn print(summary: &Summary, json: bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json || !stdout.is_terminal() {
        serde_json::to_writer(&mut stdout, summary)?;
        writeln!(stdout)
    } else {
        writeln!(stdout, "{}", summary_table(summary))
    }
}
