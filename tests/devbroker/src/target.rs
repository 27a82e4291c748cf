//! Which server a test runs against: a dev broker, a real server started for the test, or one that runs already.
//!
//! `SLUICE_TEST_IGGY_SERVER` names an `iggy-server` binary; each test then starts it in a folder of its own.
//! `SLUICE_TEST_SOURCE` and `SLUICE_TEST_DESTINATION` give connection strings, `iggy://user:password@host:port`, of
//! clusters that run already; tests there work in streams of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::{Broker, Options};

/// Names an `iggy-server` binary.
pub const SERVER: &str = "SLUICE_TEST_IGGY_SERVER";

/// Names the cluster that tests read from.
pub const SOURCE: &str = "SLUICE_TEST_SOURCE";

/// Names the cluster that tests write to.
pub const DESTINATION: &str = "SLUICE_TEST_DESTINATION";

/// A server binds its port within this many looks, one each [`LOOK`].
const LOOKS: u32 = 600;

const LOOK: Duration = Duration::from_millis(50);

/// A server for one test. It stops when dropped, unless it ran before.
#[derive(Debug)]
pub struct Target {
    connection_string: String,
    broker: Option<Broker>,
    _server: Option<(Child, TempDir)>,
}

impl Target {
    /// The server for a test that needs none of the broker's faults. `variable` is [`SOURCE`] or [`DESTINATION`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start(variable: &str) -> Result<Self> {
        if let Ok(connection_string) = std::env::var(variable) {
            return Ok(Self {
                connection_string,
                broker: None,
                _server: None,
            });
        }
        match std::env::var_os(SERVER) {
            Some(binary) => Self::start_server(Path::new(&binary)).await,
            None => Self::dev_broker(),
        }
    }

    /// A dev broker, for a test that needs its faults.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn dev_broker() -> Result<Self> {
        let broker = Broker::start(Options::default()).context("cannot start a dev broker")?;
        Ok(Self {
            connection_string: broker.connection_string(),
            broker: Some(broker),
            _server: None,
        })
    }

    async fn start_server(binary: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().await?));
        let server = start_server(binary, folder.path(), address, &[]).await?;
        Ok(Self {
            connection_string: format!("iggy://iggy:iggy@{address}"),
            broker: None,
            _server: Some((server, folder)),
        })
    }

    /// `iggy://user:password@host:port`.
    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }

    /// Host and port, user name, password.
    ///
    /// # Errors
    /// When the connection string is of another form.
    pub fn parts(&self) -> Result<(&str, &str, &str)> {
        let parts = self
            .connection_string
            .split_once("://")
            .and_then(|(_, rest)| rest.rsplit_once('@'))
            .and_then(|(credentials, address)| {
                let (username, password) = credentials.split_once(':')?;
                Some((address.split(['/', '?']).next()?, username, password))
            });
        match parts {
            Some(parts) => Ok(parts),
            None => bail!("a connection string must look like iggy://user:password@host:port"),
        }
    }

    /// The dev broker, where it is one.
    pub const fn broker(&self) -> Option<&Broker> {
        self.broker.as_ref()
    }
}

/// Starts an `iggy-server` with the data that `folder` holds, and returns when it listens. Its user and password are
/// both `iggy`. It is killed when dropped.
///
/// # Errors
/// When it cannot be started or ends.
pub async fn start_server(
    binary: &Path,
    folder: &Path,
    address: SocketAddr,
    environment: &[(&str, &str)],
) -> Result<Child> {
    let mut server = Command::new(binary)
        .current_dir(folder)
        .env("IGGY_SYSTEM_PATH", folder.join("data"))
        .env("IGGY_TCP_ADDRESS", address.to_string())
        .env("IGGY_QUIC_ENABLED", "false")
        .env("IGGY_HTTP_ENABLED", "false")
        .env("IGGY_WEBSOCKET_ENABLED", "false")
        .env("IGGY_ROOT_USERNAME", "iggy")
        .env("IGGY_ROOT_PASSWORD", "iggy")
        .env("IGGY_SYSTEM_SHARDING_CPU_ALLOCATION", "1")
        .env("IGGY_SYSTEM_SHARDING_PIN_CORES", "false")
        .env("IGGY_SHARD_RUNTIME_CAPACITY", "256")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    for _ in 0..LOOKS {
        if let Some(status) = server.try_wait()? {
            bail!("{} ended with {status}", binary.display());
        }
        if TcpStream::connect(address).await.is_ok() {
            return Ok(server);
        }
        tokio::time::sleep(LOOK).await;
    }
    bail!("{} does not listen on {address}", binary.display())
}

/// A port of the loopback address that is free now.
async fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(listener.local_addr()?.port())
}
