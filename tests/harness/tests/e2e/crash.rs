//! `kill -9` of the real process, again and again.

use anyhow::Result;
use sluice_harness::{Message, Setup, guest};

fn messages(partition: u32, count: u128) -> Vec<Message> {
    (0..count)
        .map(|index| {
            let id = u128::from(partition) * 1_000_000 + index + 1;
            let kind = ["order", "visit"][usize::from(index % 3 == 0)];
            Message::new(id, format!("payload {id}")).with(&[("type", kind)])
        })
        .collect()
}

#[tokio::test]
async fn killed_at_any_moment_it_neither_loses_nor_repeats_a_message() -> Result<()> {
    const KILLS: usize = 12;
    const COUNT: u128 = 30_000;
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let all = [messages(0, COUNT), messages(1, COUNT)];
    for (partition, all) in (0..).zip(&all) {
        setup.produce("t", partition, all).await?;
    }
    let router = format!(
        r#"
[guests.router]
component = {:?}
config = {{ header = "type", routes = {{ order = {{ topic = "orders" }} }} }}
"#,
        guest("router")?
    );
    let config = setup.config("guests = [\"router\"]\nbatch = { messages = 20 }", &router)?;
    let visits = usize::try_from(COUNT / 3)?;
    let mut found = 0;
    for kill in 0..KILLS {
        let sluice = setup.run(&config)?;
        // Each round ends in the middle of the traffic, a little further on.
        let partition = u32::from(kill % 2 == 0);
        setup
            .arrived("t", partition, visits * kill / KILLS + 100)
            .await?;
        found += sluice.log().matches("found delivered").count();
        sluice.kill().await?;
    }
    let mut sluice = setup.run(&config)?;
    for partition in 0..2 {
        setup.arrived("t", partition, visits).await?;
        setup.arrived("orders", partition, 2 * visits).await?;
    }
    sluice.logged("lane starts").await?;
    found += sluice.log().matches("found delivered").count();
    sluice.stop().await?;
    for (partition, all) in (0..).zip(&all) {
        for (topic, kind) in [("t", "visit"), ("orders", "order")] {
            let kept = |message: &&Message| message.headers.ends_with(kind.as_bytes());
            let expected: Vec<_> = all.iter().filter(kept).cloned().collect();
            let delivered = setup.delivered(topic, partition).await?;
            assert!(
                delivered == expected,
                "{topic}/{partition}: {} delivered, {} expected",
                delivered.len(),
                expected.len()
            );
        }
    }
    assert!(found > 0, "no kill came between a send and its checkpoint");
    Ok(())
}
