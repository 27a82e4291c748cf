//! The broker as a whole: listening, stopping, restarting, and its connections.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iggy_binary_protocol::WireName;
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::faults::Faults;
use crate::session;
use crate::state::State;
use crate::storage::{self, Data};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How a broker is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// A loopback address; port 0 takes a free one.
    pub address: SocketAddr,
    /// Name of the user who may do everything.
    pub username: String,
    /// That user's password.
    pub password: String,
    /// Where the data are kept; without, they are gone with the broker. A folder that holds data brings its users with
    /// it, the one above among them.
    pub data: Option<Data>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            username: "iggy".to_owned(),
            password: "iggy".to_owned(),
            data: None,
        }
    }
}

/// What a restart loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    None,
    /// The newest so many acknowledged messages of every partition; their offsets are given again.
    Newest(u64),
}

/// What connections share.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    pub faults: Faults,
    pub address: SocketAddr,
    requests: Mutex<HashMap<u32, u64>>,
    /// Numbers of the open connections.
    connections: Mutex<BTreeSet<u32>>,
    last_connection: AtomicU32,
    /// Told when all of them are to be closed.
    closing: watch::Sender<()>,
    changes: watch::Sender<u64>,
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for something to happen.
    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn count(&self, code: u32) {
        *self.counts().entry(code).or_default() += 1;
        self.changed();
    }

    pub fn connections(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn closing(&self) -> watch::Receiver<()> {
        self.closing.subscribe()
    }

    pub fn counts(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running broker. When dropped it stops as in a crash: what [`Broker::stop`] would have saved is lost.
#[derive(Debug)]
pub struct Broker {
    pub(crate) shared: Arc<Shared>,
    options: Options,
    /// Bound but not listening: nobody else gets the port while the broker is down, and connections are refused.
    _reserved: TcpSocket,
    listening: tokio::sync::Mutex<Option<Listening>>,
}

#[derive(Debug)]
struct Listening {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Broker {
    /// Starts a broker, an empty one but for what its data folder holds. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// When the address is not a loopback address, or cannot be listened on, or the user name is not one; when the data
    /// folder is in use or damaged.
    pub fn start(options: Options) -> io::Result<Self> {
        if !options.address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{} is not a loopback address: the dev broker has no security and listens on 127.0.0.1 or [::1] only",
                    options.address
                ),
            ));
        }
        let username = WireName::new(options.username.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        // Sockets that share an address would not notice another program there.
        drop(std::net::TcpListener::bind(options.address)?);
        let reserved = socket(options.address)?;
        let address = reserved.local_addr()?;
        let fresh = || State::new(username, options.password.clone());
        let state = match &options.data {
            None => fresh(),
            Some(data) => storage::open(data.clone(), fresh)?,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            faults: Faults::default(),
            address,
            requests: Mutex::default(),
            connections: Mutex::default(),
            last_connection: AtomicU32::new(0),
            closing: watch::Sender::new(()),
            changes: watch::Sender::new(0),
        });
        let listening = listen(socket(address)?, Arc::clone(&shared))?;
        Ok(Self {
            shared,
            options,
            _reserved: reserved,
            listening: tokio::sync::Mutex::new(Some(listening)),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// How the Iggy client reaches it.
    pub fn connection_string(&self) -> String {
        let Options {
            username, password, ..
        } = &self.options;
        format!("iggy://{username}:{password}@{}", self.address())
    }

    /// The faults to show.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Closes every open connection, whatever it waits for, and goes on listening. Returns when they are closed.
    pub async fn close_connections(&self) {
        let open = self.shared.connections().clone();
        self.shared.closing.send_replace(());
        self.wait_until(|broker| broker.shared.connections().is_disjoint(&open))
            .await;
    }

    /// Closes every connection and listens no longer; what is stored stays. A held execution is still to come.
    pub async fn go_down(&self) {
        let listening = self.listening.lock().await.take();
        if let Some(listening) = listening {
            listening.stop.cancel();
            listening.tasks.wait().await;
        }
    }

    /// Listens again, at the same address.
    ///
    /// # Errors
    /// When the system does not let it.
    pub async fn come_up(&self) -> io::Result<()> {
        let mut listening = self.listening.lock().await;
        if listening.is_none() {
            *listening = Some(listen(socket(self.address())?, Arc::clone(&self.shared))?);
        }
        Ok(())
    }

    /// Goes down and comes up again, as after a crash. What is in memory stays, saved or not.
    ///
    /// # Errors
    /// As [`Broker::come_up`], and when the loss cannot be saved.
    pub async fn restart(&self, loss: Loss) -> io::Result<()> {
        self.go_down().await;
        if let Loss::Newest(count) = loss {
            self.roll_all_back(count)?;
        }
        self.come_up().await
    }

    /// Stops for good, and saves everything where there is a data folder.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn stop(self) -> io::Result<()> {
        self.go_down().await;
        self.shared.state().save_all()
    }
}

/// A socket that shares its address with others of this broker.
fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen(socket: TcpSocket, shared: Arc<Shared>) -> io::Result<Listening> {
    let listener = socket.listen(BACKLOG)?;
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let listening = Listening {
        stop: stop.clone(),
        tasks: tasks.clone(),
    };
    tasks
        .clone()
        .spawn(stop.clone().run_until_cancelled_owned(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let id = shared.last_connection.fetch_add(1, Ordering::Relaxed) + 1;
                        let serving = session::serve(Arc::clone(&shared), stream, id);
                        tasks.spawn(stop.clone().run_until_cancelled_owned(serving));
                    }
                    Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
                }
            }
        }));
    listening.tasks.close();
    Ok(listening)
}
