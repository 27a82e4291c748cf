//! Going down, coming up, losing connections.

use iggy::prelude::{Client, ConsumerGroupClient, ConsumerOffsetClient, IggyClient, SystemClient};
use sluice_devbroker::{Broker, Loss, Options};

use crate::{Bench, STREAM, TOPIC, connect, named, read, send, send_all, try_connect};

#[tokio::test]
async fn a_restart_keeps_the_address_and_what_is_stored() {
    let bench = Bench::start().await;
    send(&bench.client, 1).await.unwrap();
    let address = bench.broker.address();
    bench.broker.restart(Loss::None).await.unwrap();
    assert_eq!(bench.broker.address(), address);
    assert_eq!(read(&bench.client, 0).await, [(0, 1)]);
}

#[tokio::test]
async fn a_restart_can_lose_the_newest_messages_and_gives_their_offsets_again() {
    let bench = Bench::start().await;
    send_all(&bench.client, 0, 1..6).await.unwrap();
    let (consumer, stream, topic) = (
        iggy::prelude::Consumer::new(named("c")),
        named(STREAM),
        named(TOPIC),
    );
    bench
        .client
        .store_consumer_offset(&consumer, &stream, &topic, Some(0), 4)
        .await
        .unwrap();
    bench.broker.restart(Loss::Newest(2)).await.unwrap();
    let client = connect(&bench.broker).await;
    send(&client, 9).await.unwrap();
    assert_eq!(read(&client, 1).await, [(1, 2), (2, 3), (3, 9)]);
    let stored = client
        .get_consumer_offset(&consumer, &stream, &topic, Some(0))
        .await
        .unwrap();
    assert_eq!(stored.unwrap().stored_offset, 2, "clamped to the end");
}

#[tokio::test]
async fn while_it_is_down_nobody_gets_in() {
    let bench = Bench::start().await;
    bench.broker.go_down().await;
    assert_eq!(
        (bench.broker.connections(), bench.broker.sessions()),
        (0, 0)
    );
    try_connect(&bench.broker, 0).await.unwrap_err();
    bench.broker.come_up().await.unwrap();
    connect(&bench.broker).await;
}

#[tokio::test]
async fn closed_connections_are_made_again() {
    let bench = Bench::start().await;
    send(&bench.client, 1).await.unwrap();
    let before = bench.client.get_me().await.unwrap().client_id;
    bench.broker.close_connections().await;
    assert_eq!(read(&bench.client, 0).await, [(0, 1)]);
    let after = bench.client.get_me().await.unwrap().client_id;
    assert_ne!(before, after);
}

#[tokio::test]
async fn who_disconnects_leaves_its_groups() {
    let bench = Bench::start().await;
    let (stream, topic, group) = (named(STREAM), named(TOPIC), named("g"));
    bench
        .client
        .create_consumer_group(&stream, &topic, "g")
        .await
        .unwrap();
    let joined = async |client: &IggyClient| {
        client
            .join_consumer_group(&stream, &topic, &group)
            .await
            .unwrap();
    };
    let other = connect(&bench.broker).await;
    joined(&bench.client).await;
    joined(&other).await;
    other.disconnect().await.unwrap();
    bench
        .broker
        .wait_until(|broker| broker.connections() == 1)
        .await;
    let members = async || {
        let details = bench
            .client
            .get_consumer_group(&stream, &topic, &group)
            .await;
        details.unwrap().unwrap().members
    };
    assert_eq!(members().await.len(), 1);
    assert_eq!(members().await[0].partitions, [0, 1]);
    assert_eq!(bench.client.get_clients().await.unwrap().len(), 1);
}

#[tokio::test]
async fn only_loopback_addresses_are_listened_on() {
    let refused = Broker::start(Options {
        address: ([0, 0, 0, 0], 0).into(),
        ..Options::default()
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("not a loopback address"), "{error}");
}

#[tokio::test]
async fn a_port_in_use_is_refused_and_free_again_after_the_end() {
    let broker = Broker::start(Options::default()).unwrap();
    let options = Options {
        address: broker.address(),
        ..Options::default()
    };
    Broker::start(options.clone()).unwrap_err();
    broker.stop().await.unwrap();
    Broker::start(options).unwrap();
}
