//! Bad input: a clear error that names the thing, the reason and the remedy, and an exit code.

use std::path::Path;

use anyhow::Result;
use sluice_harness::{Message, Setup, guest};

/// Runs a configuration that must not work; returns the log.
async fn refused(setup: &Setup, config: &str, code: i32) -> Result<String> {
    let (ended, _, log) = setup.run(config)?.end().await?;
    assert_eq!(ended, Some(code), "{log}");
    Ok(log)
}

fn assert_holds(log: &str, parts: &[&str]) {
    for part in parts {
        assert!(log.contains(part), "{part:?} is missing in:\n{log}");
    }
}

/// A setup with a topic, and a guest whose component is the file that `write` fills.
async fn with_component(name: &str, bytes: &[u8]) -> Result<(Setup, String)> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let path = setup.folder.path().join(name);
    std::fs::write(&path, bytes)?;
    let config = guest_config(&setup, &path, "")?;
    Ok((setup, config))
}

fn guest_config(setup: &Setup, component: &Path, keys: &str) -> Result<String> {
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n{keys}\n",
        component.display()
    );
    setup.config(r#"guests = ["g"]"#, &section)
}

#[tokio::test]
async fn an_unknown_key_is_named_with_its_line_and_the_nearest_key() -> Result<()> {
    let setup = Setup::new().await?;
    let config = setup.config("batsh = { messages = 1 }", "")?;
    let log = refused(&setup, &config, 2).await?;
    assert_holds(
        &log,
        &["sluice.toml", "line", "batsh", "did you mean `batch`?"],
    );
    Ok(())
}

#[tokio::test]
async fn a_missing_configuration_file_is_named() -> Result<()> {
    let absent = Path::new("/no/such/folder/sluice.toml");
    let (code, _, log) = sluice_harness::Sluice::start(absent, &[])?.end().await?;
    assert_eq!(code, Some(2), "{log}");
    assert_holds(&log, &["/no/such/folder/sluice.toml", "No such file"]);
    Ok(())
}

#[tokio::test]
async fn a_missing_component_file_is_named() -> Result<()> {
    let setup = Setup::new().await?;
    let config = guest_config(&setup, Path::new("/no/such/guest.wasm"), "")?;
    let log = refused(&setup, &config, 3).await?;
    assert_holds(&log, &["guest `g`", "/no/such/guest.wasm", "No such file"]);
    Ok(())
}

#[tokio::test]
async fn wrong_credentials_end_the_link() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let config = setup
        .config("", "")?
        .replacen("EU_PASSWORD", "WRONG_PASSWORD", 1);
    let path = setup.folder.path().join("wrong.toml");
    std::fs::write(&path, config)?;
    let environment = [("WRONG_PASSWORD", "wrong"), ("US_PASSWORD", "iggy")];
    let (code, report, log) = sluice_harness::Sluice::start(&path, &environment)?
        .end()
        .await?;
    assert_eq!(code, Some(4), "{log}");
    assert_holds(
        &log,
        &[
            "cluster `eu`",
            "Invalid credentials",
            "correct the cluster's",
        ],
    );
    assert!(
        !log.contains("wrong\""),
        "the password is in the log:\n{log}"
    );
    assert!(report.expect("a report").error.is_some());
    Ok(())
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_named() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let config = setup
        .config("", "")?
        .replacen("EU_PASSWORD", "SLUICE_UNSET", 1);
    let log = refused(&setup, &config, 4).await?;
    assert_holds(&log, &["SLUICE_UNSET is not set"]);
    Ok(())
}

#[tokio::test]
async fn an_unreachable_cluster_is_waited_for() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.topic("t", 1).await?;
    let sent: Vec<_> = (1..50).map(|id| Message::new(id, "x")).collect();
    setup.produce("t", 0, &sent).await?;
    setup.source_broker().go_down().await;
    setup.destination_broker().go_down().await;
    let mut sluice = setup.run(&setup.config("", "")?)?;
    sluice.logged("cluster `eu`").await?;
    sluice.logged("retry_in").await?;
    setup.source_broker().come_up().await?;
    sluice.logged("cluster `us`").await?;
    setup.destination_broker().come_up().await?;
    setup.arrived("t", 0, sent.len()).await?;
    assert_eq!(sluice.stop().await?.settled(), (49, 0, 0));
    assert_eq!(setup.delivered("t", 0).await?, sent);
    Ok(())
}

#[tokio::test]
async fn bounded_attempts_end_the_link() -> Result<()> {
    let setup = Setup::with_faults().await?;
    setup.source_broker().go_down().await;
    let config = setup
        .config("", "")?
        .replace("max = \"20 ms\"", "max = \"20 ms\", attempts = 3");
    let log = refused(&setup, &config, 4).await?;
    assert_holds(&log, &["cluster `eu`", "cannot connect"]);
    Ok(())
}

#[tokio::test]
async fn a_missing_topic_or_stream_is_named() -> Result<()> {
    let setup = Setup::new().await?;
    let config = setup.config("", "")?;
    let log = refused(&setup, &config, 4).await?;
    assert_holds(&log, &["no topic of cluster `eu` matches", "create one"]);
    let named = config.replace(r#""]"#, r#""], topics = ["absent"]"#);
    let log = refused(&setup, &named, 4).await?;
    assert_holds(
        &log,
        &["topic `absent` does not exist", "create it or correct"],
    );
    let stream = config.replace(
        &format!("streams = [\"{}\"]", setup.stream),
        r#"streams = ["absent"]"#,
    );
    let log = refused(&setup, &stream, 4).await?;
    assert_holds(&log, &["stream `absent` does not exist in eu"]);
    Ok(())
}

#[tokio::test]
async fn a_missing_destination_topic_is_named_when_it_may_not_be_created() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let config = setup.config("create = false", "")?;
    let log = refused(&setup, &config, 4).await?;
    assert_holds(
        &log,
        &["does not exist at cluster `us`", "set create = true"],
    );
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_no_component_is_told_from_a_core_module() -> Result<()> {
    let (setup, config) = with_component("text.wasm", b"this is no component").await?;
    let log = refused(&setup, &config, 3).await?;
    assert_holds(
        &log,
        &[
            "guest `g`",
            "text.wasm",
            "not a valid WebAssembly component",
        ],
    );

    let module = wat::parse_str("(module)")?;
    let (setup, config) = with_component("module.wasm", &module).await?;
    let log = refused(&setup, &config, 3).await?;
    assert_holds(
        &log,
        &["module.wasm", "a core WebAssembly module, not a component"],
    );
    Ok(())
}

#[tokio::test]
async fn a_component_of_another_world_is_refused() -> Result<()> {
    let empty = wat::parse_str("(component)")?;
    let (setup, config) = with_component("empty.wasm", &empty).await?;
    let log = refused(&setup, &config, 3).await?;
    assert_holds(
        &log,
        &["exports nothing", "sluice:guest/message-handler@0.1.1"],
    );

    let foreign = wat::parse_str(
        r#"(component
            (import "wasi:sockets/tcp@0.2.0" (instance))
        )"#,
    )?;
    let (setup, config) = with_component("foreign.wasm", &foreign).await?;
    let log = refused(&setup, &config, 3).await?;
    assert_holds(&log, &["imports wasi:sockets/tcp@0.2.0", "not granted"]);
    Ok(())
}

#[tokio::test]
async fn a_guest_that_refuses_its_configuration_ends_the_link() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let config = guest_config(&setup, &guest("faulty")?, r#"config = { fail = "yes" }"#)?;
    let log = refused(&setup, &config, 3).await?;
    assert_holds(
        &log,
        &["guest `g`", "refused to start", "the config of t says fail"],
    );
    Ok(())
}

#[tokio::test]
async fn a_second_gateway_with_the_same_state_is_refused() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let config = setup.config("", "")?;
    let mut first = setup.run(&config)?;
    first.logged("lane starts").await?;
    let log = refused(&setup, &config, 5).await?;
    assert_holds(&log, &["checkpoints.redb", "another process holds it"]);
    first.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_corrupt_checkpoint_store_is_named() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let state = setup.folder.path().join("state");
    std::fs::create_dir(&state)?;
    std::fs::write(state.join("checkpoints.redb"), vec![0x5a; 4096])?;
    let config = setup.config("", "")?;
    let log = refused(&setup, &config, 5).await?;
    assert_holds(&log, &["checkpoints.redb", "restore the file"]);
    Ok(())
}

#[tokio::test]
async fn a_link_that_would_read_what_it_writes_is_refused() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let (eu, ..) = setup.source.parts()?;
    let (us, ..) = setup.destination.parts()?;
    let config = setup.config("", "")?.replace(us, eu);
    let config = config.replace(
        r#"cluster = "us" }"#,
        r#"cluster = "us", topic = "copy-of-{topic}" }"#,
    );
    let log = refused(&setup, &config, 4).await?;
    assert_holds(
        &log,
        &["would read what it writes", "copy-of-t", "exclude it"],
    );
    Ok(())
}

#[tokio::test]
async fn a_topic_that_a_guest_made_up_fails_its_message_alone() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    setup.destination_topic("t", 1).await?;
    setup.destination_topic("dead-letters", 1).await?;
    let sent: Vec<_> = ["1", "route:absent", "2"]
        .into_iter()
        .zip(1..)
        .map(|(payload, id)| Message::new(id, payload))
        .collect();
    setup.produce("t", 0, &sent).await?;
    let config = guest_config(&setup, &guest("faulty")?, "")?;
    let sluice = setup.run(&config.replace("retry", "create = false\nretry"))?;
    setup.arrived("t", 0, 2).await?;
    setup.arrived("dead-letters", 0, 1).await?;
    assert_eq!(sluice.stop().await?.settled(), (2, 0, 1));
    Ok(())
}
