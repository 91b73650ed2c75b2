//! Values that every crate needs and that have no network in them: a point in
//! time that a test can write down, and the typed ids of the OpenFlow world.
//!
//! Not a drawer: what only two crates need lives in the lower one of them.

mod ids;
mod instant;
pub mod sync;

pub use ids::{
    BucketId, BufferId, Cookie, DatapathId, GroupId, MeterId, PortNo, Priority, QueueId, TableId,
    Xid,
};
pub use instant::Instant;
