//! The `virtio_net_hdr` that the kernel puts before a frame to say what the frame
//! still owes (virtio 1.2, 5.1.6; linux/virtio_net.h): read and written here only.
//!
//! The first ten bytes, which is what packet sockets and TAP devices exchange.
//! Numbers are in the machine's own order, as for a legacy device.

use packet::{Checksum, Offload, Segmentation, SegmentationKind};

/// The header's length, in bytes.
pub const LEN: usize = sys::packet_ring::VNET_HEADER_LEN;

const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_IS_VALID: u8 = 2;

const NO_SEGMENTS: u8 = 0;
/// The bit beside a TCP kind: congestion-window-reduced is in the first segment only.
const ECN: u8 = 0x80;

/// The numbers of the kinds. Cutting UDP by IP fragments (3) is not among them: no
/// kernel since 4.14 makes such frames, and we never ask for them.
#[rustfmt::skip]
const KINDS: [(u8, SegmentationKind); 5] = [
    (1,       SegmentationKind::Tcp4),
    (1 | ECN, SegmentationKind::Tcp4Ecn),
    (4,       SegmentationKind::Tcp6),
    (4 | ECN, SegmentationKind::Tcp6Ecn),
    (5,       SegmentationKind::Udp),
];

/// A header that cannot be true of its frame, or that we do not understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// The checksum's field is not inside the frame.
    #[error("the checksum belongs beyond the end of the frame")]
    ChecksumBeyondFrame,
    /// The kind of segments is unknown.
    #[error("segments of unknown kind {0}")]
    UnknownKind(u8),
    /// The segments would be empty.
    #[error("segments of no size")]
    EmptySegments,
}

/// What the header of a frame of `frame_len` bytes says.
///
/// # Errors
/// It cannot be true, or is unknown to us.
pub fn decode(header: [u8; LEN], frame_len: usize) -> Result<Offload, BadHeader> {
    let [flags, kind, rest @ ..] = header;
    let number = |i: usize| u16::from_ne_bytes([rest[i], rest[i + 1]]);
    let (header_len, size, start, offset) = (number(0), number(2), number(4), number(6));
    let checksum = if flags & NEEDS_CHECKSUM != 0 {
        if usize::from(start) + usize::from(offset) + 2 > frame_len {
            return Err(BadHeader::ChecksumBeyondFrame);
        }
        Checksum::Partial { start, offset }
    } else if flags & CHECKSUM_IS_VALID != 0 {
        Checksum::Verified
    } else {
        Checksum::Complete
    };
    Ok(Offload {
        checksum,
        segmentation: segmentation(kind, size, header_len)?,
    })
}

fn segmentation(kind: u8, size: u16, header_len: u16) -> Result<Option<Segmentation>, BadHeader> {
    if kind == NO_SEGMENTS {
        return Ok(None);
    }
    let known = KINDS.iter().find(|(number, _)| *number == kind);
    let (_, kind) = *known.ok_or(BadHeader::UnknownKind(kind))?;
    if size == 0 {
        return Err(BadHeader::EmptySegments);
    }
    Ok(Some(Segmentation {
        kind,
        size,
        header_len,
    }))
}

/// The header that says `offload` of a frame of `frame_len` bytes.
///
/// A verified checksum is not told: only a device may (virtio 1.2, 5.1.6.2.1).
#[must_use]
pub fn encode(offload: &Offload, frame_len: usize) -> [u8; LEN] {
    let mut header = [0; LEN];
    if let Some(Segmentation {
        kind,
        size,
        header_len,
    }) = offload.segmentation
    {
        // The kernel refuses a frame whose headers are longer than itself.
        let header_len = header_len.min(u16::try_from(frame_len).unwrap_or(u16::MAX));
        header[1] = number_of(kind);
        header[2..4].copy_from_slice(&header_len.to_ne_bytes());
        header[4..6].copy_from_slice(&size.to_ne_bytes());
    }
    if let Checksum::Partial { start, offset } = offload.checksum {
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
    }
    header
}

fn number_of(kind: SegmentationKind) -> u8 {
    let row = KINDS.iter().find(|(_, known)| *known == kind);
    row.expect("the table has every kind").0
}

#[cfg(test)]
mod tests;
