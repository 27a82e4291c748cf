//! A running guest: one instance serves one source partition.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Store, Trap};

use super::bindings::batch_handler::{Batch, Verdicts};
use super::bindings::transform::Transform;
use super::bindings::transform_batch::TransformBatch;
use super::bindings::types::{self, Inputs, Verdict};
use super::bindings::{host, types as contract};
use super::component::{Component, World};
use super::decision::{Decision, Stage, plain, reason};
use super::grants::System;
use super::limits::Limiter;
use super::stats::Stats;
use super::{Engine, Source, View, pack};

/// Most bytes that one call hands to the host. Lists in a verdict may share bytes in the guest, so that a small guest
/// could otherwise have the host copy without end.
const COPY_LIMIT: usize = 128 * 1024 * 1024;

/// Most bytes of changed messages that the host keeps before they are delivered, one message at least.
const KEPT_LIMIT: usize = 16 * 1024 * 1024;

/// Time for a batch, in times of one call.
const CALLS: u32 = 10;

/// Longest log line that is kept, in bytes.
const LOG_LIMIT: usize = 4096;

/// A guest that failed as a whole; its instance is of no further use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// It trapped, for example by a panic, or asked for more memory than it may have.
    #[error("the guest trapped: {0}")]
    Trap(String),
    /// It ran longer than its limit.
    #[error("the guest ran longer than its limit of {}", humantime::format_duration(*.0))]
    Timeout(Duration),
    /// It answered something that the contract does not allow.
    #[error("the guest broke the contract: {0}")]
    Contract(String),
    /// It refused its configuration.
    #[error("the guest refused to start: {0}")]
    Refused(String),
    /// What it is granted is not there any more.
    #[error("{0}")]
    System(String),
}

impl Fault {
    pub(super) const fn stage(&self) -> Stage {
        match self {
            Self::Timeout(_) => Stage::Timeout,
            Self::Trap(_) | Self::Contract(_) | Self::Refused(_) | Self::System(_) => Stage::Trap,
        }
    }
}

/// What the host keeps for an instance.
pub(super) struct State {
    limiter: Limiter,
    pub(super) system: System,
    stats: Arc<Stats>,
    guest: String,
    source: String,
}

/// Decisions over messages, one choice a message.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    pub table: Vec<Decision>,
    pub choices: Vec<u32>,
}

impl Decisions {
    pub(super) fn push(&mut self, decision: Decision) {
        self.choices.push(position(&self.table));
        self.table.push(decision);
    }
}

fn position(table: &[Decision]) -> u32 {
    u32::try_from(table.len()).expect("a batch has less than 2^32 verdicts")
}

/// One instance of a guest.
pub(super) struct Instance {
    store: Store<State>,
    handler: Handler,
    inputs: Inputs,
    ticks: u64,
    time: Duration,
}

enum Handler {
    Message(Transform),
    Batch(TransformBatch, Batch),
}

impl Instance {
    /// Instantiates a component for one source partition and starts it with its configuration.
    ///
    /// # Errors
    /// [`Fault`] when it traps or refuses its configuration.
    pub(super) fn start(
        component: &Component,
        source: &Source,
        stats: &Arc<Stats>,
    ) -> Result<Self, Fault> {
        let limits = &component.settings.limits;
        let kept = State {
            limiter: Limiter::new(limits.memory.as_u64()),
            system: System::new(&component.settings.grants).map_err(Fault::System)?,
            stats: Arc::clone(stats),
            guest: component.name().to_owned(),
            source: source.to_string(),
        };
        let mut store = Store::new(component.engine.wasmtime(), kept);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(COPY_LIMIT);
        store.set_epoch_deadline(Engine::ticks(limits.start));
        let place = contract::Source {
            cluster: source.cluster.clone(),
            stream: source.partition.stream.to_string(),
            topic: source.partition.topic.to_string(),
            partition: source.partition.id,
        };
        let trapped = |error| fault(&error, limits.start);
        let (handler, started) = match &component.world {
            World::Transform(pre) => {
                let guest = pre.instantiate(&mut store).map_err(trapped)?;
                let started = guest.sluice_guest_message_handler().call_start(
                    &mut store,
                    &place,
                    &component.config,
                );
                (Handler::Message(guest), started)
            }
            World::TransformBatch(pre) => {
                let guest = pre.instantiate(&mut store).map_err(trapped)?;
                let started = guest.sluice_guest_batch_handler().call_start(
                    &mut store,
                    &place,
                    &component.config,
                );
                (Handler::Batch(guest, pack::empty_batch()), started)
            }
        };
        let inputs = started
            .map_err(trapped)?
            .map_err(|said| Fault::Refused(reason(&said)))?;
        Ok(Self {
            store,
            handler,
            inputs,
            ticks: Engine::ticks(limits.time),
            time: limits.time,
        })
    }

    /// Bytes of memory that it holds.
    pub(super) fn memory(&self) -> usize {
        self.store.data().limiter.used()
    }

    /// Whether a fault is the doing of the first message without a decision.
    pub(super) const fn is_per_message(&self) -> bool {
        matches!(self.handler, Handler::Message(_))
    }

    /// Decides over `views`, appending to `decisions`; over a front part of them where the budget does not last.
    ///
    /// # Errors
    /// [`Fault`] when the guest failed; `decisions` then holds those of the messages before.
    pub(super) fn decide(
        &mut self,
        views: &[View<'_>],
        decisions: &mut Decisions,
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let (ticks, time, inputs) = (self.ticks, self.time, self.inputs);
        match &mut self.handler {
            Handler::Message(guest) => {
                let handler = guest.sluice_guest_message_handler();
                for view in views {
                    let message = pack::message(view, inputs);
                    self.store.set_epoch_deadline(ticks);
                    let verdict: Verdict = handler
                        .call_handle(&mut self.store, &message)
                        .map_err(|error| fault(&error, time))?;
                    decisions.push(verdict.into());
                    budget.charge(std::slice::from_ref(view), decisions);
                    if budget.is_spent() {
                        break;
                    }
                }
            }
            Handler::Batch(guest, batch) => {
                let handler = guest.sluice_guest_batch_handler();
                let mut rest = views;
                while !rest.is_empty() {
                    let packed = pack::pack(batch, rest, inputs);
                    self.store.set_epoch_deadline(ticks);
                    let verdicts = handler
                        .call_handle(&mut self.store, batch)
                        .map_err(|error| fault(&error, time))?;
                    take(verdicts, packed, decisions)?;
                    budget.charge(&rest[..packed], decisions);
                    rest = &rest[packed..];
                    if budget.is_spent() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

fn take(verdicts: Verdicts, expected: usize, decisions: &mut Decisions) -> Result<(), Fault> {
    if verdicts.choices.len() != expected {
        return Err(Fault::Contract(format!(
            "it gave {} verdicts for {expected} messages",
            verdicts.choices.len()
        )));
    }
    let entries = verdicts.table.len();
    if let Some(choice) = verdicts
        .choices
        .iter()
        .find(|choice| **choice as usize >= entries)
    {
        return Err(Fault::Contract(format!(
            "it chose verdict {choice} of a table of {entries}"
        )));
    }
    let base = position(&decisions.table);
    decisions
        .choices
        .extend(verdicts.choices.iter().map(|choice| base + choice));
    let mut chosen = vec![false; entries];
    for choice in &verdicts.choices {
        chosen[*choice as usize] = true;
    }
    let table = verdicts.table.into_iter().zip(chosen);
    // What no message chose is not kept.
    let table = table.map(|(verdict, chosen)| {
        if chosen {
            Decision::from(verdict)
        } else {
            Decision::Forward
        }
    });
    decisions.table.extend(table);
    Ok(())
}

/// What a guest may make of one batch in one go. Then the lane delivers what is decided, and asks about the rest.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    until: Instant,
}

impl Budget {
    /// For a guest whose calls may take `time`.
    pub(super) fn new(time: Duration) -> Self {
        Self {
            bytes: KEPT_LIMIT,
            until: Instant::now() + time.saturating_mul(CALLS),
        }
    }

    /// Charges the last decisions, over `views`.
    fn charge(&mut self, views: &[View<'_>], decisions: &Decisions) {
        let last = &decisions.choices[decisions.choices.len() - views.len()..];
        for (choice, view) in last.iter().zip(views) {
            let decision = &decisions.table[*choice as usize];
            let weight = decision.weight(view.headers.len());
            self.bytes = self.bytes.saturating_sub(weight);
        }
    }

    /// Whether nothing more should be asked.
    pub(super) fn is_spent(&self) -> bool {
        self.bytes == 0 || Instant::now() >= self.until
    }
}

fn fault(error: &wasmtime::Error, limit: Duration) -> Fault {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Fault::Timeout(limit),
        Some(trap) => Fault::Trap(trap.to_string()),
        None => Fault::Trap(error.root_cause().to_string()),
    }
}

impl types::Host for State {}

impl host::Host for State {
    fn log(&mut self, level: host::Level, mut message: String) {
        let wanted = match level {
            host::Level::Trace => tracing::enabled!(target: "guest", tracing::Level::TRACE),
            host::Level::Debug => tracing::enabled!(target: "guest", tracing::Level::DEBUG),
            host::Level::Info => tracing::enabled!(target: "guest", tracing::Level::INFO),
            host::Level::Warn => tracing::enabled!(target: "guest", tracing::Level::WARN),
            host::Level::Error => tracing::enabled!(target: "guest", tracing::Level::ERROR),
        };
        if !wanted || !self.stats.may_log(Instant::now()) {
            return;
        }
        message.truncate(message.floor_char_boundary(LOG_LIMIT));
        let message = plain(&message);
        let (guest, source) = (&self.guest, &self.source);
        match level {
            host::Level::Trace => tracing::trace!(target: "guest", guest, source, "{message}"),
            host::Level::Debug => tracing::debug!(target: "guest", guest, source, "{message}"),
            host::Level::Info => tracing::info!(target: "guest", guest, source, "{message}"),
            host::Level::Warn => tracing::warn!(target: "guest", guest, source, "{message}"),
            host::Level::Error => tracing::error!(target: "guest", guest, source, "{message}"),
        }
    }

    fn count(&mut self, name: String, amount: u64) {
        self.stats.count(name, amount);
    }

    fn gauge(&mut self, name: String, value: f64) {
        self.stats.gauge(name, &self.source, value);
    }
}
