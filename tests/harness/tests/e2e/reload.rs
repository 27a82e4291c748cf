//! Guests that are swapped while messages flow.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use sluice_harness::{Message, Setup, Sluice, guest, header, headers};

const SWAPS: u128 = 200;

/// The component file that a test replaces.
struct Stamp {
    original: Vec<u8>,
    path: PathBuf,
}

impl Stamp {
    fn new(setup: &Setup) -> Result<Self> {
        let stamp = Self {
            original: std::fs::read(guest("stamp")?)?,
            path: setup.folder.path().join("stamp.wasm"),
        };
        stamp.becomes(0)?;
        Ok(stamp)
    }

    /// Puts another version in place of the file, at once.
    fn becomes(&self, version: u128) -> Result<()> {
        let bytes = self.version(version)?;
        let new = self.path.with_extension("new");
        std::fs::write(&new, bytes)?;
        std::fs::rename(&new, &self.path)?;
        Ok(())
    }

    fn version(&self, version: u128) -> Result<Vec<u8>> {
        let (from, to) = (name(0), name(version));
        let mut bytes = self.original.clone();
        let place = bytes.windows(from.len()).position(|w| w == from.as_bytes());
        let place = place.context("the component holds its version")?;
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
        Ok(bytes)
    }

    fn config(&self, setup: &Setup, interval: &str) -> Result<String> {
        let section = format!(
            "[admin]\naddress = \"127.0.0.1:0\"\n[guests.stamp]\ncomponent = \"{}\"\n",
            self.path.display()
        );
        let config = setup.config(r#"guests = ["stamp"]"#, &section)?;
        let gateway = format!("name = \"test\"\nwatch_interval = {interval:?}");
        Ok(config.replace("name = \"test\"", &gateway))
    }
}

fn name(version: u128) -> String {
    format!("version-{version:04}")
}

fn stamped(message: &Message, version: &str) -> Message {
    Message {
        headers: headers(&[("version", version)]),
        ..message.clone()
    }
}

async fn reload(sluice: &mut Sluice) -> Result<(u16, serde_json::Value)> {
    let (code, body) = sluice.ask("POST", "/guests/stamp/reload").await?;
    Ok((code, serde_json::from_str(&body)?))
}

#[tokio::test]
async fn hundreds_of_swaps_lose_repeat_and_reorder_nothing() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let stamp = Stamp::new(&setup)?;
    let mut sluice = setup.run(&stamp.config(&setup, "1 h")?)?;
    sluice.logged("guest loaded").await?;
    // Partition 1 gets messages while a version is swapped, partition 0 one of its own after that.
    let mut flown = Vec::new();
    for version in 1..=SWAPS {
        stamp.becomes(version)?;
        let batch: Vec<_> = (0..20)
            .map(|index| 1_000_000 + version * 20 + index)
            .map(|id| Message::new(id, format!("{id}")))
            .collect();
        let (reloaded, produced) = tokio::join!(reload(&mut sluice), setup.produce("t", 1, &batch));
        produced?;
        let (code, answer) = reloaded?;
        ensure!(
            code == 200 && answer["changed"] == true,
            "{version}: {answer}"
        );
        flown.extend(batch);
        let own = Message::new(version, name(version));
        setup.produce("t", 0, &[own]).await?;
    }
    setup.arrived("t", 0, SWAPS.try_into()?).await?;
    setup.arrived("t", 1, flown.len()).await?;
    let metrics = sluice.get("/metrics").await?;
    let report = sluice.stop().await?;

    let marked = setup.delivered("t", 0).await?;
    let expected: Vec<_> = (1..=SWAPS)
        .zip(&marked)
        .map(|(version, found)| {
            // A later version may have taken over before the message was polled, never an earlier one.
            let by = header(found, "version").unwrap_or_default();
            assert!(name(version) <= by && by <= name(SWAPS), "{version}: {by}");
            stamped(&Message::new(version, name(version)), &by)
        })
        .collect();
    assert_eq!(marked, expected);

    let delivered = setup.delivered("t", 1).await?;
    let versions: Vec<_> = delivered
        .iter()
        .map(|message| header(message, "version").unwrap_or_default())
        .collect();
    assert!(versions.is_sorted(), "{versions:?}");
    let expected: Vec<_> = flown
        .iter()
        .zip(&versions)
        .map(|(message, version)| stamped(message, version))
        .collect();
    assert_eq!(delivered, expected);

    let total = u64::try_from(SWAPS)? + flown.len() as u64;
    assert_eq!(report.settled(), (total, 0, 0));
    for line in [
        format!("sluice_guest_messages_total{{guest=\"stamp\"}} {total}"),
        format!("sluice_guest_count_total{{guest=\"stamp\",name=\"stamped\"}} {total}"),
        format!("sluice_guest_refused_calls_total{{guest=\"stamp\"}} {total}"),
        format!("sluice_guest_reloads_total{{guest=\"stamp\"}} {SWAPS}"),
        "sluice_guest_refused_reloads_total{guest=\"stamp\"} 0".to_owned(),
        "sluice_guest_failures_total{guest=\"stamp\",stage=\"trap\"} 0".to_owned(),
    ] {
        assert!(
            metrics.lines().any(|known| known == line),
            "{line}\n{metrics}"
        );
    }
    let gauge = format!(
        "sluice_guest_gauge{{guest=\"stamp\",name=\"offset\",source=\"eu:{}/t/0\"}}",
        setup.stream
    );
    assert!(metrics.contains(&gauge), "{gauge}\n{metrics}");
    Ok(())
}

#[tokio::test]
async fn a_version_that_cannot_run_leaves_the_last_one_running() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let stamp = Stamp::new(&setup)?;
    let mut sluice = setup.run(&stamp.config(&setup, "1 h")?)?;
    setup.produce("t", 0, &[Message::new(1, "a")]).await?;
    setup.arrived("t", 0, 1).await?;

    std::fs::write(&stamp.path, &stamp.original[..1000])?;
    let (code, answer) = reload(&mut sluice).await?;
    let error = answer["error"].to_string();
    assert_eq!(code, 422, "{error}");
    assert!(
        error.contains("not a valid WebAssembly component"),
        "{error}"
    );

    stamp.becomes(9000)?;
    let (code, answer) = reload(&mut sluice).await?;
    let error = answer["error"].to_string();
    assert_eq!(code, 422, "{error}");
    assert!(error.contains("version-9000 refuses"), "{error}");
    assert!(error.contains("the version that runs goes on"), "{error}");
    let status: serde_json::Value = serde_json::from_str(&sluice.get("/status").await?)?;
    let shown = &status["guests"][0];
    assert_eq!(shown["guest"], "stamp");
    assert!(
        shown["refused"]
            .to_string()
            .contains("version-9000 refuses"),
        "{status}"
    );
    let metrics = sluice.get("/metrics").await?;
    let refused = "sluice_guest_refused_reloads_total{guest=\"stamp\"} 2";
    assert!(metrics.lines().any(|line| line == refused), "{metrics}");

    setup.produce("t", 0, &[Message::new(2, "b")]).await?;
    setup.arrived("t", 0, 2).await?;
    stamp.becomes(1)?;
    let (code, answer) = reload(&mut sluice).await?;
    assert_eq!((code, &answer["changed"]), (200, &true.into()), "{answer}");
    setup.produce("t", 0, &[Message::new(3, "c")]).await?;
    setup.arrived("t", 0, 3).await?;
    let (code, body) = sluice.ask("POST", "/guests/other/reload").await?;
    assert_eq!(code, 404, "{body}");
    sluice.stop().await?;
    let expected = [(1, "a", 0), (2, "b", 0), (3, "c", 1)]
        .map(|(id, text, version)| stamped(&Message::new(id, text), &name(version)));
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

#[tokio::test]
async fn a_file_that_changes_is_taken_up_once_it_is_whole() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let stamp = Stamp::new(&setup)?;
    let mut sluice = setup.run(&stamp.config(&setup, "20 ms")?)?;
    setup.produce("t", 0, &[Message::new(1, "a")]).await?;
    setup.arrived("t", 0, 1).await?;
    stamp.becomes(1)?;
    sluice.logged("takes over").await?;
    setup.produce("t", 0, &[Message::new(2, "b")]).await?;
    setup.arrived("t", 0, 2).await?;

    let whole = stamp.version(2)?;
    std::fs::write(&stamp.path, &whole[..whole.len() / 2])?;
    sluice.logged("the version that runs goes on").await?;
    setup.produce("t", 0, &[Message::new(3, "c")]).await?;
    setup.arrived("t", 0, 3).await?;
    std::fs::write(&stamp.path, &whole)?;
    sluice.logged_again("takes over", 1).await?;
    setup.produce("t", 0, &[Message::new(4, "d")]).await?;
    setup.arrived("t", 0, 4).await?;
    sluice.stop().await?;
    let expected = [(1, "a", 0), (2, "b", 1), (3, "c", 1), (4, "d", 2)]
        .map(|(id, text, version)| stamped(&Message::new(id, text), &name(version)));
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

/// As the folder of a config map: `name` leads through `..data` to the folder of the newest version, and all of it is
/// swapped by renaming one symbolic link.
#[tokio::test]
async fn a_swapped_symbolic_link_is_taken_up() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let mount = setup.folder.path().join("mount");
    std::fs::create_dir(&mount)?;
    let stamp = Stamp {
        path: mount.join("stamp.wasm"),
        ..Stamp::new(&setup)?
    };
    let publish = |version: u128| -> Result<()> {
        let folder = format!("..{version}");
        std::fs::create_dir(mount.join(&folder))?;
        let bytes = stamp.version(version)?;
        std::fs::write(mount.join(&folder).join("stamp.wasm"), bytes)?;
        symlink(&folder, mount.join("..data_tmp"))?;
        std::fs::rename(mount.join("..data_tmp"), mount.join("..data"))?;
        Ok(())
    };
    publish(0)?;
    symlink("..data/stamp.wasm", &stamp.path)?;
    let mut sluice = setup.run(&stamp.config(&setup, "20 ms")?)?;
    let sent = [Message::new(1, "a"), Message::new(2, "b")];
    setup.produce("t", 0, &sent[..1]).await?;
    setup.arrived("t", 0, 1).await?;
    publish(1)?;
    sluice.logged("takes over").await?;
    setup.produce("t", 0, &sent[1..]).await?;
    setup.arrived("t", 0, 2).await?;
    sluice.stop().await?;
    let expected = [stamped(&sent[0], &name(0)), stamped(&sent[1], &name(1))];
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}

/// Log lines beyond the limit are left out and counted; none of them spans two lines.
#[tokio::test]
async fn a_flood_of_log_lines_is_cut_and_holds_up_nothing() -> Result<()> {
    let setup = Setup::new().await?;
    setup.topic("t", 1).await?;
    let stamp = Stamp::new(&setup)?;
    let mut sluice = setup.run(&stamp.config(&setup, "1 h")?)?;
    let sent: Vec<_> = (1..=50).map(|id| Message::new(id, "flood")).collect();
    setup.produce("t", 0, &sent).await?;
    setup.arrived("t", 0, 50).await?;
    let metrics = sluice.get("/metrics").await?;
    let metric = "sluice_guest_log_lines_left_out_total{guest=\"stamp\"} ";
    let left_out = metrics.lines().find_map(|line| line.strip_prefix(metric));
    let left_out: usize = left_out.context("the metric")?.parse()?;
    sluice.signal("TERM").await?;
    let (code, _, log) = sluice.end().await?;
    ensure!(code == Some(0), "{code:?}\n{log}");
    let written = log.matches("flood\\nline ").count();
    assert!(left_out > 0, "{metrics}");
    assert_eq!(written + left_out, 50_000);
    let expected: Vec<_> = sent.iter().map(|m| stamped(m, &name(0))).collect();
    assert_eq!(setup.delivered("t", 0).await?, expected);
    Ok(())
}
