//! Consumer offsets that the cluster stores. In wire form: the SDK's own calls ask a cluster of several nodes for
//! routes first, which servers of the same line do not know.

use iggy::prelude::IggyError;
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::codes::{
    DELETE_CONSUMER_OFFSET_CODE, GET_CONSUMER_OFFSET_CODE, STORE_CONSUMER_OFFSET_CODE,
};
use iggy_binary_protocol::primitives::ack_level::AckLevel;
use iggy_binary_protocol::requests::consumer_offsets::{
    DeleteConsumerOffsetRequest, GetConsumerOffsetRequest, StoreConsumerOffsetRequest,
};
use iggy_binary_protocol::responses::consumer_offsets::get_consumer_offset::ConsumerOffsetResponse;
use iggy_binary_protocol::{WireConsumer, WireIdentifier};

use super::error::Error;
use super::messages::SDK_PATIENCE;
use super::{Connection, Partition};

impl Connection {
    pub(super) async fn get_consumer_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
    ) -> Result<Option<u64>, Error> {
        let operation = format!("get the offset of consumer {consumer} on {partition}");
        self.call(operation, |client| async move {
            let request = GetConsumerOffsetRequest {
                consumer: WireConsumer::consumer(WireIdentifier::named(consumer)?),
                stream_id: WireIdentifier::named(&*partition.stream)?,
                topic_id: WireIdentifier::named(&*partition.topic)?,
                partition_id: Some(partition.id),
            };
            let reply = client
                .send_binary_request(GET_CONSUMER_OFFSET_CODE, request.to_bytes())
                .await?;
            if reply.is_empty() {
                return Ok(None);
            }
            let (reply, _) = ConsumerOffsetResponse::decode(&reply)?;
            Ok(Some(reply.stored_offset))
        })
        .await
    }

    pub(super) async fn store_consumer_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
        offset: u64,
    ) -> Result<(), Error> {
        let operation = format!("store offset {offset} of consumer {consumer} on {partition}");
        // Given up earlier, it could still be executed, after a later one.
        let limit = self.cluster.config.timeout.max(SDK_PATIENCE);
        self.call_within(limit, operation, |client| async move {
            let request = StoreConsumerOffsetRequest {
                consumer: WireConsumer::consumer(WireIdentifier::named(consumer)?),
                stream_id: WireIdentifier::named(&*partition.stream)?,
                topic_id: WireIdentifier::named(&*partition.topic)?,
                partition_id: Some(partition.id),
                offset,
                ack: AckLevel::Quorum,
            };
            client
                .send_binary_request(STORE_CONSUMER_OFFSET_CODE, request.to_bytes())
                .await?;
            Ok(())
        })
        .await
    }

    pub(super) async fn delete_consumer_offset(
        &mut self,
        consumer: &str,
        partition: &Partition,
    ) -> Result<(), Error> {
        let operation = format!("delete the offset of consumer {consumer} on {partition}");
        let limit = self.cluster.config.timeout.max(SDK_PATIENCE);
        self.call_within(limit, operation, |client| async move {
            let request = DeleteConsumerOffsetRequest {
                consumer: WireConsumer::consumer(WireIdentifier::named(consumer)?),
                stream_id: WireIdentifier::named(&*partition.stream)?,
                topic_id: WireIdentifier::named(&*partition.topic)?,
                partition_id: Some(partition.id),
                ack: AckLevel::Quorum,
            };
            let code = DELETE_CONSUMER_OFFSET_CODE;
            match client.send_binary_request(code, request.to_bytes()).await {
                Ok(_) | Err(IggyError::ConsumerOffsetNotFound(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }
}
