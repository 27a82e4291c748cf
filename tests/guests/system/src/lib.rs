//! A guest that does with the system what the payload says, and tells in a header what came of it.

#[expect(clippy::same_length_and_capacity, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../../wit", "wit"],
        world: "test:system/system",
        generate_all,
    });
}

use bindings::exports::sluice::guest::message_handler::{Guest, Message};
use bindings::sluice::guest::types::{
    Field, Header, HeaderChange, Inputs, Rewrite, Source, Verdict,
};
use bindings::wasi::cli::environment::get_environment;
use bindings::wasi::clocks::{monotonic_clock, wall_clock};
use bindings::wasi::filesystem::preopens::get_directories;
use bindings::wasi::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags, PathFlags};
use bindings::wasi::random::random::get_random_u64;

struct System;

impl Guest for System {
    fn start(_source: Source, _config: String) -> Result<Inputs, String> {
        Ok(Inputs::PAYLOADS)
    }

    fn handle(message: Message) -> Verdict {
        let text = String::from_utf8_lossy(&message.payload).into_owned();
        let (command, argument) = text.split_once(':').unwrap_or((&text, ""));
        let answer = match command {
            "time" => (wall_clock::now().seconds > 1_700_000_000).to_string(),
            "random" => (get_random_u64() != get_random_u64()).to_string(),
            "environment" => format!("{:?}", get_environment()),
            "read" => read(argument).unwrap_or_else(|error| error.name().to_owned()),
            "create" => create(argument)
                .map_or_else(|error| error.name().to_owned(), |()| "created".to_owned()),
            "wait" => {
                monotonic_clock::subscribe_duration(monotonic_clock::now()).block();
                "waited".to_owned()
            }
            _ => return Verdict::Forward,
        };
        Verdict::Rewrite(Rewrite {
            routes: vec![],
            headers: vec![HeaderChange::Set(Header {
                key: Field::Text("answer".to_owned()),
                value: Field::Text(answer),
            })],
            payload: None,
        })
    }
}

fn read(path: &str) -> Result<String, ErrorCode> {
    let folders = get_directories();
    let (folder, name) = folders.first().ok_or(ErrorCode::NoEntry)?;
    let file = folder.open_at(
        PathFlags::SYMLINK_FOLLOW,
        path,
        OpenFlags::empty(),
        DescriptorFlags::READ,
    )?;
    let (bytes, _) = file.read(100, 0)?;
    Ok(format!("{name}: {}", String::from_utf8_lossy(&bytes)))
}

fn create(path: &str) -> Result<(), ErrorCode> {
    let folders = get_directories();
    let (folder, _) = folders.first().ok_or(ErrorCode::NoEntry)?;
    let write = DescriptorFlags::WRITE;
    folder.open_at(PathFlags::empty(), path, OpenFlags::CREATE, write)?;
    Ok(())
}

#[expect(unsafe_code, reason = "generated")]
mod component {
    use super::System;

    super::bindings::export!(System with_types_in super::bindings);
}
