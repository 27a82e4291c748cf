//! Messages as JSON lines, and what guests make of them: how a version shows that it does what it should before any
//! lane depends on it.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::component::Component;
use super::decision::{Fate, Outcome, Stage};
use super::slot::Slot;
use super::{Chain, Source};
use crate::batch::readable::{self, hex, unhex};
use crate::batch::{Frame, Gathered, Outgoing, Polled, headers};
use crate::cluster::Partition;
use crate::config::link::OnError;
use crate::config::{SampleSource, Samples};

/// How many samples that went wrong are told of.
const SHOWN: usize = 3;

/// Keys of an answer that differ from run to run, which nobody can expect.
const MEASURED: [&str; 2] = ["nanoseconds", "memory"];

/// A line of an input file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    offset: Option<u64>,
    #[serde(default)]
    timestamp: u64,
    #[serde(default)]
    origin_timestamp: u64,
    #[serde(default)]
    id: Id,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    payload: Payload,
}

/// Numbers of JSON are too small for some ids.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a text of one")]
enum Id {
    Number(u64),
    Text(String),
}

impl Default for Id {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// A header; text is written as it is, other fields with their kind.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    key: Field,
    value: Field,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, or { \"kind\": ..., \"value\": ... } with both as texts"
)]
enum Field {
    Text(String),
    Typed(readable::Value),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a text, { \"hex\": ... } or { \"json\": ... }"
)]
enum Payload {
    Text(String),
    Hex { hex: String },
    Json { json: Json },
}

impl Default for Payload {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl std::fmt::Display for Header {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}={}", self.key, self.value)
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Typed(value) => write!(formatter, "{}({})", value.kind, value.value),
        }
    }
}

impl From<readable::Value> for Field {
    fn from(value: readable::Value) -> Self {
        if value.kind == "text" {
            Self::Text(value.value)
        } else {
            Self::Typed(value)
        }
    }
}

impl Field {
    fn encode(&self) -> Result<(u8, Vec<u8>), String> {
        match self {
            Self::Text(text) => readable::Value::text(text).encode(),
            Self::Typed(value) => value.encode(),
        }
    }
}

impl Payload {
    fn read(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex { hex: hex(bytes) },
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Hex { hex } => unhex(hex).ok_or_else(|| format!("`{hex}` is not hexadecimal")),
            Self::Json { json } => Ok(json.to_string().into_bytes()),
        }
    }
}

/// What a guest made of a message, as a line of an output file.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Offset of the message.
    pub offset: u64,
    /// `forward`, `drop`, `route`, `rewrite`, `reject`, or `fail` where the guest failed.
    pub verdict: &'static str,
    /// The destinations that it chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Route>>,
    /// All headers, where it changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<Header>>,
    /// The payload, where it changed that.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload>,
    /// What kind of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    /// Why it rejected the message or failed on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A destination that a guest chose.
#[derive(Debug, Serialize)]
pub struct Route {
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
}

impl std::fmt::Display for Route {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |name: &Option<Arc<str>>| name.as_deref().unwrap_or("*").to_owned();
        write!(formatter, "{}/{}", part(&self.stream), part(&self.topic))?;
        match self.partition {
            Some(id) => write!(formatter, "/{id}"),
            None => Ok(()),
        }
    }
}

impl Answer {
    /// The outcome of a message.
    pub fn new(offset: u64, outcome: &Outcome) -> Self {
        let edit = outcome.edit.as_deref();
        let routes = outcome.routes.as_ref().map(|routes| {
            let shown = |route: &super::RouteChoice| Route {
                stream: route.stream.clone(),
                topic: route.topic.clone(),
                partition: route.partition,
            };
            routes.iter().map(shown).collect()
        });
        let mut answer = Self {
            offset,
            verdict: match (edit, &routes) {
                (Some(_), _) => "rewrite",
                (None, Some(_)) => "route",
                (None, None) => "forward",
            },
            routes,
            headers: edit
                .and_then(|edit| headers::parse(edit.headers.as_ref()?).ok())
                .map(|list| list.into_iter().map(Header::from).collect()),
            payload: edit.and_then(|edit| Some(Payload::read(edit.payload.as_ref()?))),
            stage: None,
            reason: None,
        };
        match &outcome.fate {
            Fate::Deliver => {}
            Fate::Drop => answer.verdict = "drop",
            Fate::Fail(failure) => {
                answer.reason = Some(failure.reason.clone());
                if failure.stage == Stage::Reject {
                    answer.verdict = "reject";
                } else {
                    answer.verdict = "fail";
                    answer.stage = Some(failure.stage.name());
                }
            }
        }
        answer
    }

    /// What it changed of the message, in a few words.
    pub fn details(&self) -> String {
        let mut parts = Vec::new();
        if let Some(routes) = &self.routes {
            let routes: Vec<_> = routes.iter().map(ToString::to_string).collect();
            parts.push(format!("to {}", routes.join(", ")));
        }
        if let Some(headers) = &self.headers {
            let shown = headers.iter().map(ToString::to_string);
            parts.push(format!("headers {}", shown.collect::<Vec<_>>().join(", ")));
        }
        match &self.payload {
            Some(Payload::Text(text)) => parts.push(text.clone()),
            Some(Payload::Hex { hex }) => parts.push(format!("0x{hex}")),
            Some(Payload::Json { json }) => parts.push(json.to_string()),
            None => {}
        }
        parts.extend(self.stage.map(ToOwned::to_owned));
        parts.extend(self.reason.clone());
        parts.join("; ")
    }
}

impl From<(headers::Field<'_>, headers::Field<'_>)> for Header {
    fn from(header: (headers::Field<'_>, headers::Field<'_>)) -> Self {
        let readable::Header { key, value } = header.into();
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

/// The lines of a file of JSON lines, with their numbers from 1; empty ones are left out.
fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<(usize, T)>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let numbered = (1..).zip(text.lines());
    numbered
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line)
                .map(|value| (number, value))
                .map_err(|error| format!("{}, line {number}: {error}", path.display()))
        })
        .collect()
}

/// The messages in a file of JSON lines, as one batch. A line without an offset has that of the line before and one.
///
/// # Errors
/// A text that names the file, the line and what is wrong with it.
pub fn read(path: &Path) -> Result<Polled, String> {
    let mut gathered = Gathered::default();
    let mut next = 0_u64;
    for (number, message) in lines::<Message>(path)? {
        let at = |reason: String| format!("{}, line {number}: {reason}", path.display());
        let offset = message.offset.unwrap_or(next);
        if offset < next {
            return Err(at(format!("offset {offset} does not follow the last one")));
        }
        next = offset
            .checked_add(1)
            .ok_or_else(|| at("offset 18446744073709551615 is never reached".to_owned()))?;
        let id = match &message.id {
            Id::Number(id) => u128::from(*id),
            Id::Text(text) => text
                .parse()
                .map_err(|_| at(format!("id `{text}` is no 128-bit number")))?,
        };
        let encoded: Vec<_> = message
            .headers
            .iter()
            .map(|header| Ok((header.key.encode()?, header.value.encode()?)))
            .collect::<Result<_, String>>()
            .map_err(at)?;
        let fields: Vec<_> = encoded
            .iter()
            .map(|(key, value)| (field(key), field(value)))
            .collect();
        let outgoing = Outgoing {
            id,
            origin_timestamp: message.origin_timestamp,
            headers: &headers::encode(&fields),
            payload: &message.payload.bytes().map_err(at)?,
        };
        gathered.add(offset, message.timestamp, &outgoing);
    }
    let batch = Polled::from(gathered);
    if batch.is_empty() {
        return Err(format!("{} holds no message", path.display()));
    }
    Ok(batch)
}

fn field((kind, bytes): &(u8, Vec<u8>)) -> headers::Field<'_> {
    headers::Field { kind: *kind, bytes }
}

/// What must become of messages.
#[derive(Debug)]
pub struct Expected {
    lines: Vec<(usize, Map<String, Json>)>,
    path: String,
}

impl Expected {
    /// One line for each message. Each names keys of an [`Answer`] with the values that they must have.
    ///
    /// # Errors
    /// A text that names the file, the line and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        Ok(Self {
            lines: lines(path)?,
            path: path.display().to_string(),
        })
    }

    /// What of `answers` is not as expected, a text for each.
    pub fn differences(&self, answers: &[Answer]) -> Vec<String> {
        let mut differences = Vec::new();
        if self.lines.len() != answers.len() {
            differences.push(format!(
                "{} expects {} messages, and there are {}",
                self.path,
                self.lines.len(),
                answers.len()
            ));
        }
        for ((number, expected), answer) in self.lines.iter().zip(answers) {
            let Ok(Json::Object(found)) = serde_json::to_value(answer) else {
                continue;
            };
            for (key, value) in expected {
                let found = found.get(key).unwrap_or(&Json::Null);
                if found != value && !MEASURED.contains(&key.as_str()) {
                    differences.push(format!(
                        "offset {}: {key} is {found} and should be {value} ({}, line {number})",
                        answer.offset, self.path
                    ));
                }
            }
        }
        differences
    }
}

/// Failures of the guest among `answers`, a text for each.
pub fn failures(answers: &[Answer]) -> Vec<String> {
    let failed = answers.iter().filter(|answer| answer.stage.is_some());
    failed
        .map(|answer| {
            let reason = answer.reason.as_deref().unwrap_or_default();
            format!("offset {}: {reason}", answer.offset)
        })
        .collect()
}

/// A chain of this guest alone.
///
/// # Errors
/// A text that names the guest when it does not start.
pub fn chain(component: &Arc<Component>, source: &SampleSource) -> Result<Chain, String> {
    let source = Source {
        cluster: source.cluster.clone(),
        partition: Partition {
            stream: source.stream.as_str().into(),
            topic: source.topic.as_str().into(),
            id: source.partition,
        },
    };
    let slots = [Arc::new(Slot::new(Arc::clone(component)))];
    Chain::start(&slots, source, OnError::DeadLetter).map_err(|error| error.to_string())
}

/// Answers over a batch.
///
/// # Errors
/// A text when the guest keeps failing.
pub fn answers(chain: &mut Chain, batch: &Polled) -> Result<Vec<Answer>, String> {
    let (mut answers, mut rest) = (Vec::new(), batch.clone());
    loop {
        let judged = chain.apply(&rest);
        if let Some(pause) = judged.pause {
            return Err(format!(
                "the guest fails on message after message: {}",
                pause.reason
            ));
        }
        let (part, others) = rest.split_at(judged.outcomes.len());
        let offsets = part.frames().iter().map(|Frame { offset, .. }| *offset);
        let outcomes = offsets.zip(&judged.outcomes);
        answers.extend(outcomes.map(|(offset, outcome)| Answer::new(offset, outcome)));
        if others.is_empty() {
            return Ok(answers);
        }
        rest = others;
    }
}

/// Whether a guest does with its samples what it should.
///
/// # Errors
/// A text that says where it does not.
pub(super) fn pass(component: &Arc<Component>, samples: &Samples) -> Result<(), String> {
    let batch = read(&samples.input)?;
    let expected = samples.expect.as_deref().map(Expected::read).transpose()?;
    let answers = answers(&mut chain(component, &samples.source)?, &batch)?;
    let wrong = match expected {
        Some(expected) => expected.differences(&answers),
        None => failures(&answers),
    };
    if wrong.is_empty() {
        return Ok(());
    }
    let more = match wrong.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = &wrong[..wrong.len().min(SHOWN)];
    Err(format!("{}{more}", shown.join("; ")))
}
