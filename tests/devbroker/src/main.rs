//! The dev broker, started by hand.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result};
use clap::Parser;
use sluice_devbroker::{Broker, Options};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// An Iggy-compatible broker for trying things out: real protocol over TCP, everything in memory.
///
/// It listens on loopback addresses only and forgets everything when it ends. Prints the address that it listens
/// on. SIGINT or SIGTERM ends it.
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
    /// given several times. Its stream is created with it.
    #[arg(long = "topic", value_name = "STREAM/TOPIC[:PARTITIONS]")]
    topics: Vec<Topic>,
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
    let broker = Broker::start(Options {
        address: arguments.address,
        username: arguments.username,
        password: arguments.password,
    })
    .with_context(|| format!("cannot listen on {}", arguments.address))?;
    for Topic {
        stream,
        name,
        partitions,
    } in &arguments.topics
    {
        broker
            .create_topic(stream, name, *partitions)
            .with_context(|| format!("cannot create topic {stream}/{name}"))?;
    }
    println!("listening on {}", broker.address());
    tokio::select! {
        _ = interrupts.recv() => {}
        _ = terminations.recv() => {}
    }
    broker.stop().await;
    Ok(())
}
