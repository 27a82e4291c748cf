//! Taking up a changed configuration while links run.

use std::collections::BTreeSet;

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::links::Links;
use super::{Error, Running};
use crate::config::{self, Config};
use crate::link;

/// The configuration is not taken up. What ran goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It cannot be read or is not valid.
    #[error("{0}; the gateway goes on with the configuration it has")]
    Config(#[from] config::Error),
    /// It changes what is read at the start only.
    #[error(
        "the section [{0}] is read at the start only: restart the gateway to change it; until then it goes on with the \
         configuration it has"
    )]
    Fixed(&'static str),
    /// A guest of it cannot be used.
    #[error("{0}; the gateway goes on with the configuration it has")]
    Guest(#[from] Error),
    /// The gateway ends.
    #[error("the gateway ends")]
    Stopping,
}

/// What a reload did, by names.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Links that are new.
    pub added: Vec<String>,
    /// Links that drained and are gone.
    pub removed: Vec<String>,
    /// Links that drained and started with other settings, their own or their clusters'.
    pub changed: Vec<String>,
    /// Links without changes that had failed, and started anew.
    pub restarted: Vec<String>,
    /// Those of the links above that do not run: how far they were could not be saved, or they did not drain in time and what
    /// they were sending may still arrive. A later reload tries again.
    pub failed: Vec<String>,
    /// Guests that are new or have other settings.
    pub guests: Vec<String>,
}

type Answer = Result<Changes, ReloadError>;

/// Somebody who waits for a reload.
pub struct Request(oneshot::Sender<Answer>);

impl Request {
    /// Tells what came of it.
    pub fn answer(self, answer: Answer) {
        match &answer {
            Ok(changes) => tracing::info!(?changes, "the configuration was taken up"),
            Err(error) => tracing::error!("{error}"),
        }
        // Who asked may have gone.
        let _ = self.0.send(answer);
    }
}

/// Asks a gateway to take up its configuration anew.
#[derive(Debug, Clone)]
pub struct Reloader(mpsc::Sender<oneshot::Sender<Answer>>);

impl Reloader {
    /// Waits until the gateway has taken up its configuration.
    ///
    /// # Errors
    /// [`ReloadError`] when it does not.
    pub async fn reload(&self) -> Answer {
        let (sender, answer) = oneshot::channel();
        let sent = self.0.send(sender).await;
        sent.map_err(|_| ReloadError::Stopping)?;
        answer.await.unwrap_or(Err(ReloadError::Stopping))
    }
}

/// Where a gateway reads its configuration anew, and who asks for that.
pub struct Reloads {
    read: Box<dyn Fn() -> Result<Config, config::Error> + Send>,
    reloader: Reloader,
    requests: mpsc::Receiver<oneshot::Sender<Answer>>,
}

impl Reloads {
    /// `read` gives the configuration as it is now.
    pub fn new(read: impl Fn() -> Result<Config, config::Error> + Send + 'static) -> Self {
        let (sender, requests) = mpsc::channel(1);
        Self {
            read: Box::new(read),
            reloader: Reloader(sender),
            requests,
        }
    }

    /// For those who ask.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// The next request.
    pub(super) async fn next(&mut self) -> Option<Request> {
        self.requests.recv().await.map(Request)
    }

    /// The configuration as it is now.
    pub(super) fn read(&self) -> Result<Config, config::Error> {
        (self.read)()
    }
}

impl Running {
    /// Takes up `config`: all of it, or nothing where a guest of it cannot be used. Links without changes are not touched.
    ///
    /// # Errors
    /// [`ReloadError`] when nothing was changed.
    pub(super) async fn reload(
        &mut self,
        config: Result<Config, config::Error>,
        links: &mut Links,
        stop: &CancellationToken,
    ) -> Answer {
        let config = config?;
        if config.gateway != self.config.gateway {
            return Err(ReloadError::Fixed("gateway"));
        }
        if config.admin != self.config.admin {
            return Err(ReloadError::Fixed("admin"));
        }
        let guests = tokio::select! {
            prepared = self.guests.prepare(&config) => prepared?,
            () = stop.cancelled() => return Err(ReloadError::Stopping),
        };
        let mut changes = self.differences(&config, links);
        changes.guests.clone_from(&guests.changed);

        // From here on nothing can fail, and nothing is given up half way.
        let names = |lists: &[&Vec<String>]| -> BTreeSet<String> {
            lists.iter().flat_map(|list| list.iter().cloned()).collect()
        };
        let starting = names(&[&changes.added, &changes.changed, &changes.restarted]);
        links
            .drain(&names(&[
                &changes.removed,
                &changes.changed,
                &changes.restarted,
            ]))
            .await;
        self.guests.install(guests);
        for name in names(&[&changes.removed]).union(&starting) {
            let refused = match self.writers.close(name).await {
                Err(error) => Some(error.into()),
                // Its report says already why it ended.
                Ok(()) => links.must_wait(name).map(link::Error::CutOff),
            };
            if let Some(error) = refused {
                links.fail(name, error);
                changes.failed.push(name.clone());
            }
        }
        for name in &changes.removed {
            self.board.remove(name);
        }
        self.config = config;
        if stop.is_cancelled() {
            return Ok(changes);
        }
        for link in self.config.links.clone() {
            // From an older checkpoint it would send messages once more, where its destination is another now.
            if starting.contains(&link.name) && !changes.failed.contains(&link.name) {
                links.start(self.parts(link));
            }
        }
        Ok(changes)
    }

    fn differences(&self, config: &Config, links: &Links) -> Changes {
        let mut changes = Changes::default();
        for link in &config.links {
            let before = self.config.links.iter().find(|old| old.name == link.name);
            let list = match before {
                None => &mut changes.added,
                Some(before) if before != link || self.has_other_clusters(config, link) => {
                    &mut changes.changed
                }
                Some(_) if !links.runs(&link.name) => &mut changes.restarted,
                Some(_) => continue,
            };
            list.push(link.name.clone());
        }
        let gone = self.config.links.iter().filter(|old| {
            let mut links = config.links.iter();
            links.all(|link| link.name != old.name)
        });
        changes.removed = gone.map(|link| link.name.clone()).collect();
        changes
    }

    fn has_other_clusters(&self, config: &Config, link: &config::Link) -> bool {
        [&link.source.cluster, &link.destination.cluster]
            .into_iter()
            .any(|name| config.clusters.get(name) != self.config.clusters.get(name))
    }
}
