//! The `virtio_net_hdr` before a frame, which carries pending offloads: a partial checksum, or
//! segmentation (virtio 1.2, 5.1.6; linux/virtio_net.h).
//!
//! ```text
//!  0     1        2       4        6            8             10
//!  +-----+--------+-------+--------+------------+-------------+------------
//!  |flags|gso_type|hdr_len|gso_size|csum_start  |csum_offset  | frame ...
//!  +-----+--------+-------+--------+------------+-------------+------------
//!
//!  NEEDS_CSUM: sum of frame[csum_start..] is due at csum_start + csum_offset
//!  DATA_VALID: the device has verified the checksum
//!  gso_type:   the frame is to be cut into segments of gso_size bytes of payload
//! ```
//!
//! The header has ten bytes, as packet sockets and TAP devices exchange it. Numbers are in host
//! byte order, as for a legacy device.

use packet::{Checksum, Offload, Segmentation, SegmentationKind};

/// Length of the header, in bytes.
pub const LEN: usize = sys::packet_ring::VNET_HEADER_LEN;

const F_NEEDS_CSUM: u8 = 1;
const F_DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
/// Flag of a TCP type: congestion-window-reduced (CWR) is set in the first segment only.
const GSO_ECN: u8 = 0x80;

/// Segmentation types. UDP fragmentation (3) is not among them: no kernel since 4.14 generates such
/// frames, and this program never requests them.
#[rustfmt::skip]
const KINDS: [(u8, SegmentationKind); 5] = [
    (1,       SegmentationKind::Tcp4),
    (1 | GSO_ECN, SegmentationKind::Tcp4Ecn),
    (4,       SegmentationKind::Tcp6),
    (4 | GSO_ECN, SegmentationKind::Tcp6Ecn),
    (5,       SegmentationKind::Udp),
];

/// A header that is inconsistent with its frame or of an unknown type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVnetHeader {
    /// The checksum field is outside the frame.
    #[error("the checksum field is outside the frame")]
    ChecksumBeyondFrame,
    /// Unknown segmentation type.
    #[error("unknown segmentation type {0}")]
    UnknownKind(u8),
    /// Segment size zero.
    #[error("segment size zero")]
    EmptySegments,
}

/// Decodes the header of a frame of `frame_len` bytes.
///
/// ```
/// use packet::Checksum;
/// use ports::vnet;
///
/// let header = vnet::decode([1, 0, 0, 0, 0, 0, 34, 0, 16, 0], 60);
/// # #[cfg(target_endian = "little")]
/// assert_eq!(header.unwrap().checksum, Checksum::Partial { start: 34, offset: 16 });
/// ```
///
/// # Errors
/// The header is inconsistent or of an unknown type.
pub fn decode(header: [u8; LEN], frame_len: usize) -> Result<Offload, InvalidVnetHeader> {
    let [flags, kind, rest @ ..] = header;
    let number = |i: usize| u16::from_ne_bytes([rest[i], rest[i + 1]]);
    let (header_len, size, start, offset) = (number(0), number(2), number(4), number(6));
    let checksum = if flags & F_NEEDS_CSUM != 0 {
        if usize::from(start) + usize::from(offset) + 2 > frame_len {
            return Err(InvalidVnetHeader::ChecksumBeyondFrame);
        }
        Checksum::Partial { start, offset }
    } else if flags & F_DATA_VALID != 0 {
        Checksum::Verified
    } else {
        Checksum::Complete
    };
    Ok(Offload {
        checksum,
        segmentation: segmentation(kind, size, header_len)?,
    })
}

fn segmentation(
    kind: u8,
    size: u16,
    header_len: u16,
) -> Result<Option<Segmentation>, InvalidVnetHeader> {
    if kind == GSO_NONE {
        return Ok(None);
    }
    let entry = KINDS.iter().find(|(number, _)| *number == kind);
    let (_, kind) = *entry.ok_or(InvalidVnetHeader::UnknownKind(kind))?;
    if size == 0 {
        return Err(InvalidVnetHeader::EmptySegments);
    }
    Ok(Some(Segmentation {
        kind,
        size,
        header_len,
    }))
}

/// Encodes `offload` of a frame of `frame_len` bytes.
///
/// A verified checksum is not encoded: only a device may report it (virtio 1.2, 5.1.6.2.1).
#[must_use]
pub fn encode(offload: &Offload, frame_len: usize) -> [u8; LEN] {
    let mut header = [0; LEN];
    if let Some(Segmentation {
        kind,
        size,
        header_len,
    }) = offload.segmentation
    {
        // The kernel refuses a header length that exceeds the frame.
        let header_len = header_len.min(u16::try_from(frame_len).unwrap_or(u16::MAX));
        header[1] = number_of(kind);
        header[2..4].copy_from_slice(&header_len.to_ne_bytes());
        header[4..6].copy_from_slice(&size.to_ne_bytes());
    }
    if let Checksum::Partial { start, offset } = offload.checksum {
        header[0] = F_NEEDS_CSUM;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
    }
    header
}

fn number_of(kind: SegmentationKind) -> u8 {
    let entry = KINDS.iter().find(|(_, entry)| *entry == kind);
    entry.expect("the table contains every kind").0
}

#[cfg(test)]
mod tests;
