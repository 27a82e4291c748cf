//! Clients of a cluster, and messages sent and read exactly as they are.

use anyhow::Result;
use bytes::BytesMut;
use iggy::prelude::{Client, Consumer, Identifier, IggyClient, MessageClient, PollingStrategy};
use iggy_binary_protocol::codes::SEND_MESSAGES_CODE;
use iggy_binary_protocol::requests::messages::{RawMessage, SendMessagesEncoder};
use iggy_binary_protocol::{WireIdentifier, WirePartitioning};

use crate::message::Message;

/// Most messages and bytes in a request.
const REQUEST: (usize, usize) = (1000, 32 << 20);

/// Connects and logs in. `connection_string` is `iggy://user:password@host:port`.
///
/// # Errors
/// When the cluster cannot be reached or refuses.
pub async fn connect(connection_string: &str) -> Result<IggyClient> {
    connect_with(connection_string, "reconnection_retries=3").await
}

/// As [`connect`], with parameters of the connection string.
pub(crate) async fn connect_with(connection_string: &str, parameters: &str) -> Result<IggyClient> {
    let text = format!("{connection_string}?nodelay=true&reestablish_after=0s&{parameters}");
    let client = IggyClient::from_connection_string(&text)?;
    client.connect().await?;
    Ok(client)
}

/// Sends messages exactly as they are, in as few requests as Iggy allows: those of 1000 messages or less go in one.
///
/// # Errors
/// When a send fails.
pub async fn send(
    client: &IggyClient,
    stream: &str,
    topic: &str,
    partition: u32,
    messages: &[Message],
) -> Result<()> {
    let stream = WireIdentifier::named(stream)?;
    let topic = WireIdentifier::named(topic)?;
    let partitioning = WirePartitioning::PartitionId(partition);
    let mut rest = messages;
    while !rest.is_empty() {
        let mut bytes = 0;
        let within = |message: &&Message| {
            bytes += message.payload.len() + message.headers.len();
            bytes <= REQUEST.1
        };
        let count = rest
            .iter()
            .take(REQUEST.0)
            .take_while(within)
            .count()
            .max(1);
        let (now, later) = rest.split_at(count);
        let raw: Vec<_> = now
            .iter()
            .map(|message| RawMessage {
                id: message.id,
                origin_timestamp: message.origin_timestamp,
                headers: Some(&message.headers),
                payload: &message.payload,
            })
            .collect();
        let mut body = BytesMut::new();
        SendMessagesEncoder::encode(&mut body, &stream, &topic, &partitioning, &raw)?;
        client
            .send_binary_request(SEND_MESSAGES_CODE, body.freeze())
            .await?;
        rest = later;
    }
    Ok(())
}

/// Every message of a partition from an offset on.
///
/// # Errors
/// When it cannot be read.
pub async fn read(
    client: &IggyClient,
    stream: &str,
    topic: &str,
    partition: u32,
    mut offset: u64,
) -> Result<Vec<Message>> {
    let (stream, topic) = (Identifier::named(stream)?, Identifier::named(topic)?);
    let consumer = Consumer::new(Identifier::named("harness")?);
    let mut messages = Vec::new();
    loop {
        let strategy = PollingStrategy::offset(offset);
        let polled = client
            .poll_messages(
                &stream,
                &topic,
                Some(partition),
                &consumer,
                &strategy,
                100,
                false,
            )
            .await?;
        let Some(last) = polled.messages.last() else {
            return Ok(messages);
        };
        offset = last.header.offset + 1;
        messages.extend(polled.messages.iter().map(Message::from));
    }
}
