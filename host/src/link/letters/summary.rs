//! What a replay did.

use serde::Serialize;

use crate::link::Error;

/// What a replay did. Every selected letter of the link is in exactly one of `replayed`, `dropped`, `dead_lettered`,
/// `already_replayed` and `left_out`.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Name of the link.
    pub link: String,
    /// The dead-letter topic, as cluster:stream/topic.
    pub dead_letters: String,
    /// Whether nothing was sent, and the numbers say what would have become of the letters.
    pub dry_run: bool,
    /// Letters whose messages were delivered.
    pub replayed: u64,
    /// Letters whose messages a guest, or the link's `on_error`, dropped.
    pub dropped: u64,
    /// Letters whose messages failed again and are in a new letter.
    pub dead_lettered: u64,
    /// Letters that an earlier replay had dealt with.
    pub already_replayed: u64,
    /// Letters that do not carry the whole message.
    pub left_out: Vec<LeftOut>,
    /// Messages of the topic that are no letters.
    pub unreadable: u64,
    /// Offsets that were asked for and hold no letter of the link.
    pub missing: u64,
    /// Messages found at their destination, where an earlier replay or a lost reply had left them, and so not sent
    /// again.
    pub found: u64,
    /// Whether it was told to stop before the end; the next replay goes on.
    pub interrupted: bool,
    /// Why it ended before the end, if it did; the next replay goes on.
    #[serde(serialize_with = "super::super::report::display")]
    pub error: Option<Error>,
}

/// A letter that cannot be replayed because it does not carry the whole message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Partition of the letter.
    pub partition: u32,
    /// Offset of the letter.
    pub offset: u64,
    /// The message, as cluster:stream/topic/partition@offset.
    pub source: String,
    /// What is missing.
    pub omitted: String,
    /// How the message gets to its destination all the same.
    pub remedy: String,
}
