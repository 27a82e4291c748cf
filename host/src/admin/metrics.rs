//! Metrics, read off the lanes when they are asked for.

mod guests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use guests::Guests;

use crate::cluster::Fault;
use crate::guest::Slot;
use crate::link::{Alert, Board, Counts, State, Status};

type Total = fn(&Counts) -> &AtomicU64;

/// Counters of a lane: the name without `sluice_` and `_total`, and what it counts.
const TOTALS: [(&str, &str, Total); 8] = [
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
        let help = "1 while the link's lanes copy, 0 before and after";
        let mut metric = encoder.encode_descriptor("link_up", help, None, MetricType::Gauge)?;
        for link in &self.0 {
            let up = u64::from(link.state() == State::Running);
            metric
                .encode_family(&[("link", link.link.as_str())])?
                .encode_gauge(&up)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Lanes(Vec<Arc<Status>>);

impl Collector for Lanes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, total) in TOTALS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for lane in &self.0 {
                let labels = labels(lane);
                count(&mut metric.encode_family(&labels)?, total(&lane.counts))?;
            }
        }
        self.retries(&mut encoder)?;
        self.gauge(
            &mut encoder,
            "next_offset",
            "Source offset below which every message is settled",
            |lane| lane.next_offset.load(Ordering::Relaxed),
        )?;
        self.gauge(
            &mut encoder,
            "lag_messages",
            "Messages at the source that are not settled, when it was last polled",
            |lane| {
                let settled = lane.next_offset.load(Ordering::Relaxed);
                let end = lane.source_end.load(Ordering::Relaxed);
                end.saturating_sub(settled)
            },
        )?;
        self.gauge(
            &mut encoder,
            "lane_running",
            "1 while the lane copies, 0 before and after",
            |lane| u64::from(lane.state() == State::Running),
        )?;
        self.gauge(
            &mut encoder,
            "lane_failed",
            "1 when the lane cannot go on until somebody decides",
            |lane| u64::from(matches!(lane.state(), State::Failed { .. })),
        )?;
        self.gauge(
            &mut encoder,
            "lane_retrying",
            "1 while a call to a cluster keeps failing",
            |lane| alert(lane, |alert| matches!(alert, Alert::Retrying { .. })),
        )?;
        self.gauge(
            &mut encoder,
            "lane_read_fault",
            "1 while the source gives no message where it says that it has some",
            |lane| alert(lane, |alert| matches!(alert, Alert::ReadFault { .. })),
        )
    }
}

impl Lanes {
    fn retries(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Failed calls to clusters that were repeated";
        let mut metric = encoder.encode_descriptor("retries", help, None, MetricType::Counter)?;
        for lane in &self.0 {
            for (fault, total) in Fault::ALL.iter().zip(&lane.counts.retries) {
                let [link, source] = labels(lane);
                let labels = [link, source, ("class", fault.name())];
                count(&mut metric.encode_family(&labels)?, total)?;
            }
        }
        Ok(())
    }

    fn gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: fn(&Status) -> u64,
    ) -> Result<(), fmt::Error> {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for lane in &self.0 {
            metric
                .encode_family(&labels(lane))?
                .encode_gauge(&value(lane))?;
        }
        Ok(())
    }
}

fn labels(lane: &Status) -> [(&str, &str); 2] {
    [("link", &lane.link), ("source", &lane.source)]
}

fn count(metric: &mut MetricEncoder<'_>, total: &AtomicU64) -> Result<(), fmt::Error> {
    metric.encode_counter::<NoLabelSet, _, u64>(&total.load(Ordering::Relaxed), None)
}

fn alert(lane: &Status, is: fn(&Alert) -> bool) -> u64 {
    u64::from(lane.alerts().iter().any(is))
}
