//! The embedded store: one file, each write a durable transaction.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash3_64;

use super::store::{Store, StoreError};
use super::{Checkpoint, LaneKey, Mark};
use crate::blocking;
use crate::cluster::Partition;
use crate::lock;

/// Lane key as JSON to the hash of the entry (8 bytes, little-endian) and the checkpoint as JSON.
const CHECKPOINTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("checkpoints-2");
const FILE: &str = "checkpoints.redb";

/// Bytes of the file that are kept in memory.
const CACHE: usize = 4 * 1024 * 1024;

/// A checkpoint store in a file of its own. One process at a time can hold it.
#[derive(Debug, Clone)]
pub struct LocalStore {
    file: Arc<File>,
}

/// A database file that closes after a failure and opens again at the next use.
pub(super) struct File {
    path: PathBuf,
    open: Opener,
    /// Closed after a failure: the database refuses everything once a write failed, until it is opened anew.
    database: Mutex<Option<Database>>,
}

type Opener = Box<dyn Fn(&Path) -> Result<Database, DatabaseError> + Send + Sync>;

impl std::fmt::Debug for File {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("File").field(&self.path).finish()
    }
}

impl LocalStore {
    /// Opens the store in `folder`, creating both when missing.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be written, the file is corrupt, or another process holds it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_with(folder, Box::new(|path| builder().open(path)))
    }

    fn open_with(folder: &Path, open: Opener) -> Result<Self, StoreError> {
        Ok(Self {
            file: Arc::new(File::open_with(folder, FILE, open)?),
        })
    }

    /// Every checkpoint, in the order of the keys.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read or an entry is corrupt.
    pub fn list(&self) -> Result<Vec<(LaneKey, Checkpoint)>, StoreError> {
        let entries = self.file.with(|database| {
            let transaction = database.begin_read()?;
            let table = match transaction.open_table(CHECKPOINTS) {
                Ok(table) => table,
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                Err(error) => return Err(error.into()),
            };
            let mut entries = Vec::new();
            for entry in table.iter()? {
                let (key, value) = entry?;
                entries.push((key.value().to_owned(), value.value().to_vec()));
            }
            Ok(entries)
        })?;
        let mut list = entries
            .iter()
            .map(|(key, value)| {
                let checkpoint = decode(value).map_err(|reason| self.file.corrupt(key, &reason))?;
                let key = serde_json::from_str(key)
                    .map_err(|error| self.file.corrupt(key, &error.to_string()))?;
                Ok((key, checkpoint))
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        list.sort_by(|(left, _), (right, _): &(LaneKey, _)| left.cmp(right));
        Ok(list)
    }

    fn read(&self, key: &LaneKey) -> Result<Option<Checkpoint>, StoreError> {
        let bytes = self.file.with(|database| {
            let transaction = database.begin_read()?;
            match transaction.open_table(CHECKPOINTS) {
                Ok(table) => Ok(table
                    .get(name(key).as_str())?
                    .map(|value| value.value().to_vec())),
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })?;
        bytes
            .map(|bytes| decode(&bytes))
            .transpose()
            .map_err(|reason| self.file.corrupt(&key.to_string(), &reason))
    }

    fn write(&self, checkpoints: &[(LaneKey, Checkpoint)]) -> Result<(), StoreError> {
        self.file.with(|database| {
            let transaction = database.begin_write()?;
            {
                let mut table = transaction.open_table(CHECKPOINTS)?;
                for (key, checkpoint) in checkpoints {
                    table.insert(name(key).as_str(), encode(checkpoint).as_slice())?;
                }
            }
            transaction.commit()?;
            Ok(())
        })
    }
}

#[async_trait]
impl Store for LocalStore {
    async fn load(
        &self,
        key: &LaneKey,
        _usual: &Partition,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let (store, key) = (self.clone(), key.clone());
        blocking(move || store.read(&key)).await
    }

    async fn mark(&self, _key: &LaneKey, _to: &Partition) -> Result<Option<Mark>, StoreError> {
        // Each checkpoint holds all of its marks.
        Ok(None)
    }

    async fn save(&self, checkpoints: &[(LaneKey, Checkpoint)]) -> Result<(), StoreError> {
        let (store, checkpoints) = (self.clone(), checkpoints.to_vec());
        blocking(move || store.write(&checkpoints)).await
    }
}

impl File {
    /// Opens the file `name` in `folder`, creating both when missing.
    pub(super) fn open(folder: &Path, name: &str) -> Result<Self, StoreError> {
        Self::open_with(folder, name, Box::new(|path| builder().open(path)))
    }

    fn open_with(folder: &Path, name: &str, open: Opener) -> Result<Self, StoreError> {
        let path = folder.join(name);
        let fail = |reason: String| StoreError::Local {
            path: path.clone(),
            reason,
            passing: false,
        };
        std::fs::create_dir_all(folder).map_err(|error| {
            fail(format!(
                "cannot create its folder: {error}; check gateway.state_dir"
            ))
        })?;
        create(folder, name).map_err(|error| fail(format!("cannot create it: {error}")))?;
        let file = Self {
            path,
            open,
            database: Mutex::new(None),
        };
        file.with(|_| Ok(()))?;
        Ok(file)
    }

    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let mut guard = lock(&self.database);
        let database = match guard.take() {
            Some(database) => database,
            None => (self.open)(&self.path).map_err(|error| self.cannot_open(&error))?,
        };
        let outcome = work(&database);
        if outcome.is_ok() {
            *guard = Some(database);
        }
        outcome.map_err(|error| self.error(error.to_string(), true))
    }

    fn cannot_open(&self, error: &DatabaseError) -> StoreError {
        match error {
            DatabaseError::DatabaseAlreadyOpen => self.error(
                "another process holds it: stop that one, or give each gateway its own \
                 gateway.state_dir"
                    .to_owned(),
                false,
            ),
            DatabaseError::Storage(redb::StorageError::Io(cause)) if is_passing(cause) => {
                self.error(error.to_string(), true)
            }
            error => self.error(
                format!("{error}; restore the file from a backup, or move it away to start anew"),
                false,
            ),
        }
    }

    fn corrupt(&self, lane: &str, reason: &str) -> StoreError {
        self.error(
            format!(
                "the entry of lane {lane} is corrupt: {reason}; restore the file from a backup, or set the lane's \
                 checkpoint with `sluice checkpoint set`"
            ),
            false,
        )
    }

    pub(super) fn error(&self, reason: String, passing: bool) -> StoreError {
        StoreError::Local {
            path: self.path.clone(),
            reason,
            passing,
        }
    }
}

/// Checkpoints are small: a small cache holds them, and checking all of the file at every opening is quick.
fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder
        .set_cache_size(CACHE)
        .set_check_integrity_on_open(true);
    builder
}

/// A disk that is full now may have room later; a broken file stays broken.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::Interrupted
    )
}

/// Creates an empty store, whole or not at all: one that was left half made could not be opened.
fn create(folder: &Path, name: &str) -> Result<(), redb::Error> {
    let path = folder.join(name);
    if path.exists() {
        return Ok(());
    }
    let unfinished = folder.join(format!("{name}.{}.new", std::process::id()));
    drop(builder().create(&unfinished)?);
    std::fs::rename(&unfinished, path)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// Names may hold any character, so the key is JSON.
fn name(key: &LaneKey) -> String {
    serde_json::to_string(key).expect("a key is plain data")
}

/// The hash of the JSON (8 bytes, little-endian), then the JSON.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let text = serde_json::to_vec(value).expect("an entry is plain data");
    let mut entry = XxHash3_64::oneshot(&text).to_le_bytes().to_vec();
    entry.extend_from_slice(&text);
    entry
}

pub(super) fn decode<T: DeserializeOwned>(entry: &[u8]) -> Result<T, String> {
    let (hash, text) = entry.split_first_chunk().ok_or("it is cut off")?;
    if XxHash3_64::oneshot(text) != u64::from_le_bytes(*hash) {
        return Err("its hash does not match".to_owned());
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use redb::StorageBackend;
    use redb::backends::FileBackend;

    use super::super::{LastSettled, Sent};
    use super::*;

    fn key() -> LaneKey {
        LaneKey {
            link: "a/b".to_owned(),
            cluster: "eu".to_owned(),
            stream: "\"quoted\"".to_owned(),
            topic: "t".to_owned(),
            partition: 3,
            destination: "us".to_owned(),
        }
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            next_offset: u64::MAX,
            last: Some(LastSettled {
                offset: u64::MAX - 1,
                id: u128::MAX,
                origin_timestamp: 7,
            }),
            destinations: vec![Mark {
                stream: "s".to_owned(),
                topic: "t".to_owned(),
                partition: 1,
                next_offset: 9,
                last: Some(Sent {
                    id: u128::MAX - 1,
                    origin_timestamp: 3,
                }),
                earlier: vec![(1, 4)],
            }],
        }
    }

    #[test]
    fn a_saved_checkpoint_is_there_after_reopening() {
        let folder = tempfile::tempdir().expect("temp dir");
        let store = LocalStore::open(folder.path()).expect("open");
        assert_eq!(store.read(&key()).expect("read"), None);
        assert_eq!(store.list().expect("list"), []);
        store.write(&[(key(), checkpoint())]).expect("write");
        drop(store);
        let store = LocalStore::open(folder.path()).expect("reopen");
        assert_eq!(store.read(&key()).expect("read"), Some(checkpoint()));
        assert_eq!(store.list().expect("list"), [(key(), checkpoint())]);
    }

    #[test]
    fn a_second_holder_is_refused() {
        let folder = tempfile::tempdir().expect("temp dir");
        let _store = LocalStore::open(folder.path()).expect("open");
        let error = LocalStore::open(folder.path()).expect_err("held");
        assert!(error.to_string().contains("another process holds it"));
    }

    #[test]
    fn a_creation_that_was_cut_short_does_not_stand_in_the_way() {
        let folder = tempfile::tempdir().expect("temp dir");
        let unfinished = folder
            .path()
            .join(format!("{FILE}.{}.new", std::process::id()));
        std::fs::write(&unfinished, "").expect("write");
        let other = folder.path().join(format!("{FILE}.1.new"));
        std::fs::write(other, vec![0x5a; 8192]).expect("write");
        LocalStore::open(folder.path()).expect("open");
        assert!(!unfinished.exists());
    }

    #[test]
    fn a_corrupt_file_is_named() {
        let folder = tempfile::tempdir().expect("temp dir");
        std::fs::write(folder.path().join(FILE), vec![0x5a; 8192]).expect("write");
        let error = LocalStore::open(folder.path()).expect_err("corrupt");
        assert!(error.to_string().contains(FILE), "{error}");
    }

    #[test]
    fn a_flipped_bit_in_an_entry_is_named() {
        let mut entry = encode(&checkpoint());
        assert_eq!(decode(&entry), Ok(checkpoint()));
        for position in 0..entry.len() {
            entry[position] ^= 1;
            assert!(decode::<Checkpoint>(&entry).is_err(), "byte {position}");
            entry[position] ^= 1;
        }
    }

    #[test]
    fn a_flipped_bit_in_the_file_is_never_taken_for_a_checkpoint() {
        let folder = tempfile::tempdir().expect("temp dir");
        let store = LocalStore::open(folder.path()).expect("open");
        store.write(&[(key(), checkpoint())]).expect("write");
        drop(store);
        let path = folder.path().join(FILE);
        let whole = std::fs::read(&path).expect("read");
        let needle = b"\"next_offset\"";
        let place = whole
            .windows(needle.len())
            .position(|window| window == needle)
            .expect("the entry is in the file");
        let mut broken = whole;
        broken[place] ^= 1;
        std::fs::write(&path, broken).expect("write");
        let error = LocalStore::open(folder.path())
            .and_then(|store| store.read(&key()))
            .expect_err("corrupt");
        assert!(error.to_string().contains(FILE), "{error}");
        assert!(!error.is_retryable());
    }

    /// A disk that has room for so many more writes.
    #[derive(Debug)]
    struct Disk {
        file: FileBackend,
        room: Arc<AtomicU64>,
    }

    impl Disk {
        fn take(&self) -> io::Result<()> {
            let taken = self
                .room
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |room| {
                    room.checked_sub(1)
                });
            taken
                .map(|_| ())
                .map_err(|_| io::ErrorKind::StorageFull.into())
        }
    }

    impl StorageBackend for Disk {
        fn len(&self) -> Result<u64, io::Error> {
            self.file.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
            self.file.read(offset, out)
        }
        fn set_len(&self, len: u64) -> Result<(), io::Error> {
            self.take()?;
            self.file.set_len(len)
        }
        fn sync_data(&self) -> Result<(), io::Error> {
            self.take()?;
            self.file.sync_data()
        }
        fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
            self.take()?;
            self.file.write(offset, data)
        }
        fn close(&self) -> Result<(), io::Error> {
            self.file.close()
        }
    }

    #[test]
    fn a_full_disk_leaves_the_old_or_the_new_checkpoint_and_is_survived() {
        let folder = tempfile::tempdir().expect("temp dir");
        let room = Arc::new(AtomicU64::new(u64::MAX));
        let opener: Opener = {
            let room = Arc::clone(&room);
            Box::new(move |path| {
                let file = std::fs::File::options().read(true).write(true).open(path)?;
                let disk = Disk {
                    file: FileBackend::new(file)?,
                    room: Arc::clone(&room),
                };
                builder().create_with_backend(disk)
            })
        };
        let store = LocalStore::open_with(folder.path(), opener).expect("open");
        let numbered = |next_offset| Checkpoint {
            next_offset,
            ..checkpoint()
        };
        let (mut before, mut failures) = (0, 0);
        store.write(&[(key(), numbered(0))]).expect("write");
        for after in 1..40 {
            room.store(after - 1, Ordering::SeqCst);
            match store.write(&[(key(), numbered(after))]) {
                Ok(()) => before = after,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    assert!(error.to_string().contains(FILE), "{error}");
                    failures += 1;
                }
            }
            room.store(u64::MAX, Ordering::SeqCst);
            let found = store.read(&key()).expect("read").expect("there");
            assert!(found == numbered(before) || found == numbered(after));
            before = found.next_offset;
        }
        assert!(failures > 3, "only {failures} writes failed");
        store.write(&[(key(), numbered(99))]).expect("write");
        drop(store);
        let store = LocalStore::open(folder.path()).expect("reopen");
        assert_eq!(store.read(&key()).expect("read"), Some(numbered(99)));
    }
}
