//! A data folder: what survives the end of the process, and of which messages.
//!
//! Everything but messages is one small text, `metadata`, a checksum and JSON, which is replaced as a whole before a request that
//! changed it is answered. The messages of a partition are a file that is appended to; whatever else happens to
//! a partition, such as a purge, gives it a new file, so that the metadata alone says what holds.
//!
//! Nothing is forced to the disk: what was written outlives the process, however that ends, though not the machine.

mod log;
pub mod text;

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use crate::state::State;
pub use log::Log;

/// How many unsaved messages of a partition make the real server save them.
pub const SAVE_EVERY: u64 = 1024;

const METADATA: &str = "metadata";

/// Where a broker keeps its data.
#[derive(Debug, Clone)]
pub struct Data {
    /// The folder; it is created where there is none. One broker at a time can use it.
    pub folder: PathBuf,
    /// How many unsaved messages of a partition are saved at once, before the last of them is acknowledged. With 1
    /// every acknowledged message survives a crash of the process. With more a crash loses acknowledged messages,
    /// and their offsets are given again, as at the real server, whose default is 1024. A graceful stop saves all.
    /// The real server also saves when messages of 1 MiB are unsaved; this one goes by their number alone.
    pub save_every: u64,
}

impl Data {
    /// A folder with the real server's default for saving.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            save_every: SAVE_EVERY,
        }
    }
}

/// An open data folder.
#[derive(Debug)]
pub struct Storage {
    data: Data,
    /// The metadata as they were written last.
    written: String,
    /// Numbers of the files of partitions that those name.
    files: BTreeSet<u64>,
    last_file: u64,
    /// Set when something could not be written: no change is acknowledged from then on.
    failed: bool,
    /// Held so that no other broker uses the folder; the system lets go of it when the process ends.
    _lock: File,
}

/// Opens a data folder and loads what it holds; `fresh` makes the state of an empty one.
///
/// # Errors
/// When another broker uses it, it cannot be read or written, or it is damaged. The error names the file.
pub fn open(data: Data, fresh: impl FnOnce() -> State) -> io::Result<State> {
    let files = data.folder.join("partitions");
    fs::create_dir_all(&files).map_err(at(&files))?;
    let lock = lock(&data.folder)?;
    let path = data.folder.join(METADATA);
    let (mut state, written) = match fs::read_to_string(&path) {
        Ok(text) => {
            let text = verified(&text).ok_or_else(|| damaged(&path, "its checksum is wrong"))?;
            (load(&data.folder, text)?, text.to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::read_dir(&files)?.next().is_some() {
                return Err(damaged(&path, "missing, though there are partitions"));
            }
            (fresh(), String::new())
        }
        Err(error) => return Err(at(&path)(error)),
    };
    let files: BTreeSet<_> = files_of(&mut state).collect();
    remove_others(&data.folder, &files)?;
    state.storage = Some(Storage {
        data,
        written,
        last_file: files.last().copied().unwrap_or_default(),
        files,
        failed: false,
        _lock: lock,
    });
    state.save()?;
    Ok(state)
}

impl State {
    /// Makes everything but newly sent messages durable, where there is a data folder.
    ///
    /// # Errors
    /// When it cannot be written, now or earlier.
    pub fn save(&mut self) -> io::Result<()> {
        self.with_storage(Storage::save)
    }

    /// Makes everything durable, where there is a data folder.
    ///
    /// # Errors
    /// When it cannot be written, now or earlier.
    pub fn save_all(&mut self) -> io::Result<()> {
        self.with_storage(|storage, state| {
            for partition in state.partitions() {
                partition.save(1)?;
            }
            storage.save(state)
        })
    }

    /// Saves the messages of a partition when enough of them are unsaved.
    ///
    /// # Errors
    /// When they cannot be written, or something could not be earlier.
    pub fn save_messages(&mut self, stream: u32, topic: u32, partition: u32) -> io::Result<()> {
        let ids = [stream, topic].map(iggy_binary_protocol::WireIdentifier::numeric);
        self.with_storage(
            |storage, state| match state.partition(&ids[0], &ids[1], partition) {
                Ok(partition) => partition.save(storage.data.save_every),
                Err(_) => Ok(()),
            },
        )
    }

    fn with_storage(
        &mut self,
        save: impl FnOnce(&mut Storage, &mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(mut storage) = self.storage.take() else {
            return Ok(());
        };
        let saved = if storage.failed {
            Err(io::Error::other("something could not be saved earlier"))
        } else {
            save(&mut storage, self)
        };
        if let Err(error) = &saved {
            tracing::error!(%error, "cannot save: no change is acknowledged any more");
            storage.failed = true;
        }
        self.storage = Some(storage);
        saved
    }
}

impl Storage {
    fn save(&mut self, state: &mut State) -> io::Result<()> {
        for partition in state.partitions() {
            if !partition.has_log() {
                self.last_file += 1;
                partition.rewrite(&self.data.folder, self.last_file)?;
            }
        }
        let text = serde_json::to_string(state)?;
        if text == self.written {
            return Ok(());
        }
        let path = self.data.folder.join(METADATA);
        let new = path.with_extension("new");
        fs::write(&new, checksum(&text) + &text).map_err(at(&new))?;
        fs::rename(&new, &path).map_err(at(&path))?;
        self.written = text;
        let files = files_of(state).collect();
        for number in self.files.difference(&files) {
            let path = log::path(&self.data.folder, *number);
            fs::remove_file(&path).map_err(at(&path))?;
        }
        self.files = files;
        Ok(())
    }
}

fn lock(folder: &Path) -> io::Result<File> {
    let path = folder.join("lock");
    let file = File::create(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let error = io::Error::new(io::ErrorKind::ResourceBusy, "another broker uses it");
            Err(at(folder)(error))
        }
        Err(TryLockError::Error(error)) => Err(at(&path)(error)),
    }
}

/// The line that stands before the metadata.
fn checksum(text: &str) -> String {
    format!("{:016x}\n", XxHash3_64::oneshot(text.as_bytes()))
}

/// The metadata behind that line.
fn verified(file: &str) -> Option<&str> {
    let (line, text) = file.split_at_checked(file.find('\n')? + 1)?;
    (line == checksum(text)).then_some(text)
}

fn load(folder: &Path, text: &str) -> io::Result<State> {
    let mut state: State = serde_json::from_str(text)
        .map_err(|error| damaged(&folder.join(METADATA), &error.to_string()))?;
    for partition in state.partitions() {
        partition.load(folder)?;
    }
    state.started_at = crate::state::now();
    Ok(state)
}

fn files_of(state: &mut State) -> impl Iterator<Item = u64> {
    state.partitions().filter_map(|partition| partition.file())
}

/// Removes files that a broker left behind which was killed between a new file and the metadata.
fn remove_others(folder: &Path, files: &BTreeSet<u64>) -> io::Result<()> {
    let kept: BTreeSet<_> = files.iter().map(|file| log::path(folder, *file)).collect();
    for entry in fs::read_dir(folder.join("partitions"))? {
        let path = entry?.path();
        if !kept.contains(&path) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// Adds the file to an error.
fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn damaged(path: &Path, reason: &str) -> io::Error {
    let reason = format!("{} is damaged: {reason}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
