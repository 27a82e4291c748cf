//! Connections to Iggy clusters. Only this module names SDK clients.

mod client;
mod connection;
mod error;
mod messages;
mod offsets;
mod topology;

use std::fmt;
use std::sync::Arc;

pub use client::Client;
pub use connection::Connection;
pub use error::{Error, Fault};
pub use messages::PollFrom;
pub use messages::SDK_PATIENCE;
pub use topology::{PartitionInfo, TopicInfo};

use crate::config;

/// One Iggy deployment and how this gateway presents itself there.
#[derive(Debug)]
pub struct Cluster {
    /// Name in the configuration.
    pub name: String,
    /// Address, credentials and time limit.
    pub config: config::Cluster,
    /// Name of the consumer that this gateway polls as.
    pub consumer: String,
}

/// A partition of a topic: where messages come from, or go.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    /// Stream name.
    pub stream: Arc<str>,
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition id, from 0.
    pub id: u32,
}

impl fmt::Display for Partition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.stream, self.topic, self.id)
    }
}
