//! Frames: buffers, header parsing, rewriting, and offload metadata.
//!
//! The data path of Comporta works on [`Frame`]s. This crate parses their headers, changes them in
//! place, and completes in software what a device left undone. It has no notion of OpenFlow, ports
//! or the operating system.
//!
//! # Overview
//!
//! | task | items | details |
//! |---|---|---|
//! | hold frames without allocation | [`Frame`], [`Pool`] | headroom, external memory |
//! | parse headers | [`Headers`], [`Link`], [`wire`] | parse depth, malformed frames ([`Malformed`]) |
//! | rewrite headers | [`Packet`] | incremental checksums (RFC 1624) |
//! | defer checksum and segmentation | [`Offload`] | virtio-net metadata |
//! | do both in software | [`Frame::complete_checksum`], [`segment()`] | GSO |
//! | encapsulate | [`tunnel`] | VXLAN, GENEVE, GRE |
//! | classify multicast | [`Multicast`], [`MembershipMessage`] | snooping (RFC 4541) |
//! | describe frames in tests | [`build`] | text form |
//!
//! ```
//! use packet::build::Stack;
//! use packet::{Depth, Packet};
//!
//! let stack: Stack = "eth / ipv4 / udp(dst=53) / data(20)".parse().unwrap();
//! let mut frame = stack.build();
//!
//! let mut packet = Packet::parse(&mut frame, Depth::Transport).unwrap();
//! packet.set_port_dst(5353);
//!
//! let expected: Stack = "eth / ipv4 / udp(dst=5353) / data(20)".parse().unwrap();
//! assert_eq!(frame, expected.build());
//! ```
//!
//! # Protocols
//!
//! - Link: Ethernet II, LLC and SNAP, VLAN tags (802.1Q, 802.1ad), MPLS, PBB (802.1ah), NSH.
//! - Network: ARP, RARP, IPv4 with options, IPv6 with extension headers.
//! - Transport: TCP, UDP, UDP-Lite and DCCP (checksums only), SCTP, ICMP, ICMPv6, neighbour
//!   discovery.
//! - Slow protocols: LACP and marker PDUs ([`wire::slow`]). Membership: IGMP and MLD.
//! - Tunnels: VXLAN with group policy and generic protocol extension, GENEVE, GRE.
//!
//! **Not** supported: reassembly and fragmentation of IP, verification of received checksums
//! (except inside tunnels), headers below an MPLS label stack.
//!
//! # Guarantees
//!
//! - Parsers accept arbitrary bytes and never panic; each reason to reject a frame has a counter.
//! - A rewrite leaves every checksum correct if it was correct, and wrong if it was wrong.
//! - Parsing and rewriting do not allocate, except that a [`Pool`] allocates each buffer once.

pub mod build;
mod checksum;
mod complete_checksum;
mod frame;
mod headers;
mod ip_layout;
mod link;
mod mac;
mod malformed;
mod multicast;
pub mod neighbour;
mod offload;
mod rewrite;
mod segment;
pub mod tunnel;
pub mod wire;
mod wire_size;

pub use frame::{Frame, NoBufferSpace, Pool};
pub use headers::{Depth, FragmentPorts, Headers, Network, Transport};
pub use link::Link;
pub use mac::MacAddr;
pub use malformed::Malformed;
pub use multicast::{MembershipChange, MembershipMessage, Multicast};
pub use offload::{Checksum, Offload, Segmentation, SegmentationKind};
pub use rewrite::{
    EncapPayload, Packet, PacketEnds, PlainEnds, PlainHop, RewriteError, TtlExpired,
    UnsupportedDecap, set_plain_ends, set_plain_hop,
};
pub use segment::{SEGMENTS_MAX, SegmentError, segment};
