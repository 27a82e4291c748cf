//! The links that run, each a task of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::link::{self, Board, LinkReport};

/// Links by name.
pub struct Links {
    board: Arc<Board>,
    drain_timeout: Duration,
    stop: CancellationToken,
    tasks: JoinSet<LinkReport>,
    running: BTreeMap<String, Running>,
    /// Those that do not run any more.
    ended: BTreeMap<String, LinkReport>,
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
        }
    }

    /// Starts a link.
    pub fn start(&mut self, parts: link::Parts) {
        let name = parts.link.name.clone();
        let stop = self.stop.child_token();
        let abort = self.tasks.spawn(link::run(parts, stop.clone()));
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
        let ended = self.tasks.join_next().await;
        let some = ended.is_some();
        self.note(ended);
        some
    }

    fn note(&mut self, ended: Option<Result<LinkReport, JoinError>>) {
        match ended {
            Some(Ok(report)) => {
                self.running.remove(&report.link);
                self.ended.insert(report.link.clone(), report);
            }
            Some(Err(failed)) if failed.is_panic() => {
                std::panic::resume_unwind(failed.into_panic())
            }
            // What was cut off is reported by those who did it.
            Some(Err(_)) | None => {}
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
        let Some(link) = self.running.remove(name) else {
            return;
        };
        link.abort.abort();
        let id = link.abort.id();
        // A lane of it must not send any more when the link starts anew.
        while !link.abort.is_finished() {
            let ended = self.tasks.join_next_with_id().await;
            let same = match &ended {
                Some(Ok((ended, _))) => *ended == id,
                Some(Err(failed)) => failed.id() == id,
                None => true,
            };
            if same {
                break;
            }
            self.note(ended.map(|ended| ended.map(|(_, report)| report)));
        }
        let limit = humantime::format_duration(self.drain_timeout);
        self.fail(name, link::Error::Undrained(limit));
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
