//! A guest of the packed world that does what the payloads say, breaches of the contract included.

#[expect(clippy::same_length_and_capacity, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "transform-batch" });
}

use bindings::exports::sluice::guest::batch_handler::{Batch, Guest, Verdicts};
use bindings::sluice::guest::types::{Inputs, Route, Source, Verdict};

struct Faulty;

impl Guest for Faulty {
    fn start(_source: Source, _config: String) -> Result<Inputs, String> {
        Ok(Inputs::PAYLOADS)
    }

    fn handle(batch: Batch) -> Verdicts {
        let mut verdicts = Verdicts {
            choices: Vec::new(),
            table: vec![Verdict::Forward, Verdict::Drop, nameless()],
        };
        let mut short = false;
        let mut start = 0;
        for ends in batch.ends.chunks_exact(2) {
            let payload = &batch.bytes[start..ends[0] as usize];
            start = ends[1] as usize;
            verdicts.choices.push(match payload {
                b"panic" => panic!("asked to panic"),
                b"spin" => loop {
                    std::hint::black_box(0);
                },
                b"drop" => 1,
                b"name" => 2,
                b"index" => 99,
                b"short" => {
                    short = true;
                    0
                }
                _ => 0,
            });
        }
        if short {
            verdicts.choices.pop();
        }
        verdicts
    }
}

fn nameless() -> Verdict {
    Verdict::Route(vec![Route {
        stream: Some(String::new()),
        topic: None,
        partition: None,
    }])
}

#[expect(unsafe_code, reason = "generated")]
mod component {
    use super::Faulty;

    super::bindings::export!(Faulty with_types_in super::bindings);
}
