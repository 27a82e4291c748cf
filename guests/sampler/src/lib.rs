//! Keeps one message in N by a hash of its key, or the first message of each key.

mod window;

use std::borrow::Cow;

use serde::Deserialize;
use sluice_guest::{Config, Field, Guest, Inputs, Message, Source, Verdict};
use window::Window;

/// Most keys that are remembered; at 255 bytes a key this fits into the default memory limit.
const MOST_REMEMBERED: usize = 100_000;

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Key of the header that holds a message's key; without it, the message id is the key.
    header: Option<String>,
    /// Keep one key in this many.
    keep_one_in: Option<u64>,
    /// Keep a key unless it is among the last distinct ones, this many.
    dedup_last: Option<usize>,
    /// Whether messages without a key are kept.
    #[serde(default = "yes")]
    keep_keyless: bool,
}

const fn yes() -> bool {
    true
}

/// How a message's key decides.
#[derive(Debug)]
enum Mode {
    OneIn(u64),
    Dedup(Window),
}

/// The sampler.
#[derive(Debug)]
pub struct Sampler {
    header: Option<String>,
    mode: Mode,
    keep_keyless: bool,
}

impl Guest for Sampler {
    const INPUTS: Inputs = Inputs::HEADERS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        let settings: Settings = config.parse()?;
        let mode = match (settings.keep_one_in, settings.dedup_last) {
            (Some(0), None) => return Err("config.keep_one_in: is 0; 1 keeps all".to_owned()),
            (Some(count), None) => Mode::OneIn(count),
            (None, Some(count @ 1..=MOST_REMEMBERED)) => Mode::Dedup(Window::new(count)),
            (None, Some(count)) => {
                return Err(format!(
                    "config.dedup_last: is {count}; 1 to {MOST_REMEMBERED} keys are remembered"
                ));
            }
            _ => {
                return Err("config: give keep_one_in or dedup_last, one of the two".to_owned());
            }
        };
        Ok(Self {
            header: settings.header,
            mode,
            keep_keyless: settings.keep_keyless,
        })
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        let id = message.id().to_le_bytes();
        let key = match &self.header {
            Some(header) => message.header(header).map(bytes),
            None if message.id() == 0 => None,
            None => Some(Cow::Borrowed(&id[..])),
        };
        let keep = match (key, &mut self.mode) {
            (None, _) => self.keep_keyless,
            (Some(key), Mode::OneIn(count)) => hash(&key).is_multiple_of(*count),
            (Some(key), Mode::Dedup(window)) => window.is_new(&key),
        };
        if keep {
            Verdict::Forward
        } else {
            Verdict::Drop
        }
    }
}

/// The bytes that tell a header's value from others.
fn bytes(value: Field<'_>) -> Cow<'_, [u8]> {
    match value {
        Field::Text(text) => text.as_bytes().into(),
        Field::Raw(bytes) => bytes.into(),
        other => format!("{other:?}").into_bytes().into(),
    }
}

/// FNV-1a, then mixed so that every bit of the key reaches the low bits. It is the same on every machine and in
/// every version: a sample must not change with an update.
fn hash(key: &[u8]) -> u64 {
    let mut hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

sluice_guest::export!(Sampler);

#[cfg(test)]
mod tests {
    use sluice_guest::testing::{TestMessage, source};

    use super::*;

    fn sampler(config: &str) -> Sampler {
        Sampler::start(&source(), &Config::new(config)).expect("a valid configuration")
    }

    fn keeps(sampler: &mut Sampler, message: &TestMessage) -> bool {
        sampler.handle(&message.as_message()) == Verdict::Forward
    }

    fn with_id(id: u128) -> TestMessage {
        let mut message = TestMessage::new("");
        message.id = id;
        message
    }

    #[test]
    fn about_one_key_in_n_is_kept_and_always_the_same_ones() {
        let (mut one, mut other) = (
            sampler(r#"{"keep_one_in":10}"#),
            sampler(r#"{"keep_one_in":10}"#),
        );
        let mut kept = 0;
        for id in 1..=10_000 {
            let keep = keeps(&mut one, &with_id(id));
            assert_eq!(keep, keeps(&mut other, &with_id(id)), "{id}");
            kept += u32::from(keep);
        }
        assert!((900..1100).contains(&kept), "{kept}");
    }

    #[test]
    fn the_hash_stays_what_it_was() {
        assert_eq!(hash(b""), 0xefd0_1f60_ba99_2926);
        assert_eq!(hash(b"session-1"), 0xf267_abb3_2d45_0b1f);
    }

    #[test]
    fn the_header_is_the_key_where_one_is_named() {
        let mut sampler = sampler(r#"{"keep_one_in":2,"header":"session"}"#);
        let mut verdicts = Vec::new();
        for session in 0..20 {
            let session = format!("session-{session}");
            let first = with_id(1).header("session", session.as_str());
            let second = with_id(2).header("session", session.as_str());
            let keep = keeps(&mut sampler, &first);
            assert_eq!(keep, keeps(&mut sampler, &second), "{session}");
            verdicts.push(keep);
        }
        assert!(verdicts.contains(&true) && verdicts.contains(&false));
    }

    #[test]
    fn a_key_is_dropped_while_it_is_among_the_last() {
        let mut sampler = sampler(r#"{"dedup_last":2,"header":"order"}"#);
        let mut keep = |order: u64| keeps(&mut sampler, &with_id(1).header("order", order));
        assert!(keep(1));
        assert!(!keep(1));
        assert!(keep(2));
        assert!(!keep(1));
        assert!(keep(3));
        assert!(keep(1), "two other keys came since");
    }

    #[test]
    fn messages_without_a_key_are_kept_unless_the_config_says_so() {
        for (keep, more) in [(true, ""), (false, r#","keep_keyless":false"#)] {
            let mut by_id = sampler(&format!(r#"{{"dedup_last":9{more}}}"#));
            let mut by_header = sampler(&format!(r#"{{"keep_one_in":9,"header":"a"{more}}}"#));
            for _ in 0..2 {
                assert_eq!(keeps(&mut by_id, &with_id(0)), keep);
                assert_eq!(keeps(&mut by_header, &with_id(1)), keep);
            }
        }
    }

    #[test]
    fn errors_name_the_key() {
        let error =
            |config: &str| Sampler::start(&source(), &Config::new(config)).expect_err("refused");
        let one = "config: give keep_one_in or dedup_last, one of the two";
        assert_eq!(error("{}"), one);
        assert_eq!(error(r#"{"keep_one_in":2,"dedup_last":2}"#), one);
        assert!(error(r#"{"keep_one_in":0}"#).starts_with("config.keep_one_in: "));
        assert!(error(r#"{"dedup_last":0}"#).starts_with("config.dedup_last: is 0"));
        assert!(error(r#"{"dedup_last":100001}"#).starts_with("config.dedup_last: "));
        assert!(error(r#"{"keep_one_in":2,"heder":"a"}"#).contains("heder"));
    }
}
