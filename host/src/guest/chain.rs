//! An ordered chain of guests over the batches of one source partition.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::component::Component;
use super::decision::{Decision, Failure, Fate, Outcome, Stage};
use super::instance::{Decisions, Fault, Instance};
use super::slot::Slot;
use super::{Judge, Judging, Source, View};
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
}

/// One guest of a chain.
struct Member {
    slot: Arc<Slot>,
    /// The version that decides here.
    component: Arc<Component>,
    instance: Option<Instance>,
    /// The version that does not start here, where the last one does not.
    refused: Option<Arc<Component>>,
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
        };
        for member in &mut chain.members {
            member.running(&chain.source)?;
            member.slot.serves(&chain.source);
        }
        Ok(chain)
    }

    /// Whether there is no guest, so that every message goes on as it is.
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Asks every guest about every message of `batch` that the guests before let through. The result has one
    /// outcome a message. One version of each guest decides over the whole batch, the newest that starts here. Runs
    /// as long as the guests do: not for a thread that must stay responsive.
    ///
    /// # Errors
    /// [`ChainError`] when a guest failed and cannot be started again. No message is to blame.
    pub fn apply(&mut self, batch: &Polled) -> Result<Vec<Outcome>, ChainError> {
        let frames = batch.frames();
        let mut outcomes = vec![Outcome::default(); frames.len()];
        for member in &mut self.members {
            member.take_up_new_version(&self.source);
            let live: Vec<usize> = (0..frames.len())
                .filter(|&index| matches!(outcomes[index].fate, Fate::Deliver))
                .collect();
            let views: Vec<View<'_>> = live
                .iter()
                .map(|&index| View::new(batch, &frames[index], outcomes[index].edit.as_deref()))
                .collect();
            let decisions = member.judge(&self.source, &views)?;
            let stats = &member.slot.stats;
            stats.asked.fetch_add(views.len() as u64, Ordering::Relaxed);
            // What each decision makes of its message, found while the views still borrow the outcomes.
            let changes: Vec<_> = decisions
                .choices
                .iter()
                .zip(live.iter().zip(&views))
                .map(|(&choice, (&index, view))| {
                    conclude(&decisions.table[choice as usize], *view, &outcomes[index])
                })
                .collect();
            for (index, change) in live.into_iter().zip(changes) {
                let outcome = &mut outcomes[index];
                match change {
                    Ok(None) => {}
                    Ok(Some(after)) => *outcome = after,
                    Err((stage, reason)) => {
                        stats.failed(stage);
                        let failure = Failure {
                            guest: member.slot.name().to_owned(),
                            stage,
                            reason,
                        };
                        fail(
                            outcome,
                            failure,
                            frames[index].offset,
                            &self.source,
                            self.on_error,
                        );
                    }
                }
            }
        }
        Ok(outcomes)
    }
}

impl Judge for Chain {
    fn judge(mut self: Box<Self>, batch: Arc<Polled>) -> Judging {
        if self.is_empty() {
            let outcomes = vec![Outcome::default(); batch.frames().len()];
            return Box::pin(std::future::ready((self as Box<dyn Judge>, Ok(outcomes))));
        }
        Box::pin(blocking(move || {
            let outcomes = self.apply(&batch);
            (self as Box<dyn Judge>, outcomes)
        }))
    }
}

fn fail(outcome: &mut Outcome, failure: Failure, offset: u64, source: &Source, on_error: OnError) {
    tracing::warn!(
        guest = failure.guest,
        source = %source.partition,
        offset,
        stage = failure.stage.name(),
        reason = failure.reason,
        "a message could not be processed"
    );
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
        Self {
            slot: Arc::clone(slot),
            component: slot.current(),
            instance: None,
            refused: None,
        }
    }

    /// Goes over to the guest's newest version, unless that does not start here: then the old one goes on.
    fn take_up_new_version(&mut self, source: &Source) {
        let newest = self.slot.current();
        let known = |version: &Arc<Component>| Arc::ptr_eq(version, &newest);
        if known(&self.component) || self.refused.as_ref().is_some_and(known) {
            return;
        }
        match Instance::start(&newest, source, &self.slot.stats) {
            Ok(started) => {
                self.instance = Some(started);
                self.component = newest;
                self.refused = None;
            }
            Err(fault) => {
                tracing::error!(
                    guest = self.slot.name(),
                    source = %source.partition,
                    "the new version does not start here, the last one goes on: {fault}"
                );
                self.slot.refuse(format!("{}: {fault}", source.partition));
                self.refused = Some(newest);
            }
        }
    }

    /// Decisions over all of `views`. Where the guest fails, parts are tried with fresh instances until the message
    /// at fault is alone.
    fn judge(&mut self, source: &Source, views: &[View<'_>]) -> Result<Decisions, ChainError> {
        let begun = Instant::now();
        let mut decisions = Decisions::default();
        let mut parts = vec![views];
        while let Some(part) = parts.pop() {
            let done_before = decisions.choices.len();
            let guest = self.running(source)?;
            let Err(fault) = guest.decide(part, &mut decisions) else {
                continue;
            };
            let one_at_fault = guest.is_per_message();
            self.instance = None;
            let rest = &part[decisions.choices.len() - done_before..];
            if one_at_fault || rest.len() == 1 {
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
        Ok(decisions)
    }

    /// The running instance, started anew where the last one failed.
    fn running(&mut self, source: &Source) -> Result<&mut Instance, ChainError> {
        match &mut self.instance {
            Some(running) => Ok(running),
            empty => match Instance::start(&self.component, source, &self.slot.stats) {
                Ok(started) => Ok(empty.insert(started)),
                Err(fault) => Err(ChainError::new(&self.component, source, fault)),
            },
        }
    }
}
