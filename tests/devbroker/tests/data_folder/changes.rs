//! What else happens to partitions, in the process of the test: brokers that are dropped end as in a crash.

use std::io::ErrorKind;

use sluice_devbroker::{Broker, Data, Loss, Options};
use tempfile::TempDir;

use crate::{connect, message, named};
use iggy::prelude::{
    IggyClient, MessageClient, PartitionClient, Partitioning, StreamClient, TopicClient,
};

fn start(folder: &TempDir, save_every: u64) -> Broker {
    Broker::start(options(folder, save_every)).unwrap()
}

fn options(folder: &TempDir, save_every: u64) -> Options {
    let data = Data {
        save_every,
        ..Data::new(folder.path())
    };
    Options {
        data: Some(data),
        ..Options::default()
    }
}

/// Ends a broker as a crash does, and starts another one with its folder.
async fn crash(broker: Broker, folder: &TempDir) -> Broker {
    broker.go_down().await;
    drop(broker);
    // The folder is free when the last of its tasks has ended.
    loop {
        match Broker::start(options(folder, 1000)) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => tokio::task::yield_now().await,
            started => return started.unwrap(),
        }
    }
}

async fn send(client: &IggyClient, ids: std::ops::Range<u128>) {
    let mut messages: Vec<_> = ids.map(message).collect();
    let partitioning = Partitioning::partition_id(0);
    client
        .send_messages(&named("s"), &named("t"), &partitioning, &mut messages)
        .await
        .unwrap();
}

/// A broker that has not saved 10 messages in two batches.
async fn unsaved(folder: &TempDir) -> (Broker, IggyClient) {
    let broker = start(folder, 1000);
    broker.create_topic("s", "t", 2).unwrap();
    let client = connect(&broker.address().to_string()).await;
    send(&client, 1..6).await;
    send(&client, 6..11).await;
    (broker, client)
}

fn places(broker: &Broker) -> Vec<(u64, u128)> {
    let contents = broker.contents("s", "t", 0).unwrap();
    let places = contents.iter().map(|message| (message.offset, message.id));
    places.collect()
}

#[tokio::test]
async fn expired_messages_stay_away_and_the_end_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (mut broker, _) = unsaved(&folder).await;
    for (expired, left) in [
        (7, vec![(7, 8), (8, 9), (9, 10)]),
        (9, vec![(9, 10)]),
        (10, vec![]),
    ] {
        assert!(broker.expire("s", "t", 0, expired));
        broker = crash(broker, &folder).await;
        assert_eq!(places(&broker), left);
    }
    let client = connect(&broker.address().to_string()).await;
    send(&client, 11..12).await;
    assert_eq!(places(&broker), [(10, 11)]);
}

#[tokio::test]
async fn messages_that_were_rolled_back_stay_away() {
    let folder = tempfile::tempdir().unwrap();
    let (broker, _) = unsaved(&folder).await;
    assert!(broker.roll_back("s", "t", 0, 3));
    let broker = crash(broker, &folder).await;
    let left: Vec<_> = (0..7).zip(1..8).collect();
    assert_eq!(places(&broker), left);
    broker.restart(Loss::Newest(6)).await.unwrap();
    let broker = crash(broker, &folder).await;
    assert_eq!(places(&broker), [(0, 1)]);
}

#[tokio::test]
async fn purged_and_deleted_things_stay_away_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (broker, client) = unsaved(&folder).await;
    let files = || {
        let files = std::fs::read_dir(folder.path().join("partitions")).unwrap();
        files.count()
    };
    client.purge_topic(&named("s"), &named("t")).await.unwrap();
    let broker = crash(broker, &folder).await;
    assert_eq!((places(&broker), files()), (vec![], 2));
    let client = connect(&broker.address().to_string()).await;
    client
        .delete_partitions(&named("s"), &named("t"), 1)
        .await
        .unwrap();
    let broker = crash(broker, &folder).await;
    assert_eq!(broker.messages("s", "t", 1), None);
    assert_eq!(files(), 1);
    let client = connect(&broker.address().to_string()).await;
    client.delete_stream(&named("s")).await.unwrap();
    let broker = crash(broker, &folder).await;
    assert_eq!(broker.messages("s", "t", 0), None);
    assert_eq!(files(), 0);
}

#[tokio::test]
async fn a_stop_saves_everything_and_frees_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (broker, _) = unsaved(&folder).await;
    let before = places(&broker);
    let options = Options {
        data: Some(Data::new(folder.path())),
        ..Options::default()
    };
    let refused = Broker::start(options.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    broker.stop().await.unwrap();
    assert_eq!(places(&Broker::start(options).unwrap()), before);
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(&folder, 1);
    broker.create_topic("s", "t", 1).unwrap();
    let client = connect(&broker.address().to_string()).await;
    std::fs::remove_dir_all(folder.path().join("partitions")).unwrap();
    let mut messages = [message(1)];
    let partitioning = Partitioning::partition_id(0);
    let sent = client
        .send_messages(&named("s"), &named("t"), &partitioning, &mut messages)
        .await;
    sent.unwrap_err();
    client.create_stream("other").await.unwrap_err();
    broker.stop().await.unwrap_err();
}
