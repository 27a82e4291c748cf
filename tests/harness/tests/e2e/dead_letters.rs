//! `sluice dead-letters`: what is listed and shown is what is there, and a replay delivers each message once.

mod faults;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sluice_harness::{Message, Setup, Sluice, guest, header, headers};

/// A configuration with a guest.
fn with_guest(setup: &Setup, name: &str, keys: &str, link: &str) -> Result<String> {
    let component = guest(name)?;
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n{keys}\n",
        component.display()
    );
    setup.config(&format!("guests = [\"g\"]\n{link}"), &section)
}

fn faulty(setup: &Setup) -> Result<String> {
    with_guest(setup, "faulty", "", "batch = { messages = 100 }")
}

/// The guest repaired: it routes messages of the type `order` to a topic of their own.
fn repaired(setup: &Setup) -> Result<String> {
    let keys = r#"config = { header = "type", routes = { order = { topic = "orders" } } }"#;
    with_guest(setup, "router", keys, "batch = { messages = 100 }")
}

/// Messages that the faulty guest rejects; every other one is an order.
fn rejected(ids: std::ops::RangeInclusive<u128>) -> Vec<Message> {
    ids.map(|id| {
        let kind = ["order", "visit"][usize::from(id % 2 == 0)];
        Message::new(id, "reject").with(&[("type", kind), ("n", &id.to_string())])
    })
    .collect()
}

fn orders(messages: &[Message]) -> Vec<Message> {
    let is_order = |message: &&Message| header(message, "type").as_deref() == Some("order");
    messages.iter().filter(is_order).cloned().collect()
}

fn visits(messages: &[Message]) -> Vec<Message> {
    let is_visit = |message: &&Message| header(message, "type").as_deref() == Some("visit");
    messages.iter().filter(is_visit).cloned().collect()
}

/// Copies what the source holds until `count` letters are there.
async fn dead_letter(setup: &Setup, config: &str, count: usize) -> Result<()> {
    let sluice = setup.run(config)?;
    setup.arrived("dead-letters", 0, count).await?;
    sluice.stop().await?;
    Ok(())
}

/// What a command prints, one JSON value a line. It must end with 0.
async fn printed(setup: &Setup, config: &str, command: &[&str]) -> Result<Vec<Value>> {
    values(start(setup, config, command)?).await
}

fn start(setup: &Setup, config: &str, command: &[&str]) -> Result<Sluice> {
    setup.command(&[&["dead-letters"], command].concat(), config)
}

async fn values(sluice: Sluice) -> Result<Vec<Value>> {
    let (code, text, log) = sluice.output().await?;
    ensure!(code == Some(0), "ended with {code:?}:\n{log}");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().context(text.clone())
}

/// Replays; gives what the summary says was replayed, dropped, dead-lettered again and replayed before.
async fn replay(setup: &Setup, config: &str, arguments: &[&str]) -> Result<(Value, [u64; 4])> {
    let command = [&["replay"], arguments].concat();
    let mut printed = printed(setup, config, &command).await?;
    let summary = printed.pop().context("a summary")?;
    ensure!(summary["error"].is_null(), "{summary}");
    let numbers = ["replayed", "dropped", "dead_lettered", "already_replayed"]
        .map(|name| summary[name].as_u64().unwrap_or(u64::MAX));
    Ok((summary, numbers))
}

/// A letter as sluice writes it, with more headers.
fn letter(offset: u64, more: &[(&str, &str)]) -> Message {
    let mut message = Message::new(9000 + u128::from(offset), "payload");
    let text = |key, value| headers(&[(key, value)]).to_vec();
    let number = |key: &str, kind: u8, bytes: &[u8]| {
        let mut header = headers(&[(key, "")]).to_vec();
        header.truncate(header.len() - 5);
        header.push(kind);
        header.extend(u32::try_from(bytes.len()).unwrap_or_default().to_le_bytes());
        header.extend(bytes);
        header
    };
    let mut list = vec![
        text("own", "1"),
        text("sluice-link", "link"),
        text("sluice-cluster", "eu"),
        text("sluice-stream", "gone"),
        text("sluice-topic", "t"),
        number("sluice-partition", 11, &0_u32.to_le_bytes()),
        number("sluice-offset", 12, &offset.to_le_bytes()),
        text("sluice-stage", "send"),
        text("sluice-reason", "too large"),
    ];
    list.extend(more.iter().map(|(key, value)| text(key, value)));
    message.headers = list.concat().into();
    message
}

#[tokio::test]
async fn letters_are_listed_and_shown() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sent = [
        Message::new(1, "1"),
        Message::new(2, "reject").with(&[("region", "eu")]),
        Message::new(3, "panic"),
    ];
    setup.produce("t", 0, &sent).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 2).await?;
    let mut garbage = Message::new(4, &b"\xff\x00"[..]);
    garbage.headers = (&b"garbage"[..]).into();
    setup.intrude("dead-letters", 0, &[garbage]).await?;
    let other = config.replace("name = \"link\"", "name = \"other\"");
    dead_letter(&setup, &other, 5).await?;

    let list = printed(&setup, &config, &["list"]).await?;
    assert_eq!(
        list.len(),
        3,
        "those of the other link are left out: {list:?}"
    );
    assert_eq!(list[0]["offset"], 0);
    assert_eq!(list[0]["guest"], "g");
    assert_eq!(list[0]["stage"], "reject");
    assert_eq!(list[0]["reason"], "asked to reject");
    let source = &list[0]["source"];
    assert_eq!(source["cluster"], "eu");
    assert_eq!(source["stream"], setup.stream);
    assert_eq!(source["topic"], "t");
    assert_eq!(
        (&source["partition"], &source["offset"]),
        (&0.into(), &1.into())
    );
    let time = list[0]["time"].as_str().context("a time")?;
    assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    assert_eq!(list[1]["stage"], "trap");
    let unreadable = list[2]["unreadable"].as_str().context("unreadable")?;
    assert!(unreadable.contains("do not parse"), "{unreadable}");

    let all = printed(&setup, &config, &["list", "--all"]).await?;
    let links: Vec<_> = all.iter().map(|row| row["link"].as_str()).collect();
    assert_eq!(
        links,
        [
            Some("link"),
            Some("link"),
            None,
            Some("other"),
            Some("other")
        ]
    );
    let part = printed(&setup, &config, &["list", "--from", "1", "--limit", "1"]).await?;
    assert_eq!(part, list[1..2]);

    let shown = printed(&setup, &config, &["show", "0", "--bytes", "3B"]).await?;
    let shown = shown.first().context("a letter")?;
    assert_eq!(shown["id"], "2");
    assert_eq!(shown["payload"]["text"], "rej");
    assert_eq!(shown["payload"]["bytes"], 6);
    let listed = shown["headers"].as_array().context("headers")?;
    let find = |key: &str| {
        let found = listed.iter().find(|header| header["key"]["value"] == key);
        found.map(|header| {
            (
                header["value"]["kind"].clone(),
                header["value"]["value"].clone(),
            )
        })
    };
    assert_eq!(find("region"), Some(("text".into(), "eu".into())));
    assert_eq!(find("sluice-offset"), Some(("uint64".into(), "1".into())));
    assert_eq!(
        find("sluice-partition"),
        Some(("uint32".into(), "0".into()))
    );
    let shown = printed(&setup, &config, &["show", "2"]).await?;
    assert_eq!(shown[0]["payload"]["hex"], "ff00");
    let (code, _, log) = start(&setup, &config, &["show", "99"])?.output().await?;
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("there is no letter at offset 99"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_topic_that_does_not_exist_holds_no_letters() -> Result<()> {
    let setup = Setup::new().await?;
    let config = setup.config("", "")?;
    assert_eq!(printed(&setup, &config, &["list"]).await?.len(), 0);
    assert_eq!(replay(&setup, &config, &[]).await?.1, [0; 4]);
    Ok(())
}

#[tokio::test]
async fn a_repaired_guest_gets_each_message_once_as_it_was_while_the_gateway_runs() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let sent = [rejected(1..=150), rejected(1001..=1150)];
    for (partition, sent) in (0..).zip(&sent) {
        setup.produce("t", partition, sent).await?;
    }
    dead_letter(&setup, &faulty(&setup)?, 300).await?;
    let config = repaired(&setup)?;
    let mut sluice = setup.run(&config)?;
    sluice.logged("link runs").await?;

    let (summary, numbers) = replay(&setup, &config, &["--dry-run"]).await?;
    assert_eq!(
        (numbers, &summary["dry_run"]),
        ([300, 0, 0, 0], &true.into())
    );
    let held = setup.delivered("t", 0).await?.len() + setup.delivered("t", 1).await?.len();
    assert_eq!(held, 0, "a dry run sends nothing");

    assert_eq!(replay(&setup, &config, &[]).await?.1, [300, 0, 0, 0]);
    assert_eq!(replay(&setup, &config, &[]).await?.1, [0, 0, 0, 300]);
    for (partition, sent) in (0..).zip(&sent) {
        assert_eq!(setup.delivered("t", partition).await?, visits(sent));
        assert_eq!(setup.delivered("orders", partition).await?, orders(sent));
    }
    assert_eq!(setup.dead_letters().await?.len(), 300);
    sluice.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_selection_and_the_order_to_repeat_are_kept_to() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sent = rejected(1..=10);
    setup.produce("t", 0, &sent).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 10).await?;
    let range = ["--no-guests", "--from", "2", "--to", "4"];
    assert_eq!(replay(&setup, &config, &range).await?.1, [3, 0, 0, 0]);
    let single = [
        "--no-guests",
        "--offset",
        "4",
        "--offset",
        "7",
        "--offset",
        "77",
    ];
    let (summary, numbers) = replay(&setup, &config, &single).await?;
    assert_eq!((numbers, &summary["missing"]), ([1, 0, 0, 1], &1.into()));
    let again = ["--no-guests", "--again", "--offset", "4"];
    assert_eq!(replay(&setup, &config, &again).await?.1, [1, 0, 0, 0]);
    assert_eq!(replay(&setup, &config, &again).await?.1, [1, 0, 0, 0]);
    let expected: Vec<_> = [2, 3, 4, 7, 4, 4].map(|place| sent[place].clone()).into();
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

#[tokio::test]
async fn letters_of_another_link_are_not_touched() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sent = rejected(1..=5);
    setup.produce("t", 0, &sent).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 5).await?;
    let other = config
        .replace("name = \"link\"", "name = \"other\"")
        .replace(
            "cluster = \"us\" }",
            "cluster = \"us\", topic = \"other\" }",
        );
    dead_letter(&setup, &other, 10).await?;
    assert_eq!(
        replay(&setup, &config, &["--no-guests"]).await?.1,
        [5, 0, 0, 0]
    );
    assert_eq!(setup.delivered("t", 0).await?, sent);
    assert_eq!(setup.delivered("other", 0).await?, []);
    assert_eq!(
        replay(&setup, &other, &["--no-guests"]).await?.1,
        [5, 0, 0, 0]
    );
    assert_eq!(setup.delivered("other", 0).await?, sent);
    assert_eq!(setup.delivered("t", 0).await?, sent);
    Ok(())
}

#[tokio::test]
async fn a_letter_that_is_not_whole_is_left_out_with_the_remedy() -> Result<()> {
    let setup = Setup::new().await?;
    setup.destination_topic("dead-letters", 1).await?;
    let letters = [
        letter(7, &[("sluice-omitted", "payload of 66000000 bytes")]),
        letter(8, &[]),
    ];
    setup.intrude("dead-letters", 0, &letters).await?;
    let config = setup.config("", "")?;
    let config = config.replace(
        "cluster = \"us\" }",
        "cluster = \"us\", topic = \"copies\" }",
    );
    let config = config.replace(
        "destination = { ",
        &format!("destination = {{ stream = \"{}\", ", setup.stream),
    );
    for round in [[1, 0, 0, 0], [0, 0, 0, 1]] {
        let (summary, numbers) = replay(&setup, &config, &[]).await?;
        assert_eq!(numbers, round);
        let left_out = summary["left_out"].as_array().context("a list")?;
        assert_eq!(left_out.len(), 1, "{summary}");
        assert_eq!(left_out[0]["offset"], 0);
        assert_eq!(left_out[0]["source"], "eu:gone/t/0@7");
        assert_eq!(left_out[0]["omitted"], "payload of 66000000 bytes");
        let remedy = left_out[0]["remedy"].as_str().context("a remedy")?;
        assert!(remedy.contains("start is { offset = 7 }"), "{remedy}");
    }
    let mut expected = letters[1].clone();
    expected.headers = headers(&[("own", "1")]);
    assert_eq!(setup.delivered("copies", 0).await?, [expected]);
    Ok(())
}

#[tokio::test]
async fn a_message_whose_headers_do_not_parse_is_not_replayed_without_them() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let mut sent = Message::new(1, "reject");
    sent.headers = (&b"garbage"[..]).into();
    setup.produce("t", 0, &[sent]).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 1).await?;
    let (summary, numbers) = replay(&setup, &config, &["--no-guests"]).await?;
    assert_eq!(numbers, [0; 4]);
    assert_eq!(
        summary["left_out"][0]["omitted"],
        "headers of 7 bytes that do not parse"
    );
    assert_eq!(setup.delivered("t", 0).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_link_that_stops_at_errors_stops_its_replay_before_the_message() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sent = ["reject", "panic", "reject"]
        .into_iter()
        .zip(1..)
        .map(|(payload, id)| Message::new(id, payload))
        .collect::<Vec<_>>();
    setup.produce("t", 0, &sent).await?;
    let config = faulty(&setup)?;
    dead_letter(&setup, &config, 3).await?;
    let stops = config.replace("guests = [\"g\"]", "guests = [\"g\"]\non_error = \"stop\"");
    let (code, text, log) = start(&setup, &stops, &["replay"])?.output().await?;
    assert_eq!(code, Some(3), "{log}");
    let summary: Value = serde_json::from_str(&text)?;
    assert_eq!(summary["replayed"], 0);
    let error = summary["error"].as_str().context("an error")?;
    assert!(
        error.contains("offset 0") && error.contains("asked to reject"),
        "{error}"
    );
    let config = setup.config("", "")?;
    assert_eq!(replay(&setup, &config, &[]).await?.1, [3, 0, 0, 0]);
    assert_eq!(setup.delivered("t", 0).await?, sent);
    Ok(())
}

#[tokio::test]
async fn the_link_must_be_named_where_there_are_several() -> Result<()> {
    let setup = Setup::new().await?;
    let config = setup.config("", "")?;
    let second = config.find("[[links]]").map(|start| &config[start..]);
    let second = second
        .context("a link")?
        .replace("name = \"link\"", "name = \"other\"");
    let both = format!("{config}{second}");
    let (code, _, log) = start(&setup, &both, &["replay"])?.output().await?;
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("there are: link, other"), "{log}");
    let command = ["list", "--link", "other"];
    assert_eq!(printed(&setup, &both, &command).await?.len(), 0);
    Ok(())
}
