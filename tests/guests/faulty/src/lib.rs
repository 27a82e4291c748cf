//! A guest of the per-message world that does what the payload says, faults included.

#[expect(clippy::same_length_and_capacity, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "transform" });
}

use bindings::exports::sluice::guest::message_handler::{Guest, Message};
use bindings::sluice::guest::host::{Level, log};
use bindings::sluice::guest::types::{
    Field, Header, HeaderChange, Inputs, Rewrite, Route, Source, Verdict,
};

struct Faulty;

impl Guest for Faulty {
    fn start(source: Source, config: String) -> Result<Inputs, String> {
        if config.contains("fail") {
            return Err(format!("the config of {} says fail", source.topic));
        }
        log(
            Level::Info,
            &format!("faulty guest starts on partition {}", source.partition),
        );
        Ok(Inputs::PAYLOADS | Inputs::HEADERS)
    }

    fn handle(message: Message) -> Verdict {
        let text = String::from_utf8_lossy(&message.payload).into_owned();
        let (command, argument) = text.split_once(':').unwrap_or((&text, ""));
        match command {
            "panic" => panic!("asked to panic"),
            "spin" => loop {
                std::hint::black_box(0);
            },
            "memory" => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(std::hint::black_box(vec![1_u8; 1 << 20]));
                }
            }
            "stack" => Verdict::Reject(recurse(0).to_string()),
            "reject" => Verdict::Reject("asked to reject".to_owned()),
            "drop" => Verdict::Drop,
            "route" => Verdict::Route(argument.split(',').map(route).collect()),
            "payload" => Verdict::Rewrite(Rewrite {
                routes: vec![],
                headers: vec![],
                payload: Some(argument.as_bytes().to_vec()),
            }),
            "header" => Verdict::Rewrite(Rewrite {
                routes: vec![],
                headers: vec![HeaderChange::Set(Header {
                    key: Field::Text("seen".to_owned()),
                    value: Field::Text(format!("{} headers", message.headers.len())),
                })],
                payload: None,
            }),
            _ => Verdict::Forward,
        }
    }
}

fn route(topic: &str) -> Route {
    let (topic, partition) = match topic.split_once('#') {
        Some((topic, partition)) => (topic, partition.parse().ok()),
        None => (topic, None),
    };
    Route {
        stream: None,
        topic: Some(topic.to_owned()),
        partition,
    }
}

fn recurse(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 32]);
    if here[0] == u64::MAX {
        return 0;
    }
    recurse(here[0] + 1) + here[31]
}

#[expect(unsafe_code, reason = "generated")]
mod component {
    use super::Faulty;

    super::bindings::export!(Faulty with_types_in super::bindings);
}
