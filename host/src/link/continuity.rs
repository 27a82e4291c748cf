//! Whether a source is the one that it was, and where to go on with it.

use super::Error;
use super::retry::{Retrier, repeat};
use crate::checkpoint::LastSettled;
use crate::cluster::{Client, Partition, PollFrom};
use crate::config::link::Start;

/// A place in a source partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The first offset that is due.
    pub next_offset: u64,
    /// The message before it, where it is known.
    pub last: Option<LastSettled>,
}

/// Where a lane without a checkpoint begins.
///
/// # Errors
/// [`Error`] when the source cannot be read.
pub async fn first_place<C: Client>(
    client: &mut C,
    retrier: &Retrier,
    source: &Partition,
    start: Start,
) -> Result<Place, Error> {
    let mut place = Place::default();
    match start {
        Start::Offset(offset) => place.next_offset = offset,
        Start::Earliest => {
            // A poll below the oldest message starts there, so that a lane that begins late has no gap.
            let from = PollFrom::Offset(0);
            let polled = repeat!(retrier, client.poll(source, from, 1).await)?;
            place.next_offset = polled.frames().first().map_or(0, |first| first.offset);
        }
        Start::Latest => {
            let polled = repeat!(retrier, client.poll(source, PollFrom::Last, 1).await)?;
            place.last = polled.frames().last().map(LastSettled::from);
            place.next_offset = match place.last {
                Some(last) => last.offset + 1,
                // Nothing there: never a message, or all of them expired.
                None if polled.current_offset == 0 => 0,
                None => polled.current_offset + 1,
            };
        }
    }
    Ok(place)
}

/// Where a lane goes on that does not look back: at `due`, or at the source's end where that is lower.
///
/// # Errors
/// [`Error`] when the source cannot be read.
pub async fn next_place<C: Client>(
    client: &mut C,
    retrier: &Retrier,
    source: &Partition,
    due: u64,
) -> Result<Place, Error> {
    let end = first_place(client, retrier, source, Start::Latest).await?;
    if end.next_offset <= due {
        return Ok(end);
    }
    Ok(Place {
        next_offset: due,
        last: None,
    })
}

/// Whether the source still has the last settled message at its offset: one that was purged, created anew or rolled
/// back has another there, or none.
///
/// # Errors
/// [`Error`] when the source cannot be read.
pub async fn continues<C: Client>(
    client: &mut C,
    retrier: &Retrier,
    source: &Partition,
    last: &LastSettled,
) -> Result<bool, Error> {
    let from = PollFrom::Offset(last.offset);
    let polled = repeat!(retrier, client.poll(source, from, 1).await)?;
    Ok(match polled.frames().first() {
        // Retention took it; what is missing between is counted as a gap.
        Some(frame) if frame.offset > last.offset => true,
        Some(frame) => LastSettled::from(frame) == *last,
        None => polled.current_offset >= last.offset,
    })
}
