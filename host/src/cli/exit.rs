//! Exit codes.

use std::process::{ExitCode, Termination};

use crate::{gateway, link};

/// How the process ends. The numbers are part of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Success = 0,
    /// For a reason that nobody foresaw.
    Unexpected = 1,
    /// Wrong arguments or configuration.
    Usage = 2,
    /// A guest cannot be used.
    Guest = 3,
    /// A cluster, topic or source cannot be used.
    Cluster = 4,
    /// The checkpoint store cannot be used.
    Checkpoint = 5,
    /// Told to stop, but not drained within the time limit.
    Undrained = 6,
    /// Ended by a second signal.
    Aborted = 130,
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

impl From<&gateway::Error> for Exit {
    fn from(error: &gateway::Error) -> Self {
        match error {
            gateway::Error::Load(_) | gateway::Error::Start(_) | gateway::Error::Engine(_) => {
                Self::Guest
            }
            gateway::Error::Checkpoint(_) => Self::Checkpoint,
            gateway::Error::Admin(_) => Self::Usage,
        }
    }
}

impl From<&link::Error> for Exit {
    fn from(error: &link::Error) -> Self {
        match error {
            link::Error::Guest(_)
            | link::Error::GuestKeepsFailing { .. }
            | link::Error::Stopped { .. } => Self::Guest,
            link::Error::Cluster(_)
            | link::Error::Topology(_)
            | link::Error::Source(_)
            | link::Error::Reset(_)
            | link::Error::Gap(_) => Self::Cluster,
            link::Error::Checkpoint(_) => Self::Checkpoint,
            link::Error::Undrained(_) | link::Error::CutOff(_) => Self::Undrained,
            link::Error::Interrupted => Self::Success,
        }
    }
}
