//! Guests: what they decide, and what becomes of it when they fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use sluice_harness::{Message, Setup, guest, header, headers};

fn text(payloads: &[&str]) -> Vec<Message> {
    payloads
        .iter()
        .zip(1_u128..)
        .map(|(payload, id)| Message::new(id, (*payload).to_owned()))
        .collect()
}

fn without(messages: &[Message], payloads: &[&str]) -> Vec<Message> {
    let kept = |message: &&Message| !payloads.iter().any(|payload| message.payload == *payload);
    messages.iter().filter(kept).cloned().collect()
}

/// The section of one guest, and the link's list with it.
fn section(name: &str, keys: &str) -> Result<(String, &'static str)> {
    let component = guest(name)?;
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n{keys}\n",
        component.display()
    );
    Ok((section, r#"guests = ["g"]"#))
}

#[tokio::test]
async fn the_example_guests_filter_route_and_rewrite_in_a_chain() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let sent = |partition: u128| -> Vec<Message> {
        (0..600_u128)
            .map(|index| {
                let region = ["eu", "us", "test"][usize::try_from(index % 3).unwrap_or(0)];
                let kind = ["order", "visit"][usize::try_from(index % 2).unwrap_or(0)];
                Message::new(partition * 1000 + index + 1, format!("{index}")).with(&[
                    ("region", region),
                    ("type", kind),
                    ("src", "shop"),
                    ("debug", "1"),
                ])
            })
            .collect()
    };
    for partition in 0..2 {
        setup
            .produce("t", partition, &sent(partition.into()))
            .await?;
    }
    let guests = format!(
        r#"
[guests.filter]
component = {:?}
config = {{ header = "region", keep = ["eu", "us"] }}
[guests.router]
component = {:?}
config = {{ header = "type", routes = {{ order = {{ topic = "orders" }} }} }}
[guests.rewriter]
component = {:?}
config = {{ set = {{ origin = "eu" }}, remove = ["debug"], rename = {{ src = "service" }} }}
"#,
        guest("filter")?,
        guest("router")?,
        guest("rewriter")?
    );
    let link = r#"guests = ["filter", "router", "rewriter"]"#;
    let sluice = setup.run(&setup.config(link, &guests)?)?;
    for partition in 0..2 {
        setup.arrived("t", partition, 200).await?;
        setup.arrived("orders", partition, 200).await?;
    }
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (800, 400, 0));
    for partition in 0..2_u32 {
        for (topic, kind) in [("t", "visit"), ("orders", "order")] {
            let expected: Vec<_> = sent(partition.into())
                .into_iter()
                .filter(|m| header(m, "type").as_deref() == Some(kind))
                .filter(|m| header(m, "region").as_deref() != Some("test"))
                .map(|mut message| {
                    let region = header(&message, "region").unwrap_or_default();
                    message.headers = headers(&[
                        ("region", &region),
                        ("type", kind),
                        ("service", "shop"),
                        ("origin", "eu"),
                    ]);
                    message
                })
                .collect();
            assert_eq!(
                setup.delivered(topic, partition).await?,
                expected,
                "{topic}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_per_message_guest_decides_everything_that_the_contract_offers() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let mut sent = text(&[
        "keep",
        "drop",
        "route:a,b",
        "payload:new",
        "header",
        "route:a",
        "end",
    ]);
    sent[4].headers = headers(&[("one", "1"), ("seen", "before"), ("two", "2")]);
    setup.produce("t", 0, &sent).await?;
    let (section, link) = section("faulty", "")?;
    let sluice = setup.run(&setup.config(link, &section)?)?;
    setup.arrived("t", 0, 4).await?;
    setup.arrived("a", 0, 2).await?;
    setup.arrived("b", 0, 1).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (6, 1, 0));
    let (mut changed, mut marked) = (sent[3].clone(), sent[4].clone());
    changed.payload = "new".into();
    marked.headers = headers(&[("one", "1"), ("seen", "3 headers"), ("two", "2")]);
    let expected = [sent[0].clone(), changed, marked, sent[6].clone()];
    assert_eq!(setup.delivered("t", 0).await?, expected);
    let routed = [sent[2].clone(), sent[5].clone()];
    assert_eq!(setup.delivered("a", 0).await?, routed);
    assert_eq!(setup.delivered("b", 0).await?, routed[..1]);
    Ok(())
}

#[tokio::test]
async fn a_failing_message_becomes_a_dead_letter_and_the_rest_is_delivered() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let bad = [
        "panic",
        "spin",
        "memory",
        "stack",
        "reject",
        "route:t#77",
        "route:",
    ];
    let payloads = [
        "1",
        "panic",
        "2",
        "spin",
        "memory",
        "3",
        "stack",
        "reject",
        "4",
        "route:t#77",
        "route:",
        "5",
    ];
    let sent = text(&payloads);
    setup.produce("t", 0, &sent).await?;
    let limits = r#"limits = { memory = "16 MiB", time = "200 ms" }"#;
    let (section, link) = section("faulty", limits)?;
    let sluice = setup.run(&setup.config(link, &section)?)?;
    setup.arrived("t", 0, 5).await?;
    setup.arrived("dead-letters", 0, bad.len()).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (5, 0, 7));
    assert_eq!(report.lanes[0].failed, 7);
    assert_eq!(setup.delivered("t", 0).await?, without(&sent, &bad));
    let letters = setup.dead_letters().await?;
    let stages = [
        "trap", "timeout", "trap", "trap", "reject", "verdict", "verdict",
    ];
    for ((letter, payload), stage) in letters.iter().zip(bad).zip(stages) {
        assert_eq!(letter.payload, payload);
        assert_eq!(
            header(letter, "sluice-stage").as_deref(),
            Some(stage),
            "{payload}"
        );
        let place = payloads.iter().position(|sent| *sent == payload);
        let place = place.expect("it was sent").to_string();
        assert_eq!(header(letter, "sluice-offset"), Some(place), "{payload}");
        assert_eq!(header(letter, "sluice-link").as_deref(), Some("link"));
        assert_eq!(header(letter, "sluice-cluster").as_deref(), Some("eu"));
        assert_eq!(
            header(letter, "sluice-stream").as_deref(),
            Some(setup.stream.as_str())
        );
        assert_eq!(header(letter, "sluice-topic").as_deref(), Some("t"));
        assert_eq!(header(letter, "sluice-partition").as_deref(), Some("0"));
        assert!(header(letter, "sluice-reason").is_some(), "{payload}");
    }
    assert_eq!(
        header(&letters[4], "sluice-reason").as_deref(),
        Some("asked to reject")
    );
    Ok(())
}

#[tokio::test]
async fn in_a_packed_batch_only_the_message_at_fault_fails() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let bad = ["panic", "spin", "short", "index", "name"];
    let mut payloads: Vec<String> = (0..200).map(|index| index.to_string()).collect();
    for (place, payload) in [3, 40, 41, 120, 199].into_iter().zip(bad) {
        payloads[place] = payload.to_owned();
    }
    payloads[60] = "drop".to_owned();
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    let sent = text(&payloads);
    setup.produce("t", 0, &sent).await?;
    let (section, link) = section("faulty-batch", r#"limits = { time = "100 ms" }"#)?;
    let sluice = setup.run(&setup.config(link, &section)?)?;
    setup.arrived("t", 0, 194).await?;
    setup.arrived("dead-letters", 0, bad.len()).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (194, 1, 5));
    assert_eq!(
        setup.delivered("t", 0).await?,
        without(&without(&sent, &bad), &["drop"])
    );
    let letters = setup.dead_letters().await?;
    let stages = ["trap", "timeout", "trap", "trap", "verdict"];
    for ((letter, payload), stage) in letters.iter().zip(bad).zip(stages) {
        assert_eq!(letter.payload, payload);
        assert_eq!(
            header(letter, "sluice-stage").as_deref(),
            Some(stage),
            "{payload}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_policies_drop_and_forward_apply_to_the_message_at_fault_only() -> Result<()> {
    for (policy, delivered, settled) in [
        ("drop", vec!["1", "2"], (2, 2, 0)),
        ("forward", vec!["1", "panic", "2", "reject"], (4, 0, 0)),
    ] {
        let setup = Setup::new().await?;
        setup.topic("t", 1).await?;
        setup
            .produce("t", 0, &text(&["1", "panic", "2", "reject"]))
            .await?;
        let (section, link) = section("faulty", "")?;
        let link = format!("{link}\non_error = {policy:?}");
        let mut sluice = setup.run(&setup.config(&link, &section)?)?;
        setup.arrived("t", 0, delivered.len()).await?;
        sluice.logged("asked to reject").await?;
        let report = sluice.stop().await?;
        assert_eq!(report.settled(), settled, "{policy}");
        let payloads: Vec<_> = setup
            .delivered("t", 0)
            .await?
            .into_iter()
            .map(|m| m.payload)
            .collect();
        assert_eq!(payloads, delivered, "{policy}");
    }
    Ok(())
}

#[tokio::test]
async fn the_policy_stop_ends_the_link_before_the_message() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sent = text(&["1", "2", "reject", "3"]);
    setup.produce("t", 0, &sent).await?;
    let (section, link) = section("faulty", "")?;
    let config = setup.config(&format!("{link}\non_error = \"stop\""), &section)?;
    for round in 0..2 {
        let (code, report, log) = setup.run(&config)?.end().await?;
        assert_eq!(code, Some(3), "{log}");
        assert!(
            log.contains("offset 2") && log.contains("asked to reject"),
            "{log}"
        );
        let report = report.expect("a report");
        assert_eq!(report.lanes[0].next_offset, 2, "round {round}");
        assert_eq!(setup.delivered("t", 0).await?, sent[..2], "round {round}");
    }
    let without_guest = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 0, 4).await?;
    without_guest.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, sent);
    Ok(())
}

#[tokio::test]
async fn unreadable_headers_reach_guests_as_none_and_are_kept() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let mut sent = text(&["keep", "header"]);
    for message in &mut sent {
        message.headers = (&b"garbage"[..]).into();
    }
    setup.produce("t", 0, &sent).await?;
    let (section, link) = section("faulty", "")?;
    let sluice = setup.run(&setup.config(link, &section)?)?;
    setup.arrived("t", 0, 1).await?;
    setup.arrived("dead-letters", 0, 1).await?;
    assert_eq!(sluice.stop().await?.settled(), (1, 0, 1));
    assert_eq!(setup.delivered("t", 0).await?, sent[..1]);
    Ok(())
}

#[tokio::test]
async fn a_restart_takes_compiled_code_as_it_is() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let (section, link) = section("older", "")?;
    let config = setup.config(link, &section)?;
    let mut rounds = Vec::new();
    for round in 0..2_u128 {
        let message = Message::new(round + 1, "a");
        setup.produce("t", 0, &[message]).await?;
        let sluice = setup.run(&config)?;
        setup.arrived("t", 0, usize::try_from(round)? + 1).await?;
        sluice.stop().await?;
        rounds.push(compiled(&setup.folder.path().join("state/compiled"))?);
    }
    assert_eq!(rounds[0].len(), 1);
    assert_eq!(rounds[0], rounds[1], "it was compiled again");
    Ok(())
}

/// The files of compiled code below a folder and when each was written. Beside each, wasmtime counts its uses.
fn compiled(folder: &Path) -> Result<BTreeMap<PathBuf, SystemTime>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(compiled(&path)?);
        } else if path.extension().is_none() {
            let written = path.metadata()?.modified()?;
            found.insert(path, written);
        }
    }
    Ok(found)
}
