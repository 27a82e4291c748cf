//! A link: the lanes between a source cluster and a destination cluster.

mod dead_letter;
mod deliver;
mod error;
mod lane;
mod plan;
mod poll;
mod report;
mod retry;
mod supervisor;
mod tail;
mod topology;

pub use error::Error;
pub use report::{Counts, LaneReport, LinkReport};
pub use supervisor::{Parts, run};
