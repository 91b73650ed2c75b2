//! Connectivity fault management: a maintenance point that sends continuity check messages and
//! expects those of others (IEEE 802.1ag, 19 and 20), with Open vSwitch's fixed maintenance
//! association and its extended mode (ovs-vswitchd.conf.db(5), "Connectivity Fault Management").
//!
//! An unexpected interval or sequence number is no fault: faults disable interfaces, and whoever
//! sends a frame could cause one.
//!
//! Pure: inputs are messages, the number of frames received on the interface, and the time; outputs
//! are messages, faults, and whether the interface may be used.

mod fault;
mod point;

pub use fault::CfmFault;
pub use point::{CfmPoint, CfmStatus, RemotePoint};

pub use config::CfmConfig;

#[cfg(test)]
mod tests;
