//! Copying, stopping, going on.

use anyhow::Result;
use bytes::Bytes;
use iggy::prelude::{Client, Identifier, IggyClient, IggyExpiry, TopicClient, TopicCreateOptions};
use sluice_harness::{Message, Setup};

fn messages(ids: std::ops::Range<u128>) -> Vec<Message> {
    ids.map(|id| Message::new(id, format!("payload {id}")).with(&[("n", &id.to_string())]))
        .collect()
}

#[tokio::test]
async fn every_partition_arrives_whole_in_order_and_unchanged() -> Result<()> {
    let setup = Setup::new().await?;
    let options = TopicCreateOptions {
        partitions_count: Some(4),
        message_expiry: Some(IggyExpiry::from(3_600_000_000)),
        ..TopicCreateOptions::default()
    };
    setup.topic_with("t", &options).await?;
    for partition in 0..4_u32 {
        let first = u128::from(partition) * 10_000 + 1;
        setup
            .produce("t", partition, &messages(first..first + 2500))
            .await?;
    }
    let sluice = setup.run(&setup.config("", "")?)?;
    for partition in 0..4 {
        setup.arrived("t", partition, 2500).await?;
    }
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (10_000, 0, 0));
    assert_eq!((report.error, report.lanes.len()), (None, 4));
    for partition in 0..4_u32 {
        let first = u128::from(partition) * 10_000 + 1;
        assert_eq!(
            setup.delivered("t", partition).await?,
            messages(first..first + 2500)
        );
    }
    let client = IggyClient::from_connection_string(setup.destination.connection_string())?;
    client.connect().await?;
    let (stream, topic) = (Identifier::named(&setup.stream)?, Identifier::named("t")?);
    let created = client.get_topic(&stream, &topic).await?.expect("created");
    assert_eq!(Some(created.message_expiry), options.message_expiry);
    Ok(())
}

#[tokio::test]
async fn odd_but_legal_messages_pass_unchanged() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let mut odd = vec![
        Message::new(0, "no id"),
        Message::new(0, "no id"),
        Message::new(1, Bytes::new()),
        Message::new(1, "the same id"),
        Message::new(2, vec![7; 60_000_000]),
        Message::new(3, "after the large one"),
        Message::new(4, "late").with(&[("k", "v")]),
        Message::new(5, "early"),
    ];
    odd[3].headers = Bytes::from_static(b"these are not headers");
    odd[5].headers = vec![1; 300_000].into();
    odd[6].origin_timestamp += 3 * 3_600_000_000;
    odd[7].origin_timestamp = 0;
    for message in &odd {
        setup.produce("t", 0, std::slice::from_ref(message)).await?;
    }
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, odd.len()).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (odd.len() as u64, 0, 0));
    let delivered = setup.delivered("t", 0).await?;
    assert_eq!(delivered.len(), odd.len());
    for (delivered, odd) in delivered.iter().zip(&odd) {
        assert!(delivered == odd, "message with id {} differs", odd.id);
    }
    Ok(())
}

#[tokio::test]
async fn a_restart_goes_on_after_the_last_settled_message() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let config = setup.config("", "")?;
    for round in 0..3_u128 {
        let ids = round * 100 + 1..round * 100 + 101;
        setup.produce("t", 0, &messages(ids.clone())).await?;
        setup.produce("t", 1, &messages(ids)).await?;
        let sluice = setup.run(&config)?;
        let due = usize::try_from((round + 1) * 100)?;
        setup.arrived("t", 0, due).await?;
        setup.arrived("t", 1, due).await?;
        let report = sluice.stop().await?;
        assert_eq!(report.settled(), (200, 0, 0), "round {round}");
        assert!(
            report
                .lanes
                .iter()
                .all(|lane| lane.next_offset == due as u64)
        );
    }
    assert_eq!(setup.delivered("t", 0).await?, messages(1..301));
    assert_eq!(setup.delivered("t", 1).await?, messages(1..301));
    Ok(())
}

#[tokio::test]
async fn messages_that_come_while_it_runs_are_copied_too() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    for id in 1..=20_u128 {
        setup.produce("t", 0, &messages(id..id + 1)).await?;
        setup.arrived("t", 0, usize::try_from(id)?).await?;
    }
    assert_eq!(sluice.stop().await?.settled(), (20, 0, 0));
    assert_eq!(setup.delivered("t", 0).await?, messages(1..21));
    Ok(())
}

#[tokio::test]
async fn a_link_can_start_at_the_end_or_at_an_offset() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    setup.produce("t", 0, &messages(1..11)).await?;
    let mut latest = setup.run(&setup.config(r#"start = "latest""#, "")?)?;
    latest.logged("lane starts").await?;
    setup.produce("t", 0, &messages(11..13)).await?;
    setup.arrived("t", 0, 2).await?;
    latest.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, messages(11..13));

    let offset = setup.config("start = { offset = 7 }", "")?;
    let offset = offset.replace(r#"name = "link""#, r#"name = "other""#);
    let sluice = setup.run(&offset)?;
    setup.arrived("t", 0, 7).await?;
    sluice.stop().await?;
    let expected = [messages(11..13), messages(8..13)].concat();
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

#[tokio::test]
async fn globs_select_topics_and_templates_name_destinations() -> Result<()> {
    let setup = Setup::new().await?;
    for topic in ["orders-eu", "orders-us", "orders-eu.tmp", "visits"] {
        setup.topic(topic, 1).await?;
        setup.produce(topic, 0, &messages(1..4)).await?;
    }
    let config = setup.config("", "")?;
    let config = config
        .replace(r#""]"#, r#""], topics = ["orders-*"], exclude = ["*.tmp"]"#)
        .replace(
            r#"cluster = "us" }"#,
            r#"cluster = "us", topic = "{cluster}.{topic}.copy" }"#,
        );
    let sluice = setup.run(&config)?;
    for topic in ["eu.orders-eu.copy", "eu.orders-us.copy"] {
        setup.arrived(topic, 0, 3).await?;
    }
    let report = sluice.stop().await?;
    assert_eq!(report.lanes.len(), 2);
    assert_eq!(
        setup.delivered("eu.orders-us.copy", 0).await?,
        messages(1..4)
    );
    Ok(())
}

#[tokio::test]
async fn missing_partitions_are_added_at_the_destination() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let config = setup.config("", "")?;
    setup.produce("t", 0, &messages(1..2)).await?;
    let first = setup.run(&config)?;
    setup.arrived("t", 0, 1).await?;
    first.stop().await?;

    let client = IggyClient::from_connection_string(setup.source.connection_string())?;
    client.connect().await?;
    let (stream, topic) = (Identifier::named(&setup.stream)?, Identifier::named("t")?);
    iggy::prelude::PartitionClient::create_partitions(&client, &stream, &topic, 2).await?;
    setup.produce("t", 2, &messages(5..7)).await?;

    let refused = setup.run(&config.replace("retry", "create = false\nretry"))?;
    let (code, _, log) = refused.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert!(
        log.contains("has 1 partitions") && log.contains("has 3"),
        "{log}"
    );

    let second = setup.run(&config)?;
    setup.arrived("t", 2, 2).await?;
    second.stop().await?;
    assert_eq!(setup.delivered("t", 2).await?, messages(5..7));
    Ok(())
}

#[tokio::test]
async fn an_interrupt_drains_like_a_termination() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    setup.produce("t", 0, &messages(1..6)).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, 5).await?;
    sluice.signal("INT").await?;
    let (code, report, log) = sluice.end().await?;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(report.expect("a report").settled(), (5, 0, 0));
    Ok(())
}

#[tokio::test]
async fn what_comes_while_it_is_down_is_not_skipped_by_a_start_at_the_end() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    setup.produce("t", 0, &messages(1..11)).await?;
    let config = setup.config(r#"start = "latest""#, "")?;
    let mut sluice = setup.run(&config)?;
    sluice.logged("lane starts").await?;
    sluice.kill().await?;
    setup.produce("t", 0, &messages(11..14)).await?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 3).await?;
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, messages(11..14));
    Ok(())
}
