//! Batches made by hand, for what the SDK would not send.

use bytes::{BufMut, Bytes, BytesMut};
use iggy::prelude::{IggyClient, IggyError};
use iggy_binary_protocol::batch::{BATCH_HEADER_SIZE, BatchHeader, calculate_batch_checksum};
use iggy_binary_protocol::codec::WireEncode;
use iggy_binary_protocol::codes::SEND_MESSAGES_CODE;
use iggy_binary_protocol::{WireIdentifier, WirePartitioning};
use twox_hash::XxHash3_64;

/// One message of a batch made by hand.
#[derive(Clone, Default)]
pub struct Frame {
    pub id: u128,
    pub offset_delta: u32,
    pub timestamp_delta: u32,
    pub payload: Bytes,
    pub headers: Bytes,
}

impl Frame {
    fn encode(&self) -> BytesMut {
        let mut frame = BytesMut::new();
        frame.put_u64_le(0);
        frame.put_u128_le(self.id);
        frame.put_u32_le(self.offset_delta);
        frame.put_u32_le(self.timestamp_delta);
        frame.put_u32_le(u32::try_from(self.headers.len()).unwrap());
        frame.put_u32_le(u32::try_from(self.payload.len()).unwrap());
        frame.put_u64_le(0);
        frame.put_slice(&self.payload);
        frame.put_slice(&self.headers);
        let checksum = XxHash3_64::oneshot(&frame[8..]);
        frame[..8].copy_from_slice(&checksum.to_le_bytes());
        frame
    }
}

/// A batch whose messages were produced from `origin_timestamp` on.
pub fn batch(frames: &[Frame], origin_timestamp: u64) -> BytesMut {
    let mut blob = BytesMut::new();
    for frame in frames {
        blob.put_slice(&frame.encode());
    }
    let length = (BATCH_HEADER_SIZE + blob.len()) as u64;
    let count = u32::try_from(frames.len()).unwrap();
    let mut header = BatchHeader::new(0, origin_timestamp, length, count);
    header.batch_checksum = calculate_batch_checksum(&header, &blob);
    let mut batch = BytesMut::zeroed(BATCH_HEADER_SIZE);
    header.encode_into(&mut batch);
    batch.put_slice(&blob);
    batch
}

/// Sends a batch as it is.
pub async fn send(
    client: &IggyClient,
    stream: &str,
    topic: &str,
    partition: u32,
    count: u32,
    batch: &[u8],
) -> Result<Bytes, IggyError> {
    let mut routing = BytesMut::new();
    WireIdentifier::named(stream).unwrap().encode(&mut routing);
    WireIdentifier::named(topic).unwrap().encode(&mut routing);
    WirePartitioning::PartitionId(partition).encode(&mut routing);
    routing.put_u32_le(count);
    let mut body = BytesMut::with_capacity(4 + routing.len() + batch.len());
    body.put_u32_le(u32::try_from(routing.len()).unwrap());
    body.put_slice(&routing);
    body.put_slice(batch);
    client
        .send_binary_request(SEND_MESSAGES_CODE, body.freeze())
        .await
}
