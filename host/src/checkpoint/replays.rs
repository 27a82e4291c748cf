//! What replays of dead letters did, in a file of its own: a replay works beside a gateway that holds the checkpoints.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use serde::{Deserialize, Serialize};

use super::Mark;
use super::local::{File, decode, encode};
use super::store::StoreError;
use crate::blocking;

const FILE: &str = "replays.redb";

/// Scope as JSON to the entry of [`encode`].
const REPLAYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("replays-1");

/// Number of the scope and offset of the letter, to its fingerprint and the number of the replay that sent it last.
const LETTERS: TableDefinition<'_, (u64, u64), (u64, u64)> = TableDefinition::new("letters-1");

/// The dead letters of one link in one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Name of the link.
    pub link: String,
    /// Name of the cluster that holds the letters and gets their messages.
    pub destination: String,
    /// Stream of the letters.
    pub stream: String,
    /// Topic of the letters.
    pub topic: String,
    /// Partition of the letters.
    pub partition: u32,
}

/// What replays of a scope did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replays {
    /// Number of the scope, given by the store.
    pub scope: u64,
    /// Number of the last replay, from 1.
    pub last: u64,
    /// That replay, unless it came to its end.
    pub unfinished: Option<Unfinished>,
    /// What it is sending.
    pub sending: Option<Sending>,
}

/// A replay that has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// What it is to replay.
    pub selection: Selection,
    /// The offset after the last letter that there was when it started.
    pub end: u64,
}

/// Which letters a replay is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The first offset.
    pub from: u64,
    /// The last offset.
    pub to: Option<u64>,
    /// These offsets alone, unless it is empty.
    pub offsets: Vec<u64>,
    /// Whether letters that were replayed before are replayed again.
    pub again: bool,
}

/// Letters whose messages may be delivered or not: a replay that ends meanwhile leaves them for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// In the order of their offsets.
    pub letters: Vec<LetterId>,
    /// Whether the guests were asked.
    pub guests: bool,
    /// What each destination partition had confirmed before, or where it ended.
    pub marks: Vec<Mark>,
}

/// What tells a letter from one that is at the same offset after the topic was purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterId {
    /// Its offset.
    pub offset: u64,
    /// A hash of its id, time of production and headers.
    pub fingerprint: u64,
}

impl Selection {
    /// Whether it includes the letter at `offset`.
    pub fn includes(&self, offset: u64) -> bool {
        if self.offsets.is_empty() {
            offset >= self.from && self.to.is_none_or(|to| offset <= to)
        } else {
            self.offsets.contains(&offset)
        }
    }

    /// The first offset that it may include, and the offset after the last one.
    pub fn bounds(&self) -> (u64, u64) {
        if let (Some(&first), Some(&last)) = (self.offsets.iter().min(), self.offsets.iter().max())
        {
            return (first, last.saturating_add(1));
        }
        let end = self.to.map_or(u64::MAX, |to| to.saturating_add(1));
        (self.from, end)
    }
}

/// Remembers which letters were replayed. One process at a time can hold it.
#[derive(Debug, Clone)]
pub struct ReplayStore {
    file: Arc<File>,
}

impl ReplayStore {
    /// Opens the store in `folder`, creating both when missing.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be written, the file is corrupt, or another process holds it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let file = Arc::new(File::open(folder, FILE)?);
        // Reading needs the tables to be there.
        file.with(|database| {
            let transaction = database.begin_write()?;
            transaction.open_table(REPLAYS)?;
            transaction.open_table(LETTERS)?;
            transaction.commit()?;
            Ok(())
        })?;
        Ok(Self { file })
    }

    /// What replays of a scope did.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read or the entry is corrupt.
    pub async fn load(&self, scope: &Scope) -> Result<Replays, StoreError> {
        let (file, key) = (Arc::clone(&self.file), name(scope));
        blocking(move || {
            let (bytes, scopes) = file.with(|database| {
                let table = database.begin_read()?.open_table(REPLAYS)?;
                let bytes = table.get(key.as_str())?.map(|value| value.value().to_vec());
                Ok((bytes, table.len()?))
            })?;
            let Some(bytes) = bytes else {
                return Ok(Replays {
                    scope: scopes + 1,
                    ..Replays::default()
                });
            };
            decode(&bytes).map_err(|reason| corrupt(&file, &key, &reason))
        })
        .await
    }

    /// What replays were sending when they ended, of any scope.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read or an entry is corrupt.
    pub fn interrupted(&self) -> Result<Vec<(Scope, Sending)>, StoreError> {
        let entries = self.file.with(|database| {
            let table = database.begin_read()?.open_table(REPLAYS)?;
            let mut entries = Vec::new();
            for entry in table.iter()? {
                let (key, value) = entry?;
                entries.push((key.value().to_owned(), value.value().to_vec()));
            }
            Ok(entries)
        })?;
        let mut interrupted = Vec::new();
        for (key, value) in entries {
            let replays: Replays =
                decode(&value).map_err(|reason| corrupt(&self.file, &key, &reason))?;
            let scope = serde_json::from_str(&key)
                .map_err(|error| corrupt(&self.file, &key, &error.to_string()))?;
            interrupted.extend(replays.sending.map(|sending| (scope, sending)));
        }
        Ok(interrupted)
    }

    /// For each letter, the number of the replay that sent it last; none for one that was not replayed.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be read.
    pub async fn find(
        &self,
        scope: u64,
        letters: Vec<LetterId>,
    ) -> Result<Vec<Option<u64>>, StoreError> {
        let file = Arc::clone(&self.file);
        blocking(move || {
            file.with(|database| {
                let table = database.begin_read()?.open_table(LETTERS)?;
                let mut found = Vec::with_capacity(letters.len());
                for letter in &letters {
                    let entry = table
                        .get((scope, letter.offset))?
                        .map(|entry| entry.value());
                    let same = entry.filter(|(fingerprint, _)| *fingerprint == letter.fingerprint);
                    found.push(same.map(|(_, replay)| replay));
                }
                Ok(found)
            })
        })
        .await
    }

    /// Writes what replays of a scope did, and that the last of them sent `letters`. When this returns it survives
    /// the end of the process; after an error all of it or nothing does.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be written.
    pub async fn save(
        &self,
        scope: &Scope,
        replays: &Replays,
        letters: &[LetterId],
    ) -> Result<(), StoreError> {
        let (file, key) = (Arc::clone(&self.file), name(scope));
        let (replays, letters) = (replays.clone(), letters.to_vec());
        blocking(move || file.with(|database| write(database, &key, &replays, &letters))).await
    }
}

fn corrupt(file: &File, key: &str, reason: &str) -> StoreError {
    let reason = format!(
        "the entry of {key} is corrupt: {reason}; restore the file from a backup, or move it away: then nothing is \
         known of earlier replays"
    );
    file.error(reason, false)
}

fn write(
    database: &Database,
    key: &str,
    replays: &Replays,
    letters: &[LetterId],
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(REPLAYS)?;
        table.insert(key, encode(replays).as_slice())?;
        let mut table = transaction.open_table(LETTERS)?;
        for letter in letters {
            let (place, entry) = (
                (replays.scope, letter.offset),
                (letter.fingerprint, replays.last),
            );
            table.insert(place, entry)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Names may hold any character, so the key is JSON.
fn name(scope: &Scope) -> String {
    serde_json::to_string(scope).expect("a scope is plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(link: &str) -> Scope {
        Scope {
            link: link.to_owned(),
            destination: "us".to_owned(),
            stream: "sluice".to_owned(),
            topic: "dead-letters".to_owned(),
            partition: 0,
        }
    }

    fn letter(offset: u64, fingerprint: u64) -> LetterId {
        LetterId {
            offset,
            fingerprint,
        }
    }

    #[tokio::test]
    async fn a_letter_that_was_replayed_is_known_after_reopening() {
        let folder = tempfile::tempdir().expect("temp dir");
        let store = ReplayStore::open(folder.path()).expect("open");
        let mut replays = store.load(&scope("a")).await.expect("load");
        assert_eq!((replays.scope, replays.last), (1, 0));
        replays.last = 4;
        replays.unfinished = Some(Unfinished {
            selection: Selection::default(),
            end: 9,
        });
        let sent = [letter(3, 30), letter(5, 50)];
        let saved = store.save(&scope("a"), &replays, &sent).await;
        saved.expect("save");
        drop(store);

        let store = ReplayStore::open(folder.path()).expect("reopen");
        assert_eq!(store.load(&scope("a")).await.expect("load"), replays);
        assert_eq!(store.interrupted().expect("read"), []);
        let asked = vec![letter(3, 30), letter(4, 40), letter(5, 51)];
        let found = store.find(1, asked.clone()).await.expect("find");
        assert_eq!(
            found,
            [Some(4), None, None],
            "another letter lies at offset 5"
        );
        let other = store.load(&scope("b")).await.expect("load");
        assert_eq!(other.scope, 2);
        let found = store.find(other.scope, asked).await.expect("find");
        assert_eq!(found, [None; 3], "another link");
    }

    #[tokio::test]
    async fn two_replays_at_a_time_are_refused_and_a_gateway_is_not() {
        let folder = tempfile::tempdir().expect("temp dir");
        let _gateway = super::super::LocalStore::open(folder.path()).expect("open");
        let _replay = ReplayStore::open(folder.path()).expect("open");
        let error = ReplayStore::open(folder.path()).expect_err("held");
        assert!(error.to_string().contains("another process holds it"));
    }

    #[test]
    fn a_selection_is_a_range_or_single_offsets() {
        let range = Selection {
            from: 3,
            to: Some(5),
            ..Selection::default()
        };
        let kept = |selection: &Selection| -> Vec<u64> {
            (0..9)
                .filter(|offset| selection.includes(*offset))
                .collect()
        };
        assert_eq!((kept(&range), range.bounds()), (vec![3, 4, 5], (3, 6)));
        let single = Selection {
            offsets: vec![7, 2],
            ..Selection::default()
        };
        assert_eq!((kept(&single), single.bounds()), (vec![2, 7], (2, 8)));
        assert_eq!(Selection::default().bounds(), (0, u64::MAX));
    }
}
