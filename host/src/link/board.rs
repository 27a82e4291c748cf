//! Where the lanes that run can be looked at.

use std::sync::{Arc, Mutex};

use super::report::Status;
use crate::lock;

/// The status of every link and lane of the gateway.
#[derive(Debug, Default)]
pub struct Board {
    links: Mutex<Vec<Arc<Status>>>,
    lanes: Mutex<Vec<Arc<Status>>>,
}

impl Board {
    pub(super) fn add_link(&self, status: Arc<Status>) {
        lock(&self.links).push(status);
    }

    pub(super) fn add(&self, status: Arc<Status>) {
        lock(&self.lanes).push(status);
    }

    /// Every lane that was started.
    pub fn lanes(&self) -> Vec<Arc<Status>> {
        lock(&self.lanes).clone()
    }

    /// Every link, in the order of their names: whether it has started its lanes, and what holds it up.
    pub fn links(&self) -> Vec<Arc<Status>> {
        let mut links = lock(&self.links).clone();
        links.sort_by(|left, right| left.link.cmp(&right.link));
        links
    }
}
