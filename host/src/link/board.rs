//! Where the lanes that run can be looked at.

use std::sync::{Arc, Mutex};

use super::Error;
use super::report::{State, Status};
use crate::lock;

/// The status of every link and lane of the gateway.
#[derive(Debug, Default)]
pub struct Board {
    links: Mutex<Vec<Arc<Status>>>,
    lanes: Mutex<Vec<Arc<Status>>>,
}

impl Board {
    pub(super) fn add_link(&self, status: Arc<Status>) {
        let mut links = lock(&self.links);
        links.retain(|other| other.link != status.link);
        links.push(status);
    }

    /// The status of a lane that starts. Where the lane ran before, its totals go on.
    pub(super) fn add_lane(&self, link: &str, source: &str) -> Arc<Status> {
        let mut lanes = lock(&self.lanes);
        let same = |status: &&mut Arc<Status>| status.link == link && status.source == source;
        if let Some(status) = lanes.iter_mut().find(same) {
            *status = Arc::new(Status::after(status));
            return Arc::clone(status);
        }
        let status = Arc::new(Status::new(link, source));
        lanes.push(Arc::clone(&status));
        status
    }

    /// Tells that a link does not run, and why.
    pub fn fail(&self, link: &str, error: &Error) {
        let failed = State::Failed {
            error: error.to_string(),
        };
        let mut links = lock(&self.links);
        if let Some(status) = links.iter().find(|status| status.link == link) {
            status.enter(failed);
            return;
        }
        let status = Status::new(link, "");
        status.enter(failed);
        links.push(Arc::new(status));
    }

    /// Forgets a link and its lanes.
    pub fn remove(&self, link: &str) {
        lock(&self.links).retain(|status| status.link != link);
        lock(&self.lanes).retain(|status| status.link != link);
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
