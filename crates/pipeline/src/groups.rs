//! Groups (OF 1.3.5, 5.6): buckets, their selection, and the table that checks their references.

pub(crate) mod group;
pub(crate) mod group_table;

pub use group::{Group, GroupBucket, symmetric_hash};
pub(crate) use group_table::GroupTable;
