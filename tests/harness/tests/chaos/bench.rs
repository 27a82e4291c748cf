//! The three processes.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use iggy::prelude::{Identifier, StreamClient, TopicClient, TopicCreateOptions};
use sluice_harness::{BrokerProcess, PATIENCE, Sluice, guest};
use tempfile::TempDir;

use crate::producer::{Lane, Traffic, count};
use crate::schedule::{Step, Victim};

/// The stream at both clusters.
pub const STREAM: &str = "chaos";

/// The source's topics: one is copied as it is, the other goes through guests.
pub const TOPICS: [&str; 2] = [PLAIN, ROUTED];

pub const PLAIN: &str = "plain";
pub const ROUTED: &str = "routed";

/// Where the guest sends messages of the second topic whose type is `order`.
pub const ORDERS: &str = "orders";

/// What sluice logs when it cannot reach a cluster.
const WARNING: &str = "WARN";

/// Partitions of each topic.
pub const PARTITIONS: u32 = 2;

/// Two clusters and sluice between them.
pub struct Bench {
    pub source: BrokerProcess,
    pub destination: BrokerProcess,
    /// None while it is down.
    sluice: Option<Sluice>,
    config: PathBuf,
    /// Logs of those that were killed.
    logs: Vec<String>,
    _folder: TempDir,
}

impl Bench {
    pub async fn start() -> Result<Self> {
        let source = BrokerProcess::start().await?;
        let destination = BrokerProcess::start().await?;
        let client = source.access().client().await?;
        client.create_stream(STREAM).await?;
        let options = TopicCreateOptions {
            partitions_count: Some(PARTITIONS),
            ..TopicCreateOptions::default()
        };
        for topic in TOPICS {
            let stream = Identifier::named(STREAM)?;
            client.create_topic(&stream, topic, &options).await?;
        }
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("sluice.toml");
        std::fs::write(&config, configuration(&source, &destination)?)?;
        let mut bench = Self {
            source,
            destination,
            sluice: None,
            config,
            logs: Vec::new(),
            _folder: folder,
        };
        bench.start_victim(Victim::Sluice).await?;
        Ok(bench)
    }

    /// Kills and starts again what the step says, when it says.
    pub async fn survive(&mut self, step: &Step, traffic: &mut Traffic) -> Result<()> {
        self.while_sluice_runs(traffic.goes_on(step.after)).await?;
        let warnings = self.warnings();
        for victim in &step.victims {
            self.kill(*victim).await?;
        }
        if !step.victims.contains(&Victim::Source) {
            let meanwhile = traffic.goes_on_regardless(step.down_for);
            self.while_sluice_runs(meanwhile).await?;
        } else if let (Some(sluice), 1..) = (&mut self.sluice, step.down_for) {
            // Nobody produces, but sluice notices.
            sluice.logged_again(WARNING, warnings).await?;
        }
        let mut order = step.victims.clone();
        if step.reversed {
            order.reverse();
        }
        for victim in order {
            self.start_victim(victim).await?;
        }
        Ok(())
    }

    /// Waits for something, unless sluice ends by itself.
    async fn while_sluice_runs(&mut self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let Some(sluice) = &mut self.sluice else {
            return work.await;
        };
        tokio::select! {
            done = work => done,
            ended = sluice.ended() => bail!("sluice ended by itself with {}", ended?),
        }
    }

    fn warnings(&self) -> usize {
        let running = self.sluice.as_ref();
        running.map_or(0, |sluice| sluice.times_logged(WARNING))
    }

    async fn kill(&mut self, victim: Victim) -> Result<()> {
        match victim {
            Victim::Source => self.source.kill().await,
            Victim::Destination => self.destination.kill().await,
            Victim::Sluice => {
                let sluice = self.sluice.take().context("sluice is down")?;
                self.logs.push(sluice.log());
                sluice.kill().await
            }
        }
    }

    async fn start_victim(&mut self, victim: Victim) -> Result<()> {
        match victim {
            Victim::Source => self.source.start_again().await?,
            Victim::Destination => self.destination.start_again().await?,
            Victim::Sluice => {
                self.sluice = Some(Sluice::start(&self.config, &[("CHAOS_PASSWORD", "iggy")])?);
            }
        }
        Ok(())
    }

    /// Waits until the destination holds as many messages as were sent.
    pub async fn caught_up(&mut self, sent: &[Lane]) -> Result<()> {
        let all = total(sent);
        let client = self.destination.access().client().await?;
        let mut delivered = 0;
        let catching_up = async {
            while delivered < all {
                delivered = count(&client).await?;
            }
            Ok(())
        };
        let caught_up = tokio::time::timeout(PATIENCE, self.while_sluice_runs(catching_up)).await;
        caught_up.with_context(|| format!("{delivered} messages of {all} arrive"))?
    }

    /// Drains sluice, which must end as asked.
    pub async fn stop_sluice(&mut self) -> Result<()> {
        let sluice = self.sluice.take().context("sluice is down")?;
        sluice.stop().await?;
        Ok(())
    }

    /// Everything that sluice logged, one run after the other.
    pub fn log(&self) -> String {
        let running = self.sluice.iter().map(Sluice::log);
        let runs: Vec<_> = self.logs.iter().cloned().chain(running).collect();
        runs.join("\n-- killed --\n")
    }

    /// What happened, in a line.
    pub fn summary(&self, sent: &[Lane]) -> String {
        let log = self.log();
        let times = |text: &str| log.matches(text).count();
        format!(
            "{} messages; {} kills of sluice, {} warnings, {} times found delivered",
            total(sent),
            self.logs.len(),
            times(WARNING),
            times("found delivered")
        )
    }
}

fn total(sent: &[Lane]) -> u64 {
    sent.iter().map(|lane| lane.messages.len() as u64).sum()
}

fn configuration(source: &BrokerProcess, destination: &BrokerProcess) -> Result<String> {
    let cluster = |broker: &BrokerProcess| {
        let address = broker.access().address();
        format!(
            r#"{{ address = "{address}", username = "iggy", password = {{ env = "CHAOS_PASSWORD" }} }}"#
        )
    };
    Ok(format!(
        r#"
gateway.name = "chaos"
clusters.eu = {}
clusters.us = {}
[guests.router]
component = "{}"
config = {{ header = "type", routes = {{ order = {{ topic = "{ORDERS}" }} }} }}
[[links]]
name = "plain"
source = {{ cluster = "eu", streams = ["{STREAM}"], topics = ["{PLAIN}"] }}
destination = {{ cluster = "us" }}
batch = {{ messages = 100 }}
retry = {{ initial = "20 ms", max = "200 ms" }}
[[links]]
name = "routed"
source = {{ cluster = "eu", streams = ["{STREAM}"], topics = ["{ROUTED}"] }}
destination = {{ cluster = "us" }}
guests = ["router"]
batch = {{ messages = 100 }}
retry = {{ initial = "20 ms", max = "200 ms" }}
"#,
        cluster(source),
        cluster(destination),
        guest("router")?.display()
    ))
}
