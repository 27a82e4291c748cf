//! What a guest did and said, over all of its instances and versions.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Stage;
use crate::lock;

/// Most names of counters and gauges, together.
const NAMES: usize = 64;

/// Longest name, in bytes.
const NAME_LIMIT: usize = 64;

/// Log lines within [`WINDOW`]: of the guest, and again about messages that it fails on.
const LINES: u32 = 100;

const WINDOW: Duration = Duration::from_secs(1);

/// Totals of a guest since the gateway started.
#[derive(Debug, Default)]
pub struct Stats {
    /// Messages that it was asked about, each once.
    pub asked: AtomicU64,
    /// Time in its calls, in nanoseconds.
    pub nanoseconds: AtomicU64,
    /// Messages that it rejected or failed on, by their place in [`Stage::OF_GUESTS`].
    pub failures: [AtomicU64; Stage::OF_GUESTS.len()],
    /// New versions that took over.
    pub reloads: AtomicU64,
    /// New versions that were refused.
    pub refused_reloads: AtomicU64,
    /// Lanes that wait because the guest keeps failing.
    pub open: AtomicU64,
    /// How often lanes began to wait for that.
    pub opened: AtomicU64,
    /// Log lines that were left out.
    pub left_out: AtomicU64,
    /// Calls of `count` and `gauge` that changed nothing.
    pub refused_calls: AtomicU64,
    own: Mutex<Own>,
    lines: Mutex<Option<Lines>>,
    warnings: Mutex<Option<Lines>>,
}

/// What the guest itself counts.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Counters by name.
    pub counters: BTreeMap<String, u64>,
    /// Gauges by name, then by source partition.
    pub gauges: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Debug)]
struct Lines {
    since: Instant,
    written: u32,
}

impl Stats {
    /// The guest's own counters and gauges.
    pub fn own(&self) -> Own {
        lock(&self.own).clone()
    }

    pub(super) fn failed(&self, stage: Stage) {
        if let Some(place) = Stage::OF_GUESTS.iter().position(|known| *known == stage) {
            self.failures[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count(&self, name: String, amount: u64) {
        let mut own = lock(&self.own);
        if let Some(counter) = own.counters.get_mut(&name) {
            *counter = counter.wrapping_add(amount);
        } else if own.has_room_for(&name) {
            own.counters.insert(name, amount);
        } else {
            self.refused_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn gauge(&self, name: String, source: &str, value: f64) {
        let mut own = lock(&self.own);
        if let Some(gauge) = own.gauges.get_mut(&name) {
            gauge.insert(source.to_owned(), value);
        } else if own.has_room_for(&name) {
            own.gauges
                .insert(name, BTreeMap::from([(source.to_owned(), value)]));
        } else {
            self.refused_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the guest may write one more log line at `now`.
    pub(super) fn may_log(&self, now: Instant) -> bool {
        self.one_more(&self.lines, now)
    }

    /// Whether one more message that it fails on may be told of at `now`.
    pub(super) fn may_warn(&self, now: Instant) -> bool {
        self.one_more(&self.warnings, now)
    }

    fn one_more(&self, lines: &Mutex<Option<Lines>>, now: Instant) -> bool {
        let mut lines = lock(lines);
        let current = lines
            .take()
            .filter(|lines| now.duration_since(lines.since) < WINDOW);
        let mut current = current.unwrap_or(Lines {
            since: now,
            written: 0,
        });
        let may = current.written < LINES;
        if may {
            current.written += 1;
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        *lines = Some(current);
        may
    }
}

impl Own {
    fn has_room_for(&self, name: &str) -> bool {
        let fits = (1..=NAME_LIMIT).contains(&name.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        fits && name.bytes().all(plain) && self.counters.len() + self.gauges.len() < NAMES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_few() {
        let stats = Stats::default();
        for name in ["", "a b", "é", &"x".repeat(65)] {
            stats.count(name.to_owned(), 1);
        }
        for index in 0..70 {
            stats.gauge(format!("g{index}"), "here", 1.0);
            stats.count("c".to_owned(), 2);
        }
        let own = stats.own();
        assert_eq!(own.counters, BTreeMap::from([("c".to_owned(), 140)]));
        assert_eq!(own.gauges.len(), 63);
        assert_eq!(stats.refused_calls.load(Ordering::Relaxed), 4 + 7);
    }

    #[test]
    fn a_flood_of_lines_is_cut_and_counted() {
        let stats = Stats::default();
        let start = Instant::now();
        let written = (0..1000).filter(|_| stats.may_log(start)).count();
        assert_eq!(written, 100);
        assert_eq!(stats.left_out.load(Ordering::Relaxed), 900);
        assert!(stats.may_log(start + WINDOW));
        let warned = (0..1000).filter(|_| stats.may_warn(start)).count();
        assert_eq!(warned, 100, "they do not take each other's place");
    }
}
