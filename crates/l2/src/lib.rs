//! Layer 2 protocols as pure state machines: the forwarding database, multicast snooping, spanning
//! tree, LACP, bonds, BFD, CFM and LLDP.
//!
//! Inputs are frames, messages and the time; outputs are messages, port states and views for
//! workers. The crate has no sockets, no threads and no clock.

pub mod bfd;
pub mod bond;
pub mod cfm;
pub mod fdb;
pub mod lacp;
pub mod lldp;
pub mod multicast_snooping;
pub mod spanning_tree;
