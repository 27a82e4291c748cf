//! Which requests a rule is for.

use iggy::prelude::{
    Consumer, ConsumerOffsetClient, Identifier, IggyError, IggyMessage, MessageClient,
    Partitioning, PollingStrategy, TopicClient,
};
use iggy_binary_protocol::codes::{
    ATTACH_CONSUMER_SESSION_CODE, GET_CONSUMER_OFFSET_ROUTING_CODE, GET_POLL_ROUTING_CODE,
    GET_TOPIC_CODE, POLL_MESSAGES_ON_PRIMARY_CODE, SEND_MESSAGES_CODE,
};
use sluice_devbroker::{Action, Rule};

use crate::{Bench, STREAM, TOPIC, named, send, send_to};

fn refusal() -> Action {
    Action::Refuse(IggyError::Unauthorized.as_code())
}

#[tokio::test]
async fn requests_are_skipped_and_counted() {
    let bench = Bench::start().await;
    let rule = Rule::next(refusal()).code(SEND_MESSAGES_CODE);
    bench.broker.faults().add(rule.after(1).times(2));
    assert_eq!(bench.broker.faults().pending(), 2);
    let mut sent = Vec::new();
    for id in 1..6 {
        sent.push(send(&bench.client, id).await.is_ok());
    }
    assert_eq!(sent, [true, false, false, true, true]);
    assert_eq!(bench.broker.faults().pending(), 0);
}

#[tokio::test]
async fn a_rule_can_always_hold_until_rules_are_cleared() {
    let bench = Bench::start().await;
    let rule = Rule::next(refusal()).code(SEND_MESSAGES_CODE).always();
    bench.broker.faults().add(rule);
    for id in 1..4 {
        send(&bench.client, id).await.unwrap_err();
    }
    assert_eq!(bench.broker.faults().pending(), 0);
    bench.broker.faults().clear();
    send(&bench.client, 4).await.unwrap();
    assert_eq!(bench.ids(), [4]);
}

#[tokio::test]
async fn a_rule_can_be_for_one_partition() {
    let bench = Bench::start().await;
    let rule = Rule::next(refusal()).partition(TOPIC, 1);
    bench.broker.faults().add(rule.stream(STREAM).times(2));
    let consumer = Consumer::new(named("c"));
    send_to(&bench.client, 0, 1).await.unwrap();
    send_to(&bench.client, 1, 2).await.unwrap_err();
    let (stream, topic) = (named(STREAM), named(TOPIC));
    let stored = async |partition| {
        bench
            .client
            .get_consumer_offset(&consumer, &stream, &topic, Some(partition))
            .await
    };
    stored(0).await.unwrap();
    stored(1).await.unwrap_err();
    send_to(&bench.client, 1, 3).await.unwrap();
}

#[tokio::test]
async fn a_rule_names_what_a_request_numbers() {
    let bench = Bench::start().await;
    let rule = Rule::next(refusal()).code(SEND_MESSAGES_CODE);
    bench.broker.faults().add(rule.partition(TOPIC, 0));
    let number = Identifier::numeric(0).unwrap();
    let mut messages = [IggyMessage::builder().payload("x".into()).build().unwrap()];
    let partitioning = Partitioning::partition_id(0);
    let sent = bench
        .client
        .send_messages(&number, &number, &partitioning, &mut messages)
        .await;
    assert!(matches!(sent, Err(IggyError::Unauthorized)), "{sent:?}");
}

#[tokio::test]
async fn a_rule_can_be_for_another_topic_or_stream() {
    let bench = Bench::start().await;
    let faults = bench.broker.faults();
    faults.add(Rule::next(refusal()).topic("other"));
    faults.add(Rule::next(refusal()).stream("other"));
    send(&bench.client, 1).await.unwrap();
    assert_eq!(faults.pending(), 2);
    bench.broker.create_topic(STREAM, "other", 1).unwrap();
    let (stream, other) = (named(STREAM), named("other"));
    bench.client.get_topic(&stream, &other).await.unwrap_err();
    assert_eq!(faults.pending(), 1);
}

#[tokio::test]
async fn the_first_of_the_rules_applies_and_requests_are_counted_by_code() {
    let bench = Bench::start().await;
    let faults = bench.broker.faults();
    let first = Rule::next(refusal()).code(GET_TOPIC_CODE);
    let second = Rule::next(Action::Refuse(IggyError::UserInactive.as_code()));
    faults.add(first);
    faults.add(second.code(GET_TOPIC_CODE));
    let mut errors = Vec::new();
    for _ in 0..3 {
        let (stream, topic) = (named(STREAM), named(TOPIC));
        let found = bench.client.get_topic(&stream, &topic).await;
        errors.push(found.err().map(|error| error.as_code()));
    }
    let expected = [
        Some(IggyError::Unauthorized.as_code()),
        Some(IggyError::UserInactive.as_code()),
        None,
    ];
    assert_eq!(errors, expected);
    assert_eq!(bench.broker.requests(GET_TOPIC_CODE), 3);
}

#[tokio::test]
async fn a_single_node_is_asked_for_no_route() {
    let bench = Bench::start().await;
    let (stream, topic) = (named(STREAM), named(TOPIC));
    let consumer = Consumer::new(named("c"));
    send(&bench.client, 1).await.unwrap();
    let (strategy, partition) = (PollingStrategy::next(), Some(0));
    let polled = bench
        .client
        .poll_messages(&stream, &topic, partition, &consumer, &strategy, 1, true)
        .await;
    assert_eq!(polled.unwrap().messages.len(), 1);
    bench
        .client
        .store_consumer_offset(&consumer, &stream, &topic, partition, 0)
        .await
        .unwrap();
    bench
        .client
        .delete_consumer_offset(&consumer, &stream, &topic, partition)
        .await
        .unwrap();
    for code in [
        ATTACH_CONSUMER_SESSION_CODE,
        GET_POLL_ROUTING_CODE,
        POLL_MESSAGES_ON_PRIMARY_CODE,
        GET_CONSUMER_OFFSET_ROUTING_CODE,
    ] {
        assert_eq!(bench.broker.requests(code), 0, "code {code}");
    }
}
