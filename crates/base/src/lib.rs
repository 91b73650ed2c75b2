//! Values that every crate needs and that do no input or output: a point in time that a test can
//! write down, dates, the identifiers of OpenFlow as types, and a seeded pseudorandom number
//! generator.
//!
//! Code that only two crates need belongs in the lower one of them, not here.

mod civil_date;
mod ids;
mod instant;
mod memory_budget;
mod random;
pub mod sync;

pub use civil_date::CivilDate;
pub use ids::{
    BucketId, BufferId, Cookie, DatapathId, GroupId, MeterId, PortNo, Priority, QueueId, TableId,
    Xid,
};
pub use instant::Instant;
pub use memory_budget::{MemoryBudget, MemoryShare};
pub use random::{SplitMix64, mix64};
