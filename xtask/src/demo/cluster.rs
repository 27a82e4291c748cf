//! The two clusters of the demo: dev brokers, or those that the environment names.

use anyhow::{Context, Result, bail, ensure};
use iggy::prelude::{
    Client, Consumer, Identifier, IggyClient, IggyMessage, MessageClient, Partitioning,
    PollingStrategy, StreamClient, TopicClient, TopicCreateOptions,
};
use sluice_devbroker::Broker;

use super::traffic::{PARTITIONS, PER_PARTITION, STREAM, Sample, TOPIC, sample};

/// Messages in one request.
const BATCH: u32 = 1000;

/// One cluster of the demo.
pub struct Cluster {
    /// `iggy://user:password@host:port`.
    pub connection_string: String,
    /// Kept running until the demo ends, where it is the demo's own.
    _broker: Option<Broker>,
}

impl Cluster {
    /// The cluster that the variable names, or a dev broker.
    ///
    /// # Errors
    /// When a dev broker cannot be started.
    pub fn start(variable: &str) -> Result<Self> {
        if let Ok(connection_string) = std::env::var(variable) {
            return Ok(Self {
                connection_string,
                _broker: None,
            });
        }
        let broker = Broker::start(sluice_devbroker::Options::default())
            .context("cannot start a dev broker")?;
        Ok(Self {
            connection_string: broker.connection_string(),
            _broker: Some(broker),
        })
    }

    /// Address, user name and password.
    ///
    /// # Errors
    /// When the connection string is of another form.
    pub fn parts(&self) -> Result<(&str, &str, &str)> {
        let text = &self.connection_string;
        let parts = text
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('@'))
            .and_then(|(credentials, address)| {
                let (username, password) = credentials.split_once(':')?;
                let address = address.split(['/', '?']).next()?;
                Some((address, username, password))
            });
        match parts {
            Some(parts) => Ok(parts),
            None => bail!("a connection string must look like iggy://user:password@host:port"),
        }
    }

    /// A client of its own.
    ///
    /// # Errors
    /// When the cluster cannot be reached.
    pub async fn client(&self) -> Result<IggyClient> {
        let (address, username, password) = self.parts()?;
        let text = format!(
            "iggy+tcp://{username}:{password}@{address}?nodelay=true&reconnection_retries=3"
        );
        let client = IggyClient::from_connection_string(&text)?;
        client
            .connect()
            .await
            .with_context(|| format!("cannot connect to {address}"))?;
        Ok(client)
    }

    /// Refuses a cluster where the demo's stream exists already.
    ///
    /// # Errors
    /// When it does.
    pub async fn ensure_unused(&self) -> Result<()> {
        let stream = self.client().await?.get_stream(&STREAM.try_into()?).await?;
        ensure!(
            stream.is_none(),
            "{} already has a stream {STREAM}: delete it first",
            self.parts()?.0
        );
        Ok(())
    }

    /// Deletes the demo's stream.
    ///
    /// # Errors
    /// When that fails.
    pub async fn clean_up(&self) -> Result<()> {
        self.client()
            .await?
            .delete_stream(&STREAM.try_into()?)
            .await?;
        Ok(())
    }
}

/// Creates the source topic.
///
/// # Errors
/// When that fails.
pub async fn create_source(client: &IggyClient) -> Result<()> {
    client.create_stream(STREAM).await?;
    let options = TopicCreateOptions {
        partitions_count: Some(PARTITIONS),
        ..TopicCreateOptions::default()
    };
    client
        .create_topic(&STREAM.try_into()?, TOPIC, &options)
        .await?;
    Ok(())
}

/// Sends the traffic of one partition, telling `sent` how many went out.
///
/// # Errors
/// When a send fails.
pub async fn fill(client: IggyClient, partition: u32, sent: impl Fn(u64)) -> Result<()> {
    let (stream, topic) = (Identifier::try_from(STREAM)?, Identifier::try_from(TOPIC)?);
    let partitioning = Partitioning::partition_id(partition);
    for start in (0..PER_PARTITION).step_by(BATCH as usize) {
        let end = PER_PARTITION.min(start + u64::from(BATCH));
        let mut messages = (start..end)
            .map(|index| sample(partition, index)?.to_message())
            .collect::<Result<Vec<IggyMessage>>>()?;
        client
            .send_messages(&stream, &topic, &partitioning, &mut messages)
            .await?;
        sent(end - start);
    }
    Ok(())
}

/// Number of messages in a topic; 0 while it does not exist.
///
/// # Errors
/// When the cluster does not answer.
pub async fn count(client: &IggyClient, topic: &str) -> Result<u64> {
    let details = client
        .get_topic(&STREAM.try_into()?, &topic.try_into()?)
        .await?;
    Ok(details.map_or(0, |topic| topic.messages_count))
}

/// Every message of a partition.
///
/// # Errors
/// When a poll fails or a message is not one of the traffic's form.
pub async fn read(client: &IggyClient, topic: &str, partition: u32) -> Result<Vec<Sample>> {
    let (stream, topic) = (Identifier::try_from(STREAM)?, Identifier::try_from(topic)?);
    let consumer = Consumer::new("sluice-demo-check".try_into()?);
    let mut samples = Vec::new();
    loop {
        let strategy = PollingStrategy::offset(samples.len() as u64);
        let polled = client
            .poll_messages(
                &stream,
                &topic,
                Some(partition),
                &consumer,
                &strategy,
                BATCH,
                false,
            )
            .await?;
        if polled.messages.is_empty() {
            return Ok(samples);
        }
        for message in &polled.messages {
            samples.push(Sample::from_message(message)?);
        }
    }
}
