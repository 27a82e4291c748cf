//! What keeps a guest that fails on message after message from taking them all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::stats::Stats;
use crate::config;

/// Counts a guest's faults in a row for one source partition. Open, it has the lane wait; after the wait the guest is
/// asked about one message, and what comes of that closes it or opens it for longer.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: config::Breaker,
    stats: Arc<Stats>,
    faults: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed,
    Open(Open),
    /// The wait is over.
    HalfOpen(Open),
}

/// Counted for as long as it lives.
#[derive(Debug)]
struct Open {
    stats: Arc<Stats>,
    pause: Duration,
    reason: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.stats.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Breaker {
    pub(super) fn new(settings: config::Breaker, stats: &Arc<Stats>) -> Self {
        Self {
            settings,
            stats: Arc::clone(stats),
            faults: 0,
            state: State::Closed,
        }
    }

    /// How long the lane has to wait, and why.
    pub(super) fn open(&self) -> Option<(Duration, &str)> {
        match &self.state {
            State::Open(open) => Some((open.pause, &open.reason)),
            State::Closed | State::HalfOpen(_) => None,
        }
    }

    /// Whether the guest may be asked about one message only.
    pub(super) const fn is_half_open(&self) -> bool {
        matches!(self.state, State::HalfOpen(_))
    }

    /// The lane has waited.
    pub(super) fn waited(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Open(open) => State::HalfOpen(open),
            state => state,
        };
    }

    /// The guest decided over a message.
    pub(super) fn success(&mut self) {
        self.faults = 0;
        self.state = State::Closed;
    }

    /// The guest failed on a message.
    pub(super) fn fault(&mut self, reason: &dyn std::fmt::Display) {
        self.faults = self.faults.saturating_add(1);
        if self.is_half_open() || self.faults >= self.settings.faults {
            self.trip(reason);
        }
    }

    /// The guest cannot be asked at all.
    pub(super) fn trip(&mut self, reason: &dyn std::fmt::Display) {
        let pause = match &self.state {
            State::Closed => self.settings.pause,
            State::Open(open) | State::HalfOpen(open) => {
                open.pause.saturating_mul(2).min(self.settings.max_pause)
            }
        };
        self.stats.open.fetch_add(1, Ordering::Relaxed);
        self.stats.opened.fetch_add(1, Ordering::Relaxed);
        self.state = State::Open(Open {
            stats: Arc::clone(&self.stats),
            pause,
            reason: reason.to_string(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> (Breaker, Arc<Stats>) {
        let stats = Arc::new(Stats::default());
        let settings = config::Breaker {
            faults: 3,
            pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(3),
        };
        (Breaker::new(settings, &stats), stats)
    }

    fn pause(breaker: &Breaker) -> Option<u64> {
        breaker.open().map(|(pause, _)| pause.as_secs())
    }

    #[test]
    fn faults_in_a_row_open_it_and_a_success_between_them_does_not() {
        let (mut breaker, stats) = breaker();
        for _ in 0..5 {
            breaker.fault(&"trap");
            breaker.fault(&"trap");
            breaker.success();
        }
        assert_eq!(breaker.open(), None);
        for _ in 0..3 {
            breaker.fault(&"trap");
        }
        assert_eq!(breaker.open(), Some((Duration::from_secs(1), "trap")));
        assert_eq!(stats.open.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn each_fault_after_a_wait_opens_it_for_longer_and_a_success_closes_it() {
        let (mut breaker, stats) = breaker();
        breaker.trip(&"does not start");
        let mut pauses = vec![pause(&breaker)];
        for _ in 0..2 {
            breaker.waited();
            assert!(breaker.is_half_open() && breaker.open().is_none());
            breaker.fault(&"trap");
            pauses.push(pause(&breaker));
        }
        assert_eq!(pauses, [Some(1), Some(2), Some(3)]);
        assert_eq!(stats.open.load(Ordering::Relaxed), 1);
        assert_eq!(stats.opened.load(Ordering::Relaxed), 3);
        breaker.waited();
        breaker.success();
        assert!(!breaker.is_half_open());
        assert_eq!(stats.open.load(Ordering::Relaxed), 0);
        breaker.fault(&"trap");
        assert_eq!(pause(&breaker), None);
    }
}
