//! Where the lanes that run can be looked at.

use std::sync::{Arc, Mutex, PoisonError};

use super::report::Status;

/// The status of every lane of the gateway.
#[derive(Debug, Default)]
pub struct Board {
    lanes: Mutex<Vec<Arc<Status>>>,
}

impl Board {
    pub(super) fn add(&self, status: Arc<Status>) {
        self.lock().push(status);
    }

    /// Every lane that was started.
    pub fn lanes(&self) -> Vec<Arc<Status>> {
        self.lock().clone()
    }

    /// Names of the links with lanes, in their order.
    pub fn links(&self) -> Vec<String> {
        let mut links: Vec<_> = self.lock().iter().map(|lane| lane.link.clone()).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Status>>> {
        // A list is whole at any time, also if a thread panicked while it held the lock.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
