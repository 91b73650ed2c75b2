//! Frames: how they are held, read, built and rewritten, with the checksums
//! right afterwards, finished or not.
//!
//! Nothing here knows OpenFlow, ports or the operating system.

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
mod offload;
mod rewrite;
mod segment;
pub mod tunnel;
pub mod wire;

pub use frame::{Frame, NoBufferSpace, Pool};
pub use headers::{Depth, Headers, Network, Transport};
pub use link::Link;
pub use mac::MacAddr;
pub use malformed::Malformed;
pub use multicast::{MembershipChange, MembershipMessage, Multicast};
pub use offload::{Checksum, Offload, Segmentation, SegmentationKind};
pub use rewrite::{EncapPayload, Packet, RewriteError, TtlExpired, UnsupportedDecap};
pub use segment::{SegmentError, segment};
