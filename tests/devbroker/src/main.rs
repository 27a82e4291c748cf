//! The dev broker, started by hand.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result};
use clap::Parser;
use sluice_devbroker::{Broker, Data, Options, SAVE_EVERY};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// An Iggy-compatible broker for trying things out: real protocol over TCP, everything in memory or in a folder.
///
/// It listens on loopback addresses only and, without a data folder, forgets everything when it ends. Prints the
/// address that it listens on. SIGINT or SIGTERM ends it, and saves everything to the data folder.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8090")]
    address: SocketAddr,
    /// Name of the user who may do everything.
    #[arg(long, default_value = "iggy")]
    username: String,
    /// That user's password.
    #[arg(
        long,
        default_value = "iggy",
        env = "DEVBROKER_PASSWORD",
        hide_env_values = true
    )]
    password: String,
    /// A topic to start with, for example shop/orders:4 for four partitions; without a number it has one. Can be
    /// given several times. Its stream is created with it. One that the data folder has stays as it is.
    #[arg(long = "topic", value_name = "STREAM/TOPIC[:PARTITIONS]")]
    topics: Vec<Topic>,
    /// Keeps the data in this folder. Data that are there bring their users with them, and the user above is not looked
    /// at.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// How many unsaved messages of a partition are saved at once, before the last of them is acknowledged. With 1
    /// every acknowledged message survives kill -9; with more such a kill loses acknowledged messages and their
    /// offsets are given again, as at the real server.
    #[arg(long, value_name = "N", default_value_t = SAVE_EVERY, requires = "data_dir")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    save_every: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Topic {
    stream: String,
    name: String,
    partitions: u32,
}

impl FromStr for Topic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (stream, rest) = text
            .split_once('/')
            .ok_or("a topic must look like stream/topic or stream/topic:4")?;
        let (name, partitions) = match rest.rsplit_once(':') {
            None => (rest, 1),
            Some((name, number)) => {
                let number = number
                    .parse()
                    .map_err(|_| format!("{number:?} is not a number of partitions"))?;
                (name, number)
            }
        };
        Ok(Self {
            stream: stream.to_owned(),
            name: name.to_owned(),
            partitions,
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .init();
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut terminations = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let has_data = arguments.data_dir.is_some();
    let data = arguments.data_dir.map(|folder| Data {
        folder,
        save_every: arguments.save_every,
    });
    let broker = Broker::start(Options {
        address: arguments.address,
        username: arguments.username,
        password: arguments.password,
        data,
    })
    .with_context(|| format!("cannot start at {}", arguments.address))?;
    for Topic {
        stream,
        name,
        partitions,
    } in &arguments.topics
    {
        match broker.create_topic(stream, name, *partitions) {
            Err(error) if has_data && error.kind() == ErrorKind::AlreadyExists => {}
            created => {
                created.with_context(|| format!("cannot create topic {stream}/{name}"))?;
            }
        }
    }
    println!("listening on {}", broker.address());
    tokio::select! {
        _ = interrupts.recv() => {}
        _ = terminations.recv() => {}
    }
    broker.stop().await.context("cannot save everything")
}
