//! A guest as it was built before the contract grew: it says so in a header.

#[expect(clippy::same_length_and_capacity, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "transform" });
}

use bindings::exports::sluice::guest::message_handler::{Guest, Message};
use bindings::sluice::guest::host::{Level, log};
use bindings::sluice::guest::types::{
    Field, Header, HeaderChange, Inputs, Rewrite, Source, Verdict,
};

struct Older;

impl Guest for Older {
    fn start(_source: Source, _config: String) -> Result<Inputs, String> {
        log(Level::Info, "the older guest starts");
        Ok(Inputs::HEADERS)
    }

    fn handle(_message: Message) -> Verdict {
        Verdict::Rewrite(Rewrite {
            routes: vec![],
            headers: vec![HeaderChange::Set(Header {
                key: Field::Text("contract".to_owned()),
                value: Field::Text("0.1.0".to_owned()),
            })],
            payload: None,
        })
    }
}

#[expect(unsafe_code, reason = "generated")]
mod component {
    use super::Older;

    super::bindings::export!(Older with_types_in super::bindings);
}
