//! Requests that are executed, and answered badly.

use std::time::Duration;

use iggy::prelude::{IggyError, PollingStrategy};
use iggy_binary_protocol::codes::{POLL_MESSAGES_CODE, SEND_MESSAGES_CODE};
use sluice_devbroker::{Action, Gate, Rule};

use crate::{Bench, connect, poll, read, send};

#[tokio::test]
async fn a_send_whose_reply_is_lost_or_cut_fails_and_is_stored() {
    for action in [Action::LoseReply, Action::CutReply] {
        let bench = Bench::start().await;
        bench.at_send(action.clone());
        let sent = send(&bench.client, 1).await;
        assert!(
            matches!(sent, Err(IggyError::Disconnected)),
            "{action:?}: {sent:?}"
        );
        assert_eq!(bench.ids(), [1], "{action:?}");
        send(&bench.client, 2).await.unwrap();
        assert_eq!(
            bench.ids(),
            [1, 2],
            "{action:?}: the client goes on by itself"
        );
    }
}

#[tokio::test]
async fn a_poll_whose_reply_is_lost_is_repeated_by_the_client() {
    let bench = Bench::start().await;
    send(&bench.client, 1).await.unwrap();
    let rule = Rule::next(Action::LoseReply).code(POLL_MESSAGES_CODE);
    bench.broker.faults().add(rule);
    assert_eq!(read(&bench.client, 0).await, [(0, 1)]);
    assert_eq!(bench.broker.requests(POLL_MESSAGES_CODE), 2);
}

#[tokio::test]
async fn a_send_that_is_executed_and_refused_is_an_error() {
    let bench = Bench::start().await;
    let code = IggyError::CannotAppendMessage.as_code();
    bench.at_send(Action::RefuseAfter(code));
    let sent = send(&bench.client, 1).await;
    assert_eq!(sent.map(|_| ()).map_err(|error| error.as_code()), Err(code));
    assert_eq!(bench.ids(), [1]);
}

#[tokio::test]
async fn a_send_that_may_not_be_committed_is_repeated_by_the_client_and_stored_twice() {
    let bench = Bench::start().await;
    let code = IggyError::TransientNotCommitted.as_code();
    bench.at_send(Action::RefuseAfter(code));
    send(&bench.client, 1).await.unwrap();
    assert_eq!(bench.ids(), [1, 1]);
}

#[tokio::test]
async fn silence_leaves_the_message_stored_and_the_connection_open() {
    let bench = Bench::start().await;
    bench.at_send(Action::Silence);
    let sending = bench.send_aside(1).await;
    bench.broker.holds("s", "t", 0, 1).await;
    assert_eq!(bench.broker.connections(), 2);
    assert!(!sending.is_finished());
    sending.abort();
}

#[tokio::test]
async fn a_held_reply_comes_when_the_gate_opens() {
    let bench = Bench::start().await;
    let gate = Gate::default();
    bench.at_send(Action::HoldReply(gate.clone()));
    let sending = bench.send_aside(1).await;
    gate.reached_by(1).await;
    assert_eq!(bench.ids(), [1]);
    assert!(!sending.is_finished());
    gate.open();
    sending.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_late_reply_comes() {
    let bench = Bench::start().await;
    bench.at_send(Action::Delay(Duration::from_millis(1)));
    send(&bench.client, 1).await.unwrap();
    assert_eq!(bench.ids(), [1]);
}

#[tokio::test]
async fn a_lost_confirmation_is_a_success_that_tells_no_offset() {
    let bench = Bench::start().await;
    bench.at_send(Action::LoseConfirmation);
    let sent = send(&bench.client, 1).await.unwrap();
    assert!(sent.confirmations.is_empty());
    let sent = send(&bench.client, 2).await.unwrap();
    assert_eq!(sent.confirmations[0].base_offset, 1);
    assert_eq!(bench.ids(), [1, 2]);
}

#[tokio::test]
async fn an_empty_poll_tells_that_there_would_be_messages() {
    let bench = Bench::start().await;
    for id in 1..4 {
        send(&bench.client, id).await.unwrap();
    }
    let rule = Rule::next(Action::EmptyPoll).code(POLL_MESSAGES_CODE);
    bench.broker.faults().add(rule);
    let polled = poll(&bench.client, 0, PollingStrategy::offset(0))
        .await
        .unwrap();
    assert_eq!((polled.messages.len(), polled.current_offset), (0, 2));
    assert_eq!(read(&bench.client, 0).await.len(), 3);
}

#[tokio::test]
async fn a_reply_may_be_for_one_that_does_not_wait_any_more() {
    let bench = Bench::start().await;
    let gate = Gate::default();
    bench.at_send(Action::HoldReply(gate.clone()));
    let sending = bench.send_aside(1).await;
    gate.reached_by(1).await;
    sending.abort();
    assert!(sending.await.unwrap_err().is_cancelled());
    gate.open();
    let other = connect(&bench.broker).await;
    assert_eq!(read(&other, 0).await, [(0, 1)]);
    assert_eq!(bench.broker.requests(SEND_MESSAGES_CODE), 1);
}
