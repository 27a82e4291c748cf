//! The wire batch: views over polled bytes, user headers, and the batches that are sent.

pub mod headers;
mod outgoing;
mod polled;
pub mod readable;

pub use outgoing::{
    Chunks, FRAME_LIMIT, Identity, Outgoing, REQUEST_LIMIT, encode_send, fits, frame_size,
};
pub use polled::{DecodeError, Frame, Gathered, Polled};
