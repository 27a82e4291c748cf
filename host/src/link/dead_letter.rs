//! Dead letters: the original message with the reason in its headers.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::batch::headers::{self, Field, KIND_UINT32, KIND_UINT64};
use crate::batch::{Outgoing, fits};
use crate::checkpoint::LaneKey;
use crate::cluster::Partition;
use crate::guest::Failure;

const LINK: &str = "sluice-link";
const CLUSTER: &str = "sluice-cluster";
const STREAM: &str = "sluice-stream";
const TOPIC: &str = "sluice-topic";
const PARTITION: &str = "sluice-partition";
const OFFSET: &str = "sluice-offset";
const REPLAYED: &str = "sluice-replayed";
const GUEST: &str = "sluice-guest";
const STAGE: &str = "sluice-stage";
const REASON: &str = "sluice-reason";
const TIME: &str = "sluice-time";
const OMITTED: &str = "sluice-omitted";

/// The keys of the headers that a letter adds to those of its message.
const KEYS: [&str; 12] = [
    LINK, CLUSTER, STREAM, TOPIC, PARTITION, OFFSET, REPLAYED, GUEST, STAGE, REASON, TIME, OMITTED,
];

/// What a dead letter carries instead of the message's own headers and payload.
#[derive(Debug)]
pub struct Letter {
    /// The user headers, in wire form.
    pub headers: Vec<u8>,
    /// Whether the payload goes along. It is left out only where Iggy could not carry both.
    pub with_payload: bool,
}

/// What a letter says of its message.
#[derive(Debug)]
pub struct Fields<'a> {
    /// The lane that read it.
    pub lane: &'a LaneKey,
    /// Its offset at the source.
    pub offset: u64,
    /// Why it could not be processed.
    pub failure: &'a Failure,
    /// The offset of the earlier letter, when it was read from one.
    pub replayed: Option<u64>,
}

/// The dead letter of a message: its headers as it was polled, then where it came from, why it is here, and when
/// that was found, in microseconds since the Unix epoch. Header bytes that do not parse are left out, and so is what
/// would make the letter too large, and the letter says so; the message is still at its source offset.
pub fn letter(to: &Partition, fields: &Fields<'_>, message: &Outgoing<'_>) -> Letter {
    let time = now();
    let readable = headers::parse(message.headers).is_ok();
    let unreadable = format!(
        "headers of {} bytes that do not parse",
        message.headers.len()
    );
    let whole = fields.after(message.headers, time, (!readable).then_some(&unreadable));
    let fits_with = |headers: &[u8], payload| {
        let candidate = Outgoing {
            headers,
            payload,
            ..*message
        };
        fits(&to.stream, &to.topic, &candidate)
    };
    if fits_with(&whole, message.payload) {
        return Letter {
            headers: whole,
            with_payload: true,
        };
    }
    let payload = format!("payload of {} bytes", message.payload.len());
    let with_headers = fields.after(message.headers, time, Some(&payload));
    let headers = if readable && fits_with(&with_headers, &[]) {
        with_headers
    } else {
        let omitted = format!("{payload}, headers of {} bytes", message.headers.len());
        fields.after(&[], time, Some(&omitted))
    };
    Letter {
        headers,
        with_payload: false,
    }
}

impl Fields<'_> {
    /// The wire form of `original` followed by these fields.
    fn after(&self, original: &[u8], time: u64, omitted: Option<&String>) -> Vec<u8> {
        let lane = self.lane;
        let (partition, offset) = (lane.partition.to_le_bytes(), self.offset.to_le_bytes());
        let (time, replayed) = (time.to_le_bytes(), self.replayed.map(u64::to_le_bytes));
        let number = |kind, bytes| Field { kind, bytes };
        let replayed = replayed.as_ref().map_or(&[][..], |bytes| bytes);
        let added = [
            (LINK, Field::text(&lane.link)),
            (CLUSTER, Field::text(&lane.cluster)),
            (STREAM, Field::text(&lane.stream)),
            (TOPIC, Field::text(&lane.topic)),
            (PARTITION, number(KIND_UINT32, &partition)),
            (OFFSET, number(KIND_UINT64, &offset)),
            (REPLAYED, number(KIND_UINT64, replayed)),
            (GUEST, Field::text(&self.failure.guest)),
            (STAGE, Field::text(self.failure.stage.name())),
            (REASON, Field::text(&self.failure.reason)),
            (TIME, number(KIND_UINT64, &time)),
            (OMITTED, Field::text(omitted.map_or("", String::as_str))),
        ];
        let mut list = headers::parse(original).unwrap_or_default();
        for (key, value) in added {
            if value.bytes.is_empty() {
                // What an upstream gateway's letter says under this key is not said of this one.
                headers::remove(&mut list, Field::text(key));
            } else {
                headers::set(&mut list, Field::text(key), value);
            }
        }
        headers::encode(&list)
    }
}

/// What a dead letter says of its message, read back from its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The link that wrote it.
    pub link: &'a str,
    /// The source cluster.
    pub cluster: &'a str,
    /// The source stream.
    pub stream: &'a str,
    /// The source topic.
    pub topic: &'a str,
    /// The source partition.
    pub partition: u32,
    /// The message's offset there.
    pub offset: u64,
    /// The offset of the letter whose replay failed, when it is not the message's first letter.
    pub replayed: Option<u64>,
    /// The guest, where one is to blame.
    pub guest: Option<&'a str>,
    /// What kind of failure; a name of [`crate::guest::Stage`].
    pub stage: &'a str,
    /// Why.
    pub reason: &'a str,
    /// When, in microseconds since the Unix epoch.
    pub time: Option<u64>,
    /// What of the message the letter does not carry.
    pub omitted: Option<&'a str>,
    /// The message's own headers, in wire form.
    pub headers: Vec<u8>,
}

impl<'a> Origin<'a> {
    /// Reads the headers of a dead letter.
    ///
    /// # Errors
    /// Why they are not those of one.
    pub fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let list = headers::parse(bytes).map_err(|error| error.to_string())?;
        let find = |key: &str| {
            let wanted = Field::text(key);
            let found = list.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.bytes)
        };
        let text = |key: &str| find(key).map(|bytes| utf8(key, bytes)).transpose();
        let wanted = |key: &str| text(key)?.ok_or_else(|| missing(key));
        let number = |key: &str| find(key).map(|bytes| integer(key, bytes)).transpose();
        let partition = find(PARTITION).ok_or_else(|| missing(PARTITION))?;
        let added = |key: &Field<'_>| KEYS.iter().any(|name| *key == Field::text(name));
        let own: Vec<_> = list
            .iter()
            .filter(|(key, _)| !added(key))
            .copied()
            .collect();
        Ok(Self {
            link: wanted(LINK)?,
            cluster: wanted(CLUSTER)?,
            stream: wanted(STREAM)?,
            topic: wanted(TOPIC)?,
            partition: u32::from_le_bytes(
                partition
                    .try_into()
                    .map_err(|_| format!("header {PARTITION} is not a 32-bit integer"))?,
            ),
            offset: number(OFFSET)?.ok_or_else(|| missing(OFFSET))?,
            replayed: number(REPLAYED)?,
            guest: text(GUEST)?,
            stage: text(STAGE)?.unwrap_or_default(),
            reason: text(REASON)?.unwrap_or_default(),
            time: number(TIME)?,
            omitted: text(OMITTED)?,
            headers: headers::encode(&own),
        })
    }

    /// Where the message came from, as cluster:stream/topic/partition@offset.
    pub fn source(&self) -> String {
        let Self {
            cluster,
            stream,
            topic,
            partition,
            offset,
            ..
        } = self;
        format!("{cluster}:{stream}/{topic}/{partition}@{offset}")
    }
}

fn missing(key: &str) -> String {
    format!("header {key} is missing: this is no dead letter")
}

fn utf8<'a>(key: &str, bytes: &'a [u8]) -> Result<&'a str, String> {
    std::str::from_utf8(bytes).map_err(|_| format!("header {key} is not UTF-8"))
}

fn integer(key: &str, bytes: &[u8]) -> Result<u64, String> {
    let bytes = bytes.try_into();
    bytes
        .map(u64::from_le_bytes)
        .map_err(|_| format!("header {key} is not a 64-bit integer"))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::guest::Stage;

    fn written(original: &[u8], replayed: Option<u64>) -> Letter {
        let lane = LaneKey {
            link: "shop".to_owned(),
            cluster: "eu".to_owned(),
            stream: "s".to_owned(),
            topic: "t".to_owned(),
            partition: 3,
            destination: "us".to_owned(),
        };
        let failure = Failure {
            guest: "redact".to_owned(),
            stage: Stage::Reject,
            reason: "no card".to_owned(),
        };
        let fields = Fields {
            lane: &lane,
            offset: 77,
            failure: &failure,
            replayed,
        };
        let to = Partition {
            stream: "sluice".into(),
            topic: "dead-letters".into(),
            id: 0,
        };
        let message = Outgoing {
            id: 1,
            origin_timestamp: 2,
            headers: original,
            payload: b"p",
        };
        letter(&to, &fields, &message)
    }

    fn text(list: &[(&str, &str)]) -> Vec<u8> {
        let list: Vec<_> = list
            .iter()
            .map(|(key, value)| (Field::text(key), Field::text(value)))
            .collect();
        headers::encode(&list)
    }

    #[test]
    fn a_letter_reads_back_as_it_was_written() {
        let own = text(&[("a", "1"), ("sluice-compression", "zstd"), ("a", "2")]);
        let letter = written(&own, None);
        let origin = Origin::read(&letter.headers).expect("a letter");
        assert_eq!(
            (origin.link, origin.cluster, origin.stream, origin.topic),
            ("shop", "eu", "s", "t")
        );
        assert_eq!((origin.partition, origin.offset), (3, 77));
        assert_eq!(origin.guest, Some("redact"));
        assert_eq!((origin.stage, origin.reason), ("reject", "no card"));
        assert!(origin.time.is_some());
        assert_eq!((origin.omitted, origin.replayed), (None, None));
        assert_eq!(origin.headers, own);
    }

    #[test]
    fn a_letter_of_a_replay_names_the_earlier_one_and_is_another() {
        let first = written(&[], None).headers;
        let origin = Origin::read(&first).expect("a letter");
        let (own, place) = (origin.headers.clone(), 5);
        let second = written(&own, Some(place)).headers;
        assert_eq!(
            Origin::read(&second).expect("a letter").replayed,
            Some(place)
        );
        assert_ne!(
            headers::letter_origin(&first),
            headers::letter_origin(&second)
        );
    }

    #[test]
    fn a_letter_says_that_unreadable_headers_are_missing() {
        let letter = written(b"garbage", None);
        assert!(letter.with_payload);
        let origin = Origin::read(&letter.headers).expect("a letter");
        assert_eq!(origin.omitted, Some("headers of 7 bytes that do not parse"));
        assert!(origin.headers.is_empty());
    }

    #[test]
    fn other_messages_are_told_from_letters() {
        for (bytes, reason) in [
            (text(&[]), "sluice-partition is missing"),
            (text(&[("sluice-partition", "x")]), "sluice-link is missing"),
            (
                text(&[
                    ("sluice-partition", "x"),
                    ("sluice-link", "l"),
                    ("sluice-cluster", "c"),
                    ("sluice-stream", "s"),
                    ("sluice-topic", "t"),
                ]),
                "sluice-partition is not a 32-bit integer",
            ),
            (b"garbage".to_vec(), "do not parse"),
        ] {
            let error = Origin::read(&bytes).expect_err("no letter");
            assert!(error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn hostile_headers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Origin::read(&bytes);
        }
    }
}
