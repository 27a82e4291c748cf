//! The last distinct keys.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Remembers a bounded number of distinct keys, in the order in which they first came.
#[derive(Debug)]
pub struct Window {
    room: usize,
    known: BTreeSet<Rc<[u8]>>,
    order: VecDeque<Rc<[u8]>>,
}

impl Window {
    /// None yet; room for `room` of them.
    pub const fn new(room: usize) -> Self {
        Self {
            room,
            known: BTreeSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Whether the key is not known; it is known from now on, and the oldest one is forgotten where room is short.
    pub fn is_new(&mut self, key: &[u8]) -> bool {
        if self.known.contains(key) {
            return false;
        }
        if self.order.len() == self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        let key: Rc<[u8]> = key.into();
        self.known.insert(Rc::clone(&key));
        self.order.push_back(key);
        true
    }
}
