//! How many messages to ask for.

use crate::batch::{Polled, frame_size};

/// Messages in the very first poll, when their size is not known yet.
const FIRST: u32 = 1;

/// Most times that a poll asks for more than the one before.
const GROWTH: u32 = 8;

/// How many messages to ask for, so that replies, which Iggy does not bound, stay within a size in bytes as long as
/// messages are no larger than the largest of the reply before.
#[derive(Debug, Clone)]
pub struct PollSize {
    most_messages: u32,
    bytes: usize,
    count: u32,
}

impl PollSize {
    /// At most `most_messages` messages, aiming at `bytes`.
    pub fn new(most_messages: u32, bytes: usize) -> Self {
        Self {
            most_messages,
            bytes,
            count: FIRST.min(most_messages),
        }
    }

    /// Messages to ask for next.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Takes the sizes of a reply into account.
    pub fn learn(&mut self, polled: &Polled) {
        let sizes = polled
            .frames()
            .iter()
            .map(|frame| frame_size(polled.payload(frame).len(), polled.headers(frame).len()));
        let Some(largest) = sizes.max() else { return };
        let fitting = u32::try_from(self.bytes / largest).unwrap_or(u32::MAX);
        self.count = fitting
            .min(self.count.saturating_mul(GROWTH))
            .clamp(1, self.most_messages);
    }

    /// Asks for less after a failure: the last reply may have been too large for the time limit.
    pub fn shrink(&mut self) {
        self.count = (self.count / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_poll_is_tried_with_fewer_messages_down_to_one() {
        let mut size = PollSize {
            count: 16,
            ..PollSize::new(1000, 1 << 20)
        };
        let mut counts = Vec::new();
        for _ in 0..6 {
            size.shrink();
            counts.push(size.count());
        }
        assert_eq!(counts, [8, 4, 2, 1, 1, 1]);
    }
}
