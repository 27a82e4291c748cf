//! What is killed, and when.

use crate::random::Random;

/// Who can be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Sluice,
    Source,
    Destination,
}

/// A count that only grows.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// Of messages that the source acknowledged.
    Produced(u64),
    /// Of messages that the destination holds.
    Delivered(u64),
}

/// Kills at about the same time.
#[derive(Debug)]
pub struct Step {
    /// So far things go on after the last step.
    pub after: Progress,
    /// Who is killed, in this order.
    pub victims: Vec<Victim>,
    /// How many messages are produced before they start again. Where the source is among them: if not 0, they start
    /// again once sluice has noticed.
    pub down_for: u64,
    /// Whether they start again in the opposite order.
    pub reversed: bool,
}

const VICTIMS: [Victim; 3] = [Victim::Sluice, Victim::Source, Victim::Destination];

/// Steps with so many kills in all. Each of three that follow one another kills another one first.
pub fn make(kills: usize, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut order = Vec::new();
    let mut left = kills;
    while left > 0 {
        if order.is_empty() {
            order.extend(VICTIMS);
        }
        let first = random.pick(&order);
        order.retain(|victim| *victim != first);
        let mut victims = vec![first];
        while victims.len() < left.min(VICTIMS.len()) && random.below(3) == 0 {
            let mut others = VICTIMS.to_vec();
            others.retain(|victim| !victims.contains(victim));
            victims.push(random.pick(&others));
        }
        left -= victims.len();
        let far = 20 + random.below(1500);
        steps.push(Step {
            after: random.pick(&[Progress::Produced(far), Progress::Delivered(far)]),
            victims,
            down_for: random.pick(&[0, 1, 200, 1000]),
            reversed: random.below(2) == 0,
        });
    }
    steps
}
