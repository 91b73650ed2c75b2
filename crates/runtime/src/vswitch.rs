//! The place of ovs-vswitchd: what the database of Open vSwitch says is to be becomes a
//! configuration, and how things are becomes what is to be written into it.
//!
//! Pure: rows and facts go in, a configuration and operations come out. Who speaks with
//! the database is the shell.

mod columns;
mod desired;
mod facts;
mod manager;
mod report;
mod rows;
#[cfg(test)]
mod testing;

pub(crate) use columns::TABLES;
pub(crate) use facts::{BridgeFacts, ControllerFacts, Facts, PortFacts, TreeFacts};
pub(crate) use manager::Manager;

/// The database, and the lock that its one switch has, by the names that Open vSwitch
/// gave them.
pub(crate) const DATABASE: &str = "Open_vSwitch";
pub(crate) const LOCK: &str = "ovs_vswitchd";
