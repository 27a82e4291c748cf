//! Environment overrides: `SLUICE_` and the key path in capitals, joined by `_`.
//!
//! `SLUICE_CLUSTERS_EU_ADDRESS` overrides `clusters.eu.address`; an entry of a list is named by its `name` or
//! its position from 0.

use toml::{Table, Value};

const PREFIX: &str = "SLUICE_";
const SECTIONS: [&str; 5] = ["GATEWAY", "ADMIN", "CLUSTERS", "GUESTS", "LINKS"];

/// An environment variable that does not lead to a key.
#[derive(Debug, thiserror::Error)]
#[error(
    "environment variable {variable} overrides nothing: {reason}; unset it or name a key that the file has"
)]
pub struct OverrideError {
    variable: String,
    reason: String,
}

/// Applies the variables to `table`; tells whether any did.
///
/// # Errors
/// [`OverrideError`] when a variable of a known section cannot be placed.
pub fn apply(
    mut table: Table,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(Table, bool), OverrideError> {
    let mut overridden = false;
    for (variable, text) in environment {
        let Some(path) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        let section = path.split('_').next().unwrap_or_default();
        if !SECTIONS.contains(&section) || path.len() == section.len() {
            continue;
        }
        set_in_table(&mut table, path, &text).map_err(|reason| OverrideError {
            variable: variable.clone(),
            reason,
        })?;
        overridden = true;
    }
    Ok((table, overridden))
}

fn spelling(key: &str) -> String {
    key.chars()
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter.to_ascii_uppercase(),
            _ => '_',
        })
        .collect()
}

/// Of the keys that `path` begins with, the longest, and what is left of `path`.
fn longest_match(keys: impl Iterator<Item = String>, path: &str) -> Option<(String, Option<&str>)> {
    keys.filter_map(|key| {
        let rest = path.strip_prefix(&spelling(&key))?;
        let rest = if rest.is_empty() {
            None
        } else {
            Some(rest.strip_prefix('_')?)
        };
        Some((key, rest))
    })
    .max_by_key(|(key, _)| key.len())
}

fn set_in_table(table: &mut Table, path: &str, text: &str) -> Result<(), String> {
    match longest_match(table.keys().cloned(), path) {
        Some((key, Some(rest))) => match table.get_mut(&key) {
            Some(Value::Table(inner)) => set_in_table(inner, rest, text),
            Some(Value::Array(items)) => set_in_array(items, rest, text),
            _ => Err(format!("`{key}` has no keys below it")),
        },
        Some((key, None)) => {
            let value = typed(text, table.get(&key));
            table.insert(key, value);
            Ok(())
        }
        // A key that the file leaves at its default; the typed parse refuses it if there is no such key.
        None => {
            table.insert(path.to_ascii_lowercase(), typed(text, None));
            Ok(())
        }
    }
}

fn set_in_array(items: &mut [Value], path: &str, text: &str) -> Result<(), String> {
    let names = items.iter().enumerate().flat_map(|(position, item)| {
        let name = item.get("name").and_then(Value::as_str).map(str::to_owned);
        std::iter::once(position.to_string()).chain(name)
    });
    let Some((entry, Some(rest))) = longest_match(names, path) else {
        return Err(format!("no entry of the list is called {path}"));
    };
    let found = items.iter().enumerate().position(|(position, item)| {
        position.to_string() == entry
            || item.get("name").and_then(Value::as_str) == Some(entry.as_str())
    });
    match found.and_then(|position| items.get_mut(position)) {
        Some(Value::Table(inner)) => set_in_table(inner, rest, text),
        _ => Err(format!("entry {entry} has no keys below it")),
    }
}

/// The text as the TOML it would be in the file: a string stays one, anything else is parsed when it can be.
fn typed(text: &str, current: Option<&Value>) -> Value {
    if matches!(current, Some(Value::String(_))) {
        return Value::String(text.to_owned());
    }
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
