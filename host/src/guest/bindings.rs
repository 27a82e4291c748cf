//! Bindings generated from `wit/`. Both worlds share their types and the host interface.

pub mod transform {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "transform",
    });
}

pub mod transform_batch {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "transform-batch",
        with: {
            "sluice:guest/types": crate::guest::bindings::transform::sluice::guest::types,
            "sluice:guest/host": crate::guest::bindings::transform::sluice::guest::host,
        },
    });
}

pub use transform::exports::sluice::guest::message_handler;
pub use transform::sluice::guest::{host, types};
pub use transform_batch::exports::sluice::guest::batch_handler;
