//! What the broker does when it is told to be cruel, as a client and as a test see it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails with the place where it stopped"
)]

mod executions;
mod lifecycle;
mod replies;
mod rules;
mod storage;

use iggy::prelude::{
    Client, Consumer, Identifier, IggyClient, IggyError, IggyMessage, MessageClient, Partitioning,
    PolledMessages, PollingStrategy, SendMessagesResponse,
};
use iggy_binary_protocol::codes::SEND_MESSAGES_CODE;
use sluice_devbroker::{Action, Broker, Options, Rule};

const STREAM: &str = "s";
const TOPIC: &str = "t";

/// A broker with one topic of two partitions, and a client.
struct Bench {
    broker: Broker,
    client: IggyClient,
}

impl Bench {
    async fn start() -> Self {
        let broker = Broker::start(Options::default()).unwrap();
        broker.create_topic(STREAM, TOPIC, 2).unwrap();
        let client = connect(&broker).await;
        Self { broker, client }
    }

    /// Lets the next send meet a fate.
    fn at_send(&self, action: Action) {
        let rule = Rule::next(action).code(SEND_MESSAGES_CODE);
        self.broker.faults().add(rule);
    }

    /// Ids of what partition 0 holds.
    fn ids(&self) -> Vec<u128> {
        let contents = self.broker.contents(STREAM, TOPIC, 0).unwrap();
        contents.iter().map(|message| message.id).collect()
    }

    /// Sends while the test does something else.
    async fn send_aside(&self, id: u128) -> tokio::task::JoinHandle<Result<(), IggyError>> {
        let client = connect(&self.broker).await;
        tokio::spawn(async move { send(&client, id).await.map(|_| ()) })
    }
}

async fn connect(broker: &Broker) -> IggyClient {
    try_connect(broker, 3).await.unwrap()
}

async fn try_connect(broker: &Broker, retries: u32) -> Result<IggyClient, IggyError> {
    let text = format!(
        "{}?nodelay=true&reestablish_after=0s&reconnection_interval=1ms&reconnection_retries={retries}",
        broker.connection_string()
    );
    let client = IggyClient::from_connection_string(&text)?;
    client.connect().await?;
    Ok(client)
}

/// Sends one message to partition 0.
async fn send(client: &IggyClient, id: u128) -> Result<SendMessagesResponse, IggyError> {
    send_to(client, 0, id).await
}

async fn send_to(
    client: &IggyClient,
    partition: u32,
    id: u128,
) -> Result<SendMessagesResponse, IggyError> {
    send_all(client, partition, id..id + 1).await
}

/// Sends messages as one batch.
async fn send_all(
    client: &IggyClient,
    partition: u32,
    ids: std::ops::Range<u128>,
) -> Result<SendMessagesResponse, IggyError> {
    let message = |id: u128| IggyMessage::builder().id(id).payload("x".into()).build();
    let mut messages: Vec<_> = ids.map(|id| message(id).unwrap()).collect();
    let (stream, topic) = (named(STREAM), named(TOPIC));
    let partitioning = Partitioning::partition_id(partition);
    client
        .send_messages(&stream, &topic, &partitioning, &mut messages)
        .await
}

async fn poll(
    client: &IggyClient,
    partition: u32,
    strategy: PollingStrategy,
) -> Result<PolledMessages, IggyError> {
    let consumer = Consumer::new(named("c"));
    client
        .poll_messages(
            &named(STREAM),
            &named(TOPIC),
            Some(partition),
            &consumer,
            &strategy,
            100,
            false,
        )
        .await
}

/// Offsets and ids of what partition 0 gives from an offset on.
async fn read(client: &IggyClient, from: u64) -> Vec<(u64, u128)> {
    let polled = poll(client, 0, PollingStrategy::offset(from))
        .await
        .unwrap();
    let places = polled
        .messages
        .iter()
        .map(|message| (message.header.offset, message.header.id));
    places.collect()
}

fn named(name: &str) -> Identifier {
    Identifier::named(name).unwrap()
}
