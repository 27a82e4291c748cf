//! Consumer groups: members, and which partitions each of them owns.

use iggy_binary_protocol::WireName;
use serde::{Deserialize, Serialize};

use crate::state::Named;
use crate::storage::text;

/// A consumer group of a topic.
#[derive(Debug, Serialize, Deserialize)]
pub struct Group {
    #[serde(with = "text::name")]
    pub name: WireName,
    /// Connections, in the order in which they joined.
    #[serde(skip)]
    pub members: Vec<u32>,
    /// Counts rebalances.
    pub generation: u64,
}

impl Named for Group {
    fn name(&self) -> &WireName {
        &self.name
    }
}

impl Group {
    pub const fn new(name: WireName) -> Self {
        Self {
            name,
            members: Vec::new(),
            generation: 0,
        }
    }

    pub fn join(&mut self, connection: u32) {
        if !self.members.contains(&connection) {
            self.members.push(connection);
            self.generation += 1;
        }
    }

    pub fn leave(&mut self, connection: u32) {
        let before = self.members.len();
        self.members.retain(|member| *member != connection);
        if self.members.len() != before {
            self.generation += 1;
        }
    }

    /// The partitions of a member; none when it is not one. Partitions go round among the members.
    pub fn owned_by(&self, connection: u32, partitions: usize) -> Option<Vec<u32>> {
        let place = self
            .members
            .iter()
            .position(|member| *member == connection)?;
        let all = 0..u32::try_from(partitions).unwrap_or(u32::MAX);
        Some(all.skip(place).step_by(self.members.len()).collect())
    }
}
