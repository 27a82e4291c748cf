//! Replays that are killed or meet faults: each message arrives once all the same.

use anyhow::{Context, Result};
use iggy_binary_protocol::codes::SEND_MESSAGES_CODE;
use sluice_devbroker::{Action, Gate, Rule};
use sluice_harness::{Message, Setup, header};

use super::{dead_letter, faulty, orders, rejected, repaired, replay, start, visits};

/// Starts a replay and kills it when a send was executed and waits for its reply.
async fn kill_at_send(setup: &Setup, config: &str, arguments: &[&str], send: u64) -> Result<()> {
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(send);
    setup.destination_broker().faults().add(held);
    let sluice = start(setup, config, &[&["replay"], arguments].concat())?;
    gate.reached_by(1).await;
    sluice.kill().await?;
    gate.open();
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_it_neither_loses_nor_repeats_a_message() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 2).await?;
    let sent = [rejected(1..=900), rejected(10_001..=10_900)];
    for (partition, sent) in (0..).zip(&sent) {
        setup.produce("t", partition, sent).await?;
    }
    dead_letter(&setup, &faulty(&setup)?, 1800).await?;
    let config = repaired(&setup)?;
    for send in [0, 1, 4, 2, 7] {
        kill_at_send(&setup, &config, &[], send).await?;
    }
    // What was sent is not forgotten when the next replay is about other letters, even without guests.
    let last = ["--no-guests", "--offset", "1799"];
    let (summary, _) = replay(&setup, &config, &last).await?;
    assert!(summary["found"].as_u64() > Some(0), "{summary}");
    replay(&setup, &config, &[]).await?;
    assert_eq!(replay(&setup, &config, &[]).await?.1, [0, 0, 0, 1800]);
    let letters = setup.dead_letters().await?;
    let early = letters.last().context("a letter")?.id;
    let mut count = 0;
    for (partition, sent) in (0..).zip(&sent) {
        for (topic, expected) in [("t", visits(sent)), ("orders", orders(sent))] {
            let delivered = setup.delivered(topic, partition).await?;
            count += delivered.len();
            let others = |message: &&Message| message.id != early;
            let (delivered, expected) = (delivered.iter(), expected.iter());
            assert!(
                delivered.filter(others).eq(expected.filter(others)),
                "{topic}/{partition}"
            );
        }
    }
    assert_eq!(count, 1800);
    Ok(())
}

#[tokio::test]
async fn a_repetition_that_was_asked_for_and_killed_goes_on_where_it_was() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let sent = rejected(1..=600);
    setup.produce("t", 0, &sent).await?;
    dead_letter(&setup, &faulty(&setup)?, 600).await?;
    let config = setup.config("batch = { messages = 100 }", "")?;
    replay(&setup, &config, &[]).await?;
    kill_at_send(&setup, &config, &["--again"], 4).await?;
    replay(&setup, &config, &["--again"]).await?;
    let delivered = setup.delivered("t", 0).await?;
    assert!(
        delivered == [&sent[..], &sent[..]].concat(),
        "{}",
        delivered.len()
    );
    Ok(())
}

#[tokio::test]
async fn a_lost_reply_repeats_nothing() -> Result<()> {
    for action in [
        Action::LoseReply,
        Action::LoseConfirmation,
        Action::CutReply,
    ] {
        let setup = Setup::with_faults().await?;
        setup.topic("t", 1).await?;
        let sent = rejected(1..=600);
        setup.produce("t", 0, &sent).await?;
        dead_letter(&setup, &faulty(&setup)?, 600).await?;
        for place in [0, 2, 3] {
            let rule = Rule::next(action.clone())
                .code(SEND_MESSAGES_CODE)
                .after(place);
            setup.destination_broker().faults().add(rule);
        }
        let config = setup.config("batch = { messages = 100 }", "")?;
        let (summary, numbers) = replay(&setup, &config, &[]).await?;
        assert_eq!(numbers, [600, 0, 0, 0], "{action:?}");
        assert!(summary["found"].as_u64() > Some(0), "{action:?}: {summary}");
        assert_eq!(setup.destination_broker().faults().pending(), 0);
        assert!(setup.delivered("t", 0).await? == sent, "{action:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_message_that_fails_again_becomes_one_new_letter() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let sent = rejected(1..=300);
    setup.produce("t", 0, &sent).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 300).await?;
    for send in [1, 2] {
        kill_at_send(&setup, &config, &[], send).await?;
    }
    let (_, numbers) = replay(&setup, &config, &[]).await?;
    assert_eq!(numbers[0], 0);
    let letters = setup.dead_letters().await?;
    assert_eq!(letters.len(), 600);
    for (place, (first, second)) in letters.iter().zip(&letters[300..]).enumerate() {
        assert_eq!(header(first, "sluice-replayed"), None);
        let replayed = header(second, "sluice-replayed");
        assert_eq!(replayed, Some(place.to_string()));
        for key in ["sluice-offset", "sluice-reason", "n", "type"] {
            assert_eq!(header(first, key), header(second, key), "{key}");
        }
    }
    // The new ones are for the next replay; they bring the messages as they were.
    let (_, numbers) = replay(&setup, &config, &["--no-guests"]).await?;
    assert_eq!(numbers, [300, 0, 0, 300]);
    assert_eq!(setup.delivered("t", 0).await?, sent);
    Ok(())
}

#[tokio::test]
async fn letters_at_the_offsets_of_purged_ones_are_others() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let sent = rejected(1..=10);
    setup.produce("t", 0, &sent[..5]).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 5).await?;
    replay(&setup, &config, &["--no-guests"]).await?;
    let broker = setup.destination_broker();
    assert!(broker.purge(&setup.stream, "dead-letters", 0));
    setup.produce("t", 0, &sent[5..]).await?;
    dead_letter(&setup, &config, 5).await?;
    let (_, numbers) = replay(&setup, &config, &["--no-guests"]).await?;
    assert_eq!(numbers, [5, 0, 0, 0]);
    assert_eq!(setup.delivered("t", 0).await?, sent);
    Ok(())
}
