//! Sources that are not what they were: purged, rolled back, expired, unreadable.

use anyhow::Result;
use iggy_binary_protocol::codes::POLL_MESSAGES_CODE;
use sluice_devbroker::{Action, Loss, Rule};
use sluice_harness::{Message, Setup};

fn messages(count: u128) -> Vec<Message> {
    (1..=count)
        .map(|id| Message::new(id, format!("payload {id}")))
        .collect()
}

/// A hundred messages that were copied, and sluice stopped.
async fn copied(link: &str) -> Result<(Setup, String, Vec<Message>)> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages(400);
    setup.produce("t", 0, &all[..100]).await?;
    let config = setup.config(link, "[admin]\naddress = \"127.0.0.1:0\"")?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 100).await?;
    sluice.stop().await?;
    Ok((setup, config, all))
}

#[tokio::test]
async fn after_a_purge_restart_copies_all_that_the_source_holds_now() -> Result<()> {
    let (setup, config, all) = copied(r#"on_source_reset = "restart""#).await?;
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    setup.produce("t", 0, &all[200..230]).await?;
    let mut sluice = setup.run(&config)?;
    setup.arrived("t", 0, 130).await?;
    let metrics = sluice.get("/metrics").await?;
    assert!(metrics.contains("sluice_source_resets_total{"), "{metrics}");
    let report = sluice.stop().await?;
    assert_eq!(report.lanes[0].resets, 1, "{report:?}");
    assert_eq!(
        setup.delivered("t", 0).await?,
        [&all[..100], &all[200..230]].concat()
    );
    // The decision is durable: nothing comes again.
    setup.produce("t", 0, &all[230..231]).await?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 131).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (1, 0, 0));
    assert_eq!(report.lanes[0].resets, 0);
    Ok(())
}

#[tokio::test]
async fn after_a_purge_continue_copies_what_comes_from_now_on() -> Result<()> {
    let (setup, config, all) = copied(r#"on_source_reset = "continue""#).await?;
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    setup.produce("t", 0, &all[200..230]).await?;
    let mut sluice = setup.run(&config)?;
    sluice.logged("goes on by its on_source_reset").await?;
    setup.produce("t", 0, &all[230..250]).await?;
    setup.arrived("t", 0, 120).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.lanes[0].resets, 1, "{report:?}");
    assert_eq!(
        setup.delivered("t", 0).await?,
        [&all[..100], &all[230..250]].concat()
    );
    Ok(())
}

#[tokio::test]
async fn a_source_that_gave_its_offsets_again_is_noticed_at_the_start() -> Result<()> {
    for (policy, code) in [("stop", 4), ("restart", 0), ("continue", 0)] {
        let (setup, config, all) = copied(&format!("on_source_reset = {policy:?}")).await?;
        setup.source_broker().restart(Loss::Newest(10)).await?;
        setup.produce("t", 0, &all[200..230]).await?;
        let mut sluice = setup.run(&config)?;
        let expected = match policy {
            "restart" => [&all[..100], &all[..90], &all[200..230]].concat(),
            // Those at the offsets of the lost ones are left out, as the policy says.
            "continue" => [&all[..100], &all[210..230]].concat(),
            _ => all[..100].to_vec(),
        };
        if code == 0 {
            setup.arrived("t", 0, expected.len()).await?;
            sluice.signal("TERM").await?;
        } else {
            sluice.logged("sluice checkpoint set").await?;
        }
        let (ended, report, log) = sluice.end().await?;
        assert_eq!(ended, Some(code), "{policy}: {log}");
        assert!(
            log.contains("no longer holds the message that was copied last"),
            "{policy}: {log}"
        );
        assert!(report.is_some(), "{policy}");
        assert_eq!(setup.delivered("t", 0).await?, expected, "{policy}");
    }
    Ok(())
}

#[tokio::test]
async fn a_topic_created_anew_with_the_same_ids_is_noticed_only_where_content_differs() -> Result<()>
{
    let (setup, config, all) = copied("").await?;
    // The same numbers, other messages: filled past the checkpoint.
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    setup.produce("t", 0, &all[200..350]).await?;
    let (code, _, log) = setup.run(&config)?.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert_eq!(setup.delivered("t", 0).await?, all[..100]);
    Ok(())
}

#[tokio::test]
async fn a_gap_stops_the_link_where_the_policy_says_so() -> Result<()> {
    let (setup, config, all) = copied(r#"on_gap = "stop""#).await?;
    setup.produce("t", 0, &all[100..200]).await?;
    assert!(setup.source_broker().expire(&setup.stream, "t", 0, 150));
    let (code, _, log) = setup.run(&config)?.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert!(
        log.contains("no longer has the 50 messages at offsets 100 to 149"),
        "{log}"
    );
    assert!(log.contains("on_gap"), "{log}");
    assert_eq!(setup.delivered("t", 0).await?, all[..100]);
    Ok(())
}

#[tokio::test]
async fn a_gap_is_counted_although_nothing_is_left() -> Result<()> {
    let (setup, config, all) = copied("").await?;
    setup.produce("t", 0, &all[100..200]).await?;
    assert!(setup.source_broker().expire(&setup.stream, "t", 0, 200));
    let mut sluice = setup.run(&config)?;
    sluice
        .logged("no longer has the 100 messages at offsets 100 to 199")
        .await?;
    let metrics = sluice.get("/metrics").await?;
    let gap = metrics
        .lines()
        .find(|line| line.starts_with("sluice_gap_messages_total{"));
    assert!(gap.is_some_and(|line| line.ends_with(" 100")), "{metrics}");
    setup.produce("t", 0, &all[200..210]).await?;
    setup.arrived("t", 0, 110).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.gaps(), 100);
    Ok(())
}

#[tokio::test]
async fn a_read_fault_raises_an_alert_until_the_source_can_be_read_again() -> Result<()> {
    let (setup, config, all) = copied("").await?;
    setup.produce("t", 0, &all[100..200]).await?;
    let unreadable = Rule::next(Action::EmptyPoll)
        .code(POLL_MESSAGES_CODE)
        .always();
    setup.source_broker().faults().add(unreadable);
    let mut sluice = setup.run(&config)?;
    sluice.logged("cannot read them").await?;
    let status = sluice.get("/status").await?;
    assert!(
        status.contains(r#""alerts":[{"kind":"read_fault","offset":100}]"#),
        "{status}"
    );
    let metrics = sluice.get("/metrics").await?;
    assert!(
        metrics
            .lines()
            .any(|line| line.starts_with("sluice_lane_read_fault{") && line.ends_with(" 1")),
        "{metrics}"
    );
    setup.source_broker().faults().clear();
    setup.arrived("t", 0, 200).await?;
    let status = sluice.get("/status").await?;
    assert!(status.contains(r#""alerts":[]"#), "{status}");
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, all[..200]);
    Ok(())
}
