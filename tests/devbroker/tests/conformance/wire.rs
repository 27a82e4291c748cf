//! Records as they are on the wire.

use bytes::{Bytes, BytesMut};
use iggy_binary_protocol::batch::{
    BATCH_HEADER_SIZE, BatchRef, calculate_batch_checksum, decode_batch_slice,
};
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::codes::POLL_MESSAGES_CODE;
use iggy_binary_protocol::requests::messages::PollMessagesRequest;
use iggy_binary_protocol::responses::messages::PollMessagesResponseHeader;
use iggy_binary_protocol::{WireConsumer, WireIdentifier, WirePollingStrategy};

use crate::{Bench, message, raw};

/// The reply to a poll of partition 0: its head, and the records.
async fn poll(
    bench: &Bench,
    topic: &str,
    offset: u64,
    count: u32,
) -> (PollMessagesResponseHeader, Bytes) {
    let request = PollMessagesRequest {
        consumer: WireConsumer::consumer(WireIdentifier::named("c").unwrap()),
        stream_id: WireIdentifier::named(&bench.name).unwrap(),
        topic_id: WireIdentifier::named(topic).unwrap(),
        partition_id: Some(0),
        strategy: WirePollingStrategy {
            kind: 1,
            value: offset,
        },
        count,
        auto_commit: false,
    };
    let reply = bench
        .client
        .send_binary_request(POLL_MESSAGES_CODE, request.to_bytes())
        .await
        .unwrap();
    let (head, length) = PollMessagesResponseHeader::decode(&reply).unwrap();
    (head, reply.slice(length..))
}

fn deltas(batch: &BatchRef<'_>) -> Vec<u32> {
    batch
        .iter()
        .map(|frame| frame.header.offset_delta)
        .collect()
}

#[tokio::test]
async fn a_slice_keeps_the_base_offset_and_the_deltas_of_the_whole() {
    let bench = Bench::start("slice").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..3).await;
    bench.send(&topic, 0, 3..13).await;
    let (head, records) = poll(&bench, "t", 5, 4).await;
    assert_eq!(
        (head.partition_id, head.current_offset, head.messages_count),
        (0, 11, 4)
    );
    let slice = decode_batch_slice(&records).expect("checksums of the slice");
    assert_eq!(slice.header.base_offset, 2);
    assert_eq!(slice.header.partition_id, 0);
    assert_eq!(slice.message_count(), 4);
    assert_eq!(deltas(&slice), [3, 4, 5, 6]);
    assert_eq!(slice.header.total_size(), records.len());
    bench.finish().await;
}

#[tokio::test]
async fn a_poll_over_two_batches_gives_two_records() {
    let bench = Bench::start("records").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..4).await;
    bench.send(&topic, 0, 4..7).await;
    let (head, records) = poll(&bench, "t", 1, 4).await;
    assert_eq!(head.messages_count, 4);
    let first = decode_batch_slice(&records).unwrap();
    let second = decode_batch_slice(&records[first.header.total_size()..]).unwrap();
    assert_eq!((first.header.base_offset, deltas(&first)), (0, vec![1, 2]));
    assert_eq!(
        (second.header.base_offset, deltas(&second)),
        (3, vec![0, 1])
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_polled_batch_can_be_sent_on_after_its_header_is_cleared() {
    let bench = Bench::start("forward").await;
    let from = bench.topic("from", 1).await;
    bench.topic("to", 1).await;
    let mut messages = [message(8), message(9)];
    messages[1].header.origin_timestamp += 1000;
    bench.send_messages(&from, 0, &mut messages).await;
    let (_, records) = poll(&bench, "from", 0, 10).await;

    let mut header = decode_batch_slice(&records).unwrap().header;
    (
        header.partition_id,
        header.base_offset,
        header.base_timestamp,
    ) = (0, 0, 0);
    header.batch_checksum = calculate_batch_checksum(&header, &records[BATCH_HEADER_SIZE..]);
    let mut batch = BytesMut::from(&records[..]);
    header.encode_into(&mut batch[..BATCH_HEADER_SIZE]);
    raw::send(&bench.client, &bench.name, "to", 0, 2, &batch)
        .await
        .unwrap();

    let (_, forwarded) = poll(&bench, "to", 0, 10).await;
    assert_eq!(
        forwarded[BATCH_HEADER_SIZE..],
        records[BATCH_HEADER_SIZE..],
        "frames are the same to the byte"
    );
    let forwarded = decode_batch_slice(&forwarded).unwrap().header;
    assert_eq!(forwarded.origin_timestamp, header.origin_timestamp);
    assert!(forwarded.base_timestamp > 0);
    bench.finish().await;
}
