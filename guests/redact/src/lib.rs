//! Replaces fields of JSON payloads; every other byte of the payload stays as it is.

mod scan;

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use sluice_guest::{Config, Guest, Inputs, Message, Rewrite, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Paths of the fields to replace.
    fields: Vec<Path>,
    /// What they become: any JSON value.
    #[serde(default = "redacted")]
    with: serde_json::Value,
    /// What becomes of a payload that is not JSON.
    #[serde(default)]
    not_json: NotJson,
}

/// A path as the operator writes it.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected text or a list of texts")]
enum Path {
    /// Keys with dots between them.
    Dotted(String),
    /// Keys that may hold dots.
    Keys(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NotJson {
    /// It is rejected: nobody can tell what it holds.
    #[default]
    Reject,
    /// It passes as it is.
    Pass,
}

fn redacted() -> serde_json::Value {
    "[redacted]".into()
}

impl Path {
    fn keys(self, index: usize) -> Result<Vec<String>, String> {
        let keys: Vec<String> = match self {
            Self::Dotted(path) => path.split('.').map(str::to_owned).collect(),
            Self::Keys(keys) => keys,
        };
        if keys.is_empty() || keys.iter().any(String::is_empty) {
            return Err(format!(
                "config.fields[{index}]: a path holds at least one key, and no empty one"
            ));
        }
        Ok(keys)
    }
}

/// The redactor.
#[derive(Debug)]
pub struct Redact {
    fields: Vec<Vec<String>>,
    with: Vec<u8>,
    not_json: NotJson,
}

impl Guest for Redact {
    const INPUTS: Inputs = Inputs::PAYLOADS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        let settings: Settings = config.parse()?;
        if settings.fields.is_empty() {
            return Err("config.fields: names no field".to_owned());
        }
        let fields = settings.fields.into_iter().enumerate();
        Ok(Self {
            fields: fields
                .map(|(index, path)| path.keys(index))
                .collect::<Result<_, _>>()?,
            with: settings.with.to_string().into_bytes(),
            not_json: settings.not_json,
        })
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        let payload = message.payload();
        let text = match valid(payload) {
            Ok(text) => text,
            Err(reason) => {
                return match self.not_json {
                    NotJson::Reject => {
                        Verdict::reject(format!("the payload is not JSON: {reason}"))
                    }
                    NotJson::Pass => Verdict::Forward,
                };
            }
        };
        match scan::find(text, &self.fields) {
            Err(reason) => Verdict::reject(reason),
            Ok(found) if found.is_empty() => Verdict::Forward,
            Ok(found) => Rewrite::new()
                .payload(replace(payload, &found, &self.with))
                .into(),
        }
    }
}

/// The payload as JSON text.
fn valid(payload: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(payload).map_err(|error| error.to_string())?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// The payload with every one of `found` replaced; they are in order and apart.
fn replace(payload: &[u8], found: &[Range<usize>], with: &[u8]) -> Vec<u8> {
    let mut changed = Vec::with_capacity(payload.len() + found.len() * with.len());
    let mut kept = 0;
    for range in found {
        changed.extend_from_slice(&payload[kept..range.start]);
        changed.extend_from_slice(with);
        kept = range.end;
    }
    changed.extend_from_slice(&payload[kept..]);
    changed
}

sluice_guest::export!(Redact);

#[cfg(test)]
mod tests;
