//! An ordered chain of guests over the batches of one source partition.

use std::sync::Arc;

use super::component::Component;
use super::decision::{Decision, Failure, Fate, Outcome, Stage};
use super::instance::{Decisions, Fault, Instance};
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

/// The guests of a link, with instances of their own for one source partition.
pub struct Chain {
    source: Source,
    on_error: OnError,
    guests: Vec<(Arc<Component>, Option<Instance>)>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.guests.iter().map(|(component, _)| component.name());
        formatter.debug_list().entries(names).finish()
    }
}

impl Chain {
    /// Starts an instance of every component.
    ///
    /// # Errors
    /// [`ChainError`] when a guest traps on start or refuses its configuration.
    pub fn start(
        components: &[Arc<Component>],
        source: Source,
        on_error: OnError,
    ) -> Result<Self, ChainError> {
        let mut chain = Self {
            source,
            on_error,
            guests: components
                .iter()
                .map(|component| (Arc::clone(component), None))
                .collect(),
        };
        for (component, instance) in &mut chain.guests {
            running(component, instance, &chain.source)?;
        }
        Ok(chain)
    }

    /// Whether there is no guest, so that every message goes on as it is.
    pub const fn is_empty(&self) -> bool {
        self.guests.is_empty()
    }

    /// Asks every guest about every message of `batch` that the guests before let through. The result has one
    /// outcome a message. Runs as long as the guests do: not for a thread that must stay responsive.
    ///
    /// # Errors
    /// [`ChainError`] when a guest failed and cannot be started again. No message is to blame.
    pub fn apply(&mut self, batch: &Polled) -> Result<Vec<Outcome>, ChainError> {
        let frames = batch.frames();
        let mut outcomes = vec![Outcome::default(); frames.len()];
        for (component, instance) in &mut self.guests {
            let live: Vec<usize> = (0..frames.len())
                .filter(|&index| matches!(outcomes[index].fate, Fate::Deliver))
                .collect();
            let views: Vec<View<'_>> = live
                .iter()
                .map(|&index| View::new(batch, &frames[index], outcomes[index].edit.as_deref()))
                .collect();
            let decisions = judge(component, instance, &self.source, &views)?;
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
                        let failure = Failure {
                            guest: component.name.clone(),
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

/// Decisions over all of `views`. Where the guest fails, parts are tried with fresh instances until the message
/// at fault is alone.
fn judge(
    component: &Component,
    instance: &mut Option<Instance>,
    source: &Source,
    views: &[View<'_>],
) -> Result<Decisions, ChainError> {
    let mut decisions = Decisions::default();
    let mut parts = vec![views];
    while let Some(part) = parts.pop() {
        let done_before = decisions.choices.len();
        let guest = running(component, instance, source)?;
        let Err(fault) = guest.decide(part, &mut decisions) else {
            continue;
        };
        let one_at_fault = guest.is_per_message();
        *instance = None;
        let rest = &part[decisions.choices.len() - done_before..];
        if one_at_fault || rest.len() == 1 {
            decisions.push(Decision::Fail(fault.stage(), fault.to_string()));
            parts.push(&rest[1..]);
        } else {
            let (front, back) = rest.split_at(rest.len() / 2);
            parts.extend([back, front]);
        }
    }
    Ok(decisions)
}

/// The running instance, started anew where the last one failed.
fn running<'a>(
    component: &Component,
    instance: &'a mut Option<Instance>,
    source: &Source,
) -> Result<&'a mut Instance, ChainError> {
    match instance {
        Some(running) => Ok(running),
        None => match Instance::start(component, source) {
            Ok(started) => Ok(instance.insert(started)),
            Err(fault) => Err(ChainError {
                guest: component.name.clone(),
                path: component.path.display().to_string(),
                source_partition: format!("{}:{}", source.cluster, source.partition),
                fault,
            }),
        },
    }
}
