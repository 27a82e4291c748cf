//! Replaying dead letters: their messages go where their link would send them now, each once.
//!
//! Letters are dealt with in rounds. Before a round is sent, its letters and what the destination partitions had
//! confirmed are made durable; after it, that the letters were replayed. Whatever happens between, the next replay
//! finds the round unfinished, looks at the destinations and sends only what is not there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::memory::Memory;
use super::planner::Planner;
use super::round::Round;
use super::{LeftOut, Letter, Mailbox, Origin, Summary};
use crate::batch::FRAME_LIMIT;
use crate::checkpoint::{LetterId, Mark, ReplayStore, Scope, Selection, Sending};
use crate::cluster::{Cluster, Connection, Partition};
use crate::config;
use crate::guest::Slot;
use crate::link::Error;
use crate::link::deliver::{Deliverer, Limits};
use crate::link::plan::{Parcel, Tally};
use crate::link::report::Status;
use crate::link::retry::Retrier;

/// What a replay is made of.
#[derive(Debug)]
pub struct Parts {
    /// The link's configuration.
    pub link: Arc<config::Link>,
    /// The cluster that holds the letters and gets their messages.
    pub destination: Arc<Cluster>,
    /// The link's guests, in order.
    pub guests: Arc<[Arc<Slot>]>,
    /// What was replayed before.
    pub store: ReplayStore,
}

/// What is to be replayed, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which letters of each partition.
    pub selection: Selection,
    /// This partition of the dead-letter topic alone.
    pub partition: Option<u32>,
    /// Whether the link's guests are asked.
    pub guests: bool,
    /// Whether nothing is sent or remembered.
    pub dry_run: bool,
}

/// Replays letters up to the end that each partition has now. `progress` is told how far it is and how far it goes,
/// in offsets.
pub async fn replay(
    parts: Parts,
    request: Request,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: CancellationToken,
) -> Summary {
    let mut replayer = Replayer::new(parts, request, &stop);
    let outcome = replayer.run(progress, stop).await;
    let mut summary = replayer.summary;
    summary.found = replayer.status.counts.found.load(Ordering::Relaxed);
    match outcome {
        Ok(()) => {}
        Err(Error::Interrupted) => summary.interrupted = true,
        Err(error) => summary.error = Some(error),
    }
    summary
}

struct Replayer {
    parts: Parts,
    request: Request,
    retrier: Retrier,
    status: Arc<Status>,
    planner: Planner,
    deliverer: Deliverer<Connection>,
    summary: Summary,
}

impl Replayer {
    fn new(parts: Parts, request: Request, stop: &CancellationToken) -> Self {
        let link = &parts.link;
        let status = Arc::new(Status::new(&link.name, "dead letters"));
        let retrier = Retrier::new(link.retry.clone(), Arc::clone(&status), stop.clone());
        let letters = &link.dead_letter;
        let summary = Summary {
            link: link.name.clone(),
            dead_letters: format!(
                "{}:{}/{}",
                link.destination.cluster, letters.stream, letters.topic
            ),
            dry_run: request.dry_run,
            ..Summary::default()
        };
        Self {
            deliverer: deliverer(&parts, &retrier, &status, &[]),
            planner: Planner::new(link, &parts.guests, &retrier, request.dry_run),
            retrier,
            status,
            summary,
            request,
            parts,
        }
    }

    async fn run(
        &mut self,
        progress: &(dyn Fn(u64, u64) + Sync),
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let link = Arc::clone(&self.parts.link);
        let cluster = Arc::clone(&self.parts.destination);
        let mut mailbox = Mailbox::new(cluster, &link.dead_letter, link.retry.clone(), stop);
        let partitions = mailbox.partitions().await?;
        let wanted = self.request.partition;
        let mut seen = 0;
        for partition in partitions
            .iter()
            .filter(|partition| wanted.is_none_or(|id| id == partition.id))
        {
            seen += self
                .replay_partition(&mut mailbox, partition, progress)
                .await?;
        }
        let asked_for = self.request.selection.offsets.len() as u64;
        self.summary.missing = asked_for.saturating_sub(seen);
        Ok(())
    }

    /// Replays what is selected of one partition; returns how many letters of the link that is.
    async fn replay_partition(
        &mut self,
        mailbox: &mut Mailbox,
        partition: &Partition,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<u64, Error> {
        let scope = Scope {
            link: self.parts.link.name.clone(),
            destination: self.parts.link.destination.cluster.clone(),
            stream: partition.stream.to_string(),
            topic: partition.topic.to_string(),
            partition: partition.id,
        };
        let store = &self.parts.store;
        let dry_run = self.request.dry_run;
        let mut memory = Memory::load(store, &self.retrier, scope, dry_run).await?;
        if !self.request.dry_run {
            self.finish_round(&mut memory, mailbox, partition).await?;
        }
        let end = mailbox.end(partition).await?;
        let end = memory.begin(&self.request, end).await?;
        let (mut next, last) = self.request.selection.bounds();
        let end = end.min(last);
        let mut seen = 0;
        let mut reader = mailbox.reader(partition);
        while next < end {
            self.retrier.check_stop()?;
            progress(next, end);
            let Some(polled) = reader.next(next).await? else {
                break;
            };
            let letters: Vec<_> = polled
                .frames()
                .iter()
                .filter(|frame| frame.offset < end)
                .map(|frame| Letter::read(&polled, frame))
                .filter(|letter| self.request.selection.includes(letter.offset))
                .collect();
            let (round, count) = self.round(&memory, partition.id, &letters).await?;
            seen += count;
            let guests = self.request.guests;
            self.carry_out(&mut memory, round, guests, None).await?;
            let read = polled.frames().last().map_or(end, |frame| frame.offset);
            next = next.max(read).saturating_add(1);
        }
        progress(end, end);
        memory.end().await?;
        Ok(seen)
    }

    /// Finishes the round that an earlier replay was sending when it ended, as that one was asked to.
    async fn finish_round(
        &mut self,
        memory: &mut Memory,
        mailbox: &mut Mailbox,
        partition: &Partition,
    ) -> Result<(), Error> {
        let Some(sending) = memory.sending() else {
            return Ok(());
        };
        let (Some(first), Some(last)) = (sending.letters.first(), sending.letters.last()) else {
            return Ok(());
        };
        tracing::info!(
            letters = sending.letters.len(),
            from = first.offset,
            to = last.offset,
            "finishing what an earlier replay was sending when it ended"
        );
        let mut round = Round::new(self.parts.link.batch.messages as usize);
        let mut reader = mailbox.reader(partition);
        let (mut next, mut letters) = (first.offset, Vec::new());
        while next <= last.offset {
            let Some(polled) = reader.next(next).await? else {
                break;
            };
            for frame in polled.frames() {
                let letter = Letter::read(&polled, frame);
                next = next.max(letter.offset).saturating_add(1);
                let id = letter.id();
                if let Ok(origin) = &letter.origin
                    && sending.letters.contains(&id)
                {
                    round.add(&self.parts.link, &letter, origin);
                    letters.push(id);
                }
            }
        }
        let gone = sending.letters.len().saturating_sub(letters.len());
        if gone > 0 {
            tracing::warn!(
                letters = gone,
                "letters that an earlier replay was sending are gone from their topic; whether their messages were \
                 delivered is not known"
            );
        }
        let found = Sending { letters, ..sending };
        let (parts, marks) = (&self.parts, &found.marks);
        self.deliverer = deliverer(parts, &self.retrier, &self.status, marks);
        memory.finished.clone_from(&found.letters);
        let guests = found.guests;
        self.carry_out(memory, round, guests, Some(found)).await?;
        // What lies at the destinations from before says nothing of the letters that come now.
        self.deliverer = deliverer(&self.parts, &self.retrier, &self.status, &[]);
        Ok(())
    }

    /// The letters that are to be replayed, and how many of `letters` are the link's.
    async fn round(
        &mut self,
        memory: &Memory,
        partition: u32,
        letters: &[Letter<'_>],
    ) -> Result<(Round, u64), Error> {
        let ids: Vec<_> = letters.iter().map(Letter::id).collect();
        let done = memory.done(ids, self.request.selection.again).await?;
        let link = Arc::clone(&self.parts.link);
        let mut round = Round::new(link.batch.messages as usize);
        let mut count = 0;
        for (letter, done) in letters.iter().zip(done) {
            let origin = match &letter.origin {
                Ok(origin) if origin.link == link.name => origin,
                Ok(_) => continue,
                Err(_) => {
                    self.summary.unreadable += 1;
                    continue;
                }
            };
            count += 1;
            if done {
                let counted = memory.finished.contains(&letter.id());
                self.summary.already_replayed += u64::from(!counted);
            } else if let Some(omitted) = origin.omitted {
                self.leave_out(partition, letter.offset, origin, omitted);
            } else {
                round.add(&link, letter, origin);
            }
        }
        Ok((round, count))
    }

    fn leave_out(&mut self, partition: u32, offset: u64, origin: &Origin<'_>, omitted: &str) {
        let source = origin.source();
        let remedy = format!(
            "the message is at {source} as long as the source keeps it: copy it with a link of its own, whose start \
             is {{ offset = {} }}",
            origin.offset
        );
        tracing::debug!(partition, offset, omitted, "not replayed: {remedy}");
        self.summary.left_out.push(LeftOut {
            partition,
            offset,
            source,
            omitted: omitted.to_owned(),
            remedy,
        });
    }

    /// Sends a round and remembers it. `earlier` is what an earlier replay may have sent of it.
    async fn carry_out(
        &mut self,
        memory: &mut Memory,
        round: Round,
        guests: bool,
        earlier: Option<Sending>,
    ) -> Result<(), Error> {
        let mut planned = Vec::new();
        for run in round.runs {
            let client = &mut self.deliverer.client;
            let plan = self.planner.plan(client, run, guests).await?;
            let stopping = plan.stopping.is_some();
            planned.push(plan);
            if stopping {
                break;
            }
        }
        let (mut parcels, mut tally) = (Vec::new(), Tally::default());
        for plan in &planned {
            let (more, part) = plan.parcels();
            parcels.extend(more);
            tally.add(&part);
        }
        if !self.request.dry_run {
            let ids: Vec<_> = planned.iter().flat_map(|plan| plan.ids.clone()).collect();
            self.send(memory, &parcels, ids, guests, earlier).await?;
        }
        self.summary.replayed += tally.forwarded as u64;
        self.summary.dropped += tally.dropped as u64;
        self.summary.dead_lettered += tally.dead_lettered as u64;
        drop(parcels);
        let stopping = planned.into_iter().find_map(|plan| plan.stopping);
        stopping.map_or(Ok(()), Err)
    }

    async fn send(
        &mut self,
        memory: &mut Memory,
        parcels: &[Parcel<'_>],
        ids: Vec<LetterId>,
        guests: bool,
        earlier: Option<Sending>,
    ) -> Result<(), Error> {
        if ids.is_empty() && earlier.is_none() {
            return Ok(());
        }
        self.deliverer.open(parcels, None).await?;
        if !parcels.is_empty() {
            let all = earlier.as_ref().map_or(&ids, |earlier| &earlier.letters);
            let sending = Sending {
                letters: all.clone(),
                guests,
                marks: self.deliverer.marks(),
            };
            memory.before(sending).await?;
        }
        for parcel in parcels {
            self.deliverer.deliver(parcel).await?;
        }
        // Where the link stops before a message, those after it may have been sent before.
        let rest = earlier.and_then(|mut earlier| {
            earlier.letters.retain(|letter| !ids.contains(letter));
            (!earlier.letters.is_empty()).then_some(earlier)
        });
        memory.after(&ids, rest).await
    }
}

fn deliverer(
    parts: &Parts,
    retrier: &Retrier,
    status: &Arc<Status>,
    marks: &[Mark],
) -> Deliverer<Connection> {
    let batch = &parts.link.batch;
    let limits = Limits {
        messages: batch.messages as usize,
        bytes: usize::try_from(batch.bytes.as_u64()).unwrap_or(FRAME_LIMIT),
    };
    let client = Connection::new(Arc::clone(&parts.destination));
    Deliverer::new(client, retrier.clone(), limits, Arc::clone(status), marks)
}
