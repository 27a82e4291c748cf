//! How the replays of one partition of letters are remembered.

use super::Request;
use crate::checkpoint::{LetterId, ReplayStore, Replays, Scope, Sending, Unfinished};
use crate::link::Error;
use crate::link::retry::{Retrier, repeat};

/// What replays of one partition of letters did, as it is on disk.
#[derive(Debug)]
pub struct Memory {
    store: ReplayStore,
    retrier: Retrier,
    dry_run: bool,
    scope: Scope,
    replays: Replays,
    /// Letters of the round that an earlier replay left unfinished, which are counted already.
    pub finished: Vec<LetterId>,
}

impl Memory {
    /// Reads it. In a dry run nothing is written.
    ///
    /// # Errors
    /// [`Error`] when it cannot be read.
    pub async fn load(
        store: &ReplayStore,
        retrier: &Retrier,
        scope: Scope,
        dry_run: bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            replays: repeat!(retrier, store.load(&scope).await)?,
            store: store.clone(),
            retrier: retrier.clone(),
            dry_run,
            scope,
            finished: Vec::new(),
        })
    }

    /// What an earlier replay was sending when it ended.
    pub fn sending(&self) -> Option<Sending> {
        self.replays.sending.clone()
    }

    /// Starts a replay, or goes on with one of the same letters that did not come to its end: then letters that it
    /// wrote itself are not its own to replay. Returns where it ends, which is `end` unless it goes on.
    ///
    /// # Errors
    /// [`Error`] when that cannot be written.
    pub async fn begin(&mut self, request: &Request, end: u64) -> Result<u64, Error> {
        let replays = &mut self.replays;
        if let Some(unfinished) = &replays.unfinished
            && unfinished.selection == request.selection
        {
            let end = unfinished.end;
            tracing::info!(
                end,
                "going on with the replay that was interrupted; letters from this offset on are for the next one"
            );
            return Ok(end);
        }
        replays.last += 1;
        replays.unfinished = Some(Unfinished {
            selection: request.selection.clone(),
            end,
        });
        self.save(&[]).await?;
        Ok(end)
    }

    /// The replay came to its end.
    ///
    /// # Errors
    /// [`Error`] when that cannot be written.
    pub async fn end(&mut self) -> Result<(), Error> {
        self.replays.unfinished = None;
        self.save(&[]).await
    }

    /// Letters are about to be sent.
    ///
    /// # Errors
    /// [`Error`] when that cannot be written.
    pub async fn before(&mut self, sending: Sending) -> Result<(), Error> {
        self.replays.sending = Some(sending);
        self.save(&[]).await
    }

    /// `letters` were replayed; `rest` may have been sent by an earlier replay and is still to be looked for.
    ///
    /// # Errors
    /// [`Error`] when that cannot be written.
    pub async fn after(
        &mut self,
        letters: &[LetterId],
        rest: Option<Sending>,
    ) -> Result<(), Error> {
        self.replays.sending = rest;
        self.save(letters).await
    }

    /// For each letter, whether it is not to be sent because it was: ever, or by the present replay when that is to send
    /// letters `again`.
    ///
    /// # Errors
    /// [`Error`] when that cannot be read.
    pub async fn done(&self, letters: Vec<LetterId>, again: bool) -> Result<Vec<bool>, Error> {
        let scope = self.replays.scope;
        let found = repeat!(self.retrier, self.store.find(scope, letters.clone()).await)?;
        let last = self.replays.last;
        let done = found
            .into_iter()
            .map(|by| by.is_some_and(|by| !again || by == last));
        Ok(done.collect())
    }

    async fn save(&self, letters: &[LetterId]) -> Result<(), Error> {
        if self.dry_run {
            return Ok(());
        }
        let (store, scope) = (&self.store, &self.scope);
        repeat!(
            self.retrier,
            store.save(scope, &self.replays, letters).await
        )
    }
}
