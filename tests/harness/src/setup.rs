//! Two clusters, a stream of the test's own, and configurations for sluice.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use iggy::prelude::{
    Client, Consumer, ConsumerOffsetClient, Identifier, IggyClient, StreamClient, TopicClient,
    TopicCreateOptions, UserClient,
};
use sluice_devbroker::Broker;
use sluice_devbroker::target::{self, Target};
use tempfile::TempDir;

use crate::client::{connect, read, send};
use crate::message::Message;
use crate::process::{PATIENCE, Sluice};

/// How often a real server, which tells nobody, is asked whether messages have come.
const LOOK: Duration = Duration::from_millis(20);

/// Two clusters and a folder for sluice.
#[derive(Debug)]
pub struct Setup {
    /// Where messages come from.
    pub source: Target,
    /// Where they go.
    pub destination: Target,
    /// Configuration and checkpoints.
    pub folder: TempDir,
    /// The stream at both clusters, unique to the test.
    pub stream: String,
    client: IggyClient,
}

impl Setup {
    /// Two clusters of any kind, with an empty stream at the source.
    ///
    /// # Errors
    /// When a cluster cannot be started or reached.
    pub async fn new() -> Result<Self> {
        Self::between(
            Target::start(target::SOURCE).await?,
            Target::start(target::DESTINATION).await?,
        )
        .await
    }

    /// Two dev brokers, for tests that need faults.
    ///
    /// # Errors
    /// As [`Setup::new`].
    pub async fn with_faults() -> Result<Self> {
        Self::between(Target::dev_broker()?, Target::dev_broker()?).await
    }

    async fn between(source: Target, destination: Target) -> Result<Self> {
        static TESTS: AtomicU32 = AtomicU32::new(0);
        let test = TESTS.fetch_add(1, Ordering::Relaxed);
        let stream = format!("test-{}-{test}", std::process::id());
        let client = connect(source.connection_string()).await?;
        client.create_stream(&stream).await?;
        Ok(Self {
            source,
            destination,
            folder: tempfile::tempdir()?,
            stream,
            client,
        })
    }

    /// The source as a dev broker.
    ///
    /// # Panics
    /// When it is a real server.
    pub fn source_broker(&self) -> &Broker {
        self.source.broker().expect("a dev broker")
    }

    /// The destination as a dev broker.
    ///
    /// # Panics
    /// When it is a real server.
    pub fn destination_broker(&self) -> &Broker {
        self.destination.broker().expect("a dev broker")
    }

    /// Creates a topic at the source.
    ///
    /// # Errors
    /// When that fails.
    pub async fn topic(&self, name: &str, partitions: u32) -> Result<()> {
        let options = TopicCreateOptions {
            partitions_count: Some(partitions),
            ..TopicCreateOptions::default()
        };
        self.topic_with(name, &options).await
    }

    /// Creates a topic at the source with options.
    ///
    /// # Errors
    /// When that fails.
    pub async fn topic_with(&self, name: &str, options: &TopicCreateOptions) -> Result<()> {
        let stream = Identifier::named(&self.stream)?;
        self.client.create_topic(&stream, name, options).await?;
        Ok(())
    }

    /// Creates a topic at the destination, in the test's stream.
    ///
    /// # Errors
    /// When that fails.
    pub async fn destination_topic(&self, name: &str, partitions: u32) -> Result<()> {
        let client = connect(self.destination.connection_string()).await?;
        let stream = Identifier::named(&self.stream)?;
        if client.get_stream(&stream).await?.is_none() {
            client.create_stream(&self.stream).await?;
        }
        let options = TopicCreateOptions {
            partitions_count: Some(partitions),
            ..TopicCreateOptions::default()
        };
        client.create_topic(&stream, name, &options).await?;
        Ok(())
    }

    /// Sends messages to the source exactly as they are, in as few requests as Iggy allows.
    ///
    /// # Errors
    /// When a send fails.
    pub async fn produce(&self, topic: &str, partition: u32, messages: &[Message]) -> Result<()> {
        // A client of its own: the last one may be gone with the broker that a test restarted.
        let client = connect(self.source.connection_string()).await?;
        send(&client, &self.stream, topic, partition, messages).await
    }

    /// Sends messages to the destination, as another writer would.
    ///
    /// # Errors
    /// When a send fails.
    pub async fn intrude(&self, topic: &str, partition: u32, messages: &[Message]) -> Result<()> {
        let client = connect(self.destination.connection_string()).await?;
        send(&client, &self.stream, topic, partition, messages).await
    }

    /// Every message of a partition at the destination.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn delivered(&self, topic: &str, partition: u32) -> Result<Vec<Message>> {
        let client = connect(self.destination.connection_string()).await?;
        read(&client, &self.stream, topic, partition, 0).await
    }

    /// Every dead letter.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn dead_letters(&self) -> Result<Vec<Message>> {
        self.delivered("dead-letters", 0).await
    }

    /// Waits until a partition at the destination holds `count` messages.
    ///
    /// # Errors
    /// When the cluster fails, or when they do not come.
    pub async fn arrived(&self, topic: &str, partition: u32, count: usize) -> Result<()> {
        let arriving = self.arriving(topic, partition, count);
        tokio::time::timeout(PATIENCE, arriving)
            .await
            .with_context(|| format!("{topic}/{partition} does not get {count} messages"))?
    }

    async fn arriving(&self, topic: &str, partition: u32, count: usize) -> Result<()> {
        let count = count as u64;
        if let Some(broker) = self.destination.broker() {
            broker.holds(&self.stream, topic, partition, count).await;
            return Ok(());
        }
        let client = connect(self.destination.connection_string()).await?;
        let (stream, topic) = (Identifier::named(&self.stream)?, Identifier::named(topic)?);
        loop {
            let details = client.get_topic(&stream, &topic).await?;
            let partitions = details
                .map(|details| details.partitions)
                .unwrap_or_default();
            let found = partitions.iter().find(|found| found.id == partition);
            if found.is_some_and(|found| found.messages_count >= count) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A configuration with one link over the stream's topics; `link` adds keys to it, `guests` adds sections.
    ///
    /// # Errors
    /// When a connection string is of another form.
    pub fn config(&self, link: &str, guests: &str) -> Result<String> {
        let stream = &self.stream;
        let (eu, eu_user, _) = self.source.parts()?;
        let (us, us_user, _) = self.destination.parts()?;
        Ok(format!(
            r#"
[gateway]
name = "test"
[clusters.eu]
address = "{eu}"
username = "{eu_user}"
password = {{ env = "EU_PASSWORD" }}
[clusters.us]
address = "{us}"
username = "{us_user}"
password = {{ env = "US_PASSWORD" }}
{guests}
[[links]]
name = "link"
source = {{ cluster = "eu", streams = ["{stream}"] }}
destination = {{ cluster = "us" }}
dead_letter = {{ stream = "{stream}", topic = "dead-letters" }}
retry = {{ initial = "1 ms", max = "20 ms" }}
{link}
"#
        ))
    }

    /// Runs another command of sluice to its end: its exit code, and what it printed.
    ///
    /// # Errors
    /// When it does not start or does not end.
    pub async fn output(
        &self,
        config: &str,
        command: &[&str],
    ) -> Result<(Option<i32>, String, String)> {
        self.command(command, config)?.output().await
    }

    /// Changes the password of the destination's user.
    ///
    /// # Errors
    /// When the destination refuses.
    pub async fn change_destination_password(&self, from: &str, to: &str) -> Result<()> {
        let (address, user, _) = self.destination.parts()?;
        let client =
            IggyClient::from_connection_string(&format!("iggy://{user}:{from}@{address}"))?;
        client.connect().await?;
        let user = Identifier::named(user)?;
        client.change_password(&user, from, to).await?;
        Ok(())
    }

    /// The offset that a consumer stored at the source, if it did.
    ///
    /// # Errors
    /// When the source cannot be asked.
    pub async fn stored_offset(
        &self,
        consumer: &str,
        topic: &str,
        partition: u32,
    ) -> Result<Option<u64>> {
        let client = connect(self.source.connection_string()).await?;
        let (stream, topic) = (Identifier::named(&self.stream)?, Identifier::named(topic)?);
        let consumer = Consumer::new(Identifier::named(consumer)?);
        let stored = client
            .get_consumer_offset(&consumer, &stream, &topic, Some(partition))
            .await?;
        Ok(stored.map(|stored| stored.stored_offset))
    }

    /// Starts sluice with a configuration.
    ///
    /// # Errors
    /// When it does not start.
    pub fn run(&self, config: &str) -> Result<Sluice> {
        self.command(&["run"], config)
    }

    /// Writes the configuration file that commands are started with. Those that run have to be told.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn rewrite_config(&self, config: &str) -> Result<PathBuf> {
        let path = self.folder.path().join("sluice.toml");
        std::fs::write(&path, config).context("cannot write the configuration")?;
        Ok(path)
    }

    /// Starts a command of sluice with a configuration.
    ///
    /// # Errors
    /// When it does not start.
    pub fn command(&self, command: &[&str], config: &str) -> Result<Sluice> {
        let path = self.rewrite_config(config)?;
        let (_, _, eu) = self.source.parts()?;
        let (_, _, us) = self.destination.parts()?;
        let environment = [("EU_PASSWORD", eu), ("US_PASSWORD", us)];
        Sluice::start_command(command, &path, &environment)
    }
}

/// The component of a guest that `cargo xtask guests` built.
///
/// # Errors
/// When it is not there.
pub fn guest(name: &str) -> Result<PathBuf> {
    let path = crate::process::target_folder()?.join(format!("../guests/{name}.wasm"));
    ensure!(
        path.exists(),
        "{} is not built: run `cargo xtask guests`",
        path.display()
    );
    Ok(path)
}
