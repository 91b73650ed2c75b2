//! A bridge: its tables, ports, connections and layer 2 protocols, and the effects of each event.
//! No threads, sockets or clocks: messages and the time are inputs, effects are outputs.

pub mod bridge;
pub(crate) mod bundles;
pub mod connection;
pub mod connection_filter;
pub mod dump;
mod flow_mod_report;
pub mod identity;
pub mod link;
pub mod megaflow;
pub mod monitors;
pub mod odp;
pub mod trace;
pub mod underlay;

/// Version of the software, as OpenFlow and the database report it.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-comporta");
