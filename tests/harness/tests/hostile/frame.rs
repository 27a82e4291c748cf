//! Components from the text of hostile guests: a frame gives each what it leaves out.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

/// Of the contract: the guests differ in the handler that they export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    Transform,
    TransformBatch,
}

impl World {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transform => "transform",
            Self::TransformBatch => "transform-batch",
        }
    }

    const fn handler(self) -> &'static str {
        match self {
            Self::Transform => "message-handler",
            Self::TransformBatch => "batch-handler",
        }
    }

    /// The parameters of its `handle`: offset, two times, id, headers, unreadable-headers, payload; or six lists.
    const fn parameters(self) -> &'static str {
        match self {
            Self::Transform => "i64 i64 i64 i64 i64 i32 i32 i32 i32 i32",
            Self::TransformBatch => "i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32",
        }
    }
}

/// What every guest gets. At 16 lies a good answer to `start` and the verdict `forward`, both of them zeros.
const COMMON: &str = r#"
(type $start (func (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
(type $realloc (func (param i32 i32 i32 i32) (result i32)))
(global $forward i32 (i32.const 16))
(export "cabi_realloc" (func $realloc))
(func $is_bad (param i64) (result i32)
  (i64.eq (local.get 0) (i64.const 2)))
(func $holds_bad (param $offsets i32) (param $count i32) (result i32)
  (loop $next
    (if (call $is_bad (i64.load (local.get $offsets)))
      (then (return (i32.const 1))))
    (local.set $offsets (i32.add (local.get $offsets) (i32.const 8)))
    (br_if $next (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
  (i32.const 0))
(func $forward_all (param $count i32) (result i32)
  (i32.store (i32.const 64) (i32.const 4096))
  (i32.store (i32.const 68) (local.get $count))
  (i32.store (i32.const 72) (i32.const 8192))
  (i32.store (i32.const 76) (i32.const 1))
  (i32.const 64))
"#;

/// Asks for all inputs.
const START: &str = r#"
(func $start (type $start) (i32.const 48))
(data (i32.const 52) "\03")
"#;

/// Gives memory from 16384 on, and starts there again where the next call needs room.
const REALLOC: &str = r"
(global $top (mut i32) (i32.const 16384))
(func $realloc (type $realloc)
  (if (i32.gt_u (global.get $top) (i32.const 32768))
    (then (global.set $top (i32.const 16384))))
  (global.get $top)
  (global.set $top (i32.add (global.get $top)
    (i32.and (i32.add (local.get 3) (i32.const 15)) (i32.const -16)))))
";

static CONTRACT: LazyLock<Resolve> = LazyLock::new(|| {
    let mut contract = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    contract.push_dir(folder).expect("the contract parses");
    contract
});

fn world(world: World) -> WorldId {
    let mut all = CONTRACT.worlds.iter();
    let (id, _) = all
        .find(|(_, other)| other.name == world.name())
        .expect("the contract has the world");
    id
}

/// The component of a guest whose module has these fields.
pub fn component(world_of: World, fields: &str) -> Result<Vec<u8>> {
    let or = |given: &str, default| if fields.contains(given) { "" } else { default };
    let handler = format!("sluice:guest/{}@0.1.1", world_of.handler());
    let text = format!(
        r#"(module
(import "sluice:guest/host@0.1.1" "log" (func $log (param i32 i32 i32)))
(import "sluice:guest/host@0.1.1" "count" (func $count (param i32 i32 i64)))
(import "sluice:guest/host@0.1.1" "gauge" (func $gauge (param i32 i32 f64)))
(type $handle (func (param {parameters}) (result i32)))
(export "{handler}#start" (func $start))
(export "{handler}#handle" (func $handle))
{COMMON}
{memory}
{start}
{realloc}
{handle}
{fields}
)"#,
        parameters = world_of.parameters(),
        memory = or("(memory (export", r#"(memory (export "memory") 1)"#),
        start = or("(func $start", START),
        realloc = or("(func $realloc", REALLOC),
        handle = or(
            "(func $handle",
            match world_of {
                World::Transform => "(func $handle (type $handle) (global.get $forward))",
                World::TransformBatch =>
                    "(func $handle (type $handle) (call $forward_all (local.get 1)))",
            }
        ),
    );
    let mut module = wat::parse_str(&text).with_context(|| text.clone())?;
    embed_component_metadata(
        &mut module,
        &CONTRACT,
        world(world_of),
        StringEncoding::UTF8,
    )?;
    ComponentEncoder::default()
        .module(&module)?
        .validate(true)
        .encode()
}
