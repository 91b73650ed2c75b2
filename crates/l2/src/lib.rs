//! Layer 2 protocols as pure state machines: the forwarding database, multicast snooping,
//! spanning tree, LACP and bonds.
//!
//! Frames, messages and the time go in; messages, port states and views for workers come out.
//! No socket, no thread, no clock.

pub mod bond;
pub mod fdb;
pub mod lacp;
pub mod multicast_snooping;
pub mod spanning_tree;
