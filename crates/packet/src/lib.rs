//! Frames: how they are held, read, built and rewritten, with the checksums
//! right afterwards, finished or not.
//!
//! Nothing here knows OpenFlow, ports or the operating system.

mod frame;
mod mac;
mod offload;

pub use frame::{Frame, NoRoom, Pool};
pub use mac::MacAddr;
pub use offload::{Checksum, Offload, Segmentation, SegmentationKind};
