//! An ordered chain of guests over the batches of one source partition.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::watch;

use super::breaker::Breaker;
use super::component::Component;
use super::decision::{Decision, Failure, Fate, Outcome, Stage};
use super::instance::{Budget, Decisions, Fault, Instance};
use super::slot::Slot;
use super::{Judge, Judged, Judging, Pause, Source, View};
use crate::batch::Polled;
use crate::blocking;
use crate::config::link::OnError;

/// A guest that cannot be started, which is no message's fault.
#[derive(Debug, thiserror::Error)]
#[error("guest `{guest}` ({path}) for {source_partition}: {fault}")]
pub struct ChainError {
    guest: String,
    path: String,
    source_partition: String,
    fault: Fault,
}

impl ChainError {
    pub(super) fn new(component: &Component, source: &Source, fault: Fault) -> Self {
        Self {
            guest: component.name().to_owned(),
            path: component.version().path.display().to_string(),
            source_partition: source.to_string(),
            fault,
        }
    }
}

/// The guests of a link, with instances of their own for one source partition.
pub struct Chain {
    source: Source,
    on_error: OnError,
    members: Vec<Member>,
    /// Outcomes over the rest of a batch, as far as the first guests decided over it before a later one had to pause.
    ahead: Vec<Outcome>,
}

/// One guest of a chain.
struct Member {
    slot: Arc<Slot>,
    /// The version that decides here.
    component: Arc<Component>,
    instance: Option<Instance>,
    /// Changes when lanes should look for a newer version, and when they should ask a guest that failed again.
    requests: watch::Receiver<u64>,
    breaker: Breaker,
    /// How many messages of the rest of a batch it decided over already.
    ahead: usize,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.members.iter().map(|member| member.slot.name());
        formatter.debug_list().entries(names).finish()
    }
}

impl Chain {
    /// Starts an instance of every guest.
    ///
    /// # Errors
    /// [`ChainError`] when a guest traps on start or refuses its configuration.
    pub fn start(
        slots: &[Arc<Slot>],
        source: Source,
        on_error: OnError,
    ) -> Result<Self, ChainError> {
        let mut chain = Self {
            source,
            on_error,
            members: slots.iter().map(Member::new).collect(),
            ahead: Vec::new(),
        };
        for member in &mut chain.members {
            if let Err(fault) = member.running(&chain.source) {
                return Err(ChainError::new(&member.component, &chain.source, fault));
            }
            member.slot.serves(&chain.source);
        }
        Ok(chain)
    }

    /// Whether there is no guest, so that every message goes on as it is.
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Bytes of memory that the instances hold, as their limit counts them.
    pub fn memory(&self) -> usize {
        let instances = self
            .members
            .iter()
            .filter_map(|member| member.instance.as_ref());
        instances.map(Instance::memory).sum()
    }

    /// Asks every guest about every message of `batch` that the guests before let through, but about none a second
    /// time: after an answer about a front part, `batch` is the rest of that before. One version of each guest decides, the
    /// newest that starts here. Runs as long as the guests do: not for a thread that must stay responsive.
    pub fn apply(&mut self, batch: &Polled) -> Judged {
        let mut outcomes = std::mem::take(&mut self.ahead);
        outcomes.resize(batch.frames().len(), Outcome::default());
        let mut end = outcomes.len();
        for member in &mut self.members {
            member.prepare(&self.source);
            // What it decided already is used up first: the host does not keep more and more of it.
            let window = match member.ahead {
                0 => 0..end,
                ahead => ahead..ahead,
            };
            end = member.pass(&self.source, self.on_error, batch, &mut outcomes, window);
            member.ahead = end;
        }
        for member in &mut self.members {
            member.ahead -= end;
        }
        self.ahead = outcomes.split_off(end);
        let pauses = self.members.iter().filter_map(Member::pause);
        Judged {
            outcomes,
            pause: pauses.max_by_key(|pause| pause.time),
        }
    }
}

impl Judge for Chain {
    fn judge(mut self: Box<Self>, batch: Arc<Polled>) -> Judging {
        if self.is_empty() {
            let judged = Judged {
                outcomes: vec![Outcome::default(); batch.frames().len()],
                pause: None,
            };
            return Box::pin(std::future::ready((self as Box<dyn Judge>, judged)));
        }
        Box::pin(blocking(move || {
            let judged = self.apply(&batch);
            (self as Box<dyn Judge>, judged)
        }))
    }
}

fn fail(outcome: &mut Outcome, failure: Failure, on_error: OnError) {
    outcome.failed = true;
    if on_error != OnError::Forward {
        outcome.fate = Fate::Fail(Box::new(failure));
    }
}

/// The outcome after a decision; `None` where it stays as it is.
fn conclude(
    decision: &Decision,
    view: View<'_>,
    before: &Outcome,
) -> Result<Option<Outcome>, (Stage, String)> {
    match decision {
        Decision::Forward => Ok(None),
        Decision::Drop => Ok(Some(Outcome {
            fate: Fate::Drop,
            ..before.clone()
        })),
        Decision::Route(routes) => Ok(Some(Outcome {
            routes: Some(Arc::clone(routes)),
            ..before.clone()
        })),
        Decision::Rewrite(rewrite) => {
            let edit = rewrite
                .apply(view, before.edit.as_deref())
                .map_err(|reason| (Stage::Verdict, reason))?;
            Ok(Some(Outcome {
                fate: Fate::Deliver,
                edit: Some(Box::new(edit)),
                routes: rewrite.routes().or_else(|| before.routes.clone()),
                failed: before.failed,
            }))
        }
        Decision::Fail(stage, reason) => Err((*stage, reason.clone())),
    }
}

impl Member {
    fn new(slot: &Arc<Slot>) -> Self {
        // In this order: a version that is installed in between is then taken up before the first batch.
        let requests = slot.requests();
        let component = slot.current();
        Self {
            slot: Arc::clone(slot),
            requests,
            breaker: Breaker::new(component.settings.breaker.clone(), &slot.stats),
            component,
            instance: None,
            ahead: 0,
        }
    }

    /// Goes over to the guest's newest version, unless that does not start here: then the old one goes on.
    fn prepare(&mut self, source: &Source) {
        self.breaker.waited();
        if !self.requests.has_changed().unwrap_or(false) {
            return;
        }
        self.requests.mark_unchanged();
        let newest = self.slot.current();
        if Arc::ptr_eq(&self.component, &newest) {
            return;
        }
        match Instance::start(&newest, source, &self.slot.stats) {
            Ok(started) => {
                self.instance = Some(started);
                self.breaker = Breaker::new(newest.settings.breaker.clone(), &self.slot.stats);
                self.component = newest;
            }
            Err(fault) => {
                tracing::error!(
                    guest = self.slot.name(),
                    source = %source.partition,
                    "the new version does not start here, the last one goes on: {fault}"
                );
                self.slot.refuse(format!("{}: {fault}", source.partition));
            }
        }
    }

    /// Decides over the messages of `window` that are still to be delivered. Returns the end of what it decided: of
    /// the window, unless the breaker opens or the budget is spent.
    fn pass(
        &mut self,
        source: &Source,
        on_error: OnError,
        batch: &Polled,
        outcomes: &mut [Outcome],
        window: Range<usize>,
    ) -> usize {
        let frames = batch.frames();
        let live: Vec<usize> = window
            .clone()
            .filter(|&index| matches!(outcomes[index].fate, Fate::Deliver))
            .collect();
        let views: Vec<View<'_>> = live
            .iter()
            .map(|&index| View::new(batch, &frames[index], outcomes[index].edit.as_deref()))
            .collect();
        let decisions = self.judge(source, &views);
        let decided = decisions.choices.len();
        let stats = &self.slot.stats;
        stats.asked.fetch_add(decided as u64, Ordering::Relaxed);
        // What each decision makes of its message, found while the views still borrow the outcomes.
        let changes: Vec<_> = decisions
            .choices
            .iter()
            .zip(live.iter().zip(&views))
            .map(|(&choice, (&index, view))| {
                conclude(&decisions.table[choice as usize], *view, &outcomes[index])
            })
            .collect();
        for (&index, change) in live.iter().zip(changes) {
            let outcome = &mut outcomes[index];
            match change {
                Ok(None) => {}
                Ok(Some(after)) => *outcome = after,
                Err((stage, reason)) => {
                    stats.failed(stage);
                    let failure = Failure {
                        guest: self.slot.name().to_owned(),
                        stage,
                        reason,
                    };
                    if stats.may_warn(Instant::now()) {
                        tracing::warn!(
                            guest = failure.guest,
                            source = %source.partition,
                            offset = frames[index].offset,
                            stage = stage.name(),
                            reason = failure.reason,
                            "a message could not be processed"
                        );
                    }
                    fail(outcome, failure, on_error);
                }
            }
        }
        live.get(decided).copied().unwrap_or(window.end)
    }

    /// Decisions over a front part of `views`: over all of them, unless the breaker opens or the budget is spent. Where the guest fails,
    /// parts are tried with fresh instances until the message at fault is alone.
    fn judge(&mut self, source: &Source, views: &[View<'_>]) -> Decisions {
        let begun = Instant::now();
        let mut decisions = Decisions::default();
        let (first, others) = if self.breaker.is_half_open() {
            views.split_at(views.len().min(1))
        } else {
            (views, &views[..0])
        };
        let mut parts = vec![others, first];
        let mut budget = Budget::new(self.component.settings.limits.time);
        while self.breaker.open().is_none()
            && (decisions.choices.is_empty() || !budget.is_spent())
            && let Some(part) = parts.pop()
        {
            if part.is_empty() {
                continue;
            }
            let done_before = decisions.choices.len();
            let guest = match self.running(source) {
                Ok(guest) => guest,
                Err(fault) => {
                    self.breaker.trip(&fault);
                    break;
                }
            };
            let one_at_fault = guest.is_per_message();
            let ended = guest.decide(part, &mut decisions, &mut budget);
            let rest = &part[decisions.choices.len() - done_before..];
            for &choice in &decisions.choices[done_before..] {
                match &decisions.table[choice as usize] {
                    Decision::Fail(Stage::Verdict, reason) => self.breaker.fault(reason),
                    _ => self.breaker.success(),
                }
            }
            let Err(fault) = ended else {
                if !rest.is_empty() {
                    break;
                }
                continue;
            };
            self.instance = None;
            if one_at_fault || rest.len() == 1 {
                self.breaker.fault(&fault);
                decisions.push(Decision::Fail(fault.stage(), fault.to_string()));
                parts.push(&rest[1..]);
            } else {
                let (front, back) = rest.split_at(rest.len() / 2);
                parts.extend([back, front]);
            }
        }
        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let total = &self.slot.stats.nanoseconds;
        total.fetch_add(nanoseconds, Ordering::Relaxed);
        decisions
    }

    /// The running instance, started anew where the last one failed.
    fn running(&mut self, source: &Source) -> Result<&mut Instance, Fault> {
        match &mut self.instance {
            Some(running) => Ok(running),
            empty => Instance::start(&self.component, source, &self.slot.stats)
                .map(|started| empty.insert(started)),
        }
    }

    /// What the lane has to wait for, while the breaker is open.
    fn pause(&self) -> Option<Pause> {
        let (time, reason) = self.breaker.open()?;
        let mut requests = self.requests.clone();
        Some(Pause {
            guest: self.slot.name().to_owned(),
            reason: reason.to_owned(),
            time,
            over: Box::pin(async move {
                // Either way it is time to ask the guest again.
                let _ = tokio::time::timeout(time, requests.changed()).await;
            }),
        })
    }
}
