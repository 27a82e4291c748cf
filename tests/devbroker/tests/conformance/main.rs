//! What Apache Iggy's server does, as measured, asked of the dev broker or of a real server.
//!
//! Runs against a dev broker; see `sluice_devbroker::target` for how to name a real server instead.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails with the place where it stopped"
)]

mod groups;
mod messages;
mod offsets;
mod polls;
mod raw;
mod sessions;
mod topology;
mod wire;

use iggy::prelude::{
    Client, Consumer, Identifier, IggyClient, IggyError, IggyMessage, MessageClient, Partitioning,
    PolledMessages, PollingStrategy, StreamClient, TopicClient, TopicCreateOptions,
};
use sluice_devbroker::target::{self, Target};

/// A server, a client, and a stream of the test's own.
struct Bench {
    target: Target,
    client: IggyClient,
    stream: Identifier,
    name: String,
}

impl Bench {
    /// Starts with an empty stream named after the test.
    async fn start(test: &str) -> Self {
        let target = Target::start(target::SOURCE).await.unwrap();
        let client = connect(&target).await;
        let name = format!("conformance-{test}-{}", std::process::id());
        client.create_stream(&name).await.unwrap();
        Self {
            target,
            client,
            stream: Identifier::named(&name).unwrap(),
            name,
        }
    }

    /// Creates a topic.
    async fn topic(&self, name: &str, partitions: u32) -> Identifier {
        let options = TopicCreateOptions {
            partitions_count: Some(partitions),
            ..TopicCreateOptions::default()
        };
        self.client
            .create_topic(&self.stream, name, &options)
            .await
            .unwrap();
        Identifier::named(name).unwrap()
    }

    /// Sends messages with the ids `ids`, whose payload is their id.
    async fn send(&self, topic: &Identifier, partition: u32, ids: std::ops::Range<u128>) {
        let mut messages: Vec<_> = ids.map(message).collect();
        self.send_messages(topic, partition, &mut messages).await;
    }

    async fn send_messages(
        &self,
        topic: &Identifier,
        partition: u32,
        messages: &mut [IggyMessage],
    ) {
        let partitioning = Partitioning::partition_id(partition);
        self.client
            .send_messages(&self.stream, topic, &partitioning, messages)
            .await
            .unwrap();
    }

    async fn poll(
        &self,
        topic: &Identifier,
        partition: u32,
        strategy: PollingStrategy,
        count: u32,
    ) -> Result<PolledMessages, IggyError> {
        let consumer = Consumer::new(Identifier::named("conformance").unwrap());
        self.client
            .poll_messages(
                &self.stream,
                topic,
                Some(partition),
                &consumer,
                &strategy,
                count,
                false,
            )
            .await
    }

    /// Offsets and ids from an offset on.
    async fn read(
        &self,
        topic: &Identifier,
        partition: u32,
        from: u64,
        count: u32,
    ) -> Vec<(u64, u128)> {
        let strategy = PollingStrategy::offset(from);
        let polled = self.poll(topic, partition, strategy, count).await.unwrap();
        places(&polled)
    }

    /// Deletes the stream.
    async fn finish(self) {
        self.client.delete_stream(&self.stream).await.unwrap();
    }
}

fn message(id: u128) -> IggyMessage {
    IggyMessage::builder()
        .id(id)
        .payload(id.to_string().into())
        .build()
        .unwrap()
}

fn places(polled: &PolledMessages) -> Vec<(u64, u128)> {
    polled
        .messages
        .iter()
        .map(|message| (message.header.offset, message.header.id))
        .collect()
}

async fn connect(target: &Target) -> IggyClient {
    let text = format!(
        "{}?nodelay=true&reestablish_after=0s&reconnection_retries=3",
        target.connection_string()
    );
    let client = IggyClient::from_connection_string(&text).unwrap();
    client.connect().await.unwrap();
    client
}
