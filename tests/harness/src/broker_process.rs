//! A cluster as a process that can be killed and started again with its data.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use iggy::prelude::IggyClient;
use sluice_devbroker::target;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::client::connect_with;
use crate::process::{PATIENCE, target_folder};

/// A `devbroker`, or the `iggy-server` that `SLUICE_TEST_IGGY_SERVER` names, which saves each message before it
/// acknowledges it. It is killed when dropped.
#[derive(Debug)]
pub struct BrokerProcess {
    child: Option<Child>,
    folder: TempDir,
    access: Access,
    up: watch::Sender<bool>,
    /// Bound but not listening: while the broker is down nobody else gets its port, and connections are refused.
    _reserved: TcpSocket,
}

/// How clients find a broker, whether or not it is up.
#[derive(Debug, Clone)]
pub struct Access {
    address: SocketAddr,
    up: watch::Receiver<bool>,
}

impl Access {
    /// Host and port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the broker is meant to be up.
    pub fn is_up(&self) -> bool {
        *self.up.borrow()
    }

    /// Waits until the broker is up.
    ///
    /// # Errors
    /// When it is gone for good.
    pub async fn comes_up(&self) -> Result<()> {
        let mut up = self.up.clone();
        up.wait_for(|up| *up).await.context("the broker is gone")?;
        Ok(())
    }

    /// A client, as soon as the broker is up.
    ///
    /// # Errors
    /// When it does not come up, or refuses though it is up.
    pub async fn client(&self) -> Result<IggyClient> {
        let connection_string = format!("iggy://iggy:iggy@{}", self.address);
        let mut up = self.up.clone();
        let connecting = async {
            loop {
                up.wait_for(|up| *up).await.context("the broker is gone")?;
                let parameters = "reconnection_retries=1&reconnection_interval=1ms";
                match connect_with(&connection_string, parameters).await {
                    Ok(client) => return Ok(client),
                    // It was killed meanwhile, and may be up again.
                    Err(_) if up.has_changed()? => {}
                    Err(error) => return Err(error),
                }
            }
        };
        tokio::time::timeout(PATIENCE, connecting)
            .await
            .context("the broker does not come up")?
    }
}

impl BrokerProcess {
    /// Starts an empty broker on a loopback address, which it keeps.
    ///
    /// # Errors
    /// When the program is not built or does not start.
    pub async fn start() -> Result<Self> {
        let reserved = TcpSocket::new_v4()?;
        reserved.set_reuseaddr(true)?;
        reserved.set_reuseport(true)?;
        reserved.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let up = watch::Sender::new(false);
        let mut broker = Self {
            child: None,
            folder: tempfile::tempdir()?,
            access: Access {
                address: reserved.local_addr()?,
                up: up.subscribe(),
            },
            up,
            _reserved: reserved,
        };
        broker.start_again().await?;
        Ok(broker)
    }

    /// How clients find it.
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Starts it with its data, at its address; returns when it can be connected to.
    ///
    /// # Errors
    /// When it runs already or does not start.
    pub async fn start_again(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "the broker is up");
        let (folder, address) = (self.folder.path(), self.access.address);
        let child = match std::env::var_os(target::SERVER) {
            Some(binary) => {
                let save_each = [("IGGY_SYSTEM_PARTITION_MESSAGES_REQUIRED_TO_SAVE", "1")];
                target::start_server(Path::new(&binary), folder, address, &save_each).await?
            }
            None => start_dev_broker(folder, address).await?,
        };
        self.child = Some(child);
        self.up.send_replace(true);
        Ok(())
    }

    /// Ends it with `kill -9`; returns when it is gone.
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn kill(&mut self) -> Result<()> {
        self.end("-KILL").await
    }

    /// Asks it to end with SIGTERM; returns when it is gone.
    ///
    /// # Errors
    /// When it has ended already, or does not end as asked.
    pub async fn stop(&mut self) -> Result<()> {
        self.end("-TERM").await
    }

    async fn end(&mut self, signal: &str) -> Result<()> {
        let mut child = self.child.take().context("the broker is down")?;
        if let Some(status) = child.try_wait()? {
            bail!("the broker ended by itself with {status}");
        }
        // Before the signal, so that whoever meets the end of a connection also sees why.
        self.up.send_replace(false);
        let pid = child.id().context("the broker has ended")?.to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().await?;
        ensure!(sent.success(), "cannot signal the broker");
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
        let status = ended.context("the broker does not end")??;
        ensure!(
            signal == "-KILL" || status.success(),
            "the broker ended with {status}"
        );
        Ok(())
    }
}

async fn start_dev_broker(folder: &Path, address: SocketAddr) -> Result<Child> {
    let binary = target_folder()?.join("devbroker");
    ensure!(
        binary.exists(),
        "{} is not built: run `cargo build`",
        binary.display()
    );
    let mut child = Command::new(binary)
        .args(["--save-every", "1", "--address", &address.to_string()])
        .arg("--data-dir")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start a dev broker")?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let line = BufReader::new(stdout).lines().next_line().await?;
    ensure!(
        line.is_some_and(|line| line.starts_with("listening on ")),
        "the dev broker does not start"
    );
    Ok(child)
}
