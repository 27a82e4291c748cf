//! The `devbroker` program with a data folder: what survives its end, and what does not.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails with the place where it stopped"
)]

mod changes;
mod damage;
mod ends;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use iggy::prelude::{
    Client, Consumer, HeaderKey, HeaderValue, Identifier, IggyClient, IggyMessage, MessageClient,
    Partitioning, PollingStrategy,
};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The program, its folder and a client.
struct Process {
    child: Child,
    address: String,
    folder: TempDir,
    arguments: Vec<String>,
    client: IggyClient,
}

impl Process {
    /// Starts it with an empty folder and the topic s/t of two partitions.
    async fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let topic = ["--topic", "s/t:2"].iter();
        let arguments: Vec<_> = topic.chain(arguments).map(ToString::to_string).collect();
        let (child, address) = run(folder.path(), "127.0.0.1:0", &arguments).await;
        let client = connect(&address).await;
        Self {
            child,
            address,
            folder,
            arguments,
            client,
        }
    }

    /// Ends it with a signal and waits for the end.
    async fn end(&mut self, signal: &str) {
        let pid = self.child.id().unwrap().to_string();
        let kill = Command::new("kill").args([signal, &pid]).status().await;
        assert!(kill.unwrap().success());
        let status = self.child.wait().await.unwrap();
        assert_eq!(status.success(), signal == "-TERM", "{status}");
    }

    /// Starts it again with its folder, at its address.
    async fn start_again(&mut self) {
        let (child, address) = run(self.folder.path(), &self.address, &self.arguments).await;
        assert_eq!(address, self.address);
        self.child = child;
        self.client = connect(&address).await;
    }

    async fn end_and_start_again(&mut self, signal: &str) {
        self.end(signal).await;
        self.start_again().await;
    }

    /// Tries to start it again, in vain.
    async fn fail_to_start(&self) -> Output {
        let mut command = devbroker(self.folder.path(), &self.address);
        command.output().await.unwrap()
    }

    /// Sends messages with the ids `ids` to s/t; returns the first one's offset.
    async fn send(&self, partition: u32, ids: std::ops::Range<u128>) -> u64 {
        let mut messages: Vec<_> = ids.map(message).collect();
        let partitioning = Partitioning::partition_id(partition);
        let sent = self
            .client
            .send_messages(&named("s"), &named("t"), &partitioning, &mut messages)
            .await;
        sent.unwrap().confirmations[0].base_offset
    }

    /// Everything in a partition of s/t.
    async fn read(&self, partition: u32) -> Vec<IggyMessage> {
        let consumer = Consumer::new(named("c"));
        let polled = self
            .client
            .poll_messages(
                &named("s"),
                &named("t"),
                Some(partition),
                &consumer,
                &PollingStrategy::offset(0),
                u32::MAX,
                false,
            )
            .await;
        polled.unwrap().messages
    }

    /// Offsets and ids of what partition 0 holds.
    async fn places(&self) -> Vec<(u64, u128)> {
        let messages = self.read(0).await;
        let places = messages
            .iter()
            .map(|message| (message.header.offset, message.header.id));
        places.collect()
    }

    /// Files of the partitions, oldest first.
    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("partitions")).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

fn devbroker(folder: &Path, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_devbroker"));
    command
        .args(["--address", address, "--data-dir"])
        .arg(folder)
        .kill_on_drop(true)
        .stdin(Stdio::null());
    command
}

async fn run(folder: &Path, address: &str, arguments: &[String]) -> (Child, String) {
    let mut child = devbroker(folder, address)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().expect("it starts");
    let address = line.strip_prefix("listening on ").unwrap();
    (child, address.to_owned())
}

async fn connect(address: &str) -> IggyClient {
    let text = format!("iggy://iggy:iggy@{address}?reestablish_after=0s&reconnection_retries=1");
    let client = IggyClient::from_connection_string(&text).unwrap();
    client.connect().await.unwrap();
    client
}

/// A message with headers.
fn message(id: u128) -> IggyMessage {
    let header = (
        HeaderKey::try_from("kind").unwrap(),
        HeaderValue::try_from(format!("kind of {id}").as_str()).unwrap(),
    );
    let mut message = IggyMessage::builder()
        .id(id)
        .payload(format!("payload {id}").into())
        .user_headers([header].into())
        .build()
        .unwrap();
    message.header.origin_timestamp = 1_700_000_000_000_000 + u64::try_from(id).unwrap();
    message
}

fn named(name: &str) -> Identifier {
    Identifier::named(name).unwrap()
}
