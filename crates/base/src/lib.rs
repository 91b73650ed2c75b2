//! Values that every crate needs and that have no network in them: a point in
//! time that a test can write down, the typed ids of the OpenFlow world, and a seeded
//! pseudorandom number generator.
//!
//! Not a drawer: what only two crates need lives in the lower one of them.

mod ids;
mod instant;
mod random;
pub mod sync;

pub use ids::{
    BucketId, BufferId, Cookie, DatapathId, GroupId, MeterId, PortNo, Priority, QueueId, TableId,
    Xid,
};
pub use instant::Instant;
pub use random::SplitMix64;
