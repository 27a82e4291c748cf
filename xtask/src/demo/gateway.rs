//! The real `sluice` binary as a child process.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tokio::process::{Child, Command};

use super::cluster::Cluster;
use crate::build;

/// A running gateway. It is killed when dropped.
pub struct Gateway {
    child: Child,
}

/// Totals over all lanes.
#[derive(Debug, Default)]
pub struct Report {
    /// Messages settled by delivery.
    pub forwarded: u64,
    /// Messages settled by dropping.
    pub dropped: u64,
    /// Messages settled as dead letters.
    pub dead_lettered: u64,
    /// Messages that the source no longer had.
    pub gaps: u64,
}

#[derive(Deserialize)]
struct Link {
    lanes: Vec<Lane>,
}

#[derive(Deserialize)]
struct Lane {
    forwarded: u64,
    dropped: u64,
    dead_lettered: u64,
    gaps: u64,
}

impl Gateway {
    /// Starts `sluice run` with config/demo.toml between two clusters.
    ///
    /// # Errors
    /// When the binary does not start.
    pub fn start(
        binary: &Path,
        state: &Path,
        source: &Cluster,
        destination: &Cluster,
    ) -> Result<Self> {
        let mut command = Command::new(binary);
        command
            .arg("run")
            .arg("--config")
            .arg(build::workspace().join("config/demo.toml"))
            .args(["--log", "warn"])
            .env("SLUICE_GATEWAY_STATE_DIR", state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        for (name, cluster) in [("EU", source), ("US", destination)] {
            let (address, username, password) = cluster.parts()?;
            command
                .env(format!("SLUICE_CLUSTERS_{name}_ADDRESS"), address)
                .env(format!("SLUICE_CLUSTERS_{name}_USERNAME"), username)
                .env(format!("SLUICE_DEMO_{name}_PASSWORD"), password);
        }
        for guest in ["filter", "router", "rewriter"] {
            let file = build::target().join(format!("guests/{guest}.wasm"));
            let variable = format!("SLUICE_GUESTS_{}_COMPONENT", guest.to_uppercase());
            command.env(variable, file);
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        Ok(Self { child })
    }

    /// Tells when the gateway has ended by itself.
    ///
    /// # Errors
    /// When it has.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("sluice ended early: {status}"),
        }
    }

    /// Drains the gateway with SIGTERM; returns its report.
    ///
    /// # Errors
    /// When it does not end with 0 or prints no report.
    pub async fn stop(self) -> Result<Report> {
        let pid = self.child.id().context("sluice has ended already")?;
        let status = Command::new("kill")
            .args(["-TERM", &pid.to_string()])
            .status()
            .await?;
        ensure!(status.success(), "cannot signal sluice");
        let output = self.child.wait_with_output().await?;
        ensure!(
            output.status.success(),
            "sluice did not drain: {}",
            output.status
        );
        let links: Vec<Link> =
            serde_json::from_slice(&output.stdout).context("sluice printed no report")?;
        let mut report = Report::default();
        for lane in links.iter().flat_map(|link| &link.lanes) {
            report.forwarded += lane.forwarded;
            report.dropped += lane.dropped;
            report.dead_lettered += lane.dead_lettered;
            report.gaps += lane.gaps;
        }
        Ok(report)
    }
}
