//! The store at the clusters: consumer offsets, from which a host without the old one's disk goes on.
//!
//! A consumer offset is a number below the end of its partition, and no more. So a lane keeps its next source offset
//! as an offset on the source partition, where Iggy's own tools show the lag, and each mark as an offset on the
//! marked partition. Message ids are read back from the messages at these offsets.

use std::collections::HashMap;

use async_trait::async_trait;
use tokio::sync::Mutex;
use twox_hash::XxHash3_64;

use super::store::{Store, StoreError};
use super::{Checkpoint, LaneKey, LastSettled, Mark, Sent};
use crate::cluster::{Client, Error, Fault, Partition, PollFrom};

/// Most messages that are read at once when the source is searched.
const WINDOW: u64 = 256;

/// Messages that are searched before the source is trusted.
const SEARCH: u64 = 100_000;

/// Longest name of a consumer, in bytes.
const NAME_LIMIT: usize = 255;

/// The name under which a gateway shows the offsets of a link, and from which those of its checkpoints derive.
pub fn consumer_name(gateway: &str, link: &str) -> String {
    shortened(format!("sluice-{gateway}-{link}"), 0)
}

/// `name`, or its beginning and a hash where that leaves no room for `more` bytes.
fn shortened(name: String, more: usize) -> String {
    let room = NAME_LIMIT - more;
    if name.len() <= room {
        return name;
    }
    let hash = format!("-{:016x}", XxHash3_64::oneshot(name.as_bytes()));
    let end = name.floor_char_boundary(room - hash.len());
    format!("{}{hash}", &name[..end])
}

/// The checkpoints of one link, as consumer offsets on its clusters.
pub struct ServerStore<C> {
    consumer: String,
    clients: Mutex<Clients<C>>,
}

struct Clients<C> {
    source: C,
    destination: C,
    /// What was stored last, by consumer and partition.
    stored: HashMap<(String, Partition), u64>,
}

impl<C> std::fmt::Debug for ServerStore<C> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("ServerStore")
            .field(&self.consumer)
            .finish()
    }
}

impl<C: Client> ServerStore<C> {
    /// The checkpoints stored under `consumer`, see [`consumer_name`]. The clients are used for nothing else.
    pub fn new(consumer: String, source: C, destination: C) -> Self {
        Self {
            consumer,
            clients: Mutex::new(Clients {
                source,
                destination,
                stored: HashMap::new(),
            }),
        }
    }

    /// On the source partition: what is settled. Another than the mirrored offset, which comes without marks.
    fn settled(&self) -> String {
        format!("{}-checkpoint", shortened(self.consumer.clone(), 11))
    }

    /// On the source partition: a lane began there, although it settled nothing yet.
    fn began(&self) -> String {
        format!("{}-began", shortened(self.consumer.clone(), 6))
    }

    /// On the destination partition: what it confirmed to the lane.
    fn confirmed(&self, key: &LaneKey) -> String {
        let lane = XxHash3_64::oneshot(key.to_string().as_bytes());
        format!("{}-{lane:016x}", shortened(self.consumer.clone(), 17))
    }

    /// On the destination partition: where it ended when the lane first used it, with a message of another writer.
    fn found(&self, key: &LaneKey) -> String {
        let lane = XxHash3_64::oneshot(key.to_string().as_bytes());
        format!("{}-{lane:016x}-from", shortened(self.consumer.clone(), 22))
    }

    /// On the source partition: the lane uses a destination partition that was empty then, and so could not be marked.
    fn opened(&self, to: &Partition) -> String {
        let place = XxHash3_64::oneshot(to.to_string().as_bytes());
        format!("{}-{place:016x}", shortened(self.consumer.clone(), 17))
    }

    async fn read_mark(
        &self,
        clients: &mut Clients<C>,
        key: &LaneKey,
        to: &Partition,
    ) -> Result<Option<Mark>, Error> {
        let mark = |next_offset, last| Mark {
            stream: to.stream.to_string(),
            topic: to.topic.to_string(),
            partition: to.id,
            next_offset,
            last,
            earlier: Vec::new(),
        };
        let confirmed = self.confirmed(key);
        if let Some(offset) = or_missing(clients.destination.stored_offset(&confirmed, to).await)? {
            let from = PollFrom::Offset(offset);
            let polled = clients.destination.poll(to, from, 1).await?;
            let last = polled.frames().first().filter(|at| at.offset == offset);
            let last = last.map(|frame| Sent {
                id: frame.id,
                origin_timestamp: frame.origin_timestamp,
            });
            return Ok(Some(mark(offset + 1, last)));
        }
        let found = self.found(key);
        if let Some(offset) = or_missing(clients.destination.stored_offset(&found, to).await)? {
            return Ok(Some(mark(offset + 1, None)));
        }
        let (opened, source) = (self.opened(to), key.source());
        let was_opened = clients.source.stored_offset(&opened, &source).await?;
        Ok(was_opened.map(|_| mark(0, None)))
    }
}

/// What does not exist yet has no offset.
fn or_missing(found: Result<Option<u64>, Error>) -> Result<Option<u64>, Error> {
    match found {
        Err(error) if error.fault == Fault::Topology => Ok(None),
        found => found,
    }
}

#[async_trait]
impl<C: Client> Store for ServerStore<C> {
    async fn load(
        &self,
        key: &LaneKey,
        usual: &Partition,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let mut clients = self.clients.lock().await;
        let source = key.source();
        let settled = clients
            .source
            .stored_offset(&self.settled(), &source)
            .await?;
        let mark = self.read_mark(&mut clients, key, usual).await?;
        let checkpoint = match (settled, mark) {
            (Some(offset), mark) => {
                let sent = mark.as_ref().and_then(|mark| mark.last);
                Checkpoint {
                    next_offset: offset + 1,
                    last: last_settled(&mut clients.source, &source, offset, sent).await?,
                    destinations: mark.into_iter().collect(),
                }
            }
            (None, None) => return Ok(None),
            (None, Some(mark)) => {
                let began = clients.source.stored_offset(&self.began(), &source).await?;
                Checkpoint {
                    // A source that was purged or created anew forgot the lane; no source has this offset.
                    next_offset: began.map_or(u64::MAX, |_| 0),
                    last: began.is_none().then_some(LastSettled {
                        offset: u64::MAX - 1,
                        id: 0,
                        origin_timestamp: 0,
                    }),
                    destinations: vec![mark],
                }
            }
        };
        Ok(Some(checkpoint))
    }

    async fn mark(&self, key: &LaneKey, to: &Partition) -> Result<Option<Mark>, StoreError> {
        let mut clients = self.clients.lock().await;
        Ok(self.read_mark(&mut clients, key, to).await?)
    }

    async fn save(&self, checkpoints: &[(LaneKey, Checkpoint)]) -> Result<(), StoreError> {
        let mut clients = self.clients.lock().await;
        for (key, checkpoint) in checkpoints {
            // The source first: a mark that is older than it costs reading a little more, a newer one would hide
            // what was sent.
            self.save_settled(&mut clients, key, checkpoint).await?;
            for mark in &checkpoint.destinations {
                self.save_mark(&mut clients, key, mark).await?;
            }
        }
        Ok(())
    }

    async fn forget_mark(&self, key: &LaneKey, usual: &Partition) -> Result<(), StoreError> {
        let mut clients = self.clients.lock().await;
        for consumer in [self.confirmed(key), self.found(key)] {
            clients.destination.forget_offset(&consumer, usual).await?;
            clients.stored.remove(&(consumer, usual.clone()));
        }
        let (opened, source) = (self.opened(usual), key.source());
        clients.forget_at_source(opened, &source).await?;
        Ok(())
    }
}

impl<C: Client> ServerStore<C> {
    async fn save_settled(
        &self,
        clients: &mut Clients<C>,
        key: &LaneKey,
        checkpoint: &Checkpoint,
    ) -> Result<(), Error> {
        let source = key.source();
        if let Some(settled) = checkpoint.next_offset.checked_sub(1) {
            return clients
                .store_at_source(self.settled(), &source, settled)
                .await;
        }
        clients.forget_at_source(self.settled(), &source).await?;
        match clients.store_at_source(self.began(), &source, 0).await {
            // A source without a message takes no offset; then nothing was sent either.
            Err(error) if error.fault == Fault::Poison && checkpoint.destinations.is_empty() => {
                Ok(())
            }
            stored => stored,
        }
    }

    async fn save_mark(
        &self,
        clients: &mut Clients<C>,
        key: &LaneKey,
        mark: &Mark,
    ) -> Result<(), Error> {
        let to = mark.destination();
        let Some(offset) = mark.next_offset.checked_sub(1) else {
            let opened = self.opened(&to);
            return clients.store_at_source(opened, &key.source(), 0).await;
        };
        let consumer = match mark.last {
            Some(_) => self.confirmed(key),
            None => self.found(key),
        };
        clients.store_mark(consumer, to, offset).await
    }
}

impl<C: Client> Clients<C> {
    async fn store_at_source(
        &mut self,
        consumer: String,
        source: &Partition,
        offset: u64,
    ) -> Result<(), Error> {
        let place = (consumer, source.clone());
        if self.stored.get(&place) == Some(&offset) {
            return Ok(());
        }
        self.source.store_offset(&place.0, source, offset).await?;
        self.stored.insert(place, offset);
        Ok(())
    }

    /// An offset cannot say that nothing is settled; its absence does.
    async fn forget_at_source(
        &mut self,
        consumer: String,
        source: &Partition,
    ) -> Result<(), Error> {
        let place = (consumer, source.clone());
        self.stored.remove(&place);
        self.source.forget_offset(&place.0, source).await
    }

    async fn store_mark(
        &mut self,
        consumer: String,
        to: Partition,
        offset: u64,
    ) -> Result<(), Error> {
        let place = (consumer, to);
        if self.stored.get(&place) == Some(&offset) {
            return Ok(());
        }
        self.destination
            .store_offset(&place.0, &place.1, offset)
            .await?;
        self.stored.insert(place, offset);
        Ok(())
    }
}

/// The last settled message at the source. What the destination got last must be there, at or before it; else the
/// source is another than it was, and its message is given as the destination has it, for the lane to compare.
async fn last_settled<C: Client>(
    client: &mut C,
    source: &Partition,
    settled: u64,
    sent: Option<Sent>,
) -> Result<Option<LastSettled>, Error> {
    let (mut end, mut newest, mut window) = (settled + 1, None, 1);
    while (settled + 1) - end < SEARCH {
        let begin = end.saturating_sub(window);
        let polled = client
            .poll(source, PollFrom::Offset(begin), count(end - begin))
            .await?;
        let mut frames = polled.frames().iter().rev();
        newest = newest.or_else(|| {
            let at = polled.frames().iter().find(|at| at.offset == settled);
            at.map(LastSettled::from)
        });
        let Some(sent) = sent else { return Ok(newest) };
        let found = frames.any(|frame| {
            frame.offset < end
                && frame.id == sent.id
                && frame.origin_timestamp == sent.origin_timestamp
        });
        if found {
            return Ok(newest);
        }
        match polled.frames().first() {
            // What the destination got last may have expired here.
            Some(oldest) if oldest.offset > begin => return Ok(newest),
            Some(_) if begin > 0 => {}
            Some(_) => return Ok(Some(as_sent(settled, sent))),
            // It ends before.
            None if polled.current_offset < begin => return Ok(Some(as_sent(settled, sent))),
            None if holds_nothing(client, source).await? => return Ok(newest),
            None => return Err(unreadable(client, source, begin)),
        }
        end = begin;
        window = WINDOW.min(window * 4);
    }
    tracing::warn!(
        %source,
        searched = SEARCH,
        "what the destination got last is not among the source's newest messages: guests dropped them all, or the \
         source was rolled back"
    );
    Ok(newest)
}

const fn as_sent(offset: u64, sent: Sent) -> LastSettled {
    LastSettled {
        offset,
        id: sent.id,
        origin_timestamp: sent.origin_timestamp,
    }
}

async fn holds_nothing<C: Client>(client: &mut C, at: &Partition) -> Result<bool, Error> {
    let topic = client.topic(&at.stream, &at.topic).await?;
    let found = topic.as_ref().and_then(|topic| topic.partition(at.id));
    Ok(found.is_none_or(|found| found.messages == 0))
}

fn unreadable<C: Client>(client: &C, at: &Partition, offset: u64) -> Error {
    Error {
        cluster: client.cluster().to_owned(),
        address: String::new(),
        operation: format!("read {at} at offset {offset}"),
        reason: "no message came where the cluster says that it has some".to_owned(),
        fault: Fault::Transient,
    }
}

fn count(messages: u64) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}
