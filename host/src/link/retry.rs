//! Repeating calls to a cluster until they succeed, cannot succeed, or the gateway stops.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio_util::sync::CancellationToken;

use super::Error;
use super::report::{Counts, Status};
use crate::checkpoint::StoreError;
use crate::cluster::{self, Fault};
use crate::config::link::{Attempts, Retry};

/// How a lane repeats failed calls.
#[derive(Debug, Clone)]
pub struct Retrier {
    policy: Retry,
    status: Arc<Status>,
    stop: CancellationToken,
}

/// A failure that may pass.
pub trait Failure: std::fmt::Display + Into<Error> {
    /// What kind it is; none when trying again is useless.
    fn retryable(&self) -> Option<Fault>;
}

impl Failure for cluster::Error {
    fn retryable(&self) -> Option<Fault> {
        self.is_retryable().then_some(self.fault)
    }
}

impl Failure for StoreError {
    fn retryable(&self) -> Option<Fault> {
        self.is_retryable().then_some(match self {
            Self::Server(error) => error.fault,
            Self::Local { .. } => Fault::Transient,
        })
    }
}

/// The pauses of one call that is being repeated.
pub struct Pauses {
    retrier: Retrier,
    delays: Option<backon::ExponentialBackoff>,
    failures: u32,
}

impl Retrier {
    /// Repeats by `policy`, until `stop`, and tells `status`.
    pub const fn new(policy: Retry, status: Arc<Status>, stop: CancellationToken) -> Self {
        Self {
            policy,
            status,
            stop,
        }
    }

    /// The pauses between the attempts at one call.
    pub fn pauses(&self) -> Pauses {
        Pauses {
            retrier: self.clone(),
            delays: None,
            failures: 0,
        }
    }

    /// For work that may take long without a failed call.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the gateway stops.
    pub fn check_stop(&self) -> Result<(), Error> {
        if self.stop.is_cancelled() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Waits for `pause`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the gateway stops first.
    pub async fn sleep(&self, pause: Duration) -> Result<(), Error> {
        self.unless_stopped(tokio::time::sleep(pause)).await
    }

    /// Waits for `event`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the gateway stops first.
    pub async fn unless_stopped<T>(&self, event: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::Interrupted),
            value = event => Ok(value),
        }
    }
}

/// Repeats a call to a cluster, an expression that awaits it, while its errors are retryable. Gives its value, or
/// the link's error.
macro_rules! repeat {
    ($retrier:expr, $call:expr) => {{
        let mut pauses = $retrier.pauses();
        loop {
            match $call {
                Ok(value) => break Ok(value),
                Err(error) => {
                    if let Err(error) = pauses.after(error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(super) use repeat;

impl Pauses {
    /// Logs a failure and waits before the next attempt.
    ///
    /// # Errors
    /// The failure itself when it is not retryable or no attempt is left, or [`Error::Interrupted`].
    pub async fn after(&mut self, error: impl Failure) -> Result<(), Error> {
        let Some(fault) = error.retryable() else {
            return Err(error.into());
        };
        self.failures += 1;
        let status = &self.retrier.status;
        if let Some(place) = Fault::ALL.iter().position(|known| *known == fault) {
            Counts::add(&status.counts.retries[place], 1);
        }
        status.retrying(Some(error.to_string()));
        if let Attempts::AtMost(attempts) = self.retrier.policy.attempts
            && self.failures >= attempts
        {
            return Err(error.into());
        }
        let policy = &self.retrier.policy;
        let delays = self.delays.get_or_insert_with(|| {
            ExponentialBuilder::default()
                .with_min_delay(policy.initial)
                .with_max_delay(policy.max)
                .with_jitter()
                .without_max_times()
                .build()
        });
        let pause = delays.next().unwrap_or(policy.max);
        tracing::warn!(
            class = fault.name(),
            failures = self.failures,
            retry_in = %humantime::format_duration(rounded(pause)),
            "{error}"
        );
        self.retrier.sleep(pause).await
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        if self.failures > 0 {
            self.retrier.status.retrying(None);
        }
    }
}

/// Whole milliseconds read better in a log.
const fn rounded(pause: Duration) -> Duration {
    Duration::new(pause.as_secs(), pause.subsec_millis() * 1_000_000)
}
