//! Sending, and what is kept of a message.

use bytes::Bytes;
use iggy::prelude::{
    Identifier, IggyClient, IggyError, IggyMessage, MessageClient, Partitioning, PollingStrategy,
};

use iggy_binary_protocol::batch::BATCH_CHECKSUM_OFFSET;
use iggy_binary_protocol::codes::SEND_MESSAGES_CODE;

use crate::raw::{self, Frame};
use crate::{Bench, connect, message};

async fn send(bench: &Bench, topic: &Identifier, messages: &mut [IggyMessage]) -> u64 {
    let partitioning = Partitioning::partition_id(0);
    let reply = bench
        .client
        .send_messages(&bench.stream, topic, &partitioning, messages)
        .await
        .unwrap();
    reply.confirmations[0].base_offset
}

#[tokio::test]
async fn a_send_tells_where_its_first_message_is() {
    let bench = Bench::start("base").await;
    let topic = bench.topic("t", 1).await;
    assert_eq!(send(&bench, &topic, &mut [message(1), message(2)]).await, 0);
    assert_eq!(send(&bench, &topic, &mut [message(3)]).await, 2);
    bench.finish().await;
}

#[tokio::test]
async fn id_origin_time_payload_and_headers_are_kept() {
    let bench = Bench::start("kept").await;
    let topic = bench.topic("t", 1).await;
    let mut sent = [message(u128::MAX), message(7)];
    sent[0].header.origin_timestamp = 1_000_000;
    sent[1].header.origin_timestamp = 999_999;
    sent[1].user_headers = Some(Bytes::from_static(b"\x02\x01\0\0\0k\x02\x01\0\0\0v"));
    sent[1].header.user_headers_length = 12;
    send(&bench, &topic, &mut sent).await;
    let polled = bench
        .poll(&topic, 0, PollingStrategy::offset(0), 10)
        .await
        .unwrap();
    for (sent, got) in sent.iter().zip(&polled.messages) {
        assert_eq!(got.header.id, sent.header.id);
        assert_eq!(got.header.origin_timestamp, sent.header.origin_timestamp);
        assert_eq!(got.payload, sent.payload);
        assert_eq!(got.user_headers, sent.user_headers);
    }
    let times: Vec<_> = polled.messages.iter().map(|m| m.header.timestamp).collect();
    assert_eq!(
        times[0], times[1],
        "the time of appending is that of the batch"
    );
    bench.finish().await;
}

#[tokio::test]
async fn repeated_ids_are_stored_each_time() {
    let bench = Bench::start("repeated").await;
    let topic = bench.topic("t", 1).await;
    send(&bench, &topic, &mut [message(5), message(5)]).await;
    send(&bench, &topic, &mut [message(5)]).await;
    assert_eq!(bench.read(&topic, 0, 0, 10).await, [(0, 5), (1, 5), (2, 5)]);
    bench.finish().await;
}

#[tokio::test]
async fn odd_messages_are_stored_as_they_are() {
    let bench = Bench::start("odd").await;
    bench.topic("t", 1).await;
    let odd = [
        Frame::default(),
        Frame {
            id: 1,
            headers: Bytes::from_static(b"not headers at all"),
            ..Frame::default()
        },
        Frame {
            id: 2,
            payload: Bytes::from_static(b"x"),
            headers: vec![1; 300_000].into(),
            ..Frame::default()
        },
        Frame {
            id: 3,
            payload: vec![7; 60_000_000].into(),
            ..Frame::default()
        },
    ];
    for frame in &odd {
        let batch = raw::batch(std::slice::from_ref(frame), 42);
        raw::send(&bench.client, &bench.name, "t", 0, 1, &batch)
            .await
            .unwrap();
    }
    let topic = Identifier::named("t").unwrap();
    for (offset, frame) in (0..).zip(&odd) {
        let strategy = PollingStrategy::offset(offset);
        let polled = bench.poll(&topic, 0, strategy, 1).await.unwrap();
        let got = &polled.messages[0];
        assert_eq!(got.header.id, frame.id);
        assert_eq!(got.header.origin_timestamp, 42);
        assert!(got.payload == frame.payload, "payload of message {offset}");
        assert!(got.user_headers.clone().unwrap_or_default() == frame.headers);
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_hundred_thousand_messages_fit_one_batch() {
    let bench = Bench::start("many").await;
    let topic = bench.topic("t", 1).await;
    let mut messages: Vec<_> = (1..=100_000).map(message).collect();
    assert_eq!(send(&bench, &topic, &mut messages).await, 0);
    assert_eq!(
        bench.read(&topic, 0, 99_998, 10).await,
        [(99_998, 99_999), (99_999, 100_000)]
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_send_to_what_does_not_exist_finds_no_resource() {
    let bench = Bench::start("nowhere").await;
    let topic = bench.topic("t", 1).await;
    let absent = Identifier::named("absent").unwrap();
    for (stream, topic, partition) in [
        (&absent, &topic, 0),
        (&bench.stream, &absent, 0),
        (&bench.stream, &topic, 9),
    ] {
        let partitioning = Partitioning::partition_id(partition);
        let sent = bench
            .client
            .send_messages(stream, topic, &partitioning, &mut [message(1)])
            .await;
        assert!(
            matches!(sent, Err(IggyError::ResourceNotFound(_))),
            "{sent:?}"
        );
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_batch_whose_first_delta_is_not_0_skips_offsets() {
    let bench = Bench::start("deltas").await;
    let topic = bench.topic("t", 1).await;
    let frames = |deltas: std::ops::Range<u32>| -> Vec<Frame> {
        deltas
            .map(|offset_delta| Frame {
                id: u128::from(offset_delta) + 1,
                offset_delta,
                ..Frame::default()
            })
            .collect()
    };
    let sliced = raw::batch(&frames(4..10), 1);
    raw::send(&bench.client, &bench.name, "t", 0, 6, &sliced)
        .await
        .unwrap();
    let polled = bench
        .poll(&topic, 0, PollingStrategy::offset(0), 100)
        .await
        .unwrap();
    let offsets: Vec<_> = polled.messages.iter().map(|m| m.header.offset).collect();
    assert_eq!(offsets, [4, 5, 6, 7, 8, 9]);
    bench.finish().await;
}

/// Sends a batch that the server must not store, on a connection that breaks or stays silent; a second connection
/// then shows that nothing was stored and that the server goes on.
async fn refused_without_a_word(bench: &Bench, client: IggyClient, batch: Bytes) {
    let (name, topic) = (bench.name.clone(), bench.topic("t", 1).await);
    let refused = tokio::spawn(async move { raw::send(&client, &name, "t", 0, 1, &batch).await });
    if let Some(broker) = bench.target.broker() {
        broker.requested(SEND_MESSAGES_CODE, 1).await;
    }
    bench.send(&topic, 0, 1..2).await;
    assert_eq!(bench.read(&topic, 0, 0, 10).await, [(0, 1)]);
    refused.abort();
}

#[tokio::test]
async fn a_wrong_checksum_gets_no_answer_and_is_not_stored() {
    let bench = Bench::start("checksum").await;
    let client = connect(&bench.target).await;
    let frame = Frame {
        payload: Bytes::from_static(b"payload"),
        ..Frame::default()
    };
    let mut batch = raw::batch(&[frame], 1);
    let last = batch.len() - 1;
    batch[last] ^= 0xff;
    refused_without_a_word(&bench, client, batch.freeze()).await;
    bench.finish().await;
}

#[tokio::test]
async fn a_wrong_checksum_of_the_batch_gets_no_answer_either() {
    let bench = Bench::start("batch-checksum").await;
    let client = connect(&bench.target).await;
    let mut batch = raw::batch(&[Frame::default()], 1);
    batch[BATCH_CHECKSUM_OFFSET] ^= 0xff;
    refused_without_a_word(&bench, client, batch.freeze()).await;
    bench.finish().await;
}

#[tokio::test]
async fn sixty_six_megabytes_fit_one_request() {
    let bench = Bench::start("large").await;
    let topic = bench.topic("t", 1).await;
    let payload = Bytes::from(vec![7; 1_000_000]);
    let mut messages: Vec<_> = (1..=66)
        .map(|id| {
            let builder = IggyMessage::builder().id(id).payload(payload.clone());
            builder.build().unwrap()
        })
        .collect();
    assert_eq!(send(&bench, &topic, &mut messages).await, 0);
    assert_eq!(bench.read(&topic, 0, 65, 10).await, [(65, 66)]);
    bench.finish().await;
}

#[tokio::test]
async fn a_batch_spans_71_minutes_of_origin_time_at_most() {
    let bench = Bench::start("span").await;
    let topic = bench.topic("t", 1).await;
    let span = u64::from(u32::MAX);
    let sent = async |apart: u64| {
        let mut messages = [message(1), message(2)];
        messages[0].header.origin_timestamp = 1_000_000;
        messages[1].header.origin_timestamp = 1_000_000 + apart;
        let partitioning = Partitioning::partition_id(0);
        bench
            .client
            .send_messages(&bench.stream, &topic, &partitioning, &mut messages)
            .await
    };
    sent(span).await.unwrap();
    let refused = sent(span + 1).await;
    assert!(
        matches!(refused, Err(IggyError::InvalidMessageTimestampDelta(_))),
        "{refused:?}"
    );
    let polled = bench.poll(&topic, 0, PollingStrategy::offset(0), 10).await;
    let times: Vec<_> = polled
        .unwrap()
        .messages
        .iter()
        .map(|message| message.header.origin_timestamp)
        .collect();
    assert_eq!(times, [1_000_000, 1_000_000 + span]);
    bench.finish().await;
}

#[tokio::test]
async fn offsets_and_times_of_the_server_are_not_the_clients_to_set() {
    let bench = Bench::start("stamps").await;
    let topic = bench.topic("t", 1).await;
    let mut sent = [message(1)];
    sent[0].header.offset = 77;
    sent[0].header.timestamp = 1;
    send(&bench, &topic, &mut sent).await;
    let polled = bench
        .poll(&topic, 0, PollingStrategy::offset(0), 1)
        .await
        .unwrap();
    assert_eq!(polled.messages[0].header.offset, 0);
    assert!(polled.messages[0].header.timestamp > 1);
    bench.finish().await;
}

#[tokio::test]
async fn buffers_cannot_be_flushed() {
    let bench = Bench::start("flush").await;
    let topic = bench.topic("t", 1).await;
    let flushed = bench
        .client
        .flush_unsaved_buffer(&bench.stream, &topic, 0, true)
        .await;
    assert!(
        matches!(flushed, Err(IggyError::FeatureUnavailable)),
        "{flushed:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_frame_above_64_mib_breaks_the_connection() {
    let bench = Bench::start("frame").await;
    let client = connect(&bench.target).await;
    let frame = Frame {
        payload: vec![0; 65 << 20].into(),
        ..Frame::default()
    };
    let batch = raw::batch(&[frame], 1).freeze();
    let topic = bench.topic("t", 1).await;
    let sent = raw::send(&client, &bench.name, "t", 0, 1, &batch).await;
    assert!(sent.is_err());
    assert_eq!(bench.read(&topic, 0, 0, 10).await, []);
    bench.finish().await;
}
