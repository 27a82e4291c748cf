//! `sluice checkpoint`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Subcommand;
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use super::Exit;
use crate::checkpoint::{Checkpoint, LaneKey, LocalStore, Store, StoreError};
use crate::cluster::Partition;
use crate::config::{CheckpointStore, Config};
use crate::{gateway, link};

/// Arguments of `sluice checkpoint`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how far each lane is.
    Show(Selection),
    /// Set where a lane goes on.
    ///
    /// A lower offset than before has all messages from there on sent once more, also those that the destination has; a
    /// higher one leaves those in between out. This is for after a decision, such as what to do with a source that was
    /// purged.
    Set(Set),
    /// Write every checkpoint as JSON, for `import`.
    Export(Export),
    /// Take checkpoints from what `export` wrote, for example into another kind of store.
    Import(Import),
}

#[derive(Debug, clap::Args)]
struct Selection {
    #[command(flatten)]
    file: File,
    /// Only lanes of this link.
    #[arg(long)]
    link: Option<String>,
    /// JSON, also on a terminal.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct File {
    /// The configuration file.
    #[arg(long, short, env = "SLUICE_CONFIG")]
    config: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    file: File,
    /// The link.
    #[arg(long)]
    link: String,
    /// Stream at the source.
    #[arg(long)]
    stream: String,
    /// Topic at the source.
    #[arg(long)]
    topic: String,
    /// Partition at the source.
    #[arg(long)]
    partition: u32,
    /// The source offset that is copied next.
    #[arg(long)]
    offset: u64,
}

#[derive(Debug, clap::Args)]
struct Export {
    #[command(flatten)]
    file: File,
    /// Written here instead of to the standard output.
    #[arg(long, short)]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Import {
    #[command(flatten)]
    file: File,
    /// What `export` wrote.
    input: PathBuf,
    /// Also lanes that have a checkpoint already.
    #[arg(long)]
    replace: bool,
}

/// What `export` writes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exported {
    version: u32,
    checkpoints: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    lane: LaneKey,
    checkpoint: Checkpoint,
}

const VERSION: u32 = 1;

/// Runs a subcommand.
///
/// # Errors
/// The exit code and its reason.
pub async fn execute(arguments: &Arguments) -> Result<Exit, (Exit, anyhow::Error)> {
    match &arguments.command {
        Command::Show(selection) => show(selection).await,
        Command::Set(set) => set_one(set).await,
        Command::Export(export) => write_all(export).await,
        Command::Import(import) => read_all(import).await,
    }
    .map(|()| Exit::Success)
    .map_err(|error| (exit(&error), error))
}

fn exit(error: &anyhow::Error) -> Exit {
    if let Some(error) = error.downcast_ref::<link::Error>() {
        Exit::from(error)
    } else if error.is::<StoreError>() {
        Exit::Checkpoint
    } else if error.is::<std::io::Error>() {
        Exit::Unexpected
    } else {
        Exit::Usage
    }
}

/// The store of a configuration, and what is in it.
struct Opened {
    config: Config,
    local: Option<LocalStore>,
}

impl Opened {
    fn new(file: &File) -> anyhow::Result<Self> {
        let config = super::load(&file.config)?;
        let local = match config.gateway.checkpoint_store {
            CheckpointStore::Local => Some(LocalStore::open(&config.gateway.state_dir)?),
            CheckpointStore::Server => None,
        };
        Ok(Self { config, local })
    }

    /// The store of a link.
    fn store(&self, link: &str) -> anyhow::Result<Arc<dyn Store>> {
        let found = self.config.links.iter().find(|found| found.name == link);
        let link = found.with_context(|| {
            let known: Vec<_> = self.config.links.iter().map(|link| &link.name).collect();
            format!("there is no link `{link}`; the configuration has {known:?}")
        })?;
        Ok(match &self.local {
            Some(store) => Arc::new(store.clone()),
            None => Arc::new(gateway::server_store(&self.config, link)),
        })
    }

    async fn list(&self, only: Option<&str>) -> anyhow::Result<Vec<Entry>> {
        if let Some(link) = only {
            self.store(link)?;
        }
        let mut entries = match &self.local {
            Some(store) => entries(store.list()?),
            None => self.list_at_clusters(only).await?,
        };
        entries.retain(|entry| only.is_none_or(|only| entry.lane.link == only));
        Ok(entries)
    }

    /// Consumer offsets are found by asking for each lane that the clusters' topics give.
    async fn list_at_clusters(&self, only: Option<&str>) -> anyhow::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for link in &self.config.links {
            if only.is_some_and(|only| link.name != only) {
                continue;
            }
            let store = self.store(&link.name)?;
            for (lane, usual) in gateway::lanes(&self.config, link).await? {
                if let Some(checkpoint) = store.load(&lane, &usual).await? {
                    entries.push(Entry { lane, checkpoint });
                }
            }
        }
        Ok(entries)
    }
}

fn entries(list: Vec<(LaneKey, Checkpoint)>) -> Vec<Entry> {
    let entries = list.into_iter();
    entries
        .map(|(lane, checkpoint)| Entry { lane, checkpoint })
        .collect()
}

async fn show(selection: &Selection) -> anyhow::Result<()> {
    let opened = Opened::new(&selection.file)?;
    let entries = opened.list(selection.link.as_deref()).await?;
    let mut stdout = std::io::stdout().lock();
    if stdout.is_terminal() && !selection.json {
        writeln!(stdout, "{}", table(&entries))?;
    } else {
        serde_json::to_writer(&mut stdout, &entries)?;
        writeln!(stdout)?;
    }
    Ok(())
}

fn table(entries: &[Entry]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["link", "source", "next offset", "destinations"]);
    for Entry { lane, checkpoint } in entries {
        let marks = checkpoint.destinations.iter().map(|mark| {
            let place = mark.destination();
            format!("{}:{place} {}", lane.destination, mark.next_offset)
        });
        table.add_row([
            lane.link.clone(),
            format!("{}:{}", lane.cluster, lane.source()),
            checkpoint.next_offset.to_string(),
            marks.collect::<Vec<_>>().join("\n"),
        ]);
    }
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

async fn set_one(set: &Set) -> anyhow::Result<()> {
    let opened = Opened::new(&set.file)?;
    let store = opened.store(&set.link)?;
    let mut links = opened.config.links.iter();
    let link = links.find(|link| link.name == set.link);
    let link = link.context("it has a store")?;
    let lane = LaneKey {
        link: set.link.clone(),
        cluster: link.source.cluster.clone(),
        stream: set.stream.clone(),
        topic: set.topic.clone(),
        partition: set.partition,
        destination: link.destination.cluster.clone(),
    };
    let usual = link::usual_destination(link, &lane);
    // A corrupt entry is one reason to set it.
    let before = match store.load(&lane, &usual).await {
        Ok(before) => before,
        Err(error @ StoreError::Local { passing: false, .. }) => {
            tracing::warn!("{error}");
            None
        }
        Err(error) => return Err(error.into()),
    };
    // A source that forgot the lane has no offset to tell.
    let was = before.as_ref().map(|before| before.next_offset);
    let was = was.filter(|was| *was < u64::MAX);
    // Forward, what was delivered after the last checkpoint must not come again; backward, it is to.
    let forward = was.is_some_and(|was| was <= set.offset);
    let after = Checkpoint {
        next_offset: set.offset,
        last: None,
        destinations: before
            .filter(|_| forward)
            .map(|before| before.destinations)
            .unwrap_or_default(),
    };
    if !forward {
        store.forget_mark(&lane, &usual).await?;
    }
    store.save(&[(lane.clone(), after)]).await?;
    match was {
        Some(was) => println!("{lane}: next offset {} (was {was})", set.offset),
        None => println!("{lane}: next offset {} (had no checkpoint)", set.offset),
    }
    Ok(())
}

async fn write_all(export: &Export) -> anyhow::Result<()> {
    let opened = Opened::new(&export.file)?;
    let exported = Exported {
        version: VERSION,
        checkpoints: opened.list(None).await?,
    };
    let mut text = serde_json::to_vec_pretty(&exported)?;
    text.push(b'\n');
    match &export.output {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => std::io::stdout().lock().write_all(&text)?,
    }
    Ok(())
}

async fn read_all(import: &Import) -> anyhow::Result<()> {
    let path = import.input.display();
    let text = std::fs::read(&import.input).with_context(|| format!("cannot read {path}"))?;
    let imported: Exported = serde_json::from_slice(&text).map_err(|error| {
        anyhow!("{path} is not what `sluice checkpoint export` writes: {error}")
    })?;
    if imported.version != VERSION {
        bail!(
            "{path} has version {}; this sluice reads version {VERSION}",
            imported.version
        );
    }
    let opened = Opened::new(&import.file)?;
    // All are looked at before any is written.
    let mut due = Vec::new();
    for Entry { lane, checkpoint } in imported.checkpoints {
        let store = opened.store(&lane.link)?;
        let usual = usual(&opened.config, &lane)?;
        if !import.replace && store.load(&lane, &usual).await?.is_some() {
            bail!("lane {lane} has a checkpoint already: add --replace to lose it");
        }
        due.push((store, lane, checkpoint));
    }
    let count = due.len();
    for (store, lane, checkpoint) in due {
        store.save(&[(lane, checkpoint)]).await?;
    }
    println!("{count} checkpoints imported");
    Ok(())
}

fn usual(config: &Config, lane: &LaneKey) -> anyhow::Result<Partition> {
    let link = config.links.iter().find(|link| link.name == lane.link);
    let link = link.with_context(|| format!("there is no link `{}`", lane.link))?;
    let clusters = (&link.source.cluster, &link.destination.cluster);
    if clusters != (&lane.cluster, &lane.destination) {
        bail!(
            "lane {lane} is not one of link `{}`, which goes from {} to {}: correct the clusters' names in the file, or \
             in the configuration",
            link.name,
            clusters.0,
            clusters.1
        );
    }
    Ok(link::usual_destination(link, lane))
}
