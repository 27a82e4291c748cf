//! What of the system a guest gets: nothing, unless its configuration grants it.

use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime::{Error, Result, StoreContextMut};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView as _};
use wasmtime_wasi::p2::{DynPollable, bindings};
use wasmtime_wasi::random::{WasiRandom, WasiRandomCtx};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

use super::instance::State;
use crate::config::Grants;

/// Most open files and other handles of an instance.
const HANDLES: usize = 1024;

/// The name under which wasmtime-wasi provides it.
const MONOTONIC_CLOCK: &str = "wasi:clocks/monotonic-clock@0.2.12";

/// Most random bytes in one call.
const RANDOM_BYTES: u64 = 1 << 20;

/// What gives a guest an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every guest has it.
    Nothing,
    /// A key of the guest's `grants`, and an example of its value.
    Grant(&'static str, &'static str),
    /// No key does.
    Never,
}

const CLOCK: Need = Need::Grant("clock", "true");
const RANDOM: Need = Need::Grant("random", "true");
const ENVIRONMENT: Need = Need::Grant("environment", "[]");
const FOLDERS: Need = Need::Grant("folders", "{}");

/// What gives a guest the import `name`, as `package:name/interface@version`.
pub fn needed(name: &str) -> Need {
    let (path, version) = name.split_once('@').unwrap_or((name, ""));
    if matches!(path, "sluice:guest/types" | "sluice:guest/host") && is_of(version, "0.1") {
        return Need::Nothing;
    }
    if !is_of(version, "0.2") {
        return Need::Never;
    }
    match path {
        "wasi:clocks/wall-clock" | "wasi:clocks/monotonic-clock" => CLOCK,
        "wasi:random/random" | "wasi:random/insecure" | "wasi:random/insecure-seed" => RANDOM,
        "wasi:cli/environment" => ENVIRONMENT,
        "wasi:filesystem/types" | "wasi:filesystem/preopens" => FOLDERS,
        // What these move comes from the interfaces above; alone they reach nothing.
        "wasi:io/error" | "wasi:io/poll" | "wasi:io/streams" => Need::Nothing,
        _ => Need::Never,
    }
}

fn is_of(version: &str, series: &str) -> bool {
    version
        .strip_prefix(series)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Whether `grants` gives what is needed.
pub fn gives(grants: &Grants, need: Need) -> bool {
    match need {
        Need::Nothing => true,
        CLOCK => grants.clock,
        RANDOM => grants.random,
        ENVIRONMENT => grants.environment.is_some(),
        FOLDERS => grants.folders.is_some(),
        Need::Grant(..) | Need::Never => false,
    }
}

/// The system as one instance sees it.
pub struct System {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl System {
    /// What `grants` gives.
    ///
    /// # Errors
    /// A text that names a variable that is not set, or a folder that cannot be opened.
    pub fn new(grants: &Grants) -> std::result::Result<Self, String> {
        let mut builder = WasiCtx::builder();
        builder
            .max_random_size(RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false);
        for name in grants.environment.iter().flatten() {
            let value = std::env::var(name)
                .map_err(|_| format!("grants.environment names {name}, which is not set"))?;
            builder.env(name, value);
        }
        for (name, path) in grants.folders.iter().flatten() {
            builder
                .preopened_dir(path, name, FsPerms::ReadOnly)
                .map_err(|error| format!("grants.folders: {}: {error:#}", path.display()))?;
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        Ok(Self {
            wasi: builder.build(),
            table,
        })
    }
}

/// Refuses a folder with anything but files, folders and links in it: opening a pipe, for example, would hold a guest up for
/// ever.
///
/// # Errors
/// A text that names it.
pub fn check_folders(grants: &Grants) -> std::result::Result<(), String> {
    let mut folders: Vec<_> = grants
        .folders
        .iter()
        .flat_map(|list| list.values().cloned())
        .collect();
    while let Some(folder) = folders.pop() {
        let fail = |error: std::io::Error| format!("grants.folders: {}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if !kind.is_file() && !kind.is_symlink() {
                return Err(format!(
                    "grants.folders: {} is no file: keep pipes, sockets and devices out of what guests read",
                    entry.path().display()
                ));
            }
        }
    }
    Ok(())
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.system.wasi,
            table: &mut self.system.table,
        }
    }
}

struct Io;

impl HasData for Io {
    type Data<'a> = &'a mut ResourceTable;
}

/// Adds what `grants` gives to `linker`, so that nothing else can be reached even by a mistake in the checks before.
pub fn link(linker: &mut Linker<State>, grants: &Grants) -> Result<()> {
    use bindings::{cli, clocks, filesystem, random, sync};

    fn table(state: &mut State) -> &mut ResourceTable {
        &mut state.system.table
    }
    fn random(state: &mut State) -> &mut WasiRandomCtx {
        state.system.wasi.random()
    }

    bindings::io::error::add_to_linker::<_, Io>(linker, table)?;
    sync::io::poll::add_to_linker::<_, Io>(linker, table)?;
    sync::io::streams::add_to_linker::<_, Io>(linker, table)?;
    if grants.clock {
        clocks::wall_clock::add_to_linker::<_, WasiClocks>(linker, State::clocks)?;
        clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(linker, State::clocks)?;
        forbid_waiting(linker)?;
    }
    if grants.random {
        random::random::add_to_linker::<_, WasiRandom>(linker, random)?;
        random::insecure::add_to_linker::<_, WasiRandom>(linker, random)?;
        random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, random)?;
    }
    if grants.environment.is_some() {
        cli::environment::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    }
    if grants.folders.is_some() {
        filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
        sync::filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    }
    Ok(())
}

/// A guest that waits would hold up its lane beyond its time limit, which counts only while it runs.
fn forbid_waiting(linker: &mut Linker<State>) -> Result<()> {
    type Waiting = Result<(Resource<DynPollable>,)>;

    fn refuse(_: StoreContextMut<'_, State>, _: (u64,)) -> Waiting {
        Err(Error::msg("guests may not wait for a time"))
    }

    linker.allow_shadowing(true);
    let mut clock = linker.instance(MONOTONIC_CLOCK)?;
    clock.func_wrap("subscribe-instant", refuse)?;
    clock.func_wrap("subscribe-duration", refuse)?;
    linker.allow_shadowing(false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_import_has_its_grant_and_the_network_has_none() {
        assert_eq!(needed("sluice:guest/host@0.1.9"), Need::Nothing);
        assert_eq!(needed("sluice:guest/host@0.2.0"), Need::Never);
        assert_eq!(needed("wasi:clocks/wall-clock@0.2.0"), CLOCK);
        assert_eq!(needed("wasi:clocks/wall-clock@0.3.0"), Need::Never);
        for network in ["wasi:sockets/tcp@0.2.0", "wasi:http/types@0.2.0"] {
            assert_eq!(needed(network), Need::Never);
        }
        let none = Grants::default();
        for need in [CLOCK, RANDOM, ENVIRONMENT, FOLDERS, Need::Never] {
            assert!(!gives(&none, need), "{need:?}");
        }
    }
}
