//! The file of a partition's messages: batches as they are on the wire, one behind the other.
//!
//! Before each stands its length and, against damage, the complement of that. So a batch that ends too early was being
//! written when the process was killed, and anything else that is not right is damage.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::{BufMut, Bytes};
use iggy_binary_protocol::batch::{BatchHeader, decode_batch_slice};
use serde::{Deserialize, Serialize};

use super::{at, damaged};

/// Size of what stands before a batch.
const PREFIX: usize = 16;

/// The file of a partition.
#[derive(Debug, Serialize, Deserialize)]
pub struct Log {
    /// Names the file.
    pub number: u64,
    /// Offset of the first message that was put into it.
    start: u64,
    #[serde(skip)]
    path: PathBuf,
    /// Offset behind the last saved message.
    #[serde(skip)]
    pub end: u64,
}

/// Where the file with this number is.
pub fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join("partitions").join(format!("{number:08}.log"))
}

impl Log {
    /// Makes an empty file.
    pub fn create(folder: &Path, number: u64, start: u64) -> io::Result<Self> {
        let path = path(folder, number);
        File::create_new(&path).map_err(at(&path))?;
        Ok(Self {
            number,
            start,
            path,
            end: start,
        })
    }

    /// Appends batches, the last of which ends before the offset `end`.
    pub fn append<'a>(
        &mut self,
        batches: impl Iterator<Item = &'a Bytes>,
        end: u64,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        for batch in batches {
            let length = batch.len() as u64;
            bytes.put_u64_le(length);
            bytes.put_u64_le(!length);
            bytes.put_slice(batch);
        }
        let appended = File::options()
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(&bytes));
        appended.map_err(at(&self.path))?;
        self.end = end;
        Ok(())
    }

    /// Reads all batches, and cuts off one at the end that was not written to its end.
    pub fn load(&mut self, folder: &Path) -> io::Result<Vec<(BatchHeader, Bytes)>> {
        self.path = path(folder, self.number);
        self.end = self.start;
        let bytes = fs::read(&self.path).map_err(at(&self.path))?;
        let mut rest = Bytes::from(bytes);
        let mut batches = Vec::new();
        let mut position = 0;
        while !rest.is_empty() {
            let taken = take(&mut rest, self.end).map_err(|reason| {
                let reason = format!("{reason} at byte {position}");
                damaged(&self.path, &reason)
            })?;
            let Some((header, batch)) = taken else {
                self.cut(position)?;
                break;
            };
            position += (PREFIX + batch.len()) as u64;
            self.end += u64::from(header.message_count);
            batches.push((header, batch));
        }
        Ok(batches)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        tracing::warn!(file = %self.path.display(), length, "an unfinished batch at the end is cut off");
        File::options()
            .write(true)
            .open(&self.path)
            .and_then(|file| file.set_len(length))
            .map_err(at(&self.path))
    }
}

/// Takes the batch that `bytes` begin with, whose first message must have this offset; none when the bytes end
/// before the batch does.
fn take(bytes: &mut Bytes, offset: u64) -> Result<Option<(BatchHeader, Bytes)>, String> {
    let Some((prefix, _)) = bytes.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let half = |range: std::ops::Range<usize>| {
        u64::from_le_bytes(prefix[range].try_into().expect("eight bytes"))
    };
    let length = half(0..8);
    if length != !half(8..PREFIX) {
        return Err("no length of a batch".to_owned());
    }
    if ((bytes.len() - PREFIX) as u64) < length {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    let batch = bytes.split_to(PREFIX + length).split_off(PREFIX);
    let header = decode_batch_slice(&batch)
        .map_err(|error| format!("no valid batch ({error})"))?
        .header;
    if header.total_size() != length {
        return Err("a batch of another length".to_owned());
    }
    if header.base_offset != offset {
        return Err(format!(
            "a batch with offset {} instead of {offset}",
            header.base_offset
        ));
    }
    Ok(Some((header, batch)))
}
