//! What a component file says of itself, without compiling it.

use std::collections::BTreeSet;

use serde::Serialize;
use wit_component::DecodedWasm;

use super::component::{
    BATCH_HANDLER, LoadReason, MESSAGE_HANDLER, describe, is_core_module, newer,
};
use super::grants::{Need, needed};

/// What a component wants and gives.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// `transform` or `transform-batch`.
    pub world: &'static str,
    /// Version of the contract that it was built for.
    pub contract: String,
    /// Whether that is newer than the one that this sluice has. It loads if it needs nothing new.
    pub newer: bool,
    /// The lines of `[guests.NAME.grants]` that it needs, each once.
    pub grants: Vec<String>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// What it exports.
    pub exports: Vec<String>,
}

/// An import of a component.
#[derive(Debug, Serialize)]
pub struct Import {
    /// As `package:name/interface@version`.
    pub name: String,
    /// The line of `[guests.NAME.grants]` that gives it; none for what every guest gets, and for what none gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Whether a guest can have it.
    pub possible: bool,
}

impl Import {
    fn new(name: String) -> Self {
        let need = needed(&name);
        Self {
            name,
            grant: match need {
                Need::Grant(key, value) => Some(format!("{key} = {value}")),
                Need::Nothing | Need::Never => None,
            },
            possible: need != Need::Never,
        }
    }
}

/// Reads what a component imports and exports.
///
/// # Errors
/// [`LoadReason`] when it is no component, or one of another world.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, LoadReason> {
    if is_core_module(bytes) {
        return Err(LoadReason::CoreModule);
    }
    let decoded =
        wit_component::decode(bytes).map_err(|error| LoadReason::Invalid(format!("{error:#}")))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(LoadReason::Invalid("it is a WIT package".to_owned()));
    };
    let world = &resolve.worlds[world];
    let names = |keys: Vec<_>| -> Vec<String> {
        keys.into_iter()
            .map(|key| resolve.name_world_key(key))
            .collect()
    };
    let exports = names(world.exports.keys().collect());
    let handler = |prefix| exports.iter().find(|name| name.starts_with(prefix));
    let (name, handler) = match (handler(BATCH_HANDLER), handler(MESSAGE_HANDLER)) {
        (Some(handler), _) => ("transform-batch", handler),
        (None, Some(handler)) => ("transform", handler),
        (None, None) => {
            return Err(LoadReason::World {
                exports: describe(&exports),
            });
        }
    };
    let version = handler.split_once('@').map_or("", |(_, version)| version);
    let imports = names(world.imports.keys().collect());
    let imports: Vec<_> = imports.into_iter().map(Import::new).collect();
    let grants: BTreeSet<_> = imports
        .iter()
        .filter_map(|import| import.grant.clone())
        .collect();
    Ok(Inspection {
        world: name,
        contract: version.to_owned(),
        newer: newer(handler).is_some(),
        grants: grants.into_iter().collect(),
        imports,
        exports,
    })
}
