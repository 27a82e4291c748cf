//! Streams, topics, partitions.

use iggy::prelude::{
    CompressionAlgorithm, Identifier, IggyByteSize, IggyError, IggyExpiry, MaxTopicSize,
    PartitionClient, PollingStrategy, StreamClient, TopicClient, TopicCreateOptions,
    TopicUpdateOptions,
};
use std::str::FromStr;

use crate::Bench;

#[tokio::test]
async fn what_does_not_exist_is_none_when_asked_for() {
    let bench = Bench::start("absent").await;
    let absent = Identifier::named("absent").unwrap();
    assert!(bench.client.get_stream(&absent).await.unwrap().is_none());
    let topic = bench.client.get_topic(&bench.stream, &absent).await;
    assert!(topic.unwrap().is_none());
    assert!(
        bench
            .client
            .get_topic(&absent, &absent)
            .await
            .unwrap()
            .is_none()
    );
    bench.finish().await;
}

#[tokio::test]
async fn names_are_taken_once() {
    let bench = Bench::start("taken").await;
    bench.topic("t", 1).await;
    let again = bench.client.create_stream(&bench.name).await;
    assert!(matches!(again, Err(IggyError::StreamNameAlreadyExists(_))));
    let options = TopicCreateOptions::default();
    let again = bench
        .client
        .create_topic(&bench.stream, "t", &options)
        .await;
    assert!(matches!(again, Err(IggyError::TopicNameAlreadyExists(..))));
    bench.finish().await;
}

#[tokio::test]
async fn numeric_ids_are_given_again_after_a_deletion() {
    let bench = Bench::start("recycled").await;
    let first = bench.topic("first", 1).await;
    let id = |details: Option<iggy::prelude::TopicDetails>| details.unwrap().id;
    let before = id(bench.client.get_topic(&bench.stream, &first).await.unwrap());
    bench
        .client
        .delete_topic(&bench.stream, &first)
        .await
        .unwrap();
    let second = bench.topic("second", 1).await;
    let after = id(bench
        .client
        .get_topic(&bench.stream, &second)
        .await
        .unwrap());
    assert_eq!(before, after);
    let by_id = Identifier::numeric(after).unwrap();
    let found = bench.client.get_topic(&bench.stream, &by_id).await.unwrap();
    assert_eq!(found.unwrap().name, "second");
    bench.finish().await;
}

#[tokio::test]
async fn a_topic_reports_the_options_that_it_was_created_with() {
    let bench = Bench::start("options").await;
    let options = TopicCreateOptions {
        partitions_count: Some(3),
        compression_algorithm: Some(CompressionAlgorithm::Gzip),
        message_expiry: Some(IggyExpiry::from_str("1h").unwrap()),
        max_topic_size: Some(MaxTopicSize::Custom(IggyByteSize::from(1 << 33))),
        segment_size: Some(IggyByteSize::from(64 << 20)),
        ..TopicCreateOptions::default()
    };
    bench
        .client
        .create_topic(&bench.stream, "t", &options)
        .await
        .unwrap();
    let topic = Identifier::named("t").unwrap();
    let details = bench
        .client
        .get_topic(&bench.stream, &topic)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(details.partitions_count, 3);
    assert_eq!(details.compression_algorithm, CompressionAlgorithm::Gzip);
    assert_eq!(Some(details.message_expiry), options.message_expiry);
    assert_eq!(Some(details.max_topic_size), options.max_topic_size);
    let runtime = iggy_common::TopicRuntimeOptions::from_resource_options(&details.options);
    assert_eq!(runtime.segment_size, options.segment_size);
    bench.finish().await;
}

#[tokio::test]
async fn a_topic_reports_what_it_has_where_nothing_was_given() {
    let bench = Bench::start("defaults").await;
    let topic = bench.topic("t", 1).await;
    let details = bench.client.get_topic(&bench.stream, &topic).await;
    let details = details.unwrap().unwrap();
    assert_eq!(details.message_expiry, IggyExpiry::NeverExpire);
    assert_eq!(details.max_topic_size, MaxTopicSize::Unlimited);
    let options = TopicCreateOptions::from_resource_options(&details.options);
    assert!(options.segment_size.is_some());
    assert!(options.messages_required_to_save.is_some());
    assert_eq!(
        options.compression_algorithm,
        Some(CompressionAlgorithm::None)
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_topic_can_be_renamed_and_its_expiry_changed() {
    let bench = Bench::start("update").await;
    let topic = bench.topic("t", 1).await;
    bench.topic("taken", 1).await;
    bench.send(&topic, 0, 1..2).await;
    let (client, stream) = (&bench.client, &bench.stream);
    let options = TopicUpdateOptions {
        message_expiry: Some(IggyExpiry::from_str("1h").unwrap()),
        ..TopicUpdateOptions::default()
    };
    let taken = client.update_topic(stream, &topic, "taken", &options).await;
    assert!(
        matches!(taken, Err(IggyError::TopicNameAlreadyExists(..))),
        "{taken:?}"
    );
    client
        .update_topic(stream, &topic, "renamed", &options)
        .await
        .unwrap();
    assert!(client.get_topic(stream, &topic).await.unwrap().is_none());
    let renamed = Identifier::named("renamed").unwrap();
    let details = client.get_topic(stream, &renamed).await.unwrap().unwrap();
    assert_eq!(Some(details.message_expiry), options.message_expiry);
    assert_eq!(details.max_topic_size, MaxTopicSize::Unlimited);
    assert_eq!(bench.read(&renamed, 0, 0, 10).await, [(0, 1)]);
    bench.finish().await;
}

#[tokio::test]
async fn compression_is_a_word_only() {
    let bench = Bench::start("compression").await;
    let options = TopicCreateOptions {
        compression_algorithm: Some(CompressionAlgorithm::Gzip),
        ..TopicCreateOptions::default()
    };
    bench
        .client
        .create_topic(&bench.stream, "t", &options)
        .await
        .unwrap();
    let topic = Identifier::named("t").unwrap();
    bench.send(&topic, 0, 1..2).await;
    let polled = bench
        .poll(&topic, 0, PollingStrategy::offset(0), 1)
        .await
        .unwrap();
    assert_eq!(&polled.messages[0].payload[..], b"1");
    bench.finish().await;
}

#[tokio::test]
async fn a_topic_created_anew_begins_anew() {
    let bench = Bench::start("anew").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..11).await;
    let created = async || {
        let details = bench.client.get_topic(&bench.stream, &topic).await;
        details.unwrap().unwrap().created_at.as_micros()
    };
    let before = created().await;
    bench
        .client
        .delete_topic(&bench.stream, &topic)
        .await
        .unwrap();
    bench.topic("t", 1).await;
    assert!(created().await > before);
    assert_eq!(bench.read(&topic, 0, 5, 10).await, []);
    bench.send(&topic, 0, 100..101).await;
    assert_eq!(bench.read(&topic, 0, 0, 10).await, [(0, 100)]);
    bench.finish().await;
}

#[tokio::test]
async fn lists_give_sums_over_partitions() {
    let bench = Bench::start("sums").await;
    let topic = bench.topic("t", 2).await;
    bench.topic("u", 3).await;
    bench.send(&topic, 0, 1..4).await;
    bench.send(&topic, 1, 4..6).await;
    let mut topics = bench.client.get_topics(&bench.stream).await.unwrap();
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    let sums: Vec<_> = topics
        .iter()
        .map(|topic| {
            (
                topic.name.as_str(),
                topic.partitions_count,
                topic.messages_count,
            )
        })
        .collect();
    assert_eq!(sums, [("t", 2, 5), ("u", 3, 0)]);
    let streams = bench.client.get_streams().await.unwrap();
    let own = streams.iter().find(|stream| stream.name == bench.name);
    let own = own.unwrap();
    assert_eq!((own.topics_count, own.messages_count), (2, 5));
    bench.finish().await;
}

#[tokio::test]
async fn a_purged_stream_is_empty_and_has_its_topics() {
    let bench = Bench::start("purge-stream").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..4).await;
    bench.client.purge_stream(&bench.stream).await.unwrap();
    assert_eq!(bench.read(&topic, 0, 0, 10).await, []);
    bench.send(&topic, 0, 9..10).await;
    assert_eq!(bench.read(&topic, 0, 0, 10).await, [(0, 9)]);
    bench.finish().await;
}

#[tokio::test]
async fn partitions_are_numbered_from_0_and_appended() {
    let bench = Bench::start("partitions").await;
    let topic = bench.topic("t", 2).await;
    bench
        .client
        .create_partitions(&bench.stream, &topic, 3)
        .await
        .unwrap();
    let details = bench
        .client
        .get_topic(&bench.stream, &topic)
        .await
        .unwrap()
        .unwrap();
    let mut ids: Vec<_> = details
        .partitions
        .iter()
        .map(|partition| partition.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    bench
        .client
        .delete_partitions(&bench.stream, &topic, 1)
        .await
        .unwrap();
    let details = bench
        .client
        .get_topic(&bench.stream, &topic)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(details.partitions_count, 4);
    bench.finish().await;
}

#[tokio::test]
async fn a_partition_reports_its_end_and_its_number_of_messages() {
    let bench = Bench::start("numbers").await;
    let topic = bench.topic("t", 1).await;
    let partition = async || {
        let details = bench.client.get_topic(&bench.stream, &topic).await.unwrap();
        let partition = details.unwrap().partitions.remove(0);
        (partition.current_offset, partition.messages_count)
    };
    assert_eq!(partition().await, (0, 0), "empty");
    bench.send(&topic, 0, 1..2).await;
    assert_eq!(partition().await, (0, 1), "one message");
    bench.send(&topic, 0, 2..6).await;
    assert_eq!(partition().await, (4, 5));
    bench.finish().await;
}

#[tokio::test]
async fn a_purge_begins_offsets_anew_and_keeps_the_time_of_creation() {
    let bench = Bench::start("purge").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..11).await;
    let details = bench
        .client
        .get_topic(&bench.stream, &topic)
        .await
        .unwrap()
        .unwrap();
    bench
        .client
        .purge_topic(&bench.stream, &topic)
        .await
        .unwrap();
    assert_eq!(
        bench.read(&topic, 0, 5, 10).await,
        [],
        "the old place is past the end"
    );
    bench.send(&topic, 0, 100..102).await;
    assert_eq!(bench.read(&topic, 0, 0, 10).await, [(0, 100), (1, 101)]);
    let after = bench
        .client
        .get_topic(&bench.stream, &topic)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(details.created_at, after.created_at);
    bench.finish().await;
}

#[tokio::test]
async fn deleting_what_does_not_exist_is_an_error() {
    let bench = Bench::start("delete").await;
    let absent = Identifier::named("absent").unwrap();
    let topic = bench.client.delete_topic(&bench.stream, &absent).await;
    assert!(
        matches!(topic, Err(IggyError::TopicIdNotFound(..))),
        "{topic:?}"
    );
    let stream = bench.client.delete_stream(&absent).await;
    assert!(
        matches!(stream, Err(IggyError::StreamIdNotFound(_))),
        "{stream:?}"
    );
    bench.finish().await;
}
