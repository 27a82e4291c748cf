//! A link: the lanes between a source cluster and a destination cluster.

mod board;
mod continuity;
mod dead_letter;
mod deliver;
mod error;
pub mod lane;
mod ledger;
pub mod letters;
mod mirror;
mod plan;
mod poll;
mod report;
mod retry;
mod size;
mod supervisor;
mod tail;
mod topology;

pub use board::Board;
pub use error::Error;
pub use report::{Alert, Counts, LaneReport, LinkReport, State, Status};
pub use supervisor::{Parts, lanes, reports, run, usual_destination};
