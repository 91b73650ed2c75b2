//! The data plane's side of the daemon: workers, and what they share with the
//! control thread. No threads, sockets or clocks: those are the shell's.

pub(crate) mod bonds;
pub(crate) mod capture;
pub(crate) mod counters;
pub(crate) mod gates;
pub(crate) mod in_band;
pub(crate) mod intercept;
pub(crate) mod messages;
pub(crate) mod mirrors;
pub(crate) mod normal;
pub(crate) mod program;
pub(crate) mod publisher;
pub(crate) mod sampling;
pub(crate) mod slots;
pub(crate) mod switching;
pub(crate) mod tether;
pub(crate) mod tunnels;
pub(crate) mod underlay;
pub(crate) mod vlans;
pub(crate) mod ways;
pub(crate) mod worker;
