//! The data plane: workers, and the state that they share with the control thread. No threads,
//! sockets or clocks: those belong to the runtime.

pub mod bonds;
pub mod capture;
pub mod counters;
pub mod in_band;
pub mod messages;
pub mod mirrors;
pub mod normal;
pub mod policer;
pub mod program;
pub mod publisher;
pub mod punt;
pub mod sampling;
pub mod slots;
pub mod stp_filter;
pub mod switching;
pub mod tunnels;
pub mod underlay;
pub mod virtual_links;
pub mod vlans;
pub mod worker;
pub mod worker_handle;
