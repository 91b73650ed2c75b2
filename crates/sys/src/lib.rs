//! Safe wrappers of Linux system calls and rings that no library provides. Apart from `dpdk`, the
//! only crate with `unsafe`; each wrapper is safe for all arguments.
//!
//! A wrapper does one thing and returns the kernel's error. It does not interpret frames and makes
//! no decisions.
//!
//! | modules | kernel interface |
//! |---|---|
//! | [`packet_socket`], [`packet_ring`], [`packet_send`] | AF_PACKET sockets, their mapped receive ring, sendmmsg(2) |
//! | [`xsk`], [`xdp`] | AF_XDP sockets and their UMEM, the XDP program that feeds them |
//! | [`tun`] | TAP devices |
//! | [`interface`], [`ethtool`], [`offload`] | netdevice(7) and `SIOCETHTOOL` ioctls |
//! | [`traffic_control`] | queueing disciplines and classes, over rtnetlink(7) |
//! | [`namespace`], [`process`], [`scheduling`], [`users`] | network namespaces, child processes, the scheduler, the user database |
//! | [`storage`], [`heap`], [`cache`] | memory of frames, malloc_trim(3), prefetch instructions |
//! | [`processor`], [`vectors`] | dispatch on instruction sets, AVX2 |

pub mod cache;
pub mod calendar;
pub mod ethtool;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
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
