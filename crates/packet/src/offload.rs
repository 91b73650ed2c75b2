//! Offload metadata: the checksum and the segmentation that a frame still needs before it reaches a
//! wire.
//!
//! A virtual interface delivers frames before their transport checksum is complete and before they
//! are cut into segments, and describes both in a `virtio_net_hdr` (virtio 1.2, 5.1.6). Linux calls
//! the same states `CHECKSUM_PARTIAL` and GSO. A frame carries this description from port to port,
//! and rewriting keeps it valid, so that the work is done once, and only if the egress device
//! cannot do it:
//!
//! | metadata | virtio-net | software |
//! |---|---|---|
//! | [`Checksum::Partial`] | `F_NEEDS_CSUM`, `csum_start`, `csum_offset` | [`Frame::complete_checksum`](crate::Frame::complete_checksum) |
//! | [`Checksum::Verified`] | `F_DATA_VALID` | none |
//! | [`Segmentation`] | `gso_type`, `gso_size`, `hdr_len` | [`segment`](crate::segment()) |
//!
//! A partial checksum field holds the sum of the pseudo-header, not its complement. Only a change
//! of the pseudo-header (addresses, protocol) changes it; a rewritten port does not.
//!
//! The port backends translate between these types and the system's structures.

use crate::Malformed;

/// State of a frame's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum field is as on the wire; it was not verified.
    #[default]
    Complete,
    /// The checksum field is as on the wire, and a device or host verified it.
    Verified,
    /// The field holds the sum of the pseudo-header only. The checksum of all bytes from `start` to
    /// the end belongs at `start + offset`, both counted from the first byte of the frame.
    Partial {
        /// Offset of the summed bytes: of the transport header.
        start: u16,
        /// Offset of the checksum field in the transport header.
        offset: u16,
    },
}

/// Kind of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentationKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv4, with CWR set in the first segment only.
    Tcp4Ecn,
    /// TCP over IPv6.
    Tcp6,
    /// TCP over IPv6, with CWR set in the first segment only.
    Tcp6Ecn,
    /// UDP datagrams one after the other (`VIRTIO_NET_HDR_GSO_UDP_L4`).
    Udp,
}

/// Description of a frame that stands for several with the same headers and consecutive payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// The protocol to cut by.
    pub kind: SegmentationKind,
    /// Payload bytes of each segment; the last may be shorter. Not zero.
    pub size: u16,
    /// Length of all headers as the sender states it, in bytes; a hint that may be wrong.
    pub header_len: u16,
}

/// Outstanding work of a frame. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The state of the transport checksum.
    pub checksum: Checksum,
    /// Segmentation, if the frame awaits it.
    pub segmentation: Option<Segmentation>,
}

impl Offload {
    /// True if neither a checksum nor a segmentation is outstanding.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !matches!(self.checksum, Checksum::Partial { .. }) && self.segmentation.is_none()
    }

    /// Checks that the metadata fit a frame of `len` bytes whose payload begins at `payload_at`. A
    /// guest or a peer process may have written them.
    ///
    /// # Errors
    /// The partial checksum is outside the payload, or the segment size is zero.
    #[inline]
    pub fn validate(&self, payload_at: usize, len: usize) -> Result<(), Malformed> {
        if let Checksum::Partial { start, offset } = self.checksum
            && (usize::from(start) < payload_at
                || usize::from(start) + usize::from(offset) + 2 > len)
        {
            return Err(Malformed::ChecksumPlace);
        }
        match self.segmentation {
            Some(Segmentation { size: 0, .. }) => Err(Malformed::SegmentSize),
            _ => Ok(()),
        }
    }

    /// Updates the positions after `len` bytes were inserted (or, with `shrink`, removed) before
    /// the byte at `at`.
    pub(crate) fn shift_positions(&mut self, at: usize, len: u16, shrink: bool) {
        let moved = |position: u16| {
            if shrink {
                position.saturating_sub(len)
            } else {
                position.saturating_add(len)
            }
        };
        if let Checksum::Partial { start, .. } = &mut self.checksum
            && usize::from(*start) >= at
        {
            *start = moved(*start);
        }
        if let Some(segmentation) = &mut self.segmentation {
            segmentation.header_len = moved(segmentation.header_len);
        }
    }
}
