//! The typed configuration: what a TOML file may say, with its defaults.
//!
//! Unknown keys are errors. Relative paths are taken from the folder of the configuration file.

pub mod link;
mod load;
mod overrides;
mod secret;
mod validate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;

pub use link::Link;
pub use load::{Error, load};
pub use secret::{Secret, SecretError, SecretText};
pub use validate::guest_problems;

/// The whole configuration of one gateway process.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The process itself.
    pub gateway: Gateway,
    /// The admin listener; none when left out.
    pub admin: Option<Admin>,
    /// Iggy clusters by name.
    #[serde(default)]
    pub clusters: BTreeMap<String, Cluster>,
    /// WebAssembly guests by name.
    #[serde(default)]
    pub guests: BTreeMap<String, Guest>,
    /// Replication flows.
    #[serde(default)]
    pub links: Vec<Link>,
}

/// The process itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Names this gateway in logs and as the consumer that polls the source clusters.
    pub name: String,
    /// Folder of the checkpoint store; created when missing.
    #[serde(default = "Gateway::default_state_dir")]
    pub state_dir: PathBuf,
    /// Longest time between two durable writes of the checkpoints.
    #[serde(
        default = "Gateway::default_checkpoint_interval",
        with = "humantime_serde"
    )]
    pub checkpoint_interval: Duration,
    /// Where checkpoints are kept.
    #[serde(default)]
    pub checkpoint_store: CheckpointStore,
    /// How often the lanes' offsets are stored at the source clusters for Iggy's own tools to show.
    #[serde(default = "Gateway::default_mirror_interval", with = "humantime_serde")]
    pub mirror_interval: Duration,
    /// After a signal, how long lanes may take to deliver what they polled before they are cut off.
    #[serde(default = "Gateway::default_drain_timeout", with = "humantime_serde")]
    pub drain_timeout: Duration,
    /// How often the files of guests are looked at for a new version.
    #[serde(default = "Gateway::default_watch_interval", with = "humantime_serde")]
    pub watch_interval: Duration,
}

/// The admin listener.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// `host:port` to listen on, a loopback address.
    pub address: SocketAddr,
}

/// Where checkpoints are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointStore {
    /// In a file in `state_dir`.
    #[default]
    Local,
    /// As consumer offsets at the clusters of each link, so that another host can go on.
    Server,
}

impl Gateway {
    fn default_state_dir() -> PathBuf {
        PathBuf::from("state")
    }

    const fn default_checkpoint_interval() -> Duration {
        Duration::from_millis(100)
    }

    const fn default_mirror_interval() -> Duration {
        Duration::from_secs(1)
    }

    const fn default_watch_interval() -> Duration {
        Duration::from_secs(1)
    }

    const fn default_drain_timeout() -> Duration {
        Duration::from_secs(30)
    }
}

/// One Iggy deployment: where it is and how to log in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// `host:port` of the server.
    pub address: String,
    /// How to talk to it.
    #[serde(default)]
    pub transport: Transport,
    /// User name; goes with `password`.
    pub username: Option<String>,
    /// Password of `username`.
    pub password: Option<Secret>,
    /// Personal access token, instead of `username` and `password`.
    pub token: Option<Secret>,
    /// Longest wait for one answer of the cluster, connecting and logging in included. A send waits at least 40 s,
    /// because the SDK repeats it by itself for 30.
    #[serde(default = "Cluster::default_timeout", with = "humantime_serde")]
    pub timeout: Duration,
}

impl Cluster {
    const fn default_timeout() -> Duration {
        Duration::from_secs(10)
    }
}

/// A transport of the Iggy protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Plain TCP.
    #[default]
    Tcp,
}

/// A WebAssembly guest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// The component file.
    pub component: PathBuf,
    /// Handed to the guest as JSON when it starts.
    #[serde(default)]
    pub config: toml::Table,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// What of the system it gets.
    #[serde(default)]
    pub grants: Grants,
    /// What happens when it fails on message after message.
    #[serde(default)]
    pub breaker: Breaker,
    /// Messages that every version of it has to pass before it is used.
    pub samples: Option<Samples>,
}

/// Messages and what a guest must make of them, as files of JSON lines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// The messages.
    pub input: PathBuf,
    /// What must become of each. Left out, the guest must not fail on any; it may reject.
    pub expect: Option<PathBuf>,
    /// The source partition that they are said to come from.
    #[serde(default)]
    pub source: SampleSource,
}

/// A source partition as guests are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SampleSource {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the stream.
    pub stream: String,
    /// Name of the topic.
    pub topic: String,
    /// Partition id, from 0.
    pub partition: u32,
}

impl Default for SampleSource {
    fn default() -> Self {
        Self {
            cluster: "sample".to_owned(),
            stream: "sample".to_owned(),
            topic: "sample".to_owned(),
            partition: 0,
        }
    }
}

/// When the lanes of a guest that keeps failing wait, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// Messages in a row on which the guest fails before its lane waits. A message that the guest rejects is none.
    pub faults: u32,
    /// The first wait. After it the guest is asked about one message; while it fails on that, waits double.
    #[serde(with = "humantime_serde")]
    pub pause: Duration,
    /// The longest wait.
    #[serde(with = "humantime_serde")]
    pub max_pause: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            faults: 16,
            pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(30),
        }
    }
}

/// What of the system a guest gets. Nothing of it when left out; the network never.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// The time of day, and a clock that never goes back. Waiting is not possible.
    pub clock: bool,
    /// Random numbers.
    pub random: bool,
    /// These variables of the gateway's environment.
    pub environment: Option<Vec<String>>,
    /// Folders that it may read: the path that it knows one by, and the folder. They hold files and folders only.
    pub folders: Option<BTreeMap<String, PathBuf>>,
}

/// What one guest instance may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory of an instance: its linear memories, and its tables at 16 bytes an element.
    pub memory: ByteSize,
    /// Wall-clock time for one call; a call handles at most one batch.
    #[serde(with = "humantime_serde")]
    pub time: Duration,
    /// Wall-clock time for starting an instance: interpreters set themselves up.
    #[serde(with = "humantime_serde")]
    pub start: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: ByteSize::mib(64),
            time: Duration::from_millis(500),
            start: Duration::from_secs(30),
        }
    }
}
