//! What a guest decides.

use std::rc::Rc;

use crate::field::FieldBuf;

/// The decision over one message. Routes and rewrites are shared when cloned, so a guest may make them once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// On, as it is.
    Forward,
    /// Settled without being delivered.
    Drop,
    /// On, as it is, to these destinations.
    Route(Rc<[Route]>),
    /// On, changed.
    Rewrite(Rc<Rewrite>),
    /// It cannot be processed; the text says why.
    Reject(Rc<str>),
}

impl Verdict {
    /// To one destination.
    pub fn route(route: Route) -> Self {
        Self::Route(Rc::new([route]))
    }

    /// To several destinations, each named once.
    pub fn routes(routes: impl IntoIterator<Item = Route>) -> Self {
        Self::Route(routes.into_iter().collect())
    }

    /// Rejected, with a reason of at most 1,024 bytes.
    pub fn reject(reason: impl AsRef<str>) -> Self {
        Self::Reject(reason.as_ref().into())
    }
}

impl From<Rewrite> for Verdict {
    fn from(rewrite: Rewrite) -> Self {
        Self::Rewrite(Rc::new(rewrite))
    }
}

/// A destination. What is not named comes from the link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    pub(crate) stream: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) partition: Option<u32>,
}

impl Route {
    /// A topic of the link's destination stream.
    pub fn topic(topic: impl Into<String>) -> Self {
        Self::default().in_topic(topic)
    }

    /// A stream, with the topic that the link names.
    pub fn stream(stream: impl Into<String>) -> Self {
        Self::default().in_stream(stream)
    }

    /// A partition of the link's destination topic.
    pub fn partition(partition: u32) -> Self {
        Self::default().in_partition(partition)
    }

    /// The same in this stream.
    #[must_use]
    pub fn in_stream(mut self, stream: impl Into<String>) -> Self {
        self.stream = Some(stream.into());
        self
    }

    /// The same in this topic.
    #[must_use]
    pub fn in_topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// The same in this partition.
    #[must_use]
    pub const fn in_partition(mut self, partition: u32) -> Self {
        self.partition = Some(partition);
        self
    }
}

/// Changes to a message, made in the order in which they are added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrite {
    pub(crate) routes: Vec<Route>,
    pub(crate) changes: Vec<Change>,
    pub(crate) payload: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Set(FieldBuf, FieldBuf),
    Remove(FieldBuf),
    Rename(FieldBuf, FieldBuf),
}

impl Rewrite {
    /// No change yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the header this value, adding it where it is missing.
    #[must_use]
    pub fn set(mut self, key: impl Into<FieldBuf>, value: impl Into<FieldBuf>) -> Self {
        self.changes.push(Change::Set(key.into(), value.into()));
        self
    }

    /// Removes every header with this key.
    #[must_use]
    pub fn remove(mut self, key: impl Into<FieldBuf>) -> Self {
        self.changes.push(Change::Remove(key.into()));
        self
    }

    /// Gives every header with the key `from` the key `to`.
    #[must_use]
    pub fn rename(mut self, from: impl Into<FieldBuf>, to: impl Into<FieldBuf>) -> Self {
        self.changes.push(Change::Rename(from.into(), to.into()));
        self
    }

    /// Replaces the payload, with at most 64,000,000 bytes.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.payload = Some(payload.into());
        self
    }

    /// Sends the changed message there; may be repeated.
    #[must_use]
    pub fn to(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }
}
