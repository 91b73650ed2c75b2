//! What the daemon knows and decides, without threads, sockets or clocks.

pub(crate) mod bridge;
pub(crate) mod bundles;
pub(crate) mod connection;
pub(crate) mod dump;
pub(crate) mod identity;
pub(crate) mod link;
pub(crate) mod monitors;
pub(crate) mod tracing;
pub(crate) mod underlay;
