//! Trouble that lasts: secrets that run out, leaders that change, clusters that stay away, drains that take too long,
//! messages that do not fit.

use anyhow::{Context, Result};
use bytes::Bytes;
use iggy_binary_protocol::codes::{CREATE_PARTITIONS_CODE, POLL_MESSAGES_CODE, SEND_MESSAGES_CODE};
use sluice_devbroker::{Action, Gate, Rule};
use sluice_harness::{Message, Setup, header};

fn messages(count: u128) -> Vec<Message> {
    (1..=count)
        .map(|id| Message::new(id, format!("payload {id}")))
        .collect()
}

#[tokio::test]
async fn a_password_that_is_renewed_in_its_file_is_picked_up() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages(200);
    setup.produce("t", 0, &all[..100]).await?;
    let file = setup.folder.path().join("us.password");
    let (_, _, password) = setup.destination.parts()?;
    std::fs::write(&file, format!("{password}\n"))?;
    let config = setup
        .config("", "")?
        .replace(r#"{ env = "US_PASSWORD" }"#, r#"{ file = "us.password" }"#);
    let mut sluice = setup.run(&config)?;
    setup.arrived("t", 0, 100).await?;
    setup
        .change_destination_password(password, "renewed")
        .await?;
    setup.destination_broker().close_connections().await;
    setup.produce("t", 0, &all[100..]).await?;
    sluice.logged("the secret is read again").await?;
    std::fs::write(&file, "renewed\n")?;
    setup
        .destination_broker()
        .holds(&setup.stream, "t", 0, 200)
        .await;
    sluice.stop().await?;
    setup
        .change_destination_password("renewed", password)
        .await?;
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}

#[tokio::test]
async fn a_change_of_leader_is_survived_by_either_cluster() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages(3000);
    setup.produce("t", 0, &all).await?;
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(5);
    setup.destination_broker().faults().add(held);
    let sluice = setup.run(&setup.config("batch = { messages = 100 }", "")?)?;
    gate.reached_by(1).await;
    for (broker, code) in [
        (setup.destination_broker(), SEND_MESSAGES_CODE),
        (setup.source_broker(), POLL_MESSAGES_CODE),
    ] {
        broker.faults().lose_leader();
        gate.open();
        // Requests meet a cluster without a leader before there is one again.
        broker.requested(code, broker.requests(code) + 2).await;
        broker.faults().elect_leader();
    }
    setup.arrived("t", 0, all.len()).await?;
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}

#[tokio::test]
async fn a_link_whose_cluster_is_down_does_not_hold_up_another() -> Result<()> {
    for store in ["local", "server"] {
        let setup = Setup::new().await?;
        setup.topic("t", 1).await?;
        let all = messages(500);
        setup.produce("t", 0, &all).await?;
        // The first link's destination: a port that nothing listens on.
        let unused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = setup.config("", "[admin]\naddress = \"127.0.0.1:0\"")?;
        let down = format!(
            r#"
[clusters.down]
address = "{unused}"
username = "iggy"
password = {{ env = "US_PASSWORD" }}
[[links]]
name = "a-down"
source = {{ cluster = "eu", streams = ["{}"] }}
destination = {{ cluster = "down" }}
retry = {{ initial = "1 ms", max = "20 ms" }}
"#,
            setup.stream
        );
        let config = format!("{config}{down}").replace(
            r#"name = "test""#,
            &format!("name = \"test\"\ncheckpoint_store = {store:?}"),
        );
        let mut sluice = setup.run(&config)?;
        sluice.logged("cannot connect").await?;
        let status = sluice.get("/status").await?;
        assert!(
            status.contains(r#""link":"a-down","state":"starting","alerts":[{"kind":"retrying""#),
            "{status}"
        );
        let metrics = sluice.get("/metrics").await?;
        assert!(
            metrics.contains(r#"sluice_link_up{link="a-down"} 0"#),
            "{metrics}"
        );
        setup.arrived("t", 0, all.len()).await?;
        sluice.signal("TERM").await?;
        let (code, _, log) = sluice.end().await?;
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(setup.delivered("t", 0).await?, all);
    }
    Ok(())
}

#[tokio::test]
async fn partitions_are_added_once_although_the_reply_is_lost() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 3).await?;
    setup.destination_topic("t", 1).await?;
    let lost = Rule::next(Action::LoseReply).code(CREATE_PARTITIONS_CODE);
    setup.destination_broker().faults().add(lost);
    let mut sluice = setup.run(&setup.config("", "")?)?;
    sluice.logged("link runs").await?;
    sluice.stop().await?;
    let broker = setup.destination_broker();
    assert_eq!(broker.messages(&setup.stream, "t", 2), Some(0));
    assert_eq!(broker.messages(&setup.stream, "t", 3), None);
    Ok(())
}

#[tokio::test]
async fn a_drain_that_takes_too_long_is_cut_off_and_loses_nothing() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages(1000);
    setup.produce("t", 0, &all).await?;
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(4);
    setup.destination_broker().faults().add(held);
    let config = setup.config("batch = { messages = 100 }", "")?;
    let short = config.replace(
        r#"name = "test""#,
        "name = \"test\"\ndrain_timeout = \"50 ms\"",
    );
    let sluice = setup.run(&short)?;
    gate.reached_by(1).await;
    sluice.signal("TERM").await?;
    let (code, report, log) = sluice.end().await?;
    assert_eq!(code, Some(6), "{log}");
    let report = report.context("a report")?;
    let error = report.error.context("an error")?;
    assert!(error.contains("not drained within 50ms"), "{error}");
    gate.open();
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, all.len()).await?;
    let report = sluice.stop().await?;
    assert!(report.found() >= 100, "{report:?}");
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}

#[tokio::test]
async fn a_message_too_large_for_the_destination_is_a_dead_letter() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    // It just fits a request to the source; the names at the destination are longer.
    let names = 2 * (2 + 1) + setup.stream.len();
    let room = 64 * 1024 * 1024 - 256 - 256 - 48 - 64 - names;
    let large = Message::new(2, vec![7_u8; room]);
    let all = [Message::new(1, "before"), large, Message::new(3, "after")];
    setup.produce("t", 0, &all).await?;
    let long = "x".repeat(200);
    let config = setup.config("", "")?.replace(
        r#"{ cluster = "us" }"#,
        &format!(r#"{{ cluster = "us", topic = "{{topic}}-{long}" }}"#),
    );
    let sluice = setup.run(&config)?;
    setup.arrived(&format!("t-{long}"), 0, 2).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (2, 0, 1));
    let letters = setup.dead_letters().await?;
    let [letter] = &letters[..] else {
        panic!("{} letters", letters.len());
    };
    assert_eq!(header(letter, "sluice-stage").as_deref(), Some("send"));
    let omitted = format!("payload of {room} bytes");
    assert_eq!(header(letter, "sluice-omitted"), Some(omitted));
    assert!(letter.payload.is_empty());
    let delivered = setup.delivered(&format!("t-{long}"), 0).await?;
    assert_eq!(delivered, [all[0].clone(), all[2].clone()]);
    Ok(())
}

#[tokio::test]
async fn memory_stays_within_lanes_times_their_budget() -> Result<()> {
    const LANES: u32 = 4;
    const EACH: usize = 3 << 20;
    let setup = Setup::new().await?;
    setup.topic("t", LANES).await?;
    for partition in 0..LANES {
        // A hundred small ones, and then large ones: 192 MiB a lane, all of one buffer here.
        let payload = Bytes::from(vec![b'.'; EACH]);
        let small = (1..=100).map(|id| Message::new(id, "small"));
        let large = (101..=164).map(|id| Message::new(id, payload.clone()));
        let all: Vec<_> = small.chain(large).collect();
        setup.produce("t", partition, &all).await?;
    }
    let batch = r#"batch = { messages = 10, bytes = "4 MiB" }"#;
    let sluice = setup.run(&setup.config(batch, "")?)?;
    for partition in 0..LANES {
        setup.arrived("t", partition, 164).await?;
    }
    let peak = sluice.peak_memory()?;
    sluice.stop().await?;
    // The README states it; the first large poll is as many messages as the small ones allowed.
    let bound = u64::from(LANES) * (10 * EACH as u64 + 4 * (4 << 20)) + (64 << 20);
    assert!(peak < bound, "{peak} bytes, {bound} allowed");
    Ok(())
}
