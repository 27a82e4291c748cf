//! A configuration that changes while messages flow.

use anyhow::{Context, Result, ensure};
use iggy::prelude::IggyError;
use iggy_binary_protocol::codes::{SEND_MESSAGES_CODE, STORE_CONSUMER_OFFSET_CODE};
use serde_json::{Value, json};
use sluice_devbroker::{Action, Gate, Rule};
use sluice_harness::{Message, Setup, Sluice, guest};

/// A link called as its topic is.
fn link(setup: &Setup, topic: &str, more: &str) -> String {
    format!(
        r#"
[[links]]
name = "{topic}"
source = {{ cluster = "eu", streams = ["{stream}"], topics = ["{topic}"] }}
dead_letter = {{ stream = "{stream}", topic = "dead-letters" }}
retry = {{ initial = "1 ms", max = "20 ms" }}
{more}
"#,
        stream = setup.stream
    )
}

const US: &str = r#"destination = { cluster = "us" }"#;

/// A configuration with these links and an admin API.
fn config(setup: &Setup, sections: &str, links: &[String]) -> Result<String> {
    let sections = format!("[admin]\naddress = \"127.0.0.1:0\"\n{sections}");
    let config = setup.config("", &sections)?;
    let (clusters, _) = config.split_once("[[links]]").context("it has a link")?;
    Ok(format!("{clusters}{}", links.concat()))
}

/// Puts `config` in the place of the one that runs and has it taken up.
async fn reload(setup: &Setup, sluice: &mut Sluice, config: &str) -> Result<(u16, Value)> {
    setup.rewrite_config(config)?;
    let (code, body) = sluice.ask("POST", "/reload").await?;
    Ok((code, serde_json::from_str(&body)?))
}

/// The only key of `answer` that is not empty.
fn assert_changes(answer: &(u16, Value), key: &str, names: &[&str]) {
    let mut expected = json!({"added": [], "removed": [], "changed": [], "restarted": [], "failed": [], "guests": []});
    expected[key] = json!(names);
    assert_eq!(answer, &(200, expected));
}

fn message(id: u128) -> Message {
    Message::new(id, format!("payload {id}"))
}

async fn copied(setup: &Setup, from: &str, to: &str, id: u128, count: usize) -> Result<()> {
    setup.produce(from, 0, &[message(id)]).await?;
    setup.arrived(to, 0, count).await
}

fn starts(sluice: &Sluice, link: &str) -> usize {
    sluice.times_logged(&format!("link runs link=\"{link}\""))
}

#[tokio::test]
async fn links_come_go_and_change_and_the_others_are_not_touched() -> Result<()> {
    let setup = Setup::new().await?;
    for topic in ["a", "b", "c"] {
        setup.topic(topic, 1).await?;
    }
    let [a, b, c] = ["a", "b", "c"].map(|topic| link(&setup, topic, US));
    let other = link(
        &setup,
        "b",
        r#"destination = { cluster = "us", topic = "{topic}-2" }"#,
    );
    let mut sluice = setup.run(&config(&setup, "", &[a.clone(), b.clone()])?)?;
    copied(&setup, "a", "a", 1, 1).await?;
    copied(&setup, "b", "b", 1, 1).await?;

    let added = config(&setup, "", &[a.clone(), b, c.clone()])?;
    assert_changes(&reload(&setup, &mut sluice, &added).await?, "added", &["c"]);
    let changed = config(&setup, "", &[a, other.clone(), c.clone()])?;
    assert_changes(
        &reload(&setup, &mut sluice, &changed).await?,
        "changed",
        &["b"],
    );
    copied(&setup, "a", "a", 2, 2).await?;
    copied(&setup, "b", "b-2", 2, 1).await?;
    copied(&setup, "c", "c", 1, 1).await?;
    assert_eq!(["a", "b", "c"].map(|name| starts(&sluice, name)), [1, 2, 1]);

    let removed = config(&setup, "", &[other, c])?;
    assert_changes(
        &reload(&setup, &mut sluice, &removed).await?,
        "removed",
        &["a"],
    );
    setup.produce("a", 0, &[message(3)]).await?;
    copied(&setup, "b", "b-2", 3, 2).await?;
    let status: Value = serde_json::from_str(&sluice.get("/status").await?)?;
    let shown: Vec<_> = status["links"]
        .as_array()
        .context("links")?
        .iter()
        .map(|link| &link["link"])
        .collect();
    assert_eq!(shown, ["b", "c"]);

    sluice.signal("TERM").await?;
    let (code, text, log) = sluice.output().await?;
    ensure!(code == Some(0), "{code:?}\n{log}");
    let reports: Value = serde_json::from_str(&text)?;
    let totals: Vec<_> = reports
        .as_array()
        .context("reports")?
        .iter()
        .map(|link| (&link["link"], &link["lanes"][0]["forwarded"]))
        .collect();
    let expected = [("a", 2), ("b", 3), ("c", 1)].map(|(name, count)| (json!(name), json!(count)));
    let expected: Vec<_> = expected.iter().map(|(name, count)| (name, count)).collect();
    assert_eq!(totals, expected);
    assert_eq!(setup.delivered("a", 0).await?, [1, 2].map(message));
    assert_eq!(setup.delivered("b", 0).await?, [1].map(message));
    assert_eq!(setup.delivered("b-2", 0).await?, [2, 3].map(message));
    Ok(())
}

async fn reloads_under_load(store: &str) -> Result<()> {
    const RELOADS: u128 = 40;
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let of = |round: u128| -> Result<String> {
        let batch = format!(
            "{US}\nguests = [\"filter\"]\nbatch = {{ messages = {} }}",
            10 + round
        );
        let filter = format!(
            "[guests.filter]\ncomponent = \"{}\"\nconfig = {{ header = \"none\", keep = [\"{round}\"], keep_missing = true }}\n",
            guest("filter")?.display()
        );
        let config = config(&setup, &filter, &[link(&setup, "t", &batch)])?;
        let gateway = format!("name = \"test\"\ncheckpoint_store = \"{store}\"");
        Ok(config.replace("name = \"test\"", &gateway))
    };
    let mut sluice = setup.run(&of(0)?)?;
    sluice.logged("link runs").await?;
    let mut all = Vec::new();
    for round in 1..=RELOADS {
        let batch: Vec<_> = (0..200).map(|index| message(round * 200 + index)).collect();
        let next = of(round)?;
        let (reloaded, first, second) = tokio::join!(
            reload(&setup, &mut sluice, &next),
            setup.produce("t", 0, &batch),
            setup.produce("t", 1, &batch),
        );
        first.and(second)?;
        let (code, answer) = reloaded?;
        ensure!(code == 200 && answer["changed"] == json!(["t"]), "{answer}");
        ensure!(answer["guests"] == json!(["filter"]), "{answer}");
        all.extend(batch);
    }
    setup.arrived("t", 0, all.len()).await?;
    setup.arrived("t", 1, all.len()).await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (2 * all.len() as u64, 0, 0));
    assert_eq!(report.found(), 0, "links go on from what they settled");
    for partition in [0, 1] {
        assert_eq!(setup.delivered("t", partition).await?, all);
    }
    Ok(())
}

#[tokio::test]
async fn a_link_that_changes_under_load_loses_and_repeats_nothing() -> Result<()> {
    reloads_under_load("local").await
}

#[tokio::test]
async fn nor_does_it_with_checkpoints_at_the_clusters() -> Result<()> {
    reloads_under_load("server").await
}

#[tokio::test]
async fn what_cannot_be_taken_up_changes_nothing() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    setup.topic("u", 1).await?;
    let (t, u) = (link(&setup, "t", US), link(&setup, "u", US));
    let before = config(&setup, "", std::slice::from_ref(&t))?;
    let mut sluice = setup.run(&before)?;
    copied(&setup, "t", "t", 1, 1).await?;

    let good = config(&setup, "", &[t.clone(), u.clone()])?;
    let with_guest = link(&setup, "u", &format!("{US}\nguests = [\"g\"]"));
    let guest = "[guests.g]\ncomponent = \"/nowhere.wasm\"\n";
    let renamed = good.replace("name = \"test\"", "name = \"other\"");
    let moved = good.replace("127.0.0.1:0", "127.0.0.1:1");
    for (wrong, says) in [
        ("links = 3".to_owned(), "is not valid"),
        (
            good.replace("cluster = \"us\"", "cluster = \"asia\""),
            "names the cluster `asia`, which is not configured",
        ),
        (
            config(&setup, guest, &[t, with_guest])?,
            "cannot read the component",
        ),
        (renamed, "section [gateway] is read at the start only"),
        (moved, "section [admin] is read at the start only"),
    ] {
        let (code, answer) = reload(&setup, &mut sluice, &wrong).await?;
        let error = answer["error"].to_string();
        assert_eq!(code, 422, "{error}");
        assert!(error.contains(says), "{says}: {error}");
        assert!(
            error.contains("goes on with the configuration it has"),
            "{error}"
        );
    }
    assert_eq!(starts(&sluice, "u"), 0);
    copied(&setup, "t", "t", 2, 2).await?;

    setup.rewrite_config(&good)?;
    sluice.signal("HUP").await?;
    sluice.logged("the configuration was taken up").await?;
    copied(&setup, "u", "u", 1, 1).await?;
    assert_eq!(starts(&sluice, "t"), 1);
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, [1, 2].map(message));
    Ok(())
}

#[tokio::test]
async fn settings_of_a_guest_take_over_between_two_batches_and_its_link_runs_on() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let with = |settings: &str| -> Result<String> {
        let filter = format!(
            "[guests.filter]\ncomponent = \"{}\"\nconfig = {settings}\n",
            guest("filter")?.display()
        );
        let link = link(&setup, "t", &format!("{US}\nguests = [\"filter\"]"));
        config(&setup, &filter, &[link])
    };
    let region = |id, region| message(id).with(&[("region", region)]);
    let mut sluice = setup.run(&with(r#"{ header = "region", keep = ["eu"] }"#)?)?;
    setup
        .produce("t", 0, &[region(1, "us"), region(2, "eu")])
        .await?;
    setup.arrived("t", 0, 1).await?;

    let refused = with(r#"{ header = "region" }"#)?;
    let (code, answer) = reload(&setup, &mut sluice, &refused).await?;
    assert_eq!(code, 422, "{answer}");
    assert!(
        answer["error"].to_string().contains("missing field `keep`"),
        "{answer}"
    );
    setup
        .produce("t", 0, &[region(3, "us"), region(4, "eu")])
        .await?;
    setup.arrived("t", 0, 2).await?;

    let other = with(r#"{ header = "region", keep = ["us"] }"#)?;
    let answer = reload(&setup, &mut sluice, &other).await?;
    assert_changes(&answer, "guests", &["filter"]);
    setup
        .produce("t", 0, &[region(5, "us"), region(6, "eu"), region(7, "us")])
        .await?;
    setup.arrived("t", 0, 4).await?;
    assert_eq!(starts(&sluice, "t"), 1);
    sluice.stop().await?;
    let expected = [(2, "eu"), (4, "eu"), (5, "us"), (7, "us")].map(|(id, name)| region(id, name));
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

#[tokio::test]
async fn a_link_that_failed_starts_anew() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let both = config(
        &setup,
        "",
        &[link(&setup, "t", US), link(&setup, "later", US)],
    )?;
    let mut sluice = setup.run(&both)?;
    sluice.logged("ERROR").await?;
    copied(&setup, "t", "t", 1, 1).await?;
    setup.topic("later", 1).await?;
    let answer = reload(&setup, &mut sluice, &both).await?;
    assert_changes(&answer, "restarted", &["later"]);
    copied(&setup, "later", "later", 1, 1).await?;
    let report = sluice.stop().await;
    assert!(report.is_ok(), "the failure is mended: {report:?}");
    Ok(())
}

#[tokio::test]
async fn a_link_that_does_not_drain_is_cut_off_and_goes_on_from_what_is_settled() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    setup.topic("u", 1).await?;
    let all: Vec<_> = (1..=1000).map(message).collect();
    setup.produce("t", 0, &all).await?;
    let gate = Gate::default();
    let held = Rule::next(Action::HoldReply(gate.clone()))
        .code(SEND_MESSAGES_CODE)
        .after(4);
    setup.destination_broker().faults().add(held);
    let of = |messages: usize| -> Result<String> {
        let more = format!("{US}\nbatch = {{ messages = {messages} }}");
        let links = [link(&setup, "t", &more), link(&setup, "u", US)];
        let short = "name = \"test\"\ndrain_timeout = \"50 ms\"";
        Ok(config(&setup, "", &links)?.replace("name = \"test\"", short))
    };
    let mut sluice = setup.run(&of(100)?)?;
    gate.reached_by(1).await;
    // What it was sending may still arrive: it must not start before that is over.
    let (code, answer) = reload(&setup, &mut sluice, &of(90)?).await?;
    assert_eq!((code, &answer["changed"]), (200, &json!(["t"])), "{answer}");
    assert_eq!(answer["failed"], json!(["t"]), "{answer}");
    assert!(sluice.times_logged("not drained within 50ms") > 0);
    let (_, answer) = reload(&setup, &mut sluice, &of(90)?).await?;
    assert_eq!(answer["restarted"], json!(["t"]), "{answer}");
    assert_eq!(answer["failed"], json!(["t"]), "{answer}");
    assert!(sluice.times_logged("may still arrive: reload again in") > 0);
    copied(&setup, "u", "u", 1, 1).await?;
    assert_eq!(starts(&sluice, "t"), 1);
    sluice.signal("TERM").await?;
    let (code, _, log) = sluice.end().await?;
    ensure!(code == Some(6), "{code:?}\n{log}");
    gate.open();
    let sluice = setup.run(&of(90)?)?;
    setup.arrived("t", 0, all.len()).await?;
    let report = sluice.stop().await?;
    assert!(report.found() >= 100, "{report:?}");
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}

#[tokio::test]
async fn a_link_whose_checkpoint_cannot_be_saved_waits_for_the_next_reload() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    setup.topic("u", 1).await?;
    let of = |destination: &str| -> Result<String> {
        let config = config(
            &setup,
            "",
            &[link(&setup, "t", destination), link(&setup, "u", US)],
        )?;
        let gateway =
            "name = \"test\"\ncheckpoint_store = \"server\"\ncheckpoint_interval = \"1 h\"";
        Ok(config.replace("name = \"test\"", gateway))
    };
    let mut sluice = setup.run(&of(US)?)?;
    copied(&setup, "t", "t", 1, 1).await?;
    for broker in [setup.source_broker(), setup.destination_broker()] {
        let busy = Action::Refuse(IggyError::ShardCommunicationError.as_code());
        let rule = Rule::next(busy).code(STORE_CONSUMER_OFFSET_CODE);
        broker.faults().add(rule.always());
    }
    copied(&setup, "t", "t", 2, 2).await?;
    // With another destination, nothing there tells what was delivered: from an older checkpoint it would be repeated.
    let other = of(r#"destination = { cluster = "us", topic = "{topic}-2" }"#)?;
    let (code, answer) = reload(&setup, &mut sluice, &other).await?;
    assert_eq!((code, &answer["failed"]), (200, &json!(["t"])), "{answer}");
    // Nor does it start when it is left out for a while.
    let without = other
        .split("[[links]]")
        .filter(|part| !part.contains("name = \"t\""));
    let without: Vec<_> = without.collect();
    let (_, answer) = reload(&setup, &mut sluice, &without.join("[[links]]")).await?;
    assert_eq!(
        (&answer["removed"], &answer["failed"]),
        (&json!(["t"]), &json!(["t"]))
    );
    let (_, answer) = reload(&setup, &mut sluice, &other).await?;
    assert_eq!(
        (&answer["added"], &answer["failed"]),
        (&json!(["t"]), &json!(["t"]))
    );
    setup.produce("t", 0, &[message(3)]).await?;
    let status: Value = serde_json::from_str(&sluice.get("/status").await?)?;
    assert_eq!(status["links"][0]["state"], "failed", "{status}");

    for broker in [setup.source_broker(), setup.destination_broker()] {
        broker.faults().clear();
    }
    let answer = reload(&setup, &mut sluice, &other).await?;
    assert_changes(&answer, "restarted", &["t"]);
    setup.arrived("t-2", 0, 1).await?;
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, [1, 2].map(message));
    assert_eq!(setup.delivered("t-2", 0).await?, [message(3)]);
    Ok(())
}
