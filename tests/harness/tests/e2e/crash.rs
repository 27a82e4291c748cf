//! `kill -9` of the real process, again and again.

use anyhow::Result;
use sluice_harness::{Message, Setup, guest, header};

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

#[tokio::test]
async fn dead_letters_of_lanes_with_the_same_ids_are_all_kept_once() -> Result<()> {
    const COUNT: usize = 4000;
    let setup = Setup::new().await?;
    setup.topic("t", 2).await?;
    let rejected: Vec<_> = (1..=COUNT as u128)
        .map(|id| Message::new(id, "reject"))
        .collect();
    for partition in 0..2 {
        setup.produce("t", partition, &rejected).await?;
    }
    let section = format!(
        "[guests.g]\ncomponent = \"{}\"\n",
        guest("faulty")?.display()
    );
    let config = setup.config("guests = [\"g\"]\nbatch = { messages = 40 }", &section)?;
    for kill in 1..=4 {
        let sluice = setup.run(&config)?;
        setup.arrived("dead-letters", 0, COUNT * kill / 4).await?;
        sluice.kill().await?;
    }
    let sluice = setup.run(&config)?;
    setup.arrived("dead-letters", 0, 2 * COUNT).await?;
    sluice.stop().await?;
    let letters = setup.dead_letters().await?;
    for partition in ["0", "1"] {
        let offsets: Vec<_> = letters
            .iter()
            .filter(|letter| header(letter, "sluice-partition").as_deref() == Some(partition))
            .filter_map(|letter| header(letter, "sluice-offset")?.parse::<usize>().ok())
            .collect();
        assert!(
            offsets == (0..COUNT).collect::<Vec<_>>(),
            "partition {partition}: {}",
            offsets.len()
        );
    }
    Ok(())
}
