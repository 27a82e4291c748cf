//! Killed, and asked to end.

use iggy::prelude::{
    CompressionAlgorithm, Consumer, ConsumerGroupClient, ConsumerOffsetClient, Identifier,
    IggyClient, IggyDuration, IggyExpiry, PersonalAccessTokenClient, PersonalAccessTokenExpiry,
    StreamClient, TopicClient, TopicCreateOptions, UserClient, UserStatus,
};

use crate::{Process, connect, named};

async fn stored_offset(client: &IggyClient) -> Option<u64> {
    let consumer = Consumer::new(named("c"));
    let stored = client
        .get_consumer_offset(&consumer, &named("s"), &named("t"), Some(0))
        .await;
    stored.unwrap().map(|stored| stored.stored_offset)
}

async fn store_offset(client: &IggyClient, offset: u64) {
    let consumer = Consumer::new(named("c"));
    client
        .store_consumer_offset(&consumer, &named("s"), &named("t"), Some(0), offset)
        .await
        .unwrap();
}

#[tokio::test]
async fn killed_it_keeps_every_acknowledged_message_where_each_is_saved() {
    let mut broker = Process::start(&["--save-every", "1"]).await;
    for round in 0..20_u128 {
        let partition = u32::from(round % 3 == 0);
        broker.send(partition, round * 10..round * 10 + 7).await;
    }
    store_offset(&broker.client, 3).await;
    let before = [broker.read(0).await, broker.read(1).await];
    for signal in ["-KILL", "-KILL", "-TERM"] {
        broker.end_and_start_again(signal).await;
        let after = [broker.read(0).await, broker.read(1).await];
        assert!(after == before, "{signal}");
        assert_eq!(stored_offset(&broker.client).await, Some(3));
    }
    let end = before[0].len() as u64;
    assert_eq!(broker.send(0, 1000..1001).await, end);
}

#[tokio::test]
async fn killed_it_loses_unsaved_messages_gives_their_offsets_again_and_clamps_stored_ones() {
    let mut broker = Process::start(&[]).await;
    broker.send(0, 1..1000).await;
    broker.send(0, 1000..1031).await;
    broker.send(0, 1031..1041).await;
    broker.send(1, 1..11).await;
    store_offset(&broker.client, 1039).await;
    broker.end_and_start_again("-KILL").await;
    let places = broker.places().await;
    assert_eq!(places.len(), 1030);
    assert_eq!(places.last(), Some(&(1029, 1030)));
    assert_eq!(stored_offset(&broker.client).await, Some(1029));
    assert!(broker.read(1).await.is_empty());
    assert_eq!(broker.send(0, 2000..2001).await, 1030);
    assert_eq!(broker.send(1, 2000..2001).await, 0);
}

#[tokio::test]
async fn asked_to_end_it_saves_everything() {
    let mut broker = Process::start(&[]).await;
    broker.send(0, 1..11).await;
    store_offset(&broker.client, 9).await;
    let before = broker.read(0).await;
    broker.end_and_start_again("-TERM").await;
    assert!(broker.read(0).await == before);
    assert_eq!(stored_offset(&broker.client).await, Some(9));
    assert_eq!(broker.send(0, 11..12).await, 10);
}

/// Everything that a client sees of the topic s/u, as text.
async fn topic(client: &IggyClient) -> String {
    let details = client.get_topic(&named("s"), &named("u")).await.unwrap();
    serde_json::to_string(&details.expect("a topic")).unwrap()
}

#[tokio::test]
async fn killed_it_keeps_streams_topics_groups_users_and_tokens() {
    let mut broker = Process::start(&[]).await;
    let client = &broker.client;
    let options = TopicCreateOptions {
        partitions_count: Some(3),
        message_expiry: Some(IggyExpiry::ExpireDuration(IggyDuration::new_from_secs(60))),
        compression_algorithm: Some(CompressionAlgorithm::Gzip),
        ..TopicCreateOptions::default()
    };
    let stream = named("s");
    client.create_topic(&stream, "u", &options).await.unwrap();
    client
        .create_consumer_group(&stream, &named("u"), "g")
        .await
        .unwrap();
    client.create_stream("other").await.unwrap();
    client
        .create_user("reader", "secret", UserStatus::Active, None)
        .await
        .unwrap();
    let token = client
        .create_personal_access_token("token", PersonalAccessTokenExpiry::NeverExpire)
        .await
        .unwrap();
    let before = topic(client).await;
    broker.end_and_start_again("-KILL").await;
    assert_eq!(topic(&broker.client).await, before);
    let groups = broker
        .client
        .get_consumer_groups(&stream, &named("u"))
        .await
        .unwrap();
    assert_eq!(groups.len(), 1);
    let streams = broker.client.get_streams().await.unwrap();
    let streams: Vec<_> = streams.iter().map(|s| (s.id, s.name.as_str())).collect();
    assert_eq!(streams, [(0, "s"), (1, "other")]);
    let other = connect(&broker.address).await;
    other.login_user("reader", "secret").await.unwrap();
    other
        .login_with_personal_access_token(&token.token)
        .await
        .unwrap();
    let id = Identifier::numeric(1).unwrap();
    assert!(other.get_user(&id).await.unwrap().is_some());
}
