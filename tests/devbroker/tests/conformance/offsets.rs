//! Stored consumer offsets.

use iggy::prelude::{
    Consumer, ConsumerOffsetClient, Identifier, IggyError, StreamClient, TopicClient,
};

use crate::Bench;

fn consumer() -> Consumer {
    Consumer::new(Identifier::named("c").unwrap())
}

#[tokio::test]
async fn an_offset_is_stored_rewound_and_deleted() {
    let bench = Bench::start("store").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..11).await;
    let (client, stream) = (&bench.client, &bench.stream);
    let stored = async || {
        let info = client
            .get_consumer_offset(&consumer(), stream, &topic, Some(0))
            .await
            .unwrap();
        info.map(|info| (info.stored_offset, info.current_offset))
    };
    assert_eq!(stored().await, None);
    for offset in [9, 3] {
        client
            .store_consumer_offset(&consumer(), stream, &topic, Some(0), offset)
            .await
            .unwrap();
        assert_eq!(stored().await, Some((offset, 9)));
    }
    client
        .delete_consumer_offset(&consumer(), stream, &topic, Some(0))
        .await
        .unwrap();
    assert_eq!(stored().await, None);
    let again = client
        .delete_consumer_offset(&consumer(), stream, &topic, Some(0))
        .await;
    assert!(
        matches!(again, Err(IggyError::ConsumerOffsetNotFound(_))),
        "{again:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn an_offset_past_the_end_is_refused() {
    let bench = Bench::start("beyond").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..3).await;
    let stored = bench
        .client
        .store_consumer_offset(&consumer(), &bench.stream, &topic, Some(0), 2)
        .await;
    assert!(
        matches!(stored, Err(IggyError::InvalidOffset(_))),
        "{stored:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_purge_drops_stored_offsets() {
    let bench = Bench::start("purged").await;
    let topic = bench.topic("t", 1).await;
    bench.send(&topic, 0, 1..3).await;
    let (client, stream) = (&bench.client, &bench.stream);
    client
        .store_consumer_offset(&consumer(), stream, &topic, Some(0), 1)
        .await
        .unwrap();
    client.purge_topic(stream, &topic).await.unwrap();
    let stored = client
        .get_consumer_offset(&consumer(), stream, &topic, Some(0))
        .await
        .unwrap();
    assert!(stored.is_none());
    client.purge_stream(stream).await.unwrap();
    bench.finish().await;
}
