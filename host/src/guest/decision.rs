//! What guests decided: checked once per distinct verdict, then applied to messages.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::bindings::types::{self, HeaderChange, Verdict};
use super::{View, fields};
use crate::batch::{FRAME_LIMIT, frame_size, headers};

/// Most bytes of a payload, as Iggy's own clients have it.
const PAYLOAD_LIMIT: usize = 64_000_000;

/// Most destinations of one verdict. They are told apart for every message.
const ROUTES_LIMIT: usize = 64;

/// Most changes to headers of one verdict. Each costs the host more than it costs the guest.
const CHANGES_LIMIT: usize = 256;

/// Most bytes of a message's headers, as Iggy's own clients have it.
const HEADERS_LIMIT: usize = 100_000;

/// Longest stream or topic name, in bytes.
const NAME_LIMIT: usize = 255;

/// Longest reason that is kept, in bytes.
const REASON_LIMIT: usize = 1024;

/// A destination that a guest chose; what is `None` comes from the link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteChoice {
    /// Stream name.
    pub stream: Option<Arc<str>>,
    /// Topic name.
    pub topic: Option<Arc<str>>,
    /// Partition id, from 0.
    pub partition: Option<u32>,
}

/// The changed parts of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// The new payload.
    pub payload: Option<Bytes>,
    /// The new user headers, in wire form.
    pub headers: Option<Vec<u8>>,
}

/// What a chain of guests made of one message.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Whether it is delivered.
    pub fate: Fate,
    /// What was changed.
    pub edit: Option<Box<Edit>>,
    /// The destinations that a guest chose, if one did.
    pub routes: Option<Arc<[RouteChoice]>>,
    /// Whether a guest rejected it or failed on it, whatever its fate.
    pub failed: bool,
}

/// Whether a message is delivered.
#[derive(Debug, Clone, Default)]
pub enum Fate {
    /// It is.
    #[default]
    Deliver,
    /// A guest dropped it.
    Drop,
    /// A guest rejected it or failed on it; the link's policy decides.
    Fail(Box<Failure>),
}

/// Why a message could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Name of the guest.
    pub guest: String,
    /// What kind of failure.
    pub stage: Stage,
    /// For the operator.
    pub reason: String,
}

/// A kind of failure, by the name that dead letters carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The guest rejected the message.
    Reject,
    /// The guest's verdict cannot be carried out.
    Verdict,
    /// The guest trapped, ran out of memory or broke the contract.
    Trap,
    /// The guest ran out of time.
    Timeout,
    /// The message cannot be sent as it is.
    Send,
}

impl Stage {
    /// Those that are a guest's doing.
    pub const OF_GUESTS: [Self; 4] = [Self::Reject, Self::Verdict, Self::Trap, Self::Timeout];

    /// The name in dead letters and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Verdict => "verdict",
            Self::Trap => "trap",
            Self::Timeout => "timeout",
            Self::Send => "send",
        }
    }
}

/// A verdict after its checks.
#[derive(Debug)]
pub(super) enum Decision {
    Forward,
    Drop,
    Route(Arc<[RouteChoice]>),
    Rewrite(Rewrite),
    Fail(Stage, String),
}

#[derive(Debug)]
pub(super) struct Rewrite {
    routes: Option<Arc<[RouteChoice]>>,
    changes: Vec<Change>,
    payload: Option<Bytes>,
}

type OwnedField = (u8, Vec<u8>);

#[derive(Debug)]
enum Change {
    Set(OwnedField, OwnedField),
    Remove(OwnedField),
    Rename(OwnedField, OwnedField),
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        let checked = match verdict {
            Verdict::Forward => Ok(Self::Forward),
            Verdict::Drop => Ok(Self::Drop),
            Verdict::Route(routes) if routes.is_empty() => {
                Err("the guest routed a message to no destination".to_owned())
            }
            Verdict::Route(routes) => check_routes(routes).map(Self::Route),
            Verdict::Rewrite(rewrite) => check_rewrite(rewrite).map(Self::Rewrite),
            Verdict::Reject(said) => Ok(Self::Fail(Stage::Reject, reason(&said))),
        };
        checked.unwrap_or_else(|reason| Self::Fail(Stage::Verdict, reason))
    }
}

/// What a guest gives as a reason, fit to be shown.
pub(super) fn reason(said: &str) -> String {
    let mut reason = plain(&said[..said.floor_char_boundary(REASON_LIMIT)]);
    reason.truncate(reason.floor_char_boundary(REASON_LIMIT));
    // What is escaped may have taken far more.
    reason.shrink_to_fit();
    reason
}

/// Without line breaks and control sequences, with which a guest could fake lines of the log.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

fn check_routes(routes: Vec<types::Route>) -> Result<Arc<[RouteChoice]>, String> {
    check_count(routes.len(), ROUTES_LIMIT, "destinations")?;
    let mut choices = Vec::with_capacity(routes.len());
    let mut seen = HashSet::new();
    for route in routes {
        let choice = RouteChoice {
            stream: check_name("stream", route.stream)?,
            topic: check_name("topic", route.topic)?,
            partition: route.partition,
        };
        if !seen.insert(choice.clone()) {
            return Err("the guest routed a message twice to one destination".to_owned());
        }
        choices.push(choice);
    }
    Ok(choices.into())
}

fn check_count(count: usize, limit: usize, what: &str) -> Result<(), String> {
    if count > limit {
        return Err(format!(
            "the guest gave {count} {what} for a message; the limit is {limit}"
        ));
    }
    Ok(())
}

fn check_name(kind: &str, name: Option<String>) -> Result<Option<Arc<str>>, String> {
    match name {
        Some(name) if !(1..=NAME_LIMIT).contains(&name.len()) => Err(format!(
            "the guest chose a {kind} name of {} bytes; Iggy allows 1 to 255",
            name.len()
        )),
        name => Ok(name.map(Arc::from)),
    }
}

fn check_rewrite(rewrite: types::Rewrite) -> Result<Rewrite, String> {
    check_count(rewrite.headers.len(), CHANGES_LIMIT, "changes of headers")?;
    let changes = rewrite
        .headers
        .iter()
        .map(|change| {
            Ok(match change {
                HeaderChange::Set(header) => Change::Set(
                    fields::from_guest(&header.key)?,
                    fields::from_guest(&header.value)?,
                ),
                HeaderChange::Remove(key) => Change::Remove(fields::from_guest(key)?),
                HeaderChange::Rename((from, to)) => {
                    Change::Rename(fields::from_guest(from)?, fields::from_guest(to)?)
                }
            })
        })
        .collect::<Result<_, String>>()?;
    if let Some(payload) = &rewrite.payload
        && payload.len() > PAYLOAD_LIMIT
    {
        return Err(format!(
            "the guest wrote a payload of {} bytes; the limit is {PAYLOAD_LIMIT}",
            payload.len()
        ));
    }
    let routes = if rewrite.routes.is_empty() {
        None
    } else {
        Some(check_routes(rewrite.routes)?)
    };
    Ok(Rewrite {
        routes,
        changes,
        payload: rewrite.payload.map(Bytes::from),
    })
}

impl Decision {
    /// About how many bytes the host keeps of it for a message whose headers have this size.
    pub(super) fn weight(&self, headers: usize) -> usize {
        match self {
            Self::Forward | Self::Drop | Self::Route(_) => 0,
            Self::Fail(_, reason) => reason.len(),
            Self::Rewrite(rewrite) => rewrite.weight(headers),
        }
    }
}

impl Rewrite {
    fn weight(&self, headers: usize) -> usize {
        let payload = self.payload.as_ref().map_or(0, Bytes::len);
        if self.changes.is_empty() {
            return payload;
        }
        let changes = self.changes.iter().map(|change| match change {
            Change::Set((_, key), (_, value)) => key.len() + value.len() + 10,
            Change::Remove(_) => 0,
            Change::Rename(_, (_, key)) => key.len(),
        });
        payload + headers + changes.sum::<usize>()
    }

    pub(super) fn routes(&self) -> Option<Arc<[RouteChoice]>> {
        self.routes.clone()
    }

    /// The message's edit after this rewrite of what `view` shows.
    ///
    /// # Errors
    /// A reason for the operator when the message cannot be changed so.
    pub(super) fn apply(&self, view: View<'_>, before: Option<&Edit>) -> Result<Edit, String> {
        let mut edit = before.cloned().unwrap_or_default();
        if !self.changes.is_empty() {
            edit.headers = Some(self.change_headers(view.headers)?);
        }
        if let Some(payload) = &self.payload {
            edit.payload = Some(payload.clone());
        }
        let size = frame_size(
            edit.payload.as_ref().map_or(view.payload.len(), Bytes::len),
            edit.headers.as_ref().map_or(view.headers.len(), Vec::len),
        );
        if size > FRAME_LIMIT {
            return Err(format!(
                "the rewritten message takes {size} bytes; one request of Iggy carries {FRAME_LIMIT}"
            ));
        }
        Ok(edit)
    }

    fn change_headers(&self, wire: &[u8]) -> Result<Vec<u8>, String> {
        let mut list = headers::parse(wire).map_err(|error| error.to_string())?;
        for change in &self.changes {
            match change {
                Change::Set(key, value) => headers::set(&mut list, field(key), field(value)),
                Change::Remove(key) => headers::remove(&mut list, field(key)),
                Change::Rename(from, to) => headers::rename(&mut list, field(from), field(to)),
            }
        }
        let encoded = headers::encode(&list);
        if encoded.len() > HEADERS_LIMIT && encoded.len() > wire.len() {
            return Err(format!(
                "the rewritten headers take {} bytes; Iggy carries {HEADERS_LIMIT}",
                encoded.len()
            ));
        }
        Ok(encoded)
    }
}

fn field((kind, bytes): &OwnedField) -> headers::Field<'_> {
    headers::Field { kind: *kind, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(topic: &str) -> types::Route {
        types::Route {
            stream: None,
            topic: Some(topic.to_owned()),
            partition: None,
        }
    }

    fn failure(verdict: Verdict) -> String {
        match Decision::from(verdict) {
            Decision::Fail(Stage::Verdict, reason) => reason,
            other => panic!("{other:?} was accepted"),
        }
    }

    #[test]
    fn verdicts_that_cannot_be_carried_out_fail_with_a_reason() {
        assert!(failure(Verdict::Route(vec![])).contains("no destination"));
        assert!(failure(Verdict::Route(vec![route("a"), route("a")])).contains("twice"));
        assert!(failure(Verdict::Route(vec![route("")])).contains("topic name of 0 bytes"));
        assert!(failure(Verdict::Route(vec![route(&"x".repeat(256))])).contains("256"));
        let rewrite = types::Rewrite {
            routes: vec![],
            headers: vec![HeaderChange::Remove(types::Field::Text(String::new()))],
            payload: None,
        };
        assert!(failure(Verdict::Rewrite(rewrite)).contains("0 bytes"));
    }

    #[test]
    fn what_guests_say_stays_one_line() {
        assert_eq!(plain("é\nb\u{1b}[31m"), "é\\nb\\u{1b}[31m");
    }

    #[test]
    fn a_long_reason_is_cut() {
        match Decision::from(Verdict::Reject("é".repeat(1000))) {
            Decision::Fail(Stage::Reject, reason) => assert_eq!(reason.len(), 1024),
            other => panic!("{other:?}"),
        }
    }
}
