//! Safe wrappers of the system calls and rings that no library carries: but for `dpdk`,
//! the only crate with `unsafe` in it. Each wrapper is safe for all arguments.
//!
//! Nothing here knows what a frame means, and nothing decides: a wrapper does
//! one thing and hands the kernel's error on.

pub mod cache;
pub mod calendar;
pub mod ethtool;
pub mod heap;
pub mod interface;
pub mod namespace;
mod netlink;
pub mod offload;
pub mod packet_ring;
pub mod packet_send;
pub mod packet_socket;
pub mod process;
pub mod processor;
pub mod scheduling;
mod socket_option;
pub mod storage;
pub mod stream_socket;
pub mod traffic_control;
pub mod tun;
pub mod users;
pub mod vectors;
pub mod xdp;
pub mod xsk;
