//! `sluice dead-letters`.

mod list;
mod render;
mod replay;
mod show;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use tokio_util::sync::CancellationToken;

use super::{Exit, run};
use crate::cluster::{Cluster, Partition};
use crate::config::link::{Attempts, Retry};
use crate::config::{self, Config};
use crate::gateway;
use crate::link;
use crate::link::letters::Mailbox;

/// A failure and how the process ends with it.
type Failure = (Exit, anyhow::Error);

/// Attempts at a call of a command that only looks.
const ATTEMPTS: Attempts = Attempts::AtMost(5);

/// What `sluice dead-letters` does.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List dead letters: where each message came from and why it is there.
    List(list::Arguments),
    /// Show one dead letter whole: headers, payload, reason.
    Show(show::Arguments),
    /// Send the messages of dead letters where their link would send them now, each once.
    ///
    /// The link's guests are asked as they are configured now, and see the source partition and offset that the message
    /// came from. Letters are taken in their order, up to the end that the topic has at the start. Each is replayed
    /// once, also when replays are killed and started again: what was replayed is kept in `replays.redb` in
    /// `gateway.state_dir`. A message that fails again becomes a new dead letter, for a later replay. `sluice run` may go
    /// on meanwhile.
    Replay(replay::Arguments),
}

/// Which letters.
#[derive(Debug, Clone, clap::Args)]
struct Place {
    /// The configuration file.
    #[arg(long, short, env = "SLUICE_CONFIG")]
    config: PathBuf,
    /// The link whose letters are meant; needed when the configuration has several.
    #[arg(long)]
    link: Option<String>,
}

/// The part of a configuration that a command is about.
struct Selected {
    /// With the chosen link alone.
    config: Config,
    link: Arc<config::Link>,
    destination: Arc<Cluster>,
}

/// Runs the command.
///
/// # Errors
/// The exit code and its reason.
pub async fn execute(command: &Command) -> Result<Exit, Failure> {
    let stop = CancellationToken::new();
    run::stop_on_signals(stop.clone()).map_err(unexpected)?;
    match command {
        Command::List(arguments) => list::execute(arguments, stop).await,
        Command::Show(arguments) => show::execute(arguments, stop).await,
        Command::Replay(arguments) => replay::execute(arguments, stop).await,
    }
}

impl Place {
    /// Loads the configuration and chooses the link. With `all`, any link will do whose letters lie where those of all
    /// the others do.
    fn select(&self, all: bool) -> Result<Selected, Failure> {
        let mut config = super::load(&self.config).map_err(|error| (Exit::Usage, error.into()))?;
        let place = choose(&config.links, self.link.as_deref(), all)
            .map_err(|error| (Exit::Usage, error))?;
        let link = config.links.swap_remove(place);
        config.links = vec![link.clone()];
        let mut clusters = gateway::clusters(&config);
        let destination = clusters
            .remove(&link.destination.cluster)
            .context("a link names a cluster of the configuration")
            .map_err(unexpected)?;
        Ok(Selected {
            config,
            link: Arc::new(link),
            destination,
        })
    }
}

fn choose(links: &[config::Link], name: Option<&str>, all: bool) -> anyhow::Result<usize> {
    let names = || {
        let names: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
        names.join(", ")
    };
    if let Some(name) = name {
        let found = links.iter().position(|link| link.name == name);
        return found.ok_or_else(|| {
            anyhow!(
                "--link {name}: there is no such link; there are: {}",
                names()
            )
        });
    }
    let places: BTreeSet<_> = links
        .iter()
        .map(|link| {
            let letters = &link.dead_letter;
            (&link.destination.cluster, &letters.stream, &letters.topic)
        })
        .collect();
    match links {
        [] => Err(anyhow!("the configuration has no link")),
        [_] => Ok(0),
        _ if all && places.len() == 1 => Ok(0),
        _ => Err(anyhow!(
            "the configuration has several links: name one with --link; there are: {}",
            names()
        )),
    }
}

impl Selected {
    /// The link's dead-letter topic, for a command that only looks.
    fn mailbox(&self, stop: CancellationToken) -> Mailbox {
        let retry = Retry {
            attempts: ATTEMPTS,
            ..self.link.retry.clone()
        };
        let cluster = Arc::clone(&self.destination);
        Mailbox::new(cluster, &self.link.dead_letter, retry, stop)
    }
}

/// The partitions of a mailbox, or the one that was asked for.
async fn partitions(mailbox: &mut Mailbox, wanted: Option<u32>) -> Result<Vec<Partition>, Failure> {
    let mut partitions = mailbox.partitions().await.map_err(failed)?;
    partitions.retain(|partition| wanted.is_none_or(|id| id == partition.id));
    Ok(partitions)
}

fn unexpected(error: anyhow::Error) -> Failure {
    (Exit::Unexpected, error)
}

fn failed(error: link::Error) -> Failure {
    (Exit::from(&error), error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(list: &[(&str, &str)]) -> Vec<config::Link> {
        list.iter()
            .map(|(name, topic)| {
                let text = format!(
                    "name = {name:?}\nsource = {{ cluster = \"eu\", streams = [\"s\"] }}\n\
                     destination = {{ cluster = \"us\" }}\ndead_letter = {{ topic = {topic:?} }}"
                );
                toml::from_str(&text).expect("a link")
            })
            .collect()
    }

    #[test]
    fn a_link_must_be_named_where_there_are_several() {
        let (one, shared) = (links(&[("a", "t")]), links(&[("a", "t"), ("b", "t")]));
        let apart = links(&[("a", "t"), ("b", "u")]);
        assert_eq!(choose(&one, None, false).expect("the only one"), 0);
        assert_eq!(choose(&shared, Some("b"), false).expect("named"), 1);
        assert_eq!(choose(&shared, None, true).expect("they share a topic"), 0);
        for (links, name, all, reason) in [
            (
                &shared,
                None,
                false,
                "name one with --link; there are: a, b",
            ),
            (&apart, None, true, "name one with --link; there are: a, b"),
            (
                &one,
                Some("c"),
                false,
                "there is no such link; there are: a",
            ),
        ] {
            let error = choose(links, name, all).expect_err("ambiguous");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
