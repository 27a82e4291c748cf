//! Requests that are not executed, or late.

use iggy::prelude::{IggyError, PollingStrategy};
use iggy_binary_protocol::codes::{LOGIN_REGISTER_CODE, POLL_MESSAGES_CODE, SEND_MESSAGES_CODE};
use iggy_binary_protocol::consensus::EvictionReason;
use sluice_devbroker::{Action, Gate, Rule};

use crate::{Bench, connect, poll, read, send, try_connect};

#[tokio::test]
async fn a_send_that_is_cut_off_is_not_stored() {
    for action in [Action::CloseBefore, Action::CutRequest] {
        let bench = Bench::start().await;
        bench.at_send(action.clone());
        let sent = send(&bench.client, 1).await;
        assert!(
            matches!(sent, Err(IggyError::Disconnected)),
            "{action:?}: {sent:?}"
        );
        assert!(bench.ids().is_empty(), "{action:?}");
        send(&bench.client, 2).await.unwrap();
        assert_eq!(bench.ids(), [2], "{action:?}");
    }
}

#[tokio::test]
async fn a_refused_request_has_the_error_of_the_code() {
    let bench = Bench::start().await;
    let rule = Rule::next(Action::Refuse(IggyError::Unauthorized.as_code()));
    bench.broker.faults().add(rule.code(POLL_MESSAGES_CODE));
    let polled = poll(&bench.client, 0, PollingStrategy::offset(0)).await;
    assert!(matches!(polled, Err(IggyError::Unauthorized)), "{polled:?}");
    poll(&bench.client, 0, PollingStrategy::offset(0))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_send_that_is_not_accepted_is_repeated_by_the_client_and_stored_once() {
    let bench = Bench::start().await;
    bench.at_send(Action::Refuse(IggyError::TransientNotAccepted.as_code()));
    send(&bench.client, 1).await.unwrap();
    assert_eq!(bench.ids(), [1]);
    assert_eq!(bench.broker.requests(SEND_MESSAGES_CODE), 2);
}

#[tokio::test]
async fn an_ignored_send_is_not_stored_and_the_connection_stays_open() {
    let bench = Bench::start().await;
    bench.at_send(Action::Ignore);
    let sending = bench.send_aside(1).await;
    bench.broker.requested(SEND_MESSAGES_CODE, 1).await;
    send(&bench.client, 2).await.unwrap();
    assert_eq!(bench.ids(), [2]);
    assert_eq!(bench.broker.connections(), 2);
    assert!(!sending.is_finished());
    sending.abort();
}

#[tokio::test]
async fn a_held_send_is_executed_when_the_gate_opens() {
    let bench = Bench::start().await;
    let gate = Gate::default();
    bench.at_send(Action::HoldExecution(gate.clone()));
    let sending = bench.send_aside(1).await;
    gate.reached_by(1).await;
    send(&bench.client, 2).await.unwrap();
    assert_eq!(bench.ids(), [2]);
    gate.open();
    sending.await.unwrap().unwrap();
    assert_eq!(bench.ids(), [2, 1]);
}

#[tokio::test]
async fn a_held_send_is_executed_although_the_client_is_gone() {
    let bench = Bench::start().await;
    let gate = Gate::default();
    bench.at_send(Action::HoldExecution(gate.clone()));
    let sending = bench.send_aside(1).await;
    gate.reached_by(1).await;
    sending.abort();
    bench.broker.close_connections().await;
    assert!(bench.ids().is_empty());
    gate.open();
    bench.broker.holds("s", "t", 0, 1).await;
    assert_eq!(bench.ids(), [1]);
}

#[tokio::test]
async fn an_evicted_session_is_replaced_by_a_new_one() {
    let bench = Bench::start().await;
    let rule = Rule::next(Action::Evict(EvictionReason::StaleClient)).code(POLL_MESSAGES_CODE);
    bench.broker.faults().add(rule);
    let logins = bench.broker.requests(LOGIN_REGISTER_CODE);
    assert_eq!(read(&bench.client, 0).await, []);
    assert!(bench.broker.requests(LOGIN_REGISTER_CODE) > logins);
}

#[tokio::test]
async fn logins_can_be_refused() {
    let bench = Bench::start().await;
    let rule = Rule::next(Action::Evict(EvictionReason::InvalidCredentials));
    bench.broker.faults().add(rule.code(LOGIN_REGISTER_CODE));
    let refused = try_connect(&bench.broker, 0).await;
    assert!(
        matches!(refused, Err(IggyError::InvalidCredentials)),
        "{refused:?}"
    );
    connect(&bench.broker).await;
}

#[tokio::test]
async fn without_a_leader_nothing_is_executed_until_one_is_elected() {
    let bench = Bench::start().await;
    bench.broker.faults().lose_leader();
    let sending = bench.send_aside(1).await;
    bench.broker.requested(SEND_MESSAGES_CODE, 2).await;
    assert!(bench.ids().is_empty());
    bench.broker.faults().elect_leader();
    sending.await.unwrap().unwrap();
    assert_eq!(bench.ids(), [1]);
}
