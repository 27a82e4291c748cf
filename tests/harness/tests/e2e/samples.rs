//! `sluice guest inspect` and `test`, and samples that every version of a guest has to pass.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sluice_harness::{Message, PATIENCE, Setup, Sluice, guest, header};

const EU: &str = r#"{"headers": [{"key": "region", "value": "eu"}], "payload": "a"}"#;
const US: &str =
    r#"{"headers": [{"key": "region", "value": "us"}], "payload": {"json": {"b": 1}}}"#;
const KEEP: &str = r#"config = { header = "region", keep = ["eu"] }"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn file(&self, name: &str, lines: &[&str]) -> Result<PathBuf> {
        let path = self.0.path().join(name);
        std::fs::write(&path, lines.join("\n"))?;
        Ok(path)
    }
}

/// Exit code, lines on stdout, and stderr of `sluice guest`.
async fn sluice_guest(arguments: &[&dyn AsRef<OsStr>]) -> Result<(i32, Vec<Value>, String)> {
    let (code, text, log) = Sluice::guest(arguments, PATIENCE).await?;
    let lines = text.lines().map(serde_json::from_str);
    Ok((code, lines.collect::<Result<_, _>>()?, log))
}

#[tokio::test]
async fn inspect_tells_the_world_the_imports_and_the_grants_they_need() -> Result<()> {
    let (code, lines, log) = sluice_guest(&[&"inspect", &guest("filter")?]).await?;
    ensure!(code == 0, "{log}");
    assert_eq!(lines[0]["world"], "transform-batch");
    assert_eq!(lines[0]["contract"], "0.1.1");
    let size = std::fs::metadata(guest("filter")?)?.len();
    assert_eq!(lines[0]["bytes"], size);

    let (code, lines, log) = sluice_guest(&[&"inspect", &guest("system")?]).await?;
    ensure!(code == 0, "{log}");
    assert_eq!(lines[0]["world"], "transform");
    let imports = lines[0]["imports"].as_array().cloned().unwrap_or_default();
    let random = imports.iter().find(|import| {
        import["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("wasi:random/random@"))
    });
    assert_eq!(
        random.map(|import| &import["grant"]),
        Some(&json!("random = true"))
    );

    let folder = Folder::new()?;
    let text = folder.file("text.wasm", &["no component"])?;
    let (code, _, log) = sluice_guest(&[&"inspect", &text]).await?;
    assert_eq!(code, 3);
    assert!(
        log.contains("text.wasm is no guest: this is not a valid"),
        "{log}"
    );
    Ok(())
}

async fn test(folder: &Folder, expect: &[&str]) -> Result<(i32, Vec<Value>, String)> {
    let input = folder.file("input.jsonl", &[EU, "", US])?;
    let expect = folder.file("expect.jsonl", expect)?;
    let (filter, set) = (guest("filter")?, KEEP);
    let options: [&dyn AsRef<OsStr>; 8] = [
        &"test",
        &filter,
        &"--input",
        &input,
        &"--expect",
        &expect,
        &"--set",
        &set,
    ];
    sluice_guest(&options).await
}

#[tokio::test]
async fn a_guest_is_tested_without_any_cluster() -> Result<()> {
    let folder = Folder::new()?;
    let (code, lines, log) = test(
        &folder,
        &[
            r#"{"verdict": "forward", "offset": 0}"#,
            r#"{"verdict": "drop"}"#,
        ],
    )
    .await?;
    ensure!(code == 0, "{log}");
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[1]["offset"], &lines[1]["verdict"]),
        (&json!(1), &json!("drop"))
    );
    for measured in ["nanoseconds", "memory"] {
        assert!(
            lines[1][measured].as_u64().is_some_and(|value| value > 0),
            "{lines:?}"
        );
    }

    // What it wrote is an expectation that it meets, whatever it measures.
    let written: Vec<_> = lines.iter().map(ToString::to_string).collect();
    let written: Vec<_> = written.iter().map(String::as_str).collect();
    let (code, _, log) = test(&folder, &written).await?;
    ensure!(code == 0, "{log}");

    for (expect, says) in [
        (
            r#"{"verdict": "forward"}"#,
            "offset 1: verdict is \"drop\" and should be \"forward\"",
        ),
        (
            r#"{"verdict": "drop", "reason": "x"}"#,
            "offset 1: reason is null and should be \"x\"",
        ),
        ("", "expects 1 messages, and there are 2"),
    ] {
        let (code, _, log) = test(&folder, &[r#"{"verdict": "forward"}"#, expect]).await?;
        assert_eq!(code, 3, "{log}");
        assert!(log.contains(says), "{says}\n{log}");
    }
    Ok(())
}

#[tokio::test]
async fn what_a_guest_changes_is_shown_and_what_breaks_it_is_told() -> Result<()> {
    let folder = Folder::new()?;
    let typed = r#"{"id": "340282366920938463463374607431768211455", "headers": [{"key": {"kind": "uint8", "value": "7"}, "value": {"kind": "raw", "value": "0xff"}}], "payload": {"json": {"card": "1", "n": 2}}}"#;
    let input = folder.file("input.jsonl", &[typed, r#"{"payload": {"hex": "ff"}}"#])?;
    let set = r#"config = { fields = ["card"] }"#;
    let redact = guest("redact")?;
    let (code, lines, log) =
        sluice_guest(&[&"test", &redact, &"--input", &input, &"-s", &set]).await?;
    ensure!(code == 0, "a rejected message is no failure: {log}");
    let changed: Value = serde_json::from_str(lines[0]["payload"].as_str().unwrap_or_default())?;
    assert_eq!(changed, json!({"card": "[redacted]", "n": 2}));
    assert_eq!(lines[1]["verdict"], "reject");

    let input = folder.file(
        "input.jsonl",
        &[r#"{"payload": "panic"}"#, r#"{"payload": "a"}"#],
    )?;
    let faulty = guest("faulty")?;
    let (code, lines, log) = sluice_guest(&[&"test", &faulty, &"--input", &input]).await?;
    assert_eq!(code, 3, "{log}");
    assert_eq!(
        (&lines[0]["verdict"], &lines[0]["stage"]),
        (&json!("fail"), &json!("trap"))
    );
    assert_eq!(lines[1]["verdict"], "forward");
    assert!(
        log.contains("1 of 2 messages did not come out as they should"),
        "{log}"
    );
    Ok(())
}

#[tokio::test]
async fn input_that_is_no_message_is_refused_by_line() -> Result<()> {
    let folder = Folder::new()?;
    for (line, says) in [
        (
            r#"{"payload": 3}"#,
            "expected a text, { \"hex\": ... } or { \"json\": ... }",
        ),
        (r#"{"paylod": "a"}"#, "unknown field `paylod`"),
        (r#"{"payload": {"hex": "0"}}"#, "`0` is not hexadecimal"),
        (r#"{"id": "x"}"#, "id `x` is no 128-bit number"),
        (
            r#"{"headers": [{"key": "", "value": "v"}]}"#,
            "a header field has 0 bytes",
        ),
        (
            r#"{"headers": [{"key": "k", "value": {"kind": "int", "value": "1"}}]}"#,
            "there is no kind `int` of header",
        ),
        (r#"{"offset": 0}"#, "offset 0 does not follow the last one"),
        ("{", "line 2"),
    ] {
        let input = folder.file("input.jsonl", &["{}", line])?;
        let (code, _, log) =
            sluice_guest(&[&"test", &guest("filter")?, &"--input", &input]).await?;
        assert_eq!(code, 2, "{log}");
        assert!(
            log.contains("input.jsonl, line 2: ") && log.contains(says),
            "{says}\n{log}"
        );
    }
    let input = folder.file("input.jsonl", &["{}"])?;
    for (set, says) in [
        (
            "limits.time = \"0 s\"",
            "limits.time and limits.start must be above 0",
        ),
        ("config = { keep = [nan] }", "config.keep is inf or nan"),
        (
            "component = \"other.wasm\"",
            "the component is the file that is tested",
        ),
    ] {
        let (code, _, log) =
            sluice_guest(&[&"test", &guest("filter")?, &"--input", &input, &"-s", &set]).await?;
        assert_eq!(code, 2, "{log}");
        assert!(log.contains(says), "{says}\n{log}");
    }
    let set = "limts = {}";
    let (code, _, log) =
        sluice_guest(&[&"test", &guest("filter")?, &"--input", &input, &"-s", &set]).await?;
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("unknown field `limts`"), "{log}");
    Ok(())
}

/// A configuration whose guest is the file `stamp` and has to give a sample the version 0.
fn config(setup: &Setup, stamp: &Path, expect: &Path) -> Result<String> {
    let input = setup.folder.path().join("samples.jsonl");
    std::fs::write(&input, "{\"payload\": \"a\"}\n")?;
    let section = format!(
        "[admin]\naddress = \"127.0.0.1:0\"\n[guests.stamp]\ncomponent = \"{}\"\nsamples = {{ input = \"{}\", expect = \"{}\" }}\n",
        stamp.display(),
        input.display(),
        expect.display()
    );
    setup.config(r#"guests = ["stamp"]"#, &section)
}

#[tokio::test]
async fn a_version_that_does_not_pass_its_samples_is_not_used() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let stamp = setup.folder.path().join("stamp.wasm");
    let original = std::fs::read(guest("stamp")?)?;
    std::fs::write(&stamp, &original)?;
    let folder = Folder::new()?;
    let line = |version: &str| {
        json!({"verdict": "rewrite", "headers": [{"key": "version", "value": version}]}).to_string()
    };

    let wrong = folder.file("wrong.jsonl", &[&line("version-0007")])?;
    let (code, _, log) = setup.run(&config(&setup, &stamp, &wrong)?)?.end().await?;
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains("samples: offset 0: headers is"), "{log}");

    let right = folder.file("right.jsonl", &[&line("version-0000")])?;
    let mut sluice = setup.run(&config(&setup, &stamp, &right)?)?;
    sluice.logged("guest loaded").await?;
    let from = b"version-0000";
    let mut other = original.clone();
    let place = other.windows(from.len()).position(|window| window == from);
    let place = place.expect("the component holds its version");
    other[place..place + from.len()].copy_from_slice(b"version-0001");
    std::fs::write(&stamp, &other)?;
    let (code, answer) = sluice.ask("POST", "/guests/stamp/reload").await?;
    assert_eq!(code, 422, "{answer}");
    assert!(answer.contains("samples: offset 0: headers is"), "{answer}");
    setup.produce("t", 0, &[Message::new(1, "a")]).await?;
    setup.arrived("t", 0, 1).await?;
    sluice.stop().await?;
    let delivered = setup.delivered("t", 0).await?;
    assert_eq!(
        header(&delivered[0], "version").as_deref(),
        Some("version-0000")
    );
    Ok(())
}

#[tokio::test]
async fn a_guest_reads_a_granted_folder_and_one_with_a_pipe_is_refused() -> Result<()> {
    let folder = Folder::new()?;
    let shared = folder.0.path().join("shared");
    std::fs::create_dir_all(shared.join("deep"))?;
    std::fs::write(shared.join("greeting"), "hello")?;
    let input = folder.file("input.jsonl", &[r#"{"payload": "read:greeting"}"#])?;
    let grants = format!(
        "grants = {{ clock = true, random = true, environment = [], folders = {{ \"/data\" = \"{}\" }} }}",
        shared.display()
    );
    let system = guest("system")?;
    let arguments: [&dyn AsRef<OsStr>; 6] = [&"test", &system, &"--input", &input, &"-s", &grants];
    let (code, lines, log) = sluice_guest(&arguments).await?;
    ensure!(code == 0, "{log}");
    assert!(lines[0].to_string().contains("hello"), "{lines:?}");

    let pipe = shared.join("deep/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status()?;
    ensure!(made.success(), "no pipe");
    let (code, _, log) = sluice_guest(&arguments).await?;
    assert_eq!(code, 3, "{log}");
    assert!(log.contains("deep/pipe is no file: keep pipes"), "{log}");
    Ok(())
}

#[tokio::test]
async fn every_message_is_tested_however_many_the_guest_fails_on() -> Result<()> {
    let folder = Folder::new()?;
    let input = folder.file("input.jsonl", &[r#"{"payload": "panic"}"#; 40])?;
    let (code, lines, log) =
        sluice_guest(&[&"test", &guest("faulty")?, &"--input", &input]).await?;
    assert_eq!((code, lines.len()), (3, 40), "{log}");
    Ok(())
}
