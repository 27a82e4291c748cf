//! Metrics, read off the lanes when they are asked for.

mod guests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use guests::Guests;

use crate::cluster::Fault;
use crate::guest::Slot;
use crate::link::{Alert, Board, Counts, State, Status};

/// A counter that is a field of `T`: its name without `sluice_` and `_total`, what it counts, and the field.
type Total<T> = (&'static str, &'static str, fn(&T) -> &AtomicU64);

/// Counters of a lane.
const TOTALS: [Total<Counts>; 8] = [
    (
        "messages_forwarded",
        "Messages settled by delivery to every destination",
        |counts| &counts.forwarded,
    ),
    (
        "messages_dropped",
        "Messages settled by a guest's verdict or the policy drop",
        |counts| &counts.dropped,
    ),
    (
        "messages_dead_lettered",
        "Messages settled in the dead-letter topic",
        |counts| &counts.dead_lettered,
    ),
    (
        "messages_failed",
        "Messages that could not be processed, whatever became of them",
        |counts| &counts.failed,
    ),
    (
        "messages_sent",
        "Messages that destinations confirmed",
        |counts| &counts.sent,
    ),
    (
        "duplicates_avoided",
        "Messages found at the destination instead of sent again",
        |counts| &counts.found,
    ),
    (
        "gap_messages",
        "Messages that the source lost before they were copied",
        |counts| &counts.gaps,
    ),
    (
        "source_resets",
        "Times that the source was another than before",
        |counts| &counts.resets,
    ),
];

/// All metrics as text in the format of `OpenMetrics`.
pub fn text(board: &Board, guests: Vec<Arc<Slot>>) -> String {
    let mut registry = Registry::with_prefix("sluice");
    registry.register_collector(Box::new(Links(board.links())));
    registry.register_collector(Box::new(Lanes(board.lanes())));
    registry.register_collector(Box::new(Guests(guests)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .expect("writing to a string does not fail");
    text
}

#[derive(Debug)]
struct Links(Vec<Arc<Status>>);

impl Collector for Links {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let up = self.0.iter().map(|link| {
            let up = u64::from(link.state() == State::Running);
            ([("link", link.link.as_str())], up)
        });
        let help = "1 while the link's lanes copy, 0 before and after";
        gauge(&mut encoder, "link_up", help, up)
    }
}

#[derive(Debug)]
struct Lanes(Vec<Arc<Status>>);

impl Collector for Lanes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, total) in TOTALS {
            counter(
                &mut encoder,
                name,
                help,
                self.each(|lane| read(total(&lane.counts))),
            )?;
        }
        let retries = self.0.iter().flat_map(|lane| {
            let [link, source] = labels(lane);
            let classes = Fault::ALL.iter().zip(&lane.counts.retries);
            classes.map(move |(fault, total)| {
                let labels = [link, source, ("class", fault.name())];
                (labels, read(total))
            })
        });
        counter(
            &mut encoder,
            "retries",
            "Failed calls to clusters that were repeated",
            retries,
        )?;
        gauge(
            &mut encoder,
            "next_offset",
            "Source offset below which every message is settled",
            self.each(|lane| read(&lane.next_offset)),
        )?;
        gauge(
            &mut encoder,
            "lag_messages",
            "Messages at the source that are not settled, when it was last polled",
            self.each(|lane| {
                let settled = read(&lane.next_offset);
                read(&lane.source_end).saturating_sub(settled)
            }),
        )?;
        gauge(
            &mut encoder,
            "lane_running",
            "1 while the lane copies, 0 before and after",
            self.each(|lane| u64::from(lane.state() == State::Running)),
        )?;
        gauge(
            &mut encoder,
            "lane_failed",
            "1 when the lane cannot go on until somebody decides",
            self.each(|lane| u64::from(matches!(lane.state(), State::Failed { .. }))),
        )?;
        gauge(
            &mut encoder,
            "lane_retrying",
            "1 while a call to a cluster keeps failing",
            self.each(|lane| alert(lane, |alert| matches!(alert, Alert::Retrying { .. }))),
        )?;
        gauge(
            &mut encoder,
            "lane_read_fault",
            "1 while the source gives no message where it says that it has some",
            self.each(|lane| alert(lane, |alert| matches!(alert, Alert::ReadFault { .. }))),
        )?;
        gauge(
            &mut encoder,
            "lane_guest_paused",
            "1 while the lane waits because a guest failed on message after message",
            self.each(|lane| alert(lane, |alert| matches!(alert, Alert::GuestPaused { .. }))),
        )
    }
}

impl Lanes {
    /// A value of each lane, with its labels.
    fn each<'a>(
        &'a self,
        value: impl Fn(&Status) -> u64 + 'a,
    ) -> impl Iterator<Item = ([(&'a str, &'a str); 2], u64)> {
        self.0.iter().map(move |lane| (labels(lane), value(lane)))
    }
}

fn labels(lane: &Status) -> [(&str, &str); 2] {
    [("link", &lane.link), ("source", &lane.source)]
}

fn alert(lane: &Status, is: fn(&Alert) -> bool) -> u64 {
    u64::from(lane.alerts().iter().any(is))
}

fn read(total: &AtomicU64) -> u64 {
    total.load(Ordering::Relaxed)
}

/// Writes a counter with a value for each set of labels.
fn counter<L: EncodeLabelSet, V: EncodeCounterValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (L, V)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        let mut metric = metric.encode_family(&labels)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    Ok(())
}

/// Writes a gauge with a value for each set of labels.
fn gauge<L: EncodeLabelSet, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (L, V)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}
