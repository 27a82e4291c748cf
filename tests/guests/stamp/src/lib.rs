//! Stamps every message with the version of the guest, and counts it.
//!
//! The version is a text that is found once in the component, so that a test can make other versions of it.

use sluice_guest::{Config, Guest, Inputs, Message, Rewrite, Source, Verdict, log, metrics};

/// Replaced by tests.
static VERSION: &str = "version-0000";

/// Versions from this on refuse to start.
const REFUSING: &str = "version-9";

/// The guest.
#[derive(Debug)]
pub struct Stamp {
    version: &'static str,
}

impl Guest for Stamp {
    const INPUTS: Inputs = Inputs::PAYLOADS;

    fn start(_source: &Source, _config: &Config) -> Result<Self, String> {
        let version = std::hint::black_box(VERSION);
        if version.starts_with(REFUSING) {
            return Err(format!("{version} refuses"));
        }
        Ok(Self { version })
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        metrics::count("stamped", 1);
        metrics::count("not a name", 1);
        #[expect(clippy::cast_precision_loss, reason = "offsets in tests are small")]
        metrics::gauge("offset", message.offset() as f64);
        if message.payload() == b"flood" {
            for line in 0..1000 {
                log::info(&format!("flood\nline {line}"));
            }
        }
        Verdict::from(Rewrite::new().set("version", self.version))
    }
}

sluice_guest::export!(Stamp);
