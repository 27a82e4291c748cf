//! `sluice guest new` and `build`: what a newcomer does first.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sluice_harness::{Sluice, target_folder};

/// Compilers are slow, and may have to be installed first.
const PATIENCE: Duration = Duration::from_mins(20);

const NAME: &str = "my-guest";

/// Exit code and stderr of `sluice guest`.
async fn sluice_guest(arguments: &[&dyn AsRef<OsStr>]) -> Result<(i32, String)> {
    let (code, _, log) = Sluice::guest(arguments, PATIENCE).await?;
    Ok((code, log))
}

/// A new project in a folder of its own.
async fn new(language: &str) -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let (code, log) = sluice_guest(&[
        &"new",
        &"--lang",
        &language,
        &NAME,
        &"--within",
        &folder.path(),
    ])
    .await?;
    ensure!(code == 0, "{log}");
    let project = folder.path().join(NAME);
    if language == "rust" {
        // What cargo makes of libraries stays from run to run.
        let made = target()?.join("project-build");
        std::fs::create_dir_all(&made)?;
        symlink(made, project.join("target"))?;
    }
    Ok((folder, project))
}

fn target() -> Result<PathBuf> {
    let debug = target_folder()?;
    Ok(debug
        .parent()
        .context("it lies in the target folder")?
        .to_owned())
}

async fn build(project: &Path) -> Result<(i32, String)> {
    let tools = target()?.join("tools");
    sluice_guest(&[&"build", &project, &"--install", &"--tools", &tools]).await
}

async fn builds_and_passes_its_samples(language: &str) -> Result<()> {
    let (_folder, project) = new(language).await?;
    let (code, log) = build(&project).await?;
    ensure!(code == 0, "{log}");
    let component = project.join(NAME).with_extension("wasm");
    let samples = project.join("samples");
    let test = |keep: &str| {
        let set = format!("config = {{ keep = \"{keep}\" }}");
        let (component, samples) = (component.clone(), samples.clone());
        async move {
            let (input, expect) = (
                samples.join("messages.jsonl"),
                samples.join("expected.jsonl"),
            );
            let arguments: [&dyn AsRef<OsStr>; 8] = [
                &"test",
                &component,
                &"--input",
                &input,
                &"--expect",
                &expect,
                &"--set",
                &set,
            ];
            sluice_guest(&arguments).await
        }
    };
    let (code, log) = test("eu").await?;
    ensure!(code == 0, "{log}");
    let (code, log) = test("us").await?;
    ensure!(
        code == 3 && log.contains("verdict is \"drop\" and should be \"forward\""),
        "{log}"
    );
    let (code, log) = sluice_guest(&[
        &"test",
        &component,
        &"--input",
        &samples.join("messages.jsonl"),
        &"--set",
        &"config = { kep = \"eu\" }",
    ])
    .await?;
    ensure!(
        code == 3 && log.contains("refused to start: config"),
        "{log}"
    );
    Ok(())
}

#[tokio::test]
async fn a_new_guest_in_rust_builds_and_passes_its_samples() -> Result<()> {
    builds_and_passes_its_samples("rust").await
}

#[tokio::test]
async fn a_new_guest_in_javascript_builds_and_passes_its_samples() -> Result<()> {
    builds_and_passes_its_samples("js").await
}

#[tokio::test]
async fn a_new_guest_in_python_builds_and_passes_its_samples() -> Result<()> {
    builds_and_passes_its_samples("python").await
}

#[tokio::test]
async fn a_new_guest_in_c_builds_and_passes_its_samples() -> Result<()> {
    builds_and_passes_its_samples("c").await
}

#[tokio::test]
async fn a_guest_whose_own_test_fails_is_not_built() -> Result<()> {
    let (_folder, project) = new("c").await?;
    let test = project.join("rules_test.c");
    let original = std::fs::read_to_string(&test)?;
    std::fs::write(
        &test,
        original.replace("keeps(&rules, \"eu\")", "keeps(&rules, \"us\")"),
    )?;
    let (code, log) = build(&project).await?;
    ensure!(code == 3, "{log}");
    assert!(log.contains("wrong: the region is kept"), "{log}");
    assert!(!project.join("my-guest.wasm").exists());
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_made_or_built_is_told() -> Result<()> {
    let (folder, project) = new("c").await?;
    let (code, log) =
        sluice_guest(&[&"new", &"--lang", &"js", &NAME, &"--within", &folder.path()]).await?;
    ensure!(code == 2, "{log}");
    assert!(log.contains("my-guest is there already"), "{log}");
    assert!(!project.join("guest.js").exists());
    let (code, log) = sluice_guest(&[&"new", &"--lang", &"js", &"My Guest"]).await?;
    ensure!(
        code == 2 && log.contains("small letters, digits and dashes"),
        "{log}"
    );
    let (code, log) = build(&project.join("samples")).await?;
    ensure!(code == 2 && log.contains("holds no guest"), "{log}");
    let (code, log) = build(&project.join("nowhere")).await?;
    ensure!(code == 2 && log.contains("cannot open the folder"), "{log}");
    let tools = folder.path().join("no-tools");
    let (python, _keep) = {
        let (folder, project) = new("python").await?;
        (project, folder)
    };
    let (code, log) = sluice_guest(&[&"build", &python, &"--tools", &tools]).await?;
    ensure!(
        code == 3 && log.contains("`--install` installs it"),
        "{log}"
    );
    Ok(())
}
