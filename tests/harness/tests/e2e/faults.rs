//! Faults of the clusters: whatever happens to a request, every message arrives once and in order.

use std::time::Duration;

use anyhow::Result;
use iggy::prelude::IggyError;
use iggy_binary_protocol::codes::{GET_TOPIC_CODE, POLL_MESSAGES_CODE, SEND_MESSAGES_CODE};
use iggy_binary_protocol::consensus::EvictionReason;
use sluice_devbroker::{Action, Gate, Loss, Rule};
use sluice_harness::{Message, Report, Setup, guest};

const MESSAGES: u128 = 3000;

fn messages() -> Vec<Message> {
    (1..=MESSAGES)
        .map(|id| Message::new(id, format!("payload {id}")))
        .collect()
}

/// Copies one partition in small batches while the brokers show faults; everything must arrive once, in order.
async fn copies_through(prepare: impl FnOnce(&Setup)) -> Result<Report> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    setup.produce("t", 0, &messages()).await?;
    prepare(&setup);
    let config = setup.config("batch = { messages = 100 }", "")?;
    let config = config.replace("address", "timeout = \"500 ms\"\naddress");
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, messages().len()).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (3000, 0, 0));
    assert_eq!(setup.delivered("t", 0).await?, messages());
    assert_eq!(
        setup.source_broker().faults().pending(),
        0,
        "not every fault was met"
    );
    assert_eq!(
        setup.destination_broker().faults().pending(),
        0,
        "not every fault was met"
    );
    Ok(report)
}

/// A fault of every third send from the second on.
fn at_sends(setup: &Setup, action: &Action) {
    for place in 0..5 {
        let rule = Rule::next(action.clone())
            .code(SEND_MESSAGES_CODE)
            .after(2 * place + 1);
        setup.destination_broker().faults().add(rule);
    }
}

#[tokio::test]
async fn a_send_whose_reply_is_lost_is_not_repeated() -> Result<()> {
    for action in [Action::LoseReply, Action::CutReply] {
        let report = copies_through(|setup| at_sends(setup, &action)).await?;
        assert!(report.found() >= 100, "{action:?}: {report:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_send_that_was_not_executed_is_repeated() -> Result<()> {
    let busy = IggyError::TransientNotAccepted.as_code();
    for action in [
        Action::CloseBefore,
        Action::CutRequest,
        Action::Evict(EvictionReason::NoSession),
        Action::Refuse(IggyError::ShardCommunicationError.as_code()),
        Action::Refuse(busy),
    ] {
        let report = copies_through(|setup| at_sends(setup, &action)).await?;
        assert_eq!(report.found(), 0, "{action:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_error_after_the_send_was_executed_repeats_nothing() -> Result<()> {
    let action = Action::RefuseAfter(IggyError::ShardCommunicationError.as_code());
    let report = copies_through(|setup| at_sends(setup, &action)).await?;
    assert!(report.found() >= 100, "{report:?}");
    Ok(())
}

#[tokio::test]
async fn a_send_without_a_confirmation_is_looked_up() -> Result<()> {
    let report = copies_through(|setup| at_sends(setup, &Action::LoseConfirmation)).await?;
    assert!(report.found() >= 400, "{report:?}");
    Ok(())
}

#[tokio::test]
async fn a_slow_reply_is_waited_for() -> Result<()> {
    let action = Action::Delay(Duration::from_millis(5));
    let report = copies_through(|setup| at_sends(setup, &action)).await?;
    assert_eq!(report.found(), 0);
    Ok(())
}

#[tokio::test]
async fn failed_polls_skip_nothing() -> Result<()> {
    for action in [
        Action::LoseReply,
        Action::CutReply,
        Action::CloseBefore,
        Action::EmptyPoll,
        Action::Silence,
        Action::Refuse(IggyError::TransientNotAccepted.as_code()),
    ] {
        copies_through(|setup| {
            for place in 0..5 {
                let rule = Rule::next(action.clone())
                    .code(POLL_MESSAGES_CODE)
                    .after(2 * place);
                setup.source_broker().faults().add(rule);
            }
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn failed_topology_calls_are_repeated() -> Result<()> {
    copies_through(|setup| {
        for broker in [setup.source_broker(), setup.destination_broker()] {
            broker
                .faults()
                .add(Rule::next(Action::LoseReply).code(GET_TOPIC_CODE));
        }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_lookup_after_a_lost_reply_may_fail_too() -> Result<()> {
    let report = copies_through(|setup| {
        at_sends(setup, &Action::LoseReply);
        for place in 1..4 {
            let rule = Rule::next(Action::CloseBefore)
                .code(POLL_MESSAGES_CODE)
                .after(place);
            setup.destination_broker().faults().add(rule);
        }
    })
    .await?;
    assert!(report.found() >= 100, "{report:?}");
    Ok(())
}

#[tokio::test]
async fn a_restart_of_either_cluster_is_survived() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    let all = messages();
    for (round, part) in all.chunks(300).enumerate() {
        setup.produce("t", 0, part).await?;
        setup.arrived("t", 0, (round + 1) * 300).await?;
        let broker = if round % 2 == 0 {
            setup.destination_broker()
        } else {
            setup.source_broker()
        };
        broker.restart(Loss::None).await?;
    }
    assert_eq!(sluice.stop().await?.settled(), (3000, 0, 0));
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}

/// Runs until a send was executed and waits for its reply, then kills sluice. Its checkpoints are as old as can be.
async fn killed_after_send(setup: &Setup, config: &str, send: u64) -> Result<()> {
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(send);
    setup.destination_broker().faults().add(held);
    let sluice = setup.run(config)?;
    gate.reached_by(1).await;
    sluice.kill().await?;
    gate.open();
    Ok(())
}

/// A configuration with small batches whose checkpoints are written when a destination is opened, and at the end.
fn lagging(setup: &Setup, link: &str, guests: &str) -> Result<String> {
    let config = setup.config(&format!("batch = {{ messages = 100 }}\n{link}"), guests)?;
    Ok(config.replace(
        r#"name = "test""#,
        "name = \"test\"\ncheckpoint_interval = \"1 h\"",
    ))
}

#[tokio::test]
async fn messages_of_other_writers_do_not_disturb() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..1000]).await?;
    let config = lagging(&setup, "", "")?;
    killed_after_send(&setup, &config, 3).await?;
    let foreign = Message::new(777_777_777, "foreign");
    setup
        .intrude("t", 0, std::slice::from_ref(&foreign))
        .await?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 1001).await?;
    let report = sluice.stop().await?;
    assert!(report.found() > 100, "{report:?}");
    let delivered = setup.delivered("t", 0).await?;
    let own: Vec<_> = delivered
        .into_iter()
        .filter(|message| *message != foreign)
        .collect();
    assert_eq!(own, all[..1000]);
    Ok(())
}

#[tokio::test]
async fn a_send_without_any_reply_is_given_up_and_looked_up() -> Result<()> {
    let silent = Rule::next(Action::Silence)
        .code(SEND_MESSAGES_CODE)
        .after(3);
    let report = copies_through(|setup| setup.destination_broker().faults().add(silent)).await?;
    assert!(report.found() >= 100, "{report:?}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_is_busy_for_long_gets_each_message_once() -> Result<()> {
    for busy in [
        IggyError::TransientNotCommitted,
        IggyError::TransientNotAccepted,
    ] {
        let rule = Rule::next(Action::Refuse(busy.as_code())).code(SEND_MESSAGES_CODE);
        copies_through(|setup| {
            setup
                .destination_broker()
                .faults()
                .add(rule.after(1).times(25));
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_lookup_that_is_answered_empty_is_asked_again() -> Result<()> {
    let report = copies_through(|setup| {
        let faults = setup.destination_broker().faults();
        faults.add(
            Rule::next(Action::LoseReply)
                .code(SEND_MESSAGES_CODE)
                .after(3),
        );
        // The first poll of the destination finds its end; the lookup comes after.
        faults.add(
            Rule::next(Action::EmptyPoll)
                .code(POLL_MESSAGES_CODE)
                .after(2),
        );
    })
    .await?;
    assert!(report.found() >= 100, "{report:?}");
    Ok(())
}

#[tokio::test]
async fn a_destination_that_lost_messages_gets_no_later_one_twice() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..100]).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, 100).await?;
    let lost = Rule::next(Action::LoseReply).code(SEND_MESSAGES_CODE);
    setup.destination_broker().faults().add(lost);
    setup.destination_broker().restart(Loss::Newest(10)).await?;
    setup.produce("t", 0, &all[100..150]).await?;
    setup.arrived("t", 0, 140).await?;
    sluice.stop().await?;
    let expected = [&all[..90], &all[100..150]].concat();
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

#[tokio::test]
async fn messages_that_expired_at_the_destination_are_not_sent_again() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..1000]).await?;
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(3);
    setup.destination_broker().faults().add(held);
    let sluice = setup.run(&setup.config("batch = { messages = 100 }", "")?)?;
    gate.reached_by(1).await;
    // Of the fourth batch, which holds the messages from 73 on.
    assert!(setup.destination_broker().expire(&setup.stream, "t", 0, 80));
    setup.destination_broker().close_connections().await;
    setup.arrived("t", 0, 920).await?;
    sluice.stop().await?;
    gate.open();
    assert_eq!(setup.delivered("t", 0).await?, all[80..1000]);
    Ok(())
}

#[tokio::test]
async fn a_decision_that_changed_while_it_was_down_repeats_no_other_message() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let mut all = messages();
    all[120].payload = "reject".into();
    setup.produce("t", 0, &all[..1000]).await?;
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n",
        guest("faulty")?.display()
    );
    let config = lagging(&setup, "guests = [\"g\"]\non_error = \"drop\"", &section)?;
    killed_after_send(&setup, &config, 3).await?;
    let sluice = setup.run(&config.replace(r#""drop""#, r#""forward""#))?;
    setup.arrived("t", 0, 1000).await?;
    sluice.stop().await?;
    let mut delivered = setup.delivered("t", 0).await?;
    delivered.sort_by_key(|message| message.id);
    assert_eq!(delivered, all[..1000]);
    Ok(())
}

#[tokio::test]
async fn a_destination_that_was_purged_before_its_first_message_gets_none_twice() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    setup.destination_topic("t", 1).await?;
    let all = messages();
    setup.intrude("t", 0, &all[2000..2050]).await?;
    setup.produce("t", 0, &all[..1000]).await?;
    // The lane has marked the partition's end when it is purged; then the first send is executed, and the second is
    // not answered.
    let gate = Gate::default();
    let held = Rule::next(Action::HoldExecution(gate.clone())).code(SEND_MESSAGES_CODE);
    let lost = Rule::next(Action::LoseReply)
        .code(SEND_MESSAGES_CODE)
        .after(1);
    setup.destination_broker().faults().add(held);
    setup.destination_broker().faults().add(lost);
    let sluice = setup.run(&setup.config("batch = { messages = 100 }", "")?)?;
    gate.reached_by(1).await;
    assert!(setup.destination_broker().purge(&setup.stream, "t", 0));
    gate.open();
    setup.arrived("t", 0, 1000).await?;
    let report = sluice.stop().await?;
    assert!(report.found() > 0, "{report:?}");
    assert_eq!(setup.delivered("t", 0).await?, all[..1000]);
    Ok(())
}

#[tokio::test]
async fn two_kills_and_a_decision_that_changed_between_repeat_nothing() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let mut all = messages();
    all[120].payload = "reject".into();
    let all = &all[..1000];
    setup.produce("t", 0, all).await?;
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n",
        guest("faulty")?.display()
    );
    let config = lagging(&setup, "guests = [\"g\"]\non_error = \"drop\"", &section)?;
    killed_after_send(&setup, &config, 6).await?;
    // The second run sends the message that the first one dropped, and is killed before it has gone over the rest.
    let held = Gate::default();
    let poll = Rule::next(Action::HoldReply(held.clone()))
        .code(POLL_MESSAGES_CODE)
        .after(6);
    setup.source_broker().faults().add(poll);
    let forward = config
        .replace(r#""drop""#, r#""forward""#)
        .replace("1 h", "1 ms");
    let mut sluice = setup.run(&forward)?;
    held.reached_by(1).await;
    sluice.logged("found delivered").await?;
    sluice.kill().await?;
    held.open();
    let sluice = setup.run(&forward)?;
    setup.arrived("t", 0, 1000).await?;
    sluice.stop().await?;
    let mut delivered = setup.delivered("t", 0).await?;
    delivered.sort_by_key(|message| message.id);
    assert_eq!(delivered, all);
    Ok(())
}

#[tokio::test]
async fn a_source_that_lost_messages_and_was_filled_again_stops_the_link() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..100]).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, 100).await?;
    // Polls fail until the source holds other messages at the offsets that were copied.
    let down = Rule::next(Action::CloseBefore)
        .code(POLL_MESSAGES_CODE)
        .times(10_000);
    setup.source_broker().faults().add(down);
    setup.source_broker().restart(Loss::Newest(10)).await?;
    setup.produce("t", 0, &all[500..530]).await?;
    setup.source_broker().faults().clear();
    let (code, _, log) = sluice.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert!(
        log.contains("no longer holds the message that was copied last"),
        "{log}"
    );
    assert_eq!(setup.delivered("t", 0).await?, all[..100]);
    Ok(())
}

#[tokio::test]
async fn a_purge_of_a_source_with_one_message_is_noticed() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..1]).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, 1).await?;
    let polls = setup.source_broker().requests(POLL_MESSAGES_CODE);
    setup
        .source_broker()
        .requested(POLL_MESSAGES_CODE, polls + 2)
        .await;
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    setup.produce("t", 0, &all[500..505]).await?;
    let (code, _, log) = sluice.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert_eq!(setup.delivered("t", 0).await?, all[..1]);
    Ok(())
}

#[tokio::test]
async fn a_purged_source_stops_the_link() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..100]).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, 100).await?;
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    let (code, report, log) = sluice.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert!(
        log.contains("was purged, created anew or rolled back"),
        "{log}"
    );
    assert_eq!(report.expect("a report").settled(), (100, 0, 0));

    setup.produce("t", 0, &all[500..700]).await?;
    let (code, _, log) = setup.run(&setup.config("", "")?)?.end().await?;
    assert_eq!(code, Some(4), "refilled past the checkpoint: {log}");
    assert!(
        log.contains("no longer holds the message that was copied last"),
        "{log}"
    );
    assert_eq!(setup.delivered("t", 0).await?, all[..100]);
    Ok(())
}

#[tokio::test]
async fn messages_that_expired_before_they_were_copied_are_counted() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all[..100]).await?;
    let config = setup.config("", "")?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 100).await?;
    sluice.stop().await?;
    setup.produce("t", 0, &all[100..300]).await?;
    assert!(setup.source_broker().expire(&setup.stream, "t", 0, 150));
    let mut sluice = setup.run(&config)?;
    setup.arrived("t", 0, 250).await?;
    sluice.logged("no longer has the 50 messages").await?;
    let report = sluice.stop().await?;
    assert_eq!((report.settled(), report.gaps()), ((150, 0, 0), 50));
    assert_eq!(
        setup.delivered("t", 0).await?,
        [&all[..100], &all[150..300]].concat()
    );
    Ok(())
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_loses_nothing() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages();
    setup.produce("t", 0, &all).await?;
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(3);
    setup.destination_broker().faults().add(held);
    let config = setup.config("batch = { messages = 100 }", "")?;
    let mut sluice = setup.run(&config)?;
    gate.reached_by(1).await;
    sluice.signal("TERM").await?;
    sluice.logged("draining").await?;
    sluice.signal("TERM").await?;
    let (code, _, log) = sluice.end().await?;
    assert_eq!(code, Some(130), "{log}");
    gate.open();
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, all.len()).await?;
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}
