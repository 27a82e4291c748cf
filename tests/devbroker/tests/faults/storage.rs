//! What happens to stored messages without a request.

use iggy::prelude::{ConsumerOffsetClient, PollingStrategy, TopicClient};

use crate::{Bench, STREAM, TOPIC, named, poll, read, send, send_all};

/// Current offset and number of messages of partition 0, as a topic's details tell them.
async fn numbers(bench: &Bench) -> (u64, u64) {
    let details = bench
        .client
        .get_topic(&named(STREAM), &named(TOPIC))
        .await
        .unwrap();
    let partition = &details.unwrap().partitions[0];
    (partition.current_offset, partition.messages_count)
}

#[tokio::test]
async fn a_poll_below_the_earliest_message_begins_there_without_a_word() {
    let bench = Bench::start().await;
    send_all(&bench.client, 0, 1..6).await.unwrap();
    send_all(&bench.client, 0, 6..11).await.unwrap();
    assert!(bench.broker.expire(STREAM, TOPIC, 0, 7));
    let expected = [(7, 8), (8, 9), (9, 10)];
    assert_eq!(read(&bench.client, 0).await, expected);
    assert_eq!(read(&bench.client, 6).await, expected);
    let first = poll(&bench.client, 0, PollingStrategy::first())
        .await
        .unwrap();
    assert_eq!(first.messages[0].header.offset, 7);
    assert_eq!(numbers(&bench).await, (9, 3));
}

#[tokio::test]
async fn after_all_has_expired_the_current_offset_stays() {
    let bench = Bench::start().await;
    send_all(&bench.client, 0, 1..6).await.unwrap();
    assert!(bench.broker.expire(STREAM, TOPIC, 0, u64::MAX));
    assert_eq!(numbers(&bench).await, (4, 0));
    assert_eq!(read(&bench.client, 0).await, []);
    send(&bench.client, 9).await.unwrap();
    assert_eq!(read(&bench.client, 0).await, [(5, 9)]);
}

#[tokio::test]
async fn a_purge_begins_anew_and_keeps_the_time_of_creation() {
    let bench = Bench::start().await;
    send_all(&bench.client, 0, 1..6).await.unwrap();
    let created = async || {
        let details = bench
            .client
            .get_topic(&named(STREAM), &named(TOPIC))
            .await
            .unwrap();
        details.unwrap().partitions[0].created_at
    };
    let before = created().await;
    assert!(bench.broker.purge(STREAM, TOPIC, 0));
    assert_eq!(numbers(&bench).await, (0, 0));
    send(&bench.client, 9).await.unwrap();
    assert_eq!(read(&bench.client, 0).await, [(0, 9)]);
    assert_eq!(created().await, before);
}

#[tokio::test]
async fn a_rollback_cuts_batches_and_clamps_stored_offsets() {
    let bench = Bench::start().await;
    send_all(&bench.client, 0, 1..6).await.unwrap();
    send_all(&bench.client, 0, 6..11).await.unwrap();
    let consumer = iggy::prelude::Consumer::new(named("c"));
    let (stream, topic) = (named(STREAM), named(TOPIC));
    bench
        .client
        .store_consumer_offset(&consumer, &stream, &topic, Some(0), 9)
        .await
        .unwrap();
    assert!(bench.broker.roll_back(STREAM, TOPIC, 0, 7));
    assert_eq!(read(&bench.client, 0).await, [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(numbers(&bench).await, (2, 3));
    send_all(&bench.client, 0, 20..22).await.unwrap();
    assert_eq!(read(&bench.client, 2).await, [(2, 3), (3, 20), (4, 21)]);
    assert!(bench.broker.roll_back(STREAM, TOPIC, 0, 100));
    let stored = bench
        .client
        .get_consumer_offset(&consumer, &stream, &topic, Some(0))
        .await
        .unwrap();
    assert_eq!(
        stored.unwrap().stored_offset,
        0,
        "also where nothing is left"
    );
}

#[tokio::test]
async fn a_partition_tells_its_messages_and_what_does_not_exist_is_none() {
    let bench = Bench::start().await;
    send_all(&bench.client, 0, 1..3).await.unwrap();
    let stored = bench.broker.contents(STREAM, TOPIC, 0).unwrap();
    let offsets: Vec<_> = stored
        .iter()
        .map(|message| (message.offset, message.id))
        .collect();
    assert_eq!(offsets, [(0, 1), (1, 2)]);
    assert_eq!(&stored[0].payload[..], b"x");
    assert_eq!(bench.broker.messages(STREAM, TOPIC, 0), Some(2));
    assert!(bench.broker.contents(STREAM, TOPIC, 2).is_none());
    assert!(bench.broker.contents(STREAM, "absent", 0).is_none());
    assert!(!bench.broker.purge("absent", TOPIC, 0));
}
