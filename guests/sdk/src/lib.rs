//! Write Sluice guests in Rust: one function over one message.
//!
//! ```
//! use sluice_guest::{Config, Guest, Inputs, Message, Source, Verdict};
//!
//! struct OnlyEurope;
//!
//! impl Guest for OnlyEurope {
//!     const INPUTS: Inputs = Inputs::HEADERS;
//!
//!     fn start(_source: &Source, _config: &Config) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!
//!     fn handle(&mut self, message: &Message<'_>) -> Verdict {
//!         match message.header("region").and_then(|region| region.as_str()) {
//!             Some("eu") => Verdict::Forward,
//!             _ => Verdict::Drop,
//!         }
//!     }
//! }
//!
//! sluice_guest::export!(OnlyEurope);
//! # fn main() {}
//! ```
//!
//! The guest is built for `wasm32-unknown-unknown` and made a component. Its handler runs as well in an ordinary
//! test: see [`testing`]. Underneath, messages come and verdicts go in packed batches, so that a guest costs
//! nanoseconds a message.

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

#[doc(hidden)]
pub mod adapter;
mod config;
mod field;
pub mod log;
mod message;
pub mod metrics;
pub mod testing;
mod verdict;

pub use config::Config;
pub use field::{Field, FieldBuf};
pub use message::{Header, Headers, Message};
pub use verdict::{Rewrite, Route, Verdict};

#[doc(hidden)]
#[expect(clippy::same_length_and_capacity, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "transform-batch",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "sluice_guest::bindings",
    });
}

/// The source partition that a guest serves: cluster, stream and topic by name, and the partition's id.
pub use bindings::sluice::guest::types::Source;

/// What a guest wants to be handed. What it does not ask for is not copied in and reads as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    payloads: bool,
    headers: bool,
}

impl Inputs {
    /// Payloads and user headers.
    pub const ALL: Self = Self {
        payloads: true,
        headers: true,
    };
    /// User headers alone.
    pub const HEADERS: Self = Self {
        payloads: false,
        headers: true,
    };
    /// Payloads alone.
    pub const PAYLOADS: Self = Self {
        payloads: true,
        headers: false,
    };
    /// Neither: ids, offsets and times are enough.
    pub const NONE: Self = Self {
        payloads: false,
        headers: false,
    };
}

/// A guest: it decides over the messages of one source partition, in offset order.
pub trait Guest: Sized + 'static {
    /// What it wants to be handed.
    const INPUTS: Inputs = Inputs::ALL;

    /// Makes the guest for a source partition from the `config` table of its configuration.
    ///
    /// # Errors
    /// A text for the operator, naming the key that is wrong. The guest is then not used.
    fn start(source: &Source, config: &Config) -> Result<Self, String>;

    /// Decides over one message. A panic counts against this message only.
    fn handle(&mut self, message: &Message<'_>) -> Verdict;
}

/// Makes a type that implements [`Guest`] the guest of this component.
#[macro_export]
macro_rules! export {
    ($guest:ty) => {
        // Natively, where a guest is only tested, the names of a component's exports do not link.
        #[cfg(target_family = "wasm")]
        const _: () = {
            ::std::thread_local! {
                static RUNNING: $crate::adapter::Running<$guest> =
                    const { $crate::adapter::Running::none() };
            }

            struct Component;

            impl $crate::adapter::BatchHandler for Component {
                fn start(
                    source: $crate::Source,
                    config: ::std::string::String,
                ) -> ::std::result::Result<$crate::adapter::WireInputs, ::std::string::String>
                {
                    RUNNING.with(|running| running.start(&source, config))
                }

                fn handle(batch: $crate::adapter::Batch) -> $crate::adapter::Verdicts {
                    RUNNING.with(|running| running.handle(&batch))
                }
            }

    $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}
