//! A guest that fails on message after message is left alone for a while, and asked again.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use sluice_harness::{Message, Setup, guest, header};

const LINK: &str = r#"guests = ["first", "g"]"#;

/// Payloads as messages with ids from 1.
fn messages(payloads: &[&str]) -> Vec<Message> {
    let numbered = payloads.iter().zip(1_u128..);
    numbered
        .map(|(payload, id)| Message::new(id, (*payload).to_owned()))
        .collect()
}

/// A guest whose file can be replaced, behind one that counts what it is asked.
struct Fragile {
    setup: Setup,
    path: PathBuf,
}

impl Fragile {
    async fn new(payloads: &[&str]) -> Result<Self> {
        let setup = Setup::new().await?;
        setup.topic("t", 1).await?;
        setup.produce("t", 0, &messages(payloads)).await?;
        let path = setup.folder.path().join("g.wasm");
        let fragile = Self { setup, path };
        fragile.becomes("faulty")?;
        Ok(fragile)
    }

    fn becomes(&self, name: &str) -> Result<()> {
        let new = self.path.with_extension("new");
        std::fs::copy(guest(name)?, &new)?;
        std::fs::rename(&new, &self.path)?;
        Ok(())
    }

    fn config(&self, breaker: &str) -> Result<String> {
        let sections = format!(
            "[admin]\naddress = \"127.0.0.1:0\"\n\
             [guests.first]\ncomponent = \"{}\"\n\
             [guests.g]\ncomponent = \"{}\"\nbreaker = {{ {breaker} }}\n",
            guest("stamp")?.display(),
            self.path.display()
        );
        let config = self.setup.config(LINK, &sections)?;
        let gateway = "name = \"test\"\nwatch_interval = \"1 h\"";
        Ok(config.replace("name = \"test\"", gateway))
    }

    /// The ids of the messages in a topic.
    async fn ids(&self, topic: &str) -> Result<Vec<u128>> {
        let delivered = self.setup.delivered(topic, 0).await?;
        Ok(delivered.iter().map(|message| message.id).collect())
    }
}

const LONG: &str = r#"faults = 3, pause = "1 h", max_pause = "1 h""#;

#[tokio::test]
async fn the_rest_waits_for_a_version_that_works_and_no_guest_is_asked_twice() -> Result<()> {
    let payloads = [
        "1", "panic", "2", "panic", "panic", "panic", "panic", "3", "panic", "4",
    ];
    let fragile = Fragile::new(&payloads).await?;
    let mut sluice = fragile.setup.run(&fragile.config(LONG)?)?;
    sluice
        .logged("the guest fails on message after message")
        .await?;
    let status: serde_json::Value = serde_json::from_str(&sluice.get("/status").await?)?;
    let lane = &status["links"][0]["lanes"][0];
    assert_eq!(lane["state"], "running");
    assert_eq!(lane["next_offset"], 6);
    assert_eq!(lane["alerts"][0]["kind"], "guest_paused");
    assert_eq!(lane["alerts"][0]["guest"], "g");
    assert_eq!(status["guests"][1]["open_breakers"], 1);
    let metrics = sluice.get("/metrics").await?;
    for line in [
        r#"sluice_guest_breakers_open{guest="g"} 1"#,
        r#"sluice_guest_breakers_open{guest="first"} 0"#,
        r#"sluice_guest_breaker_opened_total{guest="g"} 1"#,
        r#"sluice_guest_messages_total{guest="g"} 6"#,
        r#"sluice_lane_guest_paused{link="link""#,
    ] {
        ensure!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }

    let behind = r#"sluice_guest_messages_total{guest="first"} 6"#;
    assert!(!metrics.contains(behind), "the first guest is not ahead");

    fragile.becomes("older")?;
    let (code, answer) = sluice.ask("POST", "/guests/g/reload").await?;
    ensure!(code == 200, "{code} {answer}");
    fragile.setup.arrived("t", 0, 6).await?;
    let status: serde_json::Value = serde_json::from_str(&sluice.get("/status").await?)?;
    assert_eq!(status["guests"][1]["open_breakers"], 0);
    assert_eq!(
        status["links"][0]["lanes"][0]["alerts"],
        serde_json::json!([])
    );
    let metrics = sluice.get("/metrics").await?;
    for line in [
        r#"sluice_guest_messages_total{guest="first"} 10"#,
        r#"sluice_guest_messages_total{guest="g"} 10"#,
        r#"sluice_guest_count_total{guest="first",name="stamped"} 10"#,
    ] {
        ensure!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    assert_eq!(sluice.stop().await?.settled(), (6, 0, 4));
    assert_eq!(fragile.ids("t").await?, [1, 3, 7, 8, 9, 10]);
    let letters = fragile.setup.dead_letters().await?;
    let letters: Vec<_> = letters.iter().map(|letter| letter.id).collect();
    assert_eq!(letters, [2, 4, 5, 6]);
    for message in fragile.setup.delivered("t", 0).await? {
        assert_eq!(header(&message, "version").as_deref(), Some("version-0000"));
    }
    Ok(())
}

#[tokio::test]
async fn it_closes_by_itself_once_the_guest_decides_again() -> Result<()> {
    let mut payloads = vec!["panic"; 20];
    payloads.extend(["1", "panic", "2"]);
    let fragile = Fragile::new(&payloads).await?;
    let short = r#"faults = 4, pause = "1 ms", max_pause = "4 ms""#;
    let mut sluice = fragile.setup.run(&fragile.config(short)?)?;
    fragile.setup.arrived("t", 0, 2).await?;
    let metrics = sluice.get("/metrics").await?;
    for line in [
        r#"sluice_guest_breakers_open{guest="g"} 0"#,
        // At the fourth fault, and at each of the 16 after it.
        r#"sluice_guest_breaker_opened_total{guest="g"} 17"#,
    ] {
        ensure!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    assert_eq!(sluice.stop().await?.settled(), (2, 0, 21));
    assert_eq!(fragile.ids("t").await?, [21, 23]);
    Ok(())
}

#[tokio::test]
async fn a_pause_holds_up_no_stop_and_the_next_start_goes_on_after_it() -> Result<()> {
    let fragile = Fragile::new(&["1", "panic", "panic", "panic", "panic", "2"]).await?;
    let config = fragile.config(LONG)?;
    let mut sluice = fragile.setup.run(&config)?;
    sluice
        .logged("the guest fails on message after message")
        .await?;
    let report = sluice.stop().await?;
    assert_eq!(report.settled(), (1, 0, 3));
    assert_eq!(report.lanes[0].next_offset, 4);
    let sluice = fragile.setup.run(&config)?;
    fragile.setup.arrived("t", 0, 2).await?;
    assert_eq!(sluice.stop().await?.settled(), (1, 0, 1));
    assert_eq!(fragile.ids("t").await?, [1, 6]);

    // A replay ends where a lane would wait, and goes on once the guest is mended.
    let command = ["dead-letters", "replay", "--link", "link"];
    let (code, text, log) = fragile.setup.command(&command, &config)?.output().await?;
    assert_eq!(code, Some(3), "{text}\n{log}");
    assert!(
        log.contains("guest `g` fails on message after message"),
        "{log}"
    );
    fragile.becomes("older")?;
    // The first goes on with the replay that was interrupted, the second has the letter that it wrote.
    for _ in 0..2 {
        let (code, text, log) = fragile.setup.command(&command, &config)?.output().await?;
        assert_eq!(code, Some(0), "{text}\n{log}");
    }
    let mut ids = fragile.ids("t").await?;
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
    Ok(())
}

#[tokio::test]
async fn a_guest_that_cannot_start_again_costs_no_message() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let data = setup.folder.path().join("data");
    std::fs::create_dir(&data)?;
    std::fs::write(data.join("file"), "text")?;
    let guests = format!(
        "[guests.g]\ncomponent = \"{}\"\nbreaker = {{ pause = \"1 ms\", max_pause = \"4 ms\" }}\n\
         grants = {{ clock = true, random = true, environment = [], folders = {{ \"/data\" = \"data\" }} }}\n",
        guest("system")?.display()
    );
    let mut sluice = setup.run(&setup.config(r#"guests = ["g"]"#, &guests)?)?;
    let sent = messages(&["time", "wait", "read:file"]);
    setup.produce("t", 0, &sent[..1]).await?;
    setup.arrived("t", 0, 1).await?;
    std::fs::rename(&data, data.with_extension("away"))?;
    setup.produce("t", 0, &sent[1..]).await?;
    sluice
        .logged("the lane waits before it asks it again: grants.folders: ")
        .await?;
    std::fs::rename(data.with_extension("away"), &data)?;
    setup.arrived("t", 0, 2).await?;
    assert_eq!(sluice.stop().await?.settled(), (2, 0, 1));
    let answers = setup.delivered("t", 0).await?;
    assert_eq!(
        header(&answers[1], "answer").as_deref(),
        Some("/data: text")
    );
    Ok(())
}

#[tokio::test]
async fn verdicts_that_cannot_be_carried_out_count_as_faults() -> Result<()> {
    let twice = "route:a,a";
    let fragile = Fragile::new(&["1", twice, "2", twice, twice, twice]).await?;
    let mut sluice = fragile.setup.run(&fragile.config(LONG)?)?;
    sluice
        .logged("the guest fails on message after message")
        .await?;
    let report = sluice.stop().await?;
    assert_eq!(report.lanes[0].failed, 4);
    assert_eq!(report.lanes[0].next_offset, 6);
    Ok(())
}
