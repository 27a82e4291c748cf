//! The `devbroker` program.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use iggy::prelude::{Client, Identifier, IggyClient, TopicClient};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

fn devbroker() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_devbroker"));
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

#[tokio::test]
async fn it_tells_its_address_serves_its_topics_and_ends_on_a_signal() -> Result<()> {
    for signal in ["-INT", "-TERM"] {
        let mut broker = devbroker()
            .args(["--address", "127.0.0.1:0", "--password", "secret"])
            .args(["--topic", "shop/orders:4", "--topic", "shop/returns"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = broker.stdout.take().context("piped above")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = lines.next_line().await?.context("an address")?;
        let address = line.strip_prefix("listening on ").context("an address")?;

        let client = IggyClient::from_connection_string(&format!("iggy://iggy:secret@{address}"))?;
        client.connect().await?;
        let stream = Identifier::named("shop")?;
        for (topic, partitions) in [("orders", 4), ("returns", 1)] {
            let topic = client
                .get_topic(&stream, &Identifier::named(topic)?)
                .await?;
            assert_eq!(topic.context("a topic")?.partitions_count, partitions);
        }

        let pid = broker.id().context("running")?.to_string();
        let killed = Command::new("kill").args([signal, &pid]).status().await?;
        ensure!(killed.success());
        assert_eq!(broker.wait().await?.code(), Some(0));
        assert_eq!(lines.next_line().await?, None, "one line only");
    }
    Ok(())
}

#[tokio::test]
async fn it_says_what_is_wrong_with_its_arguments() -> Result<()> {
    for (arguments, code, complaint) in [
        (["--address", "0.0.0.0:0"], 1, "not a loopback address"),
        (["--topic", "orders"], 2, "stream/topic"),
        (["--topic", "shop/orders:many"], 2, "number of partitions"),
    ] {
        let ended = devbroker().args(arguments).output().await?;
        let error = String::from_utf8(ended.stderr)?;
        assert_eq!(ended.status.code(), Some(code), "{error}");
        assert!(error.contains(complaint), "{error}");
        assert!(ended.stdout.is_empty());
    }
    Ok(())
}
