//! A cluster in memory, and the clients that it answers or fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use iggy_binary_protocol::codec::WireEncode;
use iggy_binary_protocol::responses::messages::PollMessagesResponseHeader;
use sluice::batch::{Chunks, FRAME_LIMIT, Outgoing, Polled, encode_send};
use sluice::cluster::{Client, Error, Fault, Partition, PartitionInfo, PollFrom, TopicInfo};
use sluice_devbroker::partition::{self, From, VerifiedBatch};
use sluice_devbroker::send_header;

/// Longest wait of a client for an answer that does not come.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A cluster that all its clients share.
#[derive(Debug, Clone)]
pub struct Cluster(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    name: String,
    topics: BTreeMap<(String, String), Vec<partition::Partition>>,
    /// Connections of an earlier epoch are broken.
    epoch: u64,
    up: bool,
    /// Of a hundred requests, how many meet a fault.
    fault_rate: u8,
    rng: fastrand::Rng,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    LoginRefused,
    RequestLost,
    NotAccepted,
    ReplyLost,
    Silence,
    SlowReply,
    ConfirmationLost,
    EmptyPoll,
}

const FAULTS: [Fate; 8] = [
    Fate::LoginRefused,
    Fate::RequestLost,
    Fate::NotAccepted,
    Fate::ReplyLost,
    Fate::Silence,
    Fate::SlowReply,
    Fate::ConfirmationLost,
    Fate::EmptyPoll,
];

impl Cluster {
    /// An empty cluster that draws faults from `rng`.
    pub fn new(name: &str, fault_rate: u8, rng: fastrand::Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            name: name.to_owned(),
            topics: BTreeMap::new(),
            epoch: 0,
            up: true,
            fault_rate,
            rng,
        })))
    }

    /// Creates a topic with empty partitions.
    pub fn create(&self, stream: &str, topic: &str, partitions: u32) {
        self.lock().create(stream, topic, partitions);
    }

    /// Appends messages as a producer of the cluster's own does.
    pub fn append(&self, to: &Partition, messages: &[Outgoing<'_>]) {
        for chunk in Chunks::new(messages, usize::MAX, FRAME_LIMIT) {
            let body = encode_send(&to.stream, &to.topic, to.id, &messages[chunk]).expect("valid");
            self.lock().append(to, body).expect("there");
        }
    }

    /// Every message of a partition, from the oldest that is left; none when there is no such partition.
    pub fn contents(&self, at: &Partition) -> Option<Polled> {
        self.lock().poll(at, From::Offset(0), u32::MAX).ok()
    }

    /// Every partition that there is.
    pub fn partitions(&self) -> Vec<Partition> {
        let state = self.lock();
        let topics = state.topics.iter();
        topics
            .flat_map(|((stream, topic), partitions)| {
                (0..).zip(partitions).map(|(id, _)| Partition {
                    stream: stream.as_str().into(),
                    topic: topic.as_str().into(),
                    id,
                })
            })
            .collect()
    }

    /// Forgets messages below an offset, as retention does.
    pub fn expire(&self, at: &Partition, below: u64) {
        if let Ok(partition) = self.lock().partition(at) {
            partition.expire(below);
        }
    }

    /// Breaks every connection, and refuses new ones until it is up.
    pub fn set_up(&self, up: bool) {
        let mut state = self.lock();
        state.up = up;
        state.epoch += 1;
    }

    /// No more faults.
    pub fn calm(&self) {
        self.lock().fault_rate = 0;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn create(&mut self, stream: &str, topic: &str, partitions: u32) {
        let key = (stream.to_owned(), topic.to_owned());
        self.topics.entry(key).or_insert_with(|| {
            (0..partitions)
                .map(|_| partition::Partition::new(0))
                .collect()
        });
    }

    fn partition(&mut self, at: &Partition) -> Result<&mut partition::Partition, Fault> {
        let key = (at.stream.to_string(), at.topic.to_string());
        let partitions = self.topics.get_mut(&key).ok_or(Fault::Topology)?;
        partitions.get_mut(at.id as usize).ok_or(Fault::Topology)
    }

    fn append(&mut self, to: &Partition, body: Bytes) -> Result<u64, Fault> {
        let (_, start) = send_header(&body).map_err(|_| Fault::Poison)?;
        let batch = VerifiedBatch::verify(BytesMut::from(body).split_off(start));
        let batch = batch.ok_or(Fault::Poison)?;
        Ok(self.partition(to)?.append(to.id, batch, 1))
    }

    fn poll(&mut self, at: &Partition, from: From, count: u32) -> Result<Polled, Fault> {
        let partition = self.partition(at)?;
        let found = partition.poll(from, count);
        let head = PollMessagesResponseHeader {
            partition_id: at.id,
            current_offset: partition.current_offset(),
            messages_count: found.count,
        };
        let mut reply = BytesMut::from(&head.to_bytes()[..]);
        for record in found.records {
            reply.extend_from_slice(&record);
        }
        Polled::decode(reply.freeze()).map_err(|_| Fault::Poison)
    }

    fn topic(&mut self, stream: &str, topic: &str) -> Option<TopicInfo> {
        let key = (stream.to_owned(), topic.to_owned());
        let partitions = self.topics.get(&key)?.iter();
        let infos = (0..).zip(partitions).map(|(id, partition)| PartitionInfo {
            id,
            current_offset: partition.current_offset(),
            messages: partition.messages(),
        });
        Some(TopicInfo::plain(infos.collect()))
    }

    fn draw(&mut self) -> Fate {
        if self.rng.u8(0..100) >= self.fault_rate {
            return Fate::Fine;
        }
        *self.rng.choice(&FAULTS).expect("not empty")
    }
}

/// One connection.
#[derive(Debug)]
pub struct SimulatedClient {
    cluster: Cluster,
    name: String,
    connected: Option<u64>,
    connects: u64,
}

impl SimulatedClient {
    /// A client that is not connected yet.
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            name: cluster.lock().name.clone(),
            cluster: cluster.clone(),
            connected: None,
            connects: 0,
        }
    }

    async fn call<T>(
        &mut self,
        execute: impl FnOnce(&mut State, Fate) -> Result<T, Fault> + Send,
    ) -> Result<T, Error>
    where
        T: Send,
    {
        let outcome = self.attempt(execute).await;
        outcome.map_err(|(fault, reason)| {
            if !matches!(fault, Fault::Topology | Fault::Poison) {
                self.connected = None;
            }
            Error {
                cluster: self.name.clone(),
                address: String::new(),
                operation: "a call".to_owned(),
                reason: reason.to_owned(),
                fault,
            }
        })
    }

    async fn attempt<T>(
        &mut self,
        execute: impl FnOnce(&mut State, Fate) -> Result<T, Fault> + Send,
    ) -> Result<T, (Fault, &'static str)> {
        let (fate, there, back) = {
            let mut state = self.cluster.lock();
            (state.draw(), state.rng.u64(0..5), state.rng.u64(0..5))
        };
        tokio::time::sleep(Duration::from_millis(there)).await;
        self.connect(fate)?;
        match fate {
            Fate::RequestLost => return Err((Fault::Ambiguous, "the request is lost")),
            Fate::NotAccepted => return Err((Fault::Transient, "not accepted")),
            _ => {}
        }
        let result = execute(&mut self.cluster.lock(), fate);
        let wait = match fate {
            Fate::Silence => TIMEOUT,
            Fate::SlowReply => TIMEOUT / 2,
            _ => Duration::from_millis(back),
        };
        tokio::time::sleep(wait).await;
        if self.connected != Some(self.cluster.lock().epoch) {
            return Err((Fault::Ambiguous, "the connection broke"));
        }
        match fate {
            Fate::ReplyLost => Err((Fault::Ambiguous, "the reply is lost")),
            Fate::Silence => Err((Fault::Ambiguous, "no answer")),
            _ => result.map_err(|fault| (fault, "refused")),
        }
    }

    fn connect(&mut self, fate: Fate) -> Result<(), (Fault, &'static str)> {
        let state = self.cluster.lock();
        if !state.up {
            return Err((Fault::Ambiguous, "cannot connect"));
        }
        match self.connected {
            None if fate == Fate::LoginRefused => Err((Fault::Login, "login refused")),
            None => {
                self.connected = Some(state.epoch);
                self.connects += 1;
                Ok(())
            }
            Some(epoch) if epoch != state.epoch => Err((Fault::Ambiguous, "the connection broke")),
            Some(_) => Ok(()),
        }
    }
}

impl Client for SimulatedClient {
    fn cluster(&self) -> &str {
        &self.name
    }

    fn connects(&self) -> u64 {
        self.connects
    }

    async fn poll(
        &mut self,
        partition: &Partition,
        from: PollFrom,
        count: u32,
    ) -> Result<Polled, Error> {
        let from = match from {
            PollFrom::Offset(offset) => From::Offset(offset),
            PollFrom::Last => From::Last,
        };
        self.call(|state, fate| {
            let count = if fate == Fate::EmptyPoll { 0 } else { count };
            state.poll(partition, from, count)
        })
        .await
    }

    async fn send(&mut self, partition: &Partition, body: Bytes) -> Result<Option<u64>, Error> {
        self.call(|state, fate| {
            let base_offset = state.append(partition, body)?;
            Ok((fate != Fate::ConfirmationLost).then_some(base_offset))
        })
        .await
    }

    async fn topic(&mut self, stream: &str, topic: &str) -> Result<Option<TopicInfo>, Error> {
        self.call(|state, _| Ok(state.topic(stream, topic))).await
    }

    async fn create_like(
        &mut self,
        stream: &str,
        topic: &str,
        partitions: u32,
        _like: Option<&TopicInfo>,
    ) -> Result<Option<TopicInfo>, Error> {
        self.call(|state, _| {
            state.create(stream, topic, partitions);
            Ok(state.topic(stream, topic))
        })
        .await
    }

    async fn stored_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
    ) -> Result<Option<u64>, Error> {
        let key = (1, consumer.as_bytes().to_vec());
        self.call(|state, _| Ok(state.partition(partition)?.offsets.get(&key).copied()))
            .await
    }

    async fn store_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
        offset: u64,
    ) -> Result<(), Error> {
        let key = (1, consumer.as_bytes().to_vec());
        self.call(|state, _| {
            let partition = state.partition(partition)?;
            if offset >= partition.next_offset() {
                return Err(Fault::Poison);
            }
            partition.offsets.insert(key, offset);
            Ok(())
        })
        .await
    }

    async fn forget_offset(&mut self, consumer: &str, partition: &Partition) -> Result<(), Error> {
        let key = (1, consumer.as_bytes().to_vec());
        self.call(|state, _| {
            state.partition(partition)?.offsets.remove(&key);
            Ok(())
        })
        .await
    }
}
