//! Metrics of guests, and those that guests count themselves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::{Total, counter, gauge, read};
use crate::guest::{Own, Slot, Stage, Stats};

/// Counters of a guest.
const TOTALS: [Total<Stats>; 6] = [
    (
        "guest_messages",
        "Messages that the guest was asked about",
        |stats| &stats.asked,
    ),
    ("guest_reloads", "New versions that took over", |stats| {
        &stats.reloads
    }),
    (
        "guest_refused_reloads",
        "New versions that cannot run, so that the last one goes on",
        |stats| &stats.refused_reloads,
    ),
    (
        "guest_breaker_opened",
        "How often lanes began to wait because the guest failed on message after message",
        |stats| &stats.opened,
    ),
    (
        "guest_log_lines_left_out",
        "Log lines beyond what a guest may write",
        |stats| &stats.left_out,
    ),
    (
        "guest_refused_calls",
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
            let totals = self.0.iter().map(|slot| {
                let labels = [("guest", slot.name())];
                (labels, read(total(&slot.stats)))
            });
            counter(&mut encoder, name, help, totals)?;
        }
        let failures = self.0.iter().flat_map(|slot| {
            let stages = Stage::OF_GUESTS.iter().zip(&slot.stats.failures);
            stages.map(|(stage, total)| {
                let labels = [("guest", slot.name()), ("stage", stage.name())];
                (labels, read(total))
            })
        });
        let help = "Messages that the guest rejected or failed on";
        counter(&mut encoder, "guest_failures", help, failures)?;
        let seconds = self.0.iter().map(|slot| {
            let time = Duration::from_nanos(read(&slot.stats.nanoseconds));
            ([("guest", slot.name())], time.as_secs_f64())
        });
        let help = "Time that the guest took to decide";
        counter(&mut encoder, "guest_seconds", help, seconds)?;
        let open = self.0.iter().map(|slot| {
            let labels = [("guest", slot.name())];
            (labels, read(&slot.stats.open))
        });
        let help = "Lanes that wait because the guest failed on message after message";
        gauge(&mut encoder, "guest_breakers_open", help, open)?;
        self.versions(&mut encoder)?;
        self.own(&mut encoder)
    }
}

impl Guests {
    fn versions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let current: Vec<_> = self.0.iter().map(|slot| slot.current()).collect();
        let loaded = current.iter().map(|component| {
            let version = component.version();
            let labels = [("guest", component.name()), ("hash", &*version.hash)];
            (labels, version.loaded)
        });
        let help = "When the version that runs was loaded, in seconds since the Unix epoch";
        gauge(encoder, "guest_loaded_seconds", help, loaded)
    }

    fn own(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let own: Vec<(&str, Own)> = self
            .0
            .iter()
            .map(|slot| (slot.name(), slot.stats.own()))
            .collect();
        let counters = own.iter().flat_map(|(guest, own)| {
            own.counters.iter().map(|(name, total)| {
                let labels = [("guest", *guest), ("name", name)];
                (labels, *total)
            })
        });
        counter(
            encoder,
            "guest_count",
            "What the guest counts itself",
            counters,
        )?;
        let gauges = own.iter().flat_map(|(guest, own)| {
            own.gauges.iter().flat_map(|(name, sources)| {
                sources.iter().map(|(source, value)| {
                    let labels = [("guest", *guest), ("name", name), ("source", source)];
                    (labels, *value)
                })
            })
        });
        gauge(
            encoder,
            "guest_gauge",
            "What the guest measures itself",
            gauges,
        )
    }
}
