//! Polling.

use iggy::prelude::{
    Consumer, ConsumerOffsetClient, Identifier, IggyError, MessageClient, PollingStrategy,
};

use crate::{Bench, places};

#[tokio::test]
async fn a_poll_past_the_end_is_empty() {
    let bench = Bench::start("past").await;
    let topic = bench.topic("t", 1).await;
    let empty = bench
        .poll(&topic, 0, PollingStrategy::offset(0), 10)
        .await
        .unwrap();
    assert_eq!((empty.messages.len(), empty.current_offset), (0, 0));
    bench.send(&topic, 0, 1..4).await;
    let past = bench
        .poll(&topic, 0, PollingStrategy::offset(3), 10)
        .await
        .unwrap();
    assert_eq!((past.messages.len(), past.current_offset), (0, 2));
    let far = bench
        .poll(&topic, 0, PollingStrategy::offset(99), 10)
        .await
        .unwrap();
    assert!(far.messages.is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn a_poll_of_what_does_not_exist_says_so() {
    let bench = Bench::start("missing").await;
    let topic = bench.topic("t", 1).await;
    let partition = bench.poll(&topic, 7, PollingStrategy::offset(0), 1).await;
    assert!(
        matches!(partition, Err(IggyError::PartitionNotFound(..))),
        "{partition:?}"
    );
    let absent = Identifier::named("absent").unwrap();
    let topic = bench.poll(&absent, 0, PollingStrategy::offset(0), 1).await;
    assert!(
        matches!(topic, Err(IggyError::TopicIdNotFound(..))),
        "{topic:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_poll_for_no_message_is_an_error() {
    let bench = Bench::start("count").await;
    let topic = bench.topic("t", 1).await;
    let polled = bench.poll(&topic, 0, PollingStrategy::offset(0), 0).await;
    assert!(
        matches!(polled, Err(IggyError::InvalidMessagesCount)),
        "{polled:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn batches_are_sliced_at_any_offset_and_count() {
    let bench = Bench::start("slices").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 0..5).await;
    bench.send(&topic, 0, 5..6).await;
    bench.send(&topic, 0, 6..20).await;
    for from in 0..20 {
        for count in 1..=20 {
            let expected: Vec<_> = (from..20.min(from + u64::from(count)))
                .map(|offset| (offset, u128::from(offset)))
                .collect();
            // The SDK mints an id for 0, so the first message is told by its offset alone.
            let read = bench.read(&topic, 0, from, count).await;
            let offsets = |places: &[(u64, u128)]| -> Vec<u64> {
                places.iter().map(|place| place.0).collect()
            };
            assert_eq!(
                offsets(&read),
                offsets(&expected),
                "from {from}, {count} messages"
            );
            let skip = usize::from(from == 0);
            assert_eq!(
                read[skip..],
                expected[skip..],
                "from {from}, {count} messages"
            );
        }
    }
    bench.finish().await;
}

#[tokio::test]
async fn every_strategy_begins_where_it_says() {
    let bench = Bench::start("strategies").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..4).await;
    let first = bench
        .poll(&topic, 0, PollingStrategy::first(), 2)
        .await
        .unwrap();
    assert_eq!(places(&first), [(0, 1), (1, 2)]);
    let last = bench
        .poll(&topic, 0, PollingStrategy::last(), 2)
        .await
        .unwrap();
    assert_eq!(places(&last), [(1, 2), (2, 3)]);
    let time = first.messages[0].header.timestamp;
    let since = PollingStrategy::timestamp(time.into());
    let since = bench.poll(&topic, 0, since, 10).await.unwrap();
    assert_eq!(places(&since), [(0, 1), (1, 2), (2, 3)]);
    let later = PollingStrategy::timestamp((time + 3_600_000_000).into());
    assert!(
        bench
            .poll(&topic, 0, later, 10)
            .await
            .unwrap()
            .messages
            .is_empty()
    );
    bench.finish().await;
}

#[tokio::test]
async fn without_a_partition_a_consumer_reads_partition_0() {
    let bench = Bench::start("default").await;
    let topic = bench.topic("t", 2).await;
    bench.send(&topic, 0, 1..2).await;
    bench.send(&topic, 1, 9..10).await;
    let consumer = Consumer::new(Identifier::named("c").unwrap());
    let polled = bench
        .client
        .poll_messages(
            &bench.stream,
            &topic,
            None,
            &consumer,
            &PollingStrategy::offset(0),
            10,
            false,
        )
        .await
        .unwrap();
    assert_eq!((polled.partition_id, places(&polled)), (0, vec![(0, 1)]));
    bench.finish().await;
}

#[tokio::test]
async fn next_begins_behind_the_stored_offset() {
    let bench = Bench::start("next").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..6).await;
    let next = async || {
        let polled = bench.poll(&topic, 0, PollingStrategy::next(), 2).await;
        places(&polled.unwrap())
    };
    assert_eq!(next().await, [(0, 1), (1, 2)]);
    assert_eq!(next().await, [(0, 1), (1, 2)], "nothing was stored");
    let consumer = Consumer::new(Identifier::named("conformance").unwrap());
    bench
        .client
        .store_consumer_offset(&consumer, &bench.stream, &topic, Some(0), 2)
        .await
        .unwrap();
    assert_eq!(next().await, [(3, 4), (4, 5)]);
    bench.finish().await;
}

#[tokio::test]
async fn an_auto_commit_moves_the_next_poll_on() {
    let bench = Bench::start("commit").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..6).await;
    let consumer = Consumer::new(Identifier::named("c").unwrap());
    let next = async || {
        let strategy = PollingStrategy::next();
        let polled = bench
            .client
            .poll_messages(
                &bench.stream,
                &topic,
                Some(0),
                &consumer,
                &strategy,
                2,
                true,
            )
            .await
            .unwrap();
        places(&polled)
    };
    assert_eq!(next().await, [(0, 1), (1, 2)]);
    assert_eq!(next().await, [(2, 3), (3, 4)]);
    assert_eq!(next().await, [(4, 5)]);
    assert_eq!(next().await, []);
    bench.finish().await;
}
