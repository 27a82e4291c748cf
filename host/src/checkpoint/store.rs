//! The embedded store: one file, each write a durable transaction.

use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, TableDefinition, TableError};

use super::{Checkpoint, LaneKey};

const CHECKPOINTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("checkpoints-1");
const FILE: &str = "checkpoints.redb";

/// The checkpoint store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("checkpoint store {path}: {reason}", path = path.display())]
pub struct StoreError {
    path: PathBuf,
    reason: String,
}

/// A checkpoint store in a file of its own. One process at a time can hold it.
#[derive(Debug)]
pub struct LocalStore {
    path: PathBuf,
    database: Database,
}

impl LocalStore {
    /// Opens the store in `folder`, creating both when missing.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be written, the file is corrupt, or another process holds it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        let fail = |reason: String| StoreError {
            path: path.clone(),
            reason,
        };
        std::fs::create_dir_all(folder).map_err(|error| {
            fail(format!(
                "cannot create its folder: {error}; check gateway.state_dir"
            ))
        })?;
        create(folder, &path).map_err(|error| fail(format!("cannot create it: {error}")))?;
        let database = Database::open(&path).map_err(|error| {
            fail(match error {
                DatabaseError::DatabaseAlreadyOpen => {
                    "another process holds it: stop that one, or give each gateway its own \
                     gateway.state_dir"
                        .to_owned()
                }
                error => format!(
                    "{error}; restore the file from a backup, or move it away to start anew"
                ),
            })
        })?;
        Ok(Self { path, database })
    }

    /// The checkpoint of a lane; none when it never settled anything.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read or the entry is corrupt.
    pub fn load(&self, key: &LaneKey) -> Result<Option<Checkpoint>, StoreError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            match transaction.open_table(CHECKPOINTS) {
                Ok(table) => Ok(table
                    .get(name(key).as_str())?
                    .map(|value| value.value().to_vec())),
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        let bytes = read().map_err(|error| self.error(&error))?;
        bytes
            .map(|bytes| serde_json::from_slice(&bytes))
            .transpose()
            .map_err(|error| self.error(&format!("the entry of lane {key} is corrupt: {error}")))
    }

    /// Writes checkpoints in one transaction; when this returns they are on disk.
    ///
    /// # Errors
    /// [`StoreError`] when they could not be written; the earlier ones are kept.
    pub fn save<'a>(
        &self,
        checkpoints: impl Iterator<Item = (&'a LaneKey, &'a Checkpoint)>,
    ) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut table = transaction.open_table(CHECKPOINTS)?;
                for (key, checkpoint) in checkpoints {
                    let value = serde_json::to_vec(checkpoint).map_err(std::io::Error::from)?;
                    table.insert(name(key).as_str(), value.as_slice())?;
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.error(&error))
    }

    fn error(&self, reason: &dyn std::fmt::Display) -> StoreError {
        StoreError {
            path: self.path.clone(),
            reason: reason.to_string(),
        }
    }
}

/// Creates an empty store, whole or not at all: one that was left half made could not be opened.
fn create(folder: &Path, path: &Path) -> Result<(), redb::Error> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = folder.join(format!("{FILE}.{}.new", std::process::id()));
    drop(Database::create(&unfinished)?);
    std::fs::rename(&unfinished, path)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// Names may hold any character, so the key is JSON.
fn name(key: &LaneKey) -> String {
    serde_json::to_string(key).expect("a key is plain data")
}

#[cfg(test)]
mod tests {
    use super::super::{LastSettled, Mark, Sent};
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
            }],
        }
    }

    #[test]
    fn a_saved_checkpoint_is_there_after_reopening() {
        let folder = tempfile::tempdir().expect("temp dir");
        let store = LocalStore::open(folder.path()).expect("open");
        assert_eq!(store.load(&key()).expect("load"), None);
        store
            .save([(&key(), &checkpoint())].into_iter())
            .expect("save");
        drop(store);
        let store = LocalStore::open(folder.path()).expect("reopen");
        assert_eq!(store.load(&key()).expect("load"), Some(checkpoint()));
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
}
