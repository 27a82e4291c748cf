//! The real `sluice` binary as a process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;

/// A test that waits this long for a line, a message or an end has failed.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A running `sluice`. It is killed when dropped.
#[derive(Debug)]
pub struct Sluice {
    child: Child,
    log: watch::Receiver<Vec<String>>,
}

/// What `sluice run` prints when it ends.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    /// Name of the link.
    pub link: String,
    /// One entry a source partition.
    pub lanes: Vec<Lane>,
    /// Why the link stopped by itself.
    pub error: Option<String>,
}

/// A lane's totals.
#[derive(Debug, Clone, Deserialize)]
pub struct Lane {
    /// The source partition.
    pub source: String,
    /// Settled by delivery.
    pub forwarded: u64,
    /// Settled by dropping.
    pub dropped: u64,
    /// Settled as dead letters.
    pub dead_lettered: u64,
    /// Rejected by a guest, or failed.
    pub failed: u64,
    /// Lost by the source.
    pub gaps: u64,
    /// How often the source was another than before.
    pub resets: u64,
    /// Found at the destination instead of sent again.
    pub found: u64,
    /// Where the lane goes on.
    pub next_offset: u64,
}

impl Report {
    /// Totals over all lanes: forwarded, dropped, dead-lettered.
    pub fn settled(&self) -> (u64, u64, u64) {
        let total = |part: fn(&Lane) -> u64| self.lanes.iter().map(part).sum();
        (
            total(|lane| lane.forwarded),
            total(|lane| lane.dropped),
            total(|lane| lane.dead_lettered),
        )
    }

    /// Messages that were found at the destination instead of sent again.
    pub fn found(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.found).sum()
    }

    /// Messages that the source no longer had.
    pub fn gaps(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.gaps).sum()
    }
}

impl Sluice {
    /// Starts `sluice run` with a configuration file.
    ///
    /// # Errors
    /// When the binary is not built or does not start.
    pub fn start(config: &Path, environment: &[(&str, &str)]) -> Result<Self> {
        Self::start_command(&["run"], config, environment)
    }

    /// Starts a command with a configuration file.
    ///
    /// # Errors
    /// As [`Sluice::start`].
    pub fn start_command(
        command: &[&str],
        config: &Path,
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let mut arguments: Vec<_> = command.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new("--config"), config.as_os_str()]);
        Self::start_bare(&arguments, environment)
    }

    /// Starts a command that takes no configuration file.
    ///
    /// # Errors
    /// As [`Sluice::start`].
    pub fn start_bare(arguments: &[&OsStr], environment: &[(&str, &str)]) -> Result<Self> {
        let binary = target_folder()?.join("sluice");
        ensure!(
            binary.exists(),
            "{} is not built: run `cargo build`",
            binary.display()
        );
        let mut child = Command::new(binary)
            .args(arguments)
            .args(["--log", "info"])
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start sluice")?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let (lines, log) = watch::channel(Vec::new());
        tokio::spawn(collect(stderr, lines));
        Ok(Self { child, log })
    }

    /// Runs `sluice guest` to its end, which may take `patience`: its exit code, what it printed, and its log.
    ///
    /// # Errors
    /// When it does not start or does not end.
    pub async fn guest(
        arguments: &[&dyn AsRef<OsStr>],
        patience: Duration,
    ) -> Result<(i32, String, String)> {
        let mut all = vec![OsStr::new("guest")];
        all.extend(arguments.iter().map(AsRef::as_ref));
        let (code, text, log) = Self::start_bare(&all, &[])?.output_within(patience).await?;
        Ok((code.context("a signal ended it")?, text, log))
    }

    /// Waits until a log line holds `text`.
    ///
    /// # Errors
    /// When sluice ends or takes too long without such a line.
    pub async fn logged(&mut self, text: &str) -> Result<()> {
        let found = self.log_comes_to(|lines| count(lines, text) > 0).await;
        ensure!(found, "no log line holds {text:?}:\n{}", self.log());
        Ok(())
    }

    /// Waits until more log lines hold `text` than `before`.
    ///
    /// # Errors
    /// As [`Sluice::logged`].
    pub async fn logged_again(&mut self, text: &str, before: usize) -> Result<()> {
        let found = self.log_comes_to(|lines| count(lines, text) > before).await;
        ensure!(found, "no more log lines hold {text:?}:\n{}", self.log());
        Ok(())
    }

    /// How many log lines hold `text`.
    pub fn times_logged(&self, text: &str) -> usize {
        count(&self.log.borrow(), text)
    }

    async fn log_comes_to(&mut self, condition: impl Fn(&[String]) -> bool) -> bool {
        let reaching = self.log.wait_for(|lines| condition(lines));
        let waited = tokio::time::timeout(PATIENCE, reaching).await;
        matches!(waited, Ok(Ok(_)))
    }

    /// Everything logged so far.
    pub fn log(&self) -> String {
        self.log.borrow().join("\n")
    }

    /// The answer of the admin listener to a GET request.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn get(&mut self, path: &str) -> Result<String> {
        let (code, body) = self.ask("GET", path).await?;
        ensure!(code == 200, "{path}: {code}: {body}");
        Ok(body)
    }

    /// The code and the body of the admin listener's answer.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn ask(&mut self, method: &str, path: &str) -> Result<(u16, String)> {
        self.logged("admin API listens").await?;
        let log = self.log();
        let line = log.lines().find(|line| line.contains("admin API listens"));
        let address = line
            .and_then(|line| line.split("address=").nth(1))
            .context("the line names the address")?;
        let mut stream = TcpStream::connect(address.trim()).await?;
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: sluice\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an HTTP answer")?;
        let code = head.split(' ').nth(1).context("a status line")?.parse()?;
        Ok((code, body.to_owned()))
    }

    /// Most memory that it ever held, in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak_memory(&self) -> Result<u64> {
        let pid = self.child.id().context("sluice has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kilobytes.context("the peak is told")?.parse::<u64>()? * 1024)
    }

    /// Sends a signal, by name.
    ///
    /// # Errors
    /// When sluice has ended.
    pub async fn signal(&self, name: &str) -> Result<()> {
        let pid = self.child.id().context("sluice has ended")?;
        let status = Command::new("kill")
            .args([format!("-{name}"), pid.to_string()])
            .status()
            .await?;
        ensure!(status.success(), "cannot signal sluice");
        Ok(())
    }

    /// Drains with SIGTERM; sluice must end with 0.
    ///
    /// # Errors
    /// When it does not.
    pub async fn stop(self) -> Result<Report> {
        self.signal("TERM").await?;
        let (code, report, log) = self.end().await?;
        ensure!(code == Some(0), "sluice ended with {code:?}:\n{log}");
        report.with_context(|| format!("sluice printed no report:\n{log}"))
    }

    /// Ends it as a crash does.
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("sluice ended by itself with {status}:\n{}", self.log());
        }
        self.child.kill().await?;
        Ok(())
    }

    /// Waits until it ends by itself, for as long as that takes. May be cancelled.
    ///
    /// # Errors
    /// When the system does not tell.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait().await?)
    }

    /// Waits until it ends by itself: its exit code, its report if it printed one, and its log.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn end(self) -> Result<(Option<i32>, Option<Report>, String)> {
        let (code, text, log) = self.output().await?;
        let reports: Option<Vec<Report>> = serde_json::from_str(&text).ok();
        let report = reports.and_then(|reports| reports.into_iter().next());
        Ok((code, report, log))
    }

    /// Waits until it ends by itself: its exit code, what it printed, and its log.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn output(self) -> Result<(Option<i32>, String, String)> {
        self.output_within(PATIENCE).await
    }

    /// Waits until it ends by itself, but no longer than `patience`: its exit code, what it printed, and its log.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn output_within(
        mut self,
        patience: Duration,
    ) -> Result<(Option<i32>, String, String)> {
        let mut stdout = self.child.stdout.take().context("stdout is piped")?;
        let ending = async {
            let mut text = String::new();
            stdout.read_to_string(&mut text).await?;
            let status = self.child.wait().await?;
            anyhow::Ok((status, text))
        };
        let Ok(ended) = tokio::time::timeout(patience, ending).await else {
            bail!("sluice does not end:\n{}", self.log());
        };
        let (status, text) = ended?;
        // The log is whole once its pipe has closed.
        while self.log.changed().await.is_ok() {}
        Ok((status.code(), text, self.log()))
    }
}

fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

async fn collect(stderr: ChildStderr, lines: watch::Sender<Vec<String>>) {
    let mut reader = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        lines.send_modify(|lines| lines.push(line));
    }
}

/// The folder of the binaries that were built with this one.
///
/// # Errors
/// When the system does not tell where this one is.
pub fn target_folder() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let deps = this.parent().context("a test lies in a folder")?;
    Ok(deps
        .parent()
        .context("tests lie below the binaries")?
        .to_owned())
}
