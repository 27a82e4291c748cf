//! What of the system guests get, and for which contract they are built.

use anyhow::{Context, Result, ensure};
use sluice_harness::{Message, Setup, guest, header, headers};

const LINK: &str = r#"guests = ["g"]"#;

fn section(name: &str, keys: &str) -> Result<String> {
    let component = guest(name)?;
    Ok(format!(
        "[guests.g]\ncomponent = \"{}\"\n{keys}\n",
        component.display()
    ))
}

async fn refusal(setup: &Setup, section: &str) -> Result<String> {
    let (code, _, log) = setup.run(&setup.config(LINK, section)?)?.end().await?;
    ensure!(code == Some(3), "{code:?}\n{log}");
    Ok(log)
}

/// The refusal of a component in the text format.
async fn refusal_of(text: &str) -> Result<String> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let path = setup.folder.path().join("g.wasm");
    std::fs::write(&path, wat::parse_str(text)?)?;
    let every_grant = r"grants = { clock = true, random = true, environment = [], folders = {} }";
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n{every_grant}\n",
        path.display()
    );
    refusal(&setup, &section).await
}

fn assert_holds(log: &str, parts: &[&str]) {
    for part in parts {
        assert!(log.contains(part), "{part:?} is not in:\n{log}");
    }
}

#[tokio::test]
async fn an_import_that_is_not_granted_is_refused_with_the_line_that_grants_it() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let grants = [
        ("wasi:cli/environment", "grants.environment = []"),
        ("wasi:clocks/", "grants.clock = true"),
        ("wasi:filesystem/", "grants.folders = {}"),
        ("wasi:random/random", "grants.random = true"),
    ];
    for (import, line) in grants {
        let others = grants.map(|(_, other)| other);
        let others: Vec<_> = others.into_iter().filter(|other| *other != line).collect();
        let log = refusal(&setup, &section("system", &others.join("\n"))?).await?;
        let remedy = format!("grant it in [guests.g] with `{line}`");
        assert_holds(&log, &["guest `g`", "imports", import, &remedy]);
    }
    Ok(())
}

#[tokio::test]
async fn what_is_granted_must_be_there() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    for (environment, folders, reason) in [
        (
            r#"["SLUICE_TEST_UNSET"]"#,
            "{}",
            "names SLUICE_TEST_UNSET, which is not set",
        ),
        ("[]", r#"{ "/data" = "gone" }"#, "grants.folders: "),
    ] {
        let grants = format!(
            "grants = {{ clock = true, random = true, environment = {environment}, folders = {folders} }}"
        );
        let log = refusal(&setup, &section("system", &grants)?).await?;
        assert_holds(&log, &["guest `g`", reason]);
    }
    Ok(())
}

#[tokio::test]
async fn the_network_and_newer_contracts_are_refused_whatever_is_granted() -> Result<()> {
    let import = |name: &str, function: &str| {
        format!(r#"(component (import "{name}" (instance (export "{function}" (func)))))"#)
    };
    for name in ["wasi:sockets/tcp@0.2.0", "wasi:http/types@0.2.0"] {
        let log = refusal_of(&import(name, "connect")).await?;
        assert_holds(
            &log,
            &[
                &format!("imports {name}"),
                "is not granted to guests and cannot be",
            ],
        );
    }
    let log = refusal_of(&import("sluice:guest/host@0.2.0", "log")).await?;
    assert_holds(&log, &["imports sluice:guest/host@0.2.0", "cannot be"]);

    let newer = r#"(component
        (import "sluice:guest/host@0.1.9" (instance (export "of-the-future" (func))))
        (instance $handler)
        (export "sluice:guest/message-handler@0.1.9" (instance $handler)))"#;
    let log = refusal_of(newer).await?;
    assert_holds(
        &log,
        &["built for sluice:guest@0.1.9", "0.1.1 does not have"],
    );
    Ok(())
}

#[tokio::test]
async fn a_guest_of_the_first_contract_still_decides() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let sent = Message::new(1, "a");
    setup.produce("t", 0, std::slice::from_ref(&sent)).await?;
    let mut sluice = setup.run(&setup.config(LINK, &section("older", "")?)?)?;
    setup.arrived("t", 0, 1).await?;
    sluice.logged("the older guest starts").await?;
    sluice.stop().await?;
    let expected = Message {
        headers: headers(&[("contract", "0.1.0")]),
        ..sent
    };
    assert_eq!(setup.delivered("t", 0).await?, [expected]);
    Ok(())
}

/// The answers of the guest that uses the system, each with its question.
async fn answers(setup: &Setup) -> Result<Vec<(String, String)>> {
    let delivered = setup.delivered("t", 0).await?;
    let answer = |message: Message| {
        let answer = header(&message, "answer").context("an answer")?;
        Ok((
            String::from_utf8_lossy(&message.payload).into_owned(),
            answer,
        ))
    };
    delivered.into_iter().map(answer).collect()
}

fn ask(questions: &[&str]) -> Vec<Message> {
    let numbered = questions.iter().zip(1_u128..);
    numbered
        .map(|(question, id)| Message::new(id, (*question).to_owned()))
        .collect()
}

#[tokio::test]
async fn granted_folders_are_read_only_and_nothing_waits() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let data = setup.folder.path().join("data");
    std::fs::create_dir(&data)?;
    std::fs::write(data.join("file"), "inside")?;
    std::fs::write(setup.folder.path().join("outside"), "outside")?;
    std::os::unix::fs::symlink("../outside", data.join("link"))?;
    let questions = [
        "time",
        "random",
        "wait",
        "environment",
        "read:file",
        "read:../outside",
        "read:link",
        "create:new",
        "read:file",
    ];
    setup.produce("t", 0, &ask(&questions)).await?;
    // The name is that of a variable which the harness sets for sluice.
    let grants = r#"grants = { clock = true, random = true, environment = ["EU_PASSWORD"], folders = { "/data" = "data" } }"#;
    let (_, _, password) = setup.source.parts()?;
    let sluice = setup.run(&setup.config(LINK, &section("system", grants)?)?)?;
    setup.arrived("t", 0, questions.len() - 1).await?;
    setup.arrived("dead-letters", 0, 1).await?;
    assert_eq!(sluice.stop().await?.settled(), (8, 0, 1));
    let letters = setup.dead_letters().await?;
    assert_eq!(letters[0].payload, "wait");
    let reason = header(&letters[0], "sluice-reason").unwrap_or_default();
    assert!(reason.contains("guests may not wait"), "{reason}");

    let variables = format!("{:?}", [("EU_PASSWORD", password)]);
    let expected = [
        ("time", "true"),
        ("random", "true"),
        ("environment", &variables),
        ("read:file", "/data: inside"),
        ("read:../outside", "not-permitted"),
        ("read:link", "not-permitted"),
        ("create:new", "not-permitted"),
        ("read:file", "/data: inside"),
    ];
    let expected = expected.map(|(question, answer)| (question.to_owned(), answer.to_owned()));
    assert_eq!(answers(&setup).await?, expected);
    assert!(!data.join("new").exists());
    Ok(())
}

#[tokio::test]
async fn a_version_that_did_not_start_is_tried_again_when_somebody_asks() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let data = setup.folder.path().join("data");
    let make = |text: &str| {
        std::fs::create_dir(&data)?;
        std::fs::write(data.join("file"), text)
    };
    make("first")?;
    let component = setup.folder.path().join("system.wasm");
    let mut bytes = std::fs::read(guest("system")?)?;
    std::fs::write(&component, &bytes)?;
    let guests = format!(
        "[admin]\naddress = \"127.0.0.1:0\"\n[guests.g]\ncomponent = \"{}\"\n\
         grants = {{ clock = true, random = true, environment = [], folders = {{ \"/data\" = \"data\" }} }}\n",
        component.display()
    );
    let config = setup.config(LINK, &guests)?;
    let config = config.replace(
        "name = \"test\"",
        "name = \"test\"\nwatch_interval = \"1 h\"",
    );
    let mut sluice = setup.run(&config)?;
    let questions = ask(&["read:file"; 3]);
    setup.produce("t", 0, &questions[..1]).await?;
    setup.arrived("t", 0, 1).await?;

    // A custom section makes it another version that does the same.
    bytes.extend([0, 2, 1, b'v']);
    std::fs::write(&component, &bytes)?;
    let (code, answer) = sluice.ask("POST", "/guests/g/reload").await?;
    ensure!(code == 200 && answer.contains("true"), "{code} {answer}");
    // Between the check of the new version and the lane's next batch, its folder goes.
    std::fs::remove_dir_all(&data)?;
    setup.produce("t", 0, &questions[1..2]).await?;
    setup.arrived("t", 0, 2).await?;
    sluice.logged("the new version does not start here").await?;
    let status = sluice.get("/status").await?;
    assert!(status.contains("grants.folders: "), "{status}");

    make("second")?;
    let (code, answer) = sluice.ask("POST", "/guests/g/reload").await?;
    ensure!(code == 200 && answer.contains("false"), "{code} {answer}");
    setup.produce("t", 0, &questions[2..]).await?;
    setup.arrived("t", 0, 3).await?;
    let status = sluice.get("/status").await?;
    assert!(!status.contains("grants.folders: "), "{status}");
    sluice.stop().await?;
    let answers: Vec<_> = answers(&setup).await?.into_iter().map(|(_, a)| a).collect();
    let expected = ["/data: first", "no-entry", "/data: second"];
    assert_eq!(answers, expected);
    Ok(())
}
