//! What the broker knows: streams, topics, partitions, users, tokens and sessions.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use iggy_binary_protocol::{WireIdentifier, WireName, WireOptions};
use iggy_common::IggyError;
use serde::{Deserialize, Serialize};

use crate::groups::Group;
use crate::partition::Partition;
use crate::storage::{Storage, text};

/// Everything, behind one lock that is held shortly.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    pub streams: Slots<Stream>,
    pub users: Slots<User>,
    /// Personal access tokens by their text.
    pub tokens: BTreeMap<String, Token>,
    /// Logged-in sessions by the number of their connection.
    #[serde(skip)]
    pub sessions: BTreeMap<u32, Session>,
    #[serde(skip)]
    pub last_session: u64,
    pub last_token: u64,
    #[serde(skip)]
    pub started_at: u64,
    /// The data folder, where there is one.
    #[serde(skip)]
    pub storage: Option<Storage>,
}

/// A stream.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stream {
    #[serde(with = "text::name")]
    pub name: WireName,
    pub created_at: u64,
    #[serde(with = "text::options")]
    pub options: WireOptions,
    pub topics: Slots<Topic>,
}

/// A topic.
#[derive(Debug, Serialize, Deserialize)]
pub struct Topic {
    #[serde(with = "text::name")]
    pub name: WireName,
    pub created_at: u64,
    /// Options that the client gave.
    #[serde(with = "text::options")]
    pub options: WireOptions,
    /// Options that follow from the defaults.
    #[serde(with = "text::options")]
    pub derived_options: WireOptions,
    pub message_expiry: u64,
    pub compression_algorithm: u8,
    pub max_topic_size: u64,
    pub partitions: Vec<Partition>,
    pub groups: Slots<Group>,
}

/// A user.
#[derive(Debug, Serialize, Deserialize)]
pub struct User {
    #[serde(with = "text::name")]
    pub name: WireName,
    pub password: String,
    pub created_at: u64,
    pub status: u8,
    #[serde(with = "text::options")]
    pub options: WireOptions,
}

/// A personal access token.
#[derive(Debug, Serialize, Deserialize)]
pub struct Token {
    pub user: u32,
    #[serde(with = "text::name")]
    pub name: WireName,
    /// Microseconds since the Unix epoch, or 0 for never.
    pub expires_at: u64,
}

/// A logged-in connection.
#[derive(Debug, Clone)]
pub struct Session {
    pub user: u32,
    /// Whether that user was deleted since the login.
    pub user_deleted: bool,
    pub address: String,
}

/// Things with a name and a number that is given again after a deletion, as the real server does.
#[derive(Debug, Serialize, Deserialize)]
pub struct Slots<T>(BTreeMap<u32, T>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// A thing with a name.
pub trait Named {
    fn name(&self) -> &WireName;
}

impl Named for Stream {
    fn name(&self) -> &WireName {
        &self.name
    }
}

impl Named for Topic {
    fn name(&self) -> &WireName {
        &self.name
    }
}

impl Named for User {
    fn name(&self) -> &WireName {
        &self.name
    }
}

impl<T: Named> Slots<T> {
    /// Adds a thing under the lowest free number.
    pub fn add(&mut self, thing: T) -> u32 {
        let id = (0..u32::MAX)
            .find(|id| !self.0.contains_key(id))
            .expect("there are more numbers than things");
        self.0.insert(id, thing);
        id
    }

    pub fn find(&self, identifier: &WireIdentifier) -> Option<u32> {
        match identifier {
            WireIdentifier::Numeric(id) => self.0.contains_key(id).then_some(*id),
            WireIdentifier::String(name) => self
                .0
                .iter()
                .find(|(_, thing)| thing.name() == name)
                .map(|(id, _)| *id),
        }
    }

    pub fn is_taken(&self, name: &WireName) -> bool {
        self.0.values().any(|thing| thing.name() == name)
    }

    pub fn get(&self, identifier: &WireIdentifier) -> Option<(u32, &T)> {
        let id = self.find(identifier)?;
        Some((id, &self.0[&id]))
    }

    pub fn get_mut(&mut self, identifier: &WireIdentifier) -> Option<&mut T> {
        let id = self.find(identifier)?;
        self.0.get_mut(&id)
    }

    pub fn remove(&mut self, identifier: &WireIdentifier) -> Option<T> {
        let id = self.find(identifier)?;
        self.0.remove(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.0.iter().map(|(id, thing)| (*id, thing))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl State {
    /// No streams, and one user who may do everything.
    pub fn new(username: WireName, password: String) -> Self {
        let mut users = Slots::default();
        let now = now();
        users.add(User {
            name: username,
            password,
            created_at: now,
            status: 1,
            options: WireOptions::empty(),
        });
        Self {
            streams: Slots::default(),
            users,
            tokens: BTreeMap::new(),
            sessions: BTreeMap::new(),
            last_session: 0,
            last_token: 0,
            started_at: now,
            storage: None,
        }
    }

    pub fn stream(&mut self, stream: &WireIdentifier) -> Result<&mut Stream, u32> {
        self.streams.get_mut(stream).ok_or_else(stream_missing)
    }

    pub fn topic(
        &mut self,
        stream: &WireIdentifier,
        topic: &WireIdentifier,
    ) -> Result<&mut Topic, u32> {
        self.stream(stream)?
            .topics
            .get_mut(topic)
            .ok_or_else(topic_missing)
    }

    pub fn partition(
        &mut self,
        stream: &WireIdentifier,
        topic: &WireIdentifier,
        partition: u32,
    ) -> Result<&mut Partition, u32> {
        self.topic(stream, topic)?
            .partitions
            .get_mut(partition as usize)
            .ok_or_else(partition_missing)
    }

    /// Every partition of every topic.
    pub fn partitions(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.streams
            .values_mut()
            .flat_map(|stream| stream.topics.values_mut())
            .flat_map(|topic| &mut topic.partitions)
    }

    /// Whether a connection may ask for anything.
    ///
    /// # Errors
    /// When nobody is logged in there, or the user is gone.
    pub fn admit(&self, connection: u32) -> Result<(), u32> {
        match self.sessions.get(&connection) {
            None => Err(IggyError::Unauthenticated.as_code()),
            Some(session) if session.user_deleted => Err(IggyError::Unauthorized.as_code()),
            Some(_) => Ok(()),
        }
    }

    /// Ends what a connection had: its session and its places in consumer groups.
    pub fn leave(&mut self, connection: u32) {
        self.sessions.remove(&connection);
        for stream in self.streams.values_mut() {
            for topic in stream.topics.values_mut() {
                for group in topic.groups.values_mut() {
                    group.leave(connection);
                }
            }
        }
    }
}

fn nothing() -> iggy_common::Identifier {
    iggy_common::Identifier::default()
}

pub fn stream_missing() -> u32 {
    IggyError::StreamIdNotFound(nothing()).as_code()
}

pub fn topic_missing() -> u32 {
    IggyError::TopicIdNotFound(nothing(), nothing()).as_code()
}

pub fn partition_missing() -> u32 {
    IggyError::PartitionNotFound(0, nothing(), nothing()).as_code()
}

pub fn group_missing() -> u32 {
    IggyError::ConsumerGroupIdNotFound(nothing(), nothing()).as_code()
}

/// Microseconds since the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
