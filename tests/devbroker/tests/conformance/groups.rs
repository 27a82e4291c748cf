//! Consumer groups.

use iggy::prelude::{
    Consumer, ConsumerGroupClient, ConsumerOffsetClient, Identifier, IggyClient, IggyError,
    MessageClient, PollingStrategy,
};

use crate::{Bench, connect};

fn group() -> Identifier {
    Identifier::named("g").unwrap()
}

/// The ids of what a member gets, from the partitions that it owns.
async fn take(bench: &Bench, client: &IggyClient, topic: &Identifier) -> Vec<u128> {
    let consumer = Consumer::group(group());
    let mut ids = Vec::new();
    for _ in 0..8 {
        let polled = client
            .poll_messages(
                &bench.stream,
                topic,
                None,
                &consumer,
                &PollingStrategy::next(),
                10,
                true,
            )
            .await
            .unwrap();
        ids.extend(polled.messages.iter().map(|message| message.header.id));
    }
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn members_share_the_partitions() {
    let bench = Bench::start("share").await;
    let topic = bench.topic("t", 4).await;
    for partition in 0..4 {
        let id = u128::from(partition) + 1;
        bench.send(&topic, partition, id..id + 1).await;
    }
    let (one, two) = (connect(&bench.target).await, connect(&bench.target).await);
    bench
        .client
        .create_consumer_group(&bench.stream, &topic, "g")
        .await
        .unwrap();
    for client in [&one, &two] {
        client
            .join_consumer_group(&bench.stream, &topic, &group())
            .await
            .unwrap();
    }
    let details = bench
        .client
        .get_consumer_group(&bench.stream, &topic, &group())
        .await
        .unwrap();
    let details = details.unwrap();
    assert_eq!(details.members_count, 2);
    let mut owned: Vec<_> = details
        .members
        .iter()
        .flat_map(|m| m.partitions.clone())
        .collect();
    owned.sort_unstable();
    assert_eq!(owned, [0, 1, 2, 3], "each partition has one owner");
    let (mut ids, more) = (
        take(&bench, &one, &topic).await,
        take(&bench, &two, &topic).await,
    );
    assert_eq!((ids.len(), more.len()), (2, 2));
    ids.extend(more);
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    bench.finish().await;
}

#[tokio::test]
async fn who_leaves_gives_its_partitions_to_the_others() {
    let bench = Bench::start("leave").await;
    let topic = bench.topic("t", 2).await;
    let two = connect(&bench.target).await;
    bench
        .client
        .create_consumer_group(&bench.stream, &topic, "g")
        .await
        .unwrap();
    for client in [&bench.client, &two] {
        client
            .join_consumer_group(&bench.stream, &topic, &group())
            .await
            .unwrap();
    }
    two.leave_consumer_group(&bench.stream, &topic, &group())
        .await
        .unwrap();
    let details = bench
        .client
        .get_consumer_group(&bench.stream, &topic, &group())
        .await
        .unwrap();
    let members = details.unwrap().members;
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].partitions.len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn a_group_has_an_offset_of_its_own() {
    let bench = Bench::start("apart").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..6).await;
    let (client, stream) = (&bench.client, &bench.stream);
    client
        .create_consumer_group(stream, &topic, "g")
        .await
        .unwrap();
    client
        .join_consumer_group(stream, &topic, &group())
        .await
        .unwrap();
    assert_eq!(take(&bench, client, &topic).await, [1, 2, 3, 4, 5]);
    let stored = async |consumer: Consumer| {
        let info = client
            .get_consumer_offset(&consumer, stream, &topic, Some(0))
            .await;
        info.unwrap().map(|info| info.stored_offset)
    };
    assert_eq!(stored(Consumer::group(group())).await, Some(4));
    assert_eq!(stored(Consumer::new(group())).await, None);
    bench.finish().await;
}

#[tokio::test]
async fn who_is_no_member_gets_an_error() {
    let bench = Bench::start("stranger").await;
    let topic = bench.topic("t", 1).await;
    bench
        .client
        .create_consumer_group(&bench.stream, &topic, "g")
        .await
        .unwrap();
    let polled = bench
        .client
        .poll_messages(
            &bench.stream,
            &topic,
            Some(0),
            &Consumer::group(group()),
            &PollingStrategy::next(),
            1,
            false,
        )
        .await;
    assert!(
        matches!(polled, Err(IggyError::ConsumerGroupMemberNotFound(..))),
        "{polled:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn groups_are_listed_and_deleted() {
    let bench = Bench::start("list").await;
    let topic = bench.topic("t", 1).await;
    let (client, stream) = (&bench.client, &bench.stream);
    client
        .create_consumer_group(stream, &topic, "g")
        .await
        .unwrap();
    let again = client.create_consumer_group(stream, &topic, "g").await;
    assert!(matches!(
        again,
        Err(IggyError::ConsumerGroupNameAlreadyExists(..))
    ));
    assert_eq!(
        client
            .get_consumer_groups(stream, &topic)
            .await
            .unwrap()
            .len(),
        1
    );
    client
        .delete_consumer_group(stream, &topic, &group())
        .await
        .unwrap();
    assert!(
        client
            .get_consumer_group(stream, &topic, &group())
            .await
            .unwrap()
            .is_none()
    );
    bench.finish().await;
}
