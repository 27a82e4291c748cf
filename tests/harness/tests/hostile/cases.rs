//! Every hostile guest does what its file says, and no harm beyond that.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sluice::batch::headers::{self, Field};
use sluice::guest::{Engine, Fate, Outcome};

use super::frame::World;
use super::{batch, chain, engine, note, required};

/// The offset of the message on which guests fail.
const BAD: usize = 2;

fn files() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/hostile");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

#[test]
fn every_hostile_guest_is_contained() -> Result<()> {
    let engine = engine()?;
    let files = files()?;
    ensure!(files.len() > 80, "only {} files were found", files.len());
    let (odd, even): (Vec<_>, Vec<_>) = files
        .iter()
        .enumerate()
        .partition(|(index, _)| index % 2 == 1);
    let wrong = |files: Vec<(usize, &PathBuf)>| -> Vec<String> {
        let results = files.into_iter().map(|(_, file)| {
            let result = std::fs::read_to_string(file)
                .context("unreadable")
                .and_then(|text| check(&engine, &text));
            result.map_err(|error| format!("{}: {error:#}", file.display()))
        });
        results.filter_map(Result::err).collect()
    };
    let wrong = std::thread::scope(|scope| {
        let other = scope.spawn(|| wrong(odd));
        let mut all = wrong(even);
        all.extend(other.join().expect("it does not panic"));
        all
    });
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn check(engine: &Engine, text: &str) -> Result<()> {
    let world = match note(text, "world") {
        Some("transform-batch") => World::TransformBatch,
        Some(other) => bail!("there is no world {other}"),
        None => World::Transform,
    };
    let fails = required(text, "fails")?;
    let memory = note(text, "memory").unwrap_or("16 MiB");
    let keys =
        format!("limits = {{ memory = \"{memory}\", time = \"500 ms\", start = \"500 ms\" }}");
    let mut chain = match chain(engine, world, text, &keys) {
        Err(error) if fails == "start" => {
            let error = format!("{error:#}");
            let says = required(text, "says")?;
            ensure!(error.contains("guest `hostile`"), "{error}");
            ensure!(error.contains(says), "{says:?} is not in: {error}");
            return Ok(());
        }
        started => started?,
    };
    ensure!(fails != "start", "it started");
    let headers = headers::encode(&[(Field::text("k"), Field::text("v"))]);
    let payloads = [b"payload".as_slice(); 5];
    // A second time, to see that the first leaves nothing behind.
    for _ in 0..2 {
        let judged = chain.apply(&batch(&payloads, &headers));
        ensure!(judged.pause.is_none(), "{:?}", judged.pause);
        ensure!(judged.outcomes.len() == payloads.len());
        for (offset, outcome) in judged.outcomes.iter().enumerate() {
            let expected = match fails {
                "nothing" => None,
                _ => match fails.strip_prefix("every ") {
                    None if offset != BAD => None,
                    stage => Some(stage.unwrap_or(fails)),
                },
            };
            check_outcome(outcome, expected, text).with_context(|| format!("message {offset}"))?;
        }
    }
    Ok(())
}

fn check_outcome(outcome: &Outcome, expected: Option<&str>, text: &str) -> Result<()> {
    let Some(stage) = expected else {
        let untouched = matches!(outcome.fate, Fate::Deliver)
            && outcome.edit.is_none()
            && outcome.routes.is_none()
            && !outcome.failed;
        ensure!(untouched, "it is not forwarded as it was: {outcome:?}");
        return Ok(());
    };
    let Fate::Fail(failure) = &outcome.fate else {
        bail!("it does not fail: {outcome:?}");
    };
    let says = required(text, "says")?;
    ensure!(failure.guest == "hostile", "{failure:?}");
    ensure!(failure.stage.name() == stage, "{failure:?}");
    ensure!(
        failure.reason.contains(says),
        "{says:?} is not in: {}",
        failure.reason
    );
    ensure!(failure.reason.len() <= 1024, "the reason is long");
    Ok(())
}

/// A message's rewrite shows its own memory as the payload, so that the host has to hold all of it, message after message.
const LARGE: &str = r#"
(memory (export "memory") 160)
(func $handle (type $handle) (i32.const 256))
(data (i32.const 256) "\03\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\60\00")
"#;

/// Never comes back for batches, and decides over single messages.
const ONLY_ONE: &str = "(func $handle (type $handle)
  (if (i32.gt_u (local.get 1) (i32.const 1))
    (then (loop $for_ever (br $for_ever))))
  (call $forward_all (local.get 1)))";

#[test]
fn what_guests_make_of_a_batch_is_kept_in_parts() -> Result<()> {
    let engine = engine()?;
    let mut chain = chain(
        &engine,
        World::Transform,
        LARGE,
        "limits = { memory = \"16 MiB\", time = \"30 s\" }",
    )?;
    let mut rest = batch(&[b"payload".as_slice(); 8], &[]);
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let judged = chain.apply(&rest);
        ensure!(judged.pause.is_none() && !judged.outcomes.is_empty());
        let sizes = judged.outcomes.iter().map(|outcome| {
            let edit = outcome
                .edit
                .as_deref()
                .and_then(|edit| edit.payload.as_ref());
            edit.map_or(0, bytes::Bytes::len)
        });
        ensure!(
            sizes.clone().all(|size| size == 6 << 20),
            "each has its payload"
        );
        parts.push(sizes.sum::<usize>());
        rest = rest.split_at(judged.outcomes.len()).1;
    }
    assert_eq!(
        parts,
        [18 << 20, 18 << 20, 12 << 20],
        "16 MiB, and what one message takes"
    );
    Ok(())
}

#[test]
fn a_guest_that_takes_long_does_not_hold_a_batch_for_long() -> Result<()> {
    let engine = engine()?;
    let limits = "limits = { memory = \"16 MiB\", time = \"20 ms\" }";
    let mut chain = chain(&engine, World::TransformBatch, ONLY_ONE, limits)?;
    let mut rest = batch(&[b"payload".as_slice(); 64], &[]);
    let (mut parts, mut decided) = (0, 0);
    while !rest.is_empty() {
        let judged = chain.apply(&rest);
        ensure!(judged.pause.is_none() && !judged.outcomes.is_empty());
        ensure!(judged.outcomes.iter().all(|outcome| !outcome.failed));
        parts += 1;
        decided += judged.outcomes.len();
        rest = rest.split_at(judged.outcomes.len()).1;
    }
    assert_eq!(decided, 64);
    ensure!(parts > 1, "its whole time went by in one go");
    Ok(())
}
