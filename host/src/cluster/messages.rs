//! Polling and sending, in wire form so that ids, headers and checksums pass untouched.

use std::time::Duration;

use bytes::Bytes;
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::codes::{POLL_MESSAGES_CODE, SEND_MESSAGES_CODE};
use iggy_binary_protocol::requests::messages::PollMessagesRequest;
use iggy_binary_protocol::responses::messages::SendMessagesResponse;
use iggy_binary_protocol::{WireConsumer, WireError, WireIdentifier, WirePollingStrategy};

use super::error::{Cause, Error, Fault};
use super::{Connection, Partition};
use crate::batch::Polled;

/// The SDK repeats a send by itself for up to 30 seconds, in a task that outlives the call. Until it has given up,
/// what a partition holds says nothing final about the send.
pub const SDK_PATIENCE: Duration = Duration::from_secs(40);

/// Where a poll begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollFrom {
    /// At this offset, or at the oldest message behind it.
    Offset(u64),
    /// So that the newest message is the last one.
    Last,
}

impl Connection {
    pub(super) async fn poll_messages(
        &mut self,
        partition: &Partition,
        from: PollFrom,
        count: u32,
    ) -> Result<Polled, Error> {
        let consumer = self.cluster.consumer.clone();
        self.call(format!("poll {partition}"), |client| async move {
            let request = PollMessagesRequest {
                consumer: WireConsumer::consumer(WireIdentifier::named(&consumer)?),
                stream_id: WireIdentifier::named(&*partition.stream)?,
                topic_id: WireIdentifier::named(&*partition.topic)?,
                partition_id: Some(partition.id),
                strategy: match from {
                    PollFrom::Offset(offset) => WirePollingStrategy::offset(offset),
                    PollFrom::Last => WirePollingStrategy::last(),
                },
                count,
                auto_commit: false,
            };
            let reply = client
                .send_binary_request(POLL_MESSAGES_CODE, request.to_bytes())
                .await?;
            Ok(Polled::decode(reply)?)
        })
        .await
    }

    pub(super) async fn send_messages(
        &mut self,
        partition: &Partition,
        body: Bytes,
    ) -> Result<Option<u64>, Error> {
        let limit = self.cluster.config.timeout.max(SDK_PATIENCE);
        self.call_within(limit, format!("send to {partition}"), |client| async move {
            let reply = client.send_binary_request(SEND_MESSAGES_CODE, body).await;
            let reply = reply.map_err(Cause::of_send)?;
            let (reply, _) = SendMessagesResponse::decode(&reply)?;
            Ok(reply
                .confirmations
                .iter()
                .find(|confirmation| confirmation.partition_id == partition.id)
                .map(|confirmation| confirmation.base_offset))
        })
        .await
    }
}

impl From<WireError> for Cause {
    fn from(error: WireError) -> Self {
        Self {
            fault: Fault::Poison,
            reason: error.to_string(),
        }
    }
}
