//! The data plane's side of the daemon: workers, and what they share with the
//! control thread. No threads, sockets or clocks: those are the shell's.

pub mod bonds;
pub mod capture;
pub mod counters;
pub mod gates;
pub mod in_band;
pub mod intercept;
pub mod messages;
pub mod mirrors;
pub mod normal;
pub mod policer;
pub mod program;
pub mod publisher;
pub mod sampling;
pub mod slots;
pub mod switching;
pub mod tether;
pub mod tunnels;
pub mod underlay;
pub mod vlans;
pub mod ways;
pub mod worker;
