//! Guests that mean harm, and what the host makes of them, without a gateway around it.
//!
//! Each file of `tests/guests/hostile` is a guest and says in its first lines what must come of it: that it does not
//! start, that it fails on the message at offset 2 alone, that it fails on every message, or that nothing comes of it.

mod cases;
mod frame;
mod fuzz;

use std::sync::Arc;

use anyhow::{Context, Result};
use sluice::batch::{Gathered, Outgoing, Polled};
use sluice::cluster::Partition;
use sluice::config;
use sluice::config::link::OnError;
use sluice::guest::{Chain, Component, Engine, Slot, Source};

use frame::World;

/// A lane's guests: the one whose module has these fields. `keys` are those of its section in the configuration.
fn chain(engine: &Engine, world: World, fields: &str, keys: &str) -> Result<Chain> {
    let bytes = frame::component(world, fields)?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), bytes)?;
    let text = format!("component = '{}'\n{keys}", file.path().display());
    let settings: config::Guest = toml::from_str(&text)?;
    let component = Component::load(engine, "hostile", &settings)?;
    let slots = [Arc::new(Slot::new(component))];
    let source = Source {
        cluster: "eu".to_owned(),
        partition: Partition {
            stream: "s".into(),
            topic: "t".into(),
            id: 0,
        },
    };
    Ok(Chain::start(&slots, source, OnError::DeadLetter)?)
}

fn engine() -> Result<Engine> {
    Engine::new(None).map_err(|error| anyhow::anyhow!("{error:#}"))
}

/// Messages with these payloads, from offset 0 on.
fn batch(payloads: &[&[u8]], headers: &[u8]) -> Polled {
    let mut gathered = Gathered::default();
    for (offset, payload) in (0..).zip(payloads) {
        let message = Outgoing {
            id: u128::from(offset),
            origin_timestamp: 1,
            headers,
            payload,
        };
        gathered.add(offset, 1, &message);
    }
    gathered.into()
}

/// What a file says after `;; key:`.
fn note<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().map_while(|line| line.strip_prefix(";; "));
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// What a file must say.
fn required<'a>(text: &'a str, key: &str) -> Result<&'a str> {
    note(text, key).with_context(|| format!("it has no line `;; {key}: `"))
}
