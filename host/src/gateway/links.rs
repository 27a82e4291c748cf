//! The links that run, each a task of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::cluster::SDK_PATIENCE;
use crate::link::{self, Board, LinkReport};

/// After so long no call of a link that was cut off is under way any more.
const GIVEN_UP: Duration = SDK_PATIENCE.saturating_add(Duration::from_secs(5));

/// Links by name.
pub struct Links {
    board: Arc<Board>,
    drain_timeout: Duration,
    stop: CancellationToken,
    tasks: JoinSet<LinkReport>,
    running: BTreeMap<String, Running>,
    /// Those that do not run any more.
    ended: BTreeMap<String, LinkReport>,
    /// When links were cut off last.
    cut_off: BTreeMap<String, Instant>,
}

struct Running {
    stop: CancellationToken,
    abort: AbortHandle,
}

impl Links {
    /// No link yet. All of them drain on `stop`; what takes longer than `drain_timeout` is cut off.
    pub fn new(board: Arc<Board>, drain_timeout: Duration, stop: CancellationToken) -> Self {
        Self {
            board,
            drain_timeout,
            stop,
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            cut_off: BTreeMap::new(),
        }
    }

    /// Starts a link.
    pub fn start(&mut self, parts: link::Parts) {
        let (name, stop) = (parts.link.name.clone(), self.stop.child_token());
        self.spawn(name, stop.clone(), link::run(parts, stop));
    }

    fn spawn(
        &mut self,
        name: String,
        stop: CancellationToken,
        task: impl Future<Output = LinkReport> + Send + 'static,
    ) {
        let abort = self.tasks.spawn(task);
        self.ended.remove(&name);
        self.running.insert(name, Running { stop, abort });
    }

    /// Notes why a link that ended cannot start anew.
    pub fn fail(&mut self, name: &str, error: link::Error) {
        tracing::error!(link = name, "{error}");
        self.board.fail(name, &error);
        let report = LinkReport {
            lanes: link::reports(&self.board, name),
            link: name.to_owned(),
            error: Some(error),
        };
        self.ended.insert(name.to_owned(), report);
    }

    /// Whether the link runs.
    pub fn runs(&self, name: &str) -> bool {
        self.running.contains_key(name)
    }

    /// Waits until a link has ended; tells whether one ran at all. May be given up without loss.
    pub async fn ended(&mut self) -> bool {
        let ended = self.tasks.join_next_with_id().await;
        let some = ended.is_some();
        if let Some(ended) = ended {
            self.note(ended);
        }
        some
    }

    fn note(&mut self, ended: Result<(Id, LinkReport), JoinError>) {
        match ended {
            Ok((id, report)) => {
                // Not another task that runs the link by now.
                let running = self.running.get(&report.link);
                if running.is_some_and(|link| link.abort.id() == id) {
                    self.running.remove(&report.link);
                    self.ended.insert(report.link.clone(), report);
                }
            }
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            // Who cut it off reports it.
            Err(_) => {}
        }
    }

    /// Has these links drain and waits for that. What takes too long is cut off.
    pub async fn drain(&mut self, names: &BTreeSet<String>) {
        for name in names {
            if let Some(link) = self.running.get(name) {
                link.stop.cancel();
            }
        }
        let deadline = tokio::time::sleep(self.drain_timeout);
        tokio::pin!(deadline);
        while names.iter().any(|name| self.runs(name)) {
            tokio::select! {
                _ = self.ended() => {}
                () = &mut deadline => break,
            }
        }
        for name in names {
            self.cut_off(name).await;
        }
    }

    /// Ends a link that did not drain in time. It goes on from what is settled, as after a crash.
    async fn cut_off(&mut self, name: &str) {
        let Some(link) = self.running.get(name) else {
            return;
        };
        let id = link.abort.id();
        link.abort.abort();
        // It may have ended by itself meanwhile: then its report is here.
        while self
            .running
            .get(name)
            .is_some_and(|link| link.abort.id() == id)
        {
            match self.tasks.join_next_with_id().await {
                Some(Err(failed)) if failed.id() == id && failed.is_cancelled() => break,
                Some(ended) => self.note(ended),
                None => break,
            }
        }
        if self.running.remove(name).is_none() {
            return;
        }
        self.cut_off.insert(name.to_owned(), Instant::now());
        let limit = humantime::format_duration(self.drain_timeout);
        self.fail(name, link::Error::Undrained(limit));
    }

    /// How long a link that was cut off must not start yet: what it was sending may arrive for as long.
    pub fn must_wait(&self, name: &str) -> Option<Duration> {
        let since = self.cut_off.get(name)?.elapsed();
        GIVEN_UP.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// Cuts off what still runs. The reports of all links that ended, in the order of their names.
    pub async fn finish(mut self) -> Vec<LinkReport> {
        let left: Vec<_> = self.running.keys().cloned().collect();
        for name in left {
            self.cut_off(&name).await;
        }
        self.ended.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn links() -> Links {
        Links::new(Arc::default(), LIMIT, CancellationToken::new())
    }

    /// Adds a link that takes `time` to drain.
    fn add(links: &mut Links, name: &str, time: Duration) {
        let stop = CancellationToken::new();
        let (told, link) = (stop.clone(), name.to_owned());
        links.spawn(name.to_owned(), stop, async move {
            told.cancelled().await;
            tokio::time::sleep(time).await;
            LinkReport {
                link,
                lanes: Vec::new(),
                error: None,
            }
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_ends_as_it_is_cut_off_does_not_take_its_successors_place() {
        let name = BTreeSet::from(["a".to_owned()]);
        for _ in 0..100 {
            let mut links = links();
            // No time to drain, so that its end and the deadline are there at once.
            links.drain_timeout = Duration::ZERO;
            add(&mut links, "a", Duration::ZERO);
            links.running["a"].stop.cancel();
            tokio::time::sleep(LIMIT).await;
            assert!(links.running["a"].abort.is_finished());
            links.drain(&name).await;
            assert!(!links.runs("a"));
            assert!(links.ended["a"].error.is_none(), "it drained");
            add(&mut links, "a", LIMIT);
            let another = tokio::time::timeout(LIMIT, links.ended()).await;
            assert!(another.is_err(), "nothing is left of the first");
            assert!(links.runs("a"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_was_cut_off_must_wait_and_one_that_drained_need_not() {
        let mut links = links();
        add(&mut links, "slow", LIMIT * 2);
        add(&mut links, "fast", LIMIT / 2);
        add(&mut links, "other", LIMIT);
        links
            .drain(&BTreeSet::from(["slow".to_owned(), "fast".to_owned()]))
            .await;
        assert!(links.must_wait("slow").is_some());
        assert_eq!(links.must_wait("fast"), None);
        assert!(links.runs("other"));
        let reports = links.finish().await;
        let ended: Vec<_> = reports
            .iter()
            .map(|report| (report.link.as_str(), report.error.is_some()))
            .collect();
        assert_eq!(ended, [("fast", false), ("other", true), ("slow", true)]);
    }
}
