//! Metrics of guests, and those that guests count themselves.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::count;
use crate::guest::{Own, Slot, Stage, Stats};

type Total = fn(&Stats) -> &AtomicU64;

/// Counters of a guest: the name without `sluice_guest_` and `_total`, and what it counts.
const TOTALS: [(&str, &str, Total); 5] = [
    (
        "messages",
        "Messages that the guest was asked about",
        |stats| &stats.asked,
    ),
    ("reloads", "New versions that took over", |stats| {
        &stats.reloads
    }),
    (
        "refused_reloads",
        "New versions that cannot run, so that the last one goes on",
        |stats| &stats.refused_reloads,
    ),
    (
        "log_lines_left_out",
        "Log lines beyond what a guest may write",
        |stats| &stats.left_out,
    ),
    (
        "refused_calls",
        "Calls of count and gauge that the contract does not allow",
        |stats| &stats.refused_calls,
    ),
];

/// The guests of the gateway.
#[derive(Debug)]
pub struct Guests(pub Vec<Arc<Slot>>);

impl Collector for Guests {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, total) in TOTALS {
            let name = format!("guest_{name}");
            let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for slot in &self.0 {
                let labels = [("guest", slot.name())];
                count(&mut metric.encode_family(&labels)?, total(&slot.stats))?;
            }
        }
        self.failures(&mut encoder)?;
        self.seconds(&mut encoder)?;
        self.versions(&mut encoder)?;
        self.own(&mut encoder)
    }
}

impl Guests {
    fn failures(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Messages that the guest rejected or failed on";
        let mut metric =
            encoder.encode_descriptor("guest_failures", help, None, MetricType::Counter)?;
        for slot in &self.0 {
            for (stage, total) in Stage::OF_GUESTS.iter().zip(&slot.stats.failures) {
                let labels = [("guest", slot.name()), ("stage", stage.name())];
                count(&mut metric.encode_family(&labels)?, total)?;
            }
        }
        Ok(())
    }

    fn seconds(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time that the guest took to decide";
        let mut metric =
            encoder.encode_descriptor("guest_seconds", help, None, MetricType::Counter)?;
        for slot in &self.0 {
            let nanoseconds = slot.stats.nanoseconds.load(Ordering::Relaxed);
            let seconds = std::time::Duration::from_nanos(nanoseconds).as_secs_f64();
            let labels = [("guest", slot.name())];
            let mut metric = metric.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&seconds, None)?;
        }
        Ok(())
    }

    fn versions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "When the version that runs was loaded, in seconds since the Unix epoch";
        let mut metric =
            encoder.encode_descriptor("guest_loaded_seconds", help, None, MetricType::Gauge)?;
        for slot in &self.0 {
            let current = slot.current();
            let version = current.version();
            let labels = [("guest", slot.name()), ("hash", &version.hash)];
            metric
                .encode_family(&labels)?
                .encode_gauge(&version.loaded)?;
        }
        Ok(())
    }

    fn own(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let own: Vec<(&str, Own)> = self
            .0
            .iter()
            .map(|slot| (slot.name(), slot.stats.own()))
            .collect();
        let help = "What the guest counts itself";
        let mut metric =
            encoder.encode_descriptor("guest_count", help, None, MetricType::Counter)?;
        for (guest, own) in &own {
            for (name, total) in &own.counters {
                let labels = [("guest", *guest), ("name", name)];
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_counter::<NoLabelSet, _, u64>(total, None)?;
            }
        }
        let help = "What the guest measures itself";
        let mut metric = encoder.encode_descriptor("guest_gauge", help, None, MetricType::Gauge)?;
        for (guest, own) in &own {
            for (name, sources) in &own.gauges {
                for (source, value) in sources {
                    let labels = [("guest", *guest), ("name", name), ("source", source)];
                    metric.encode_family(&labels)?.encode_gauge(value)?;
                }
            }
        }
        Ok(())
    }
}
