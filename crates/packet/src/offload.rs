//! What a frame still owes to the wire. A virtual interface hands frames over
//! before their checksum is finished and before they are cut into segments; a
//! frame carries that debt from port to port, and it is paid only where the
//! egress cannot take it (virtio 1.2, 5.1.6).
//!
//! This is metadata only: how it is read from and written to a
//! `virtio_net_hdr` is the business of the port backends.

use crate::Malformed;

/// How far the transport checksum of a frame has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The bytes hold what the wire would hold; nothing is known of their truth.
    #[default]
    Complete,
    /// The bytes hold what the wire would hold, and somebody has checked it.
    Verified,
    /// The field holds the pseudo-header's sum only. The checksum of all bytes
    /// from `start` to the end belongs at `start + offset`, both counted from
    /// the first byte of the frame.
    Partial {
        /// Where the summed bytes begin: the transport header.
        start: u16,
        /// Where in the transport header the checksum field is.
        offset: u16,
    },
}

/// What kind of segments a frame is to be cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentationKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv4, with congestion-window-reduced set in the first segment only.
    Tcp4Ecn,
    /// TCP over IPv6.
    Tcp6,
    /// TCP over IPv6, with congestion-window-reduced set in the first segment only.
    Tcp6Ecn,
    /// UDP datagrams one behind the other (`VIRTIO_NET_HDR_GSO_UDP_L4`).
    Udp,
}

/// A frame that stands for several: the same headers, the payload in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// The protocol to cut by.
    pub kind: SegmentationKind,
    /// Payload bytes of each segment; the last may be shorter. Never zero.
    pub size: u16,
    /// Bytes of all headers, as the sender states them: a hint, not a promise.
    pub header_len: u16,
}

/// All that a frame still owes. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The state of the transport checksum.
    pub checksum: Checksum,
    /// How the frame is to be cut, if it is.
    pub segmentation: Option<Segmentation>,
}

impl Offload {
    /// Whether nothing is owed.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !matches!(self.checksum, Checksum::Partial { .. }) && self.segmentation.is_none()
    }

    /// Whether this can be true of a frame of `len` bytes whose payload begins at
    /// `payload_at`. A guest or a peer process may have written it.
    ///
    /// # Errors
    /// The unfinished checksum is not within the payload, or segments have no size.
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

    /// Follows `len` bytes that were put in (or, with `shrink`, taken out) before
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
