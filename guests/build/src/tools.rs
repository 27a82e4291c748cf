//! Programs that builds need: run, found, installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::Builder;

/// Runs a command without showing what it prints; tells whether it succeeded.
pub fn quietly(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a build; on failure shows all that it printed.
///
/// # Errors
/// When it cannot be started or fails.
pub fn build(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| {
        let program = command.get_program().display();
        format!("cannot start {program}: is it installed?")
    })?;
    if !output.status.success() {
        bail!(
            "{command:?} failed:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Installs Debian packages where that is allowed, this is Debian and the user is root, showing what apt-get says; tells
/// whether that worked.
pub fn apt_install(builder: &Builder<'_>, packages: &[&str]) -> bool {
    if !builder.install || !is_root() || !quietly(Command::new("apt-get").arg("--version")) {
        return false;
    }
    (builder.note)(&format!("installing Debian's {}", packages.join(", ")));
    let shown = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            .status()
            .is_ok_and(|status| status.success())
    };
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    shown(&["update", "--quiet"]) && shown(&[&install[..], packages].concat())
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// A Python environment with pinned packages, each as `name==version`; returns its `bin`. Environments
/// are named so that each holds what belongs together.
///
/// # Errors
/// When there is no Python and none can be installed, or when a package cannot be.
pub fn python(builder: &Builder<'_>, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let environment = builder.tools.join(name);
    let bin = environment.join("bin");
    // Written last, so that an interrupted installation is taken up again.
    let stamp = environment.join("installed.txt");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(bin);
    }
    ensure!(
        builder.install,
        "{} from PyPI is not installed in {}: `--install` installs it",
        packages.join(", "),
        environment.display()
    );
    let create = || {
        let mut command = Command::new("python3");
        quietly(command.args(["-m", "venv", "--clear"]).arg(&environment))
    };
    ensure!(
        create() || (apt_install(builder, &["python3", "python3-venv"]) && create()),
        "no Python 3.9 or newer with `venv`: on Debian, as root, `apt-get install python3 python3-venv`"
    );
    (builder.note)(&format!("installing {} from PyPI", packages.join(", ")));
    let mut install = Command::new(bin.join("pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check"]);
    build(install.args(packages))?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(bin)
}
