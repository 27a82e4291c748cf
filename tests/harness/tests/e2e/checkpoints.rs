//! Where checkpoints are kept, and what an operator can do with them.

use anyhow::{Context, Result};
use serde_json::Value;
use sluice_harness::{Message, Setup, guest};

fn messages(count: u128) -> Vec<Message> {
    (1..=count)
        .map(|id| {
            let kind = ["order", "visit"][usize::from(id % 3 == 0)];
            Message::new(id, format!("payload {id}")).with(&[("type", kind)])
        })
        .collect()
}

/// The same configuration with checkpoints at the clusters.
fn at_clusters(config: &str) -> String {
    config.replace(
        r#"name = "test""#,
        "name = \"test\"\ncheckpoint_store = \"server\"",
    )
}

#[tokio::test]
async fn another_host_goes_on_from_checkpoints_at_the_clusters() -> Result<()> {
    const KILLS: usize = 8;
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let all = messages(20_000);
    setup.produce("t", 0, &all).await?;
    let router = format!(
        r#"
[guests.router]
component = {:?}
config = {{ header = "type", routes = {{ order = {{ topic = "orders" }} }} }}
"#,
        guest("router")?
    );
    let config = setup.config("guests = [\"router\"]\nbatch = { messages = 20 }", &router)?;
    let config = at_clusters(&config);
    let of = |kind: &str| -> Vec<Message> {
        let kept = |message: &&Message| message.headers.ends_with(kind.as_bytes());
        all.iter().filter(kept).cloned().collect()
    };
    let (orders, visits) = (of("order"), of("visit"));
    for kill in 0..KILLS {
        let sluice = setup.run(&config)?;
        setup
            .arrived("t", 0, visits.len() * kill / KILLS + 50)
            .await?;
        sluice.kill().await?;
        let kept: Vec<_> = std::fs::read_dir(setup.folder.path().join("state"))?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Result<_>>()?;
        assert_eq!(kept, ["compiled"], "only the cache of compiled guests");
    }
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, visits.len()).await?;
    setup.arrived("orders", 0, orders.len()).await?;
    sluice.stop().await?;
    assert!(setup.delivered("t", 0).await? == visits);
    assert!(setup.delivered("orders", 0).await? == orders);
    Ok(())
}

#[tokio::test]
async fn a_purged_source_is_noticed_also_with_checkpoints_at_the_clusters() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages(300);
    setup.produce("t", 0, &all[..100]).await?;
    let config = at_clusters(&setup.config("", "")?);
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 100).await?;
    sluice.stop().await?;
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    setup.produce("t", 0, &all[200..300]).await?;
    let (code, _, log) = setup.run(&config)?.end().await?;
    assert_eq!(code, Some(4), "{log}");
    assert!(log.contains("was purged, created anew or"), "{log}");
    assert_eq!(setup.delivered("t", 0).await?, all[..100]);
    let restart = config.replace(
        "name = \"link\"",
        "name = \"link\"\non_source_reset = \"restart\"",
    );
    let sluice = setup.run(&restart)?;
    setup.arrived("t", 0, 200).await?;
    sluice.stop().await?;
    assert_eq!(
        setup.delivered("t", 0).await?,
        [&all[..100], &all[200..300]].concat()
    );
    Ok(())
}

#[tokio::test]
async fn the_source_shows_how_far_its_lanes_are() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let all = messages(100);
    setup.produce("t", 1, &all).await?;
    let sluice = setup.run(&setup.config("", "")?)?;
    setup.arrived("t", 1, 100).await?;
    sluice.stop().await?;
    let consumer = "sluice-test-link";
    assert_eq!(setup.stored_offset(consumer, "t", 1).await?, Some(99));
    assert_eq!(setup.stored_offset(consumer, "t", 0).await?, None);
    Ok(())
}

async fn json(setup: &Setup, config: &str, arguments: &[&str]) -> Result<Value> {
    let (code, stdout, stderr) = setup.output(config, arguments).await?;
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str(&stdout).with_context(|| format!("not JSON: {stdout}"))
}

#[tokio::test]
async fn checkpoints_are_shown_set_and_moved_to_another_store() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let all = messages(300);
    setup.produce("t", 0, &all[..100]).await?;
    let config = setup.config("", "")?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 100).await?;
    let (code, _, stderr) = setup.output(&config, &["checkpoint", "show"]).await?;
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("another process holds it"), "{stderr}");
    sluice.stop().await?;

    let shown = json(&setup, &config, &["checkpoint", "show", "--link", "link"]).await?;
    assert_eq!(shown[0]["lane"]["topic"], "t");
    assert_eq!(shown[0]["checkpoint"]["next_offset"], 100);
    assert_eq!(
        shown[0]["checkpoint"]["destinations"][0]["next_offset"],
        100
    );

    // Into the clusters, and on from there.
    let file = setup.folder.path().join("exported.json");
    let file = file.to_str().context("a path in UTF-8")?;
    let export = ["checkpoint", "export", "--output", file];
    assert_eq!(setup.output(&config, &export).await?.0, Some(0));
    let moved = at_clusters(&config);
    let import = ["checkpoint", "import", file];
    let (code, stdout, stderr) = setup.output(&moved, &import).await?;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, "1 checkpoints imported\n");
    let (code, _, stderr) = setup.output(&moved, &import).await?;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--replace"), "{stderr}");
    let shown = json(&setup, &moved, &["checkpoint", "show"]).await?;
    assert_eq!(shown[0]["checkpoint"]["next_offset"], 100);
    setup.produce("t", 0, &all[100..200]).await?;
    let sluice = setup.run(&moved)?;
    setup.arrived("t", 0, 200).await?;
    sluice.stop().await?;
    assert_eq!(setup.delivered("t", 0).await?, all[..200]);

    for (round, config) in (2..).zip([&moved, &config]) {
        let at = ["--link", "link", "--stream", &setup.stream, "--topic", "t"];
        let set = [
            &["checkpoint", "set"][..],
            &at,
            &["--partition", "0", "--offset", "0"],
        ]
        .concat();
        let (code, stdout, stderr) = setup.output(config, &set).await?;
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("next offset 0 (was"), "{stdout}");
        let sluice = setup.run(config)?;
        setup.arrived("t", 0, round * 200).await?;
        sluice.stop().await?;
    }
    assert_eq!(
        setup.delivered("t", 0).await?,
        [&all[..200], &all[..200], &all[..200]].concat()
    );
    Ok(())
}

#[tokio::test]
async fn a_checkpoint_at_the_clusters_is_set_to_any_offset() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let all = messages(300);
    setup.produce("t", 0, &all[..100]).await?;
    let config = at_clusters(&setup.config("", "")?);
    let run = async |count| {
        let sluice = setup.run(&config)?;
        setup.arrived("t", 0, count).await?;
        sluice.stop().await
    };
    let set = async |offset: &str| {
        let at = ["--link", "link", "--stream", &setup.stream, "--topic", "t"];
        let set = ["checkpoint", "set", "--partition", "0", "--offset", offset];
        let (code, stdout, stderr) = setup.output(&config, &[&set[..], &at].concat()).await?;
        assert_eq!(code, Some(0), "{stderr}");
        anyhow::Ok(stdout)
    };
    run(100).await?;
    assert!(set("50").await?.contains("next offset 50 (was 100)"));
    run(150).await?;
    // What a purge asks for: the source forgot the lane.
    assert!(setup.source_broker().purge(&setup.stream, "t", 0));
    setup.produce("t", 0, &all[200..300]).await?;
    assert!(
        set("30")
            .await?
            .contains("next offset 30 (had no checkpoint)")
    );
    run(220).await?;
    assert_eq!(
        setup.delivered("t", 0).await?,
        [&all[..100], &all[50..100], &all[230..300]].concat()
    );
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_set_or_imported_is_named() -> Result<()> {
    let setup = Setup::new().await?;
    let config = setup.config("", "")?;
    let set = [
        "checkpoint",
        "set",
        "--link",
        "lnik",
        "--stream",
        "s",
        "--topic",
        "t",
    ];
    let set = [&set[..], &["--partition", "0", "--offset", "0"]].concat();
    let (code, _, stderr) = setup.output(&config, &set).await?;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("there is no link `lnik`"), "{stderr}");
    let show = ["checkpoint", "show", "--link", "lnik"];
    assert_eq!(setup.output(&config, &show).await?.0, Some(2));
    let file = setup.folder.path().join("other.json");
    let elsewhere = r#"{"version":1,"checkpoints":[{"lane":{"link":"link","cluster":"asia","stream":"s","topic":"t",
        "partition":0,"destination":"us"},"checkpoint":{"next_offset":1,"last":null,"destinations":[]}}]}"#;
    for (text, reason) in [
        (
            elsewhere,
            "is not one of link `link`, which goes from eu to us",
        ),
        ("{}", "is not what `sluice checkpoint export` writes"),
        (r#"{"version":9,"checkpoints":[]}"#, "has version 9"),
    ] {
        std::fs::write(&file, text)?;
        let import = ["checkpoint", "import", file.to_str().context("UTF-8")?];
        let (code, _, stderr) = setup.output(&config, &import).await?;
        assert_eq!(code, Some(2));
        assert!(stderr.contains(reason), "{stderr}");
    }
    Ok(())
}

#[tokio::test]
async fn a_corrupt_store_is_named_and_nothing_is_copied() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let all = messages(10);
    setup.produce("t", 0, &all).await?;
    let config = setup.config("", "")?;
    let sluice = setup.run(&config)?;
    setup.arrived("t", 0, 10).await?;
    sluice.stop().await?;
    let path = setup.folder.path().join("state/checkpoints.redb");
    let mut bytes = std::fs::read(&path)?;
    let needle = b"\"next_offset\"";
    let places: Vec<_> = (0..bytes.len())
        .filter(|&place| bytes[place..].starts_with(needle))
        .collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place + 1] ^= 4;
    }
    std::fs::write(&path, bytes)?;
    let (code, _, log) = setup.run(&config)?.end().await?;
    assert_eq!(code, Some(5), "{log}");
    assert!(log.contains("checkpoints.redb"), "{log}");
    assert_eq!(setup.delivered("t", 0).await?, all);
    Ok(())
}
