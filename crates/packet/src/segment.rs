//! Software segmentation (GSO): cuts one large frame into frames of the segment size, for an egress
//! device that cannot do it.
//!
//! The headers of the large frame are the template. Each segment is a complete frame with
//!
//! - the headers of the template and the next `size` bytes of payload;
//! - its own IPv4 total length or IPv6 payload length, and an IPv4 identification that counts up;
//! - TCP: the sequence number of its first byte; FIN and PSH in the last segment only, CWR in the first only;
//! - UDP: its own length;
//! - complete checksums.
//!
//! Receivers expect the segments that Linux makes, so `tcp_offload.c` and `udp_offload.c` of Linux
//! are the reference. Segments take their buffers from the worker's pool; if it has too few, no
//! segment is produced.

use crate::checksum::InternetSum;
use crate::headers::Network;
use crate::ip_layout::IpLayout;
use crate::wire::{IpProto, ipv4, ipv6, tcp, u16_at, udp};
use crate::{Frame, Offload, Pool, Segmentation, SegmentationKind};

/// Reason why a frame was not segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The frame's headers do not match its metadata.
    #[error("frame does not match its segmentation metadata")]
    Mismatch,
    /// The pool has too few free buffers.
    #[error("no free buffers for the segments")]
    NoBuffer,
    /// The segment size is so small that the frame would become more than [`SEGMENTS_MAX`]
    /// segments.
    #[error("more segments than a frame may become")]
    TooMany,
}

/// Maximum number of segments of one frame: those of 64 kB with 64 bytes of payload each, below the
/// least segment size of TCP in Linux (88 bytes). Each segment takes a buffer of 64 kB.
pub const SEGMENTS_MAX: usize = 1024;

/// Properties that all segments of a frame share.
struct SegmentPlan {
    layout: IpLayout,
    /// Bytes of all headers.
    headers: usize,
    /// Payload bytes of each segment.
    size: usize,
}

/// Appends to `out` the frames that `frame` becomes on the wire: its segments in order, or one copy
/// with a complete checksum if no segmentation is outstanding.
///
/// ```
/// use packet::{Pool, build::Stack, segment};
///
/// let stack: Stack = "eth / ipv4 / tcp(checksum=partial) / data(2500) / gso(1000)".parse().unwrap();
/// let (mut pool, mut segments) = (Pool::new(8), Vec::new());
/// segment(&stack.build(), &mut pool, &mut segments).unwrap();
/// let lengths: Vec<usize> = segments.iter().map(|frame| frame.len()).collect();
/// assert_eq!(lengths, [1054, 1054, 554]);
/// ```
///
/// # Errors
/// The frame does not match its metadata, has too many segments, or the pool has too few buffers;
/// `out` and `pool` are then unchanged.
pub fn segment(frame: &Frame, pool: &mut Pool, out: &mut Vec<Frame>) -> Result<(), SegmentError> {
    let Some(how) = frame.offload.segmentation else {
        let mut copy = pool.duplicate(frame).ok_or(SegmentError::NoBuffer)?;
        copy.complete_checksum();
        out.push(copy);
        return Ok(());
    };
    let cut = SegmentPlan::new(frame, how)?;
    let first = out.len();
    let payload = &frame.bytes()[cut.headers..cut.layout.upper.end];
    let slices = payload.chunks(cut.size);
    if slices.len() > SEGMENTS_MAX {
        return Err(SegmentError::TooMany);
    }
    let last = slices.len().saturating_sub(1);
    for (index, slice) in slices.enumerate() {
        let Some(mut segment) = pool.take() else {
            out.drain(first..).for_each(|segment| pool.put(segment));
            return Err(SegmentError::NoBuffer);
        };
        segment
            .set_len(cut.headers + slice.len())
            .expect("a segment is no longer than its frame");
        cut.write(&mut segment, frame, slice, index, index == last);
        out.push(segment);
    }
    Ok(())
}

impl SegmentPlan {
    fn new(frame: &Frame, how: Segmentation) -> Result<Self, SegmentError> {
        use SegmentationKind as Kind;
        let layout = IpLayout::find(frame.bytes()).ok_or(SegmentError::Mismatch)?;
        let over_v4 = matches!(layout.network, Network::Ipv4(_));
        let tcp = layout.upper.protocol == IpProto::TCP;
        let fits = match how.kind {
            Kind::Tcp4 | Kind::Tcp4Ecn => tcp && over_v4,
            Kind::Tcp6 | Kind::Tcp6Ecn => tcp && !over_v4,
            Kind::Udp => layout.upper.protocol == IpProto::UDP,
        };
        let header = &frame.bytes()[layout.upper.at..layout.upper.end];
        let len = match (tcp, header.get(tcp::FLAGS)) {
            (false, _) => udp::LEN,
            (true, Some(offset)) => usize::from(offset >> 4) * 4,
            (true, None) => return Err(SegmentError::Mismatch),
        };
        let least = if tcp { tcp::LEN_MIN } else { udp::LEN };
        if !fits
            || how.size == 0
            || len < least
            || len >= header.len()
            || frame.len() > Frame::LEN_MAX
        {
            return Err(SegmentError::Mismatch);
        }
        Ok(Self {
            headers: layout.upper.at + len,
            size: usize::from(how.size),
            layout,
        })
    }

    fn write(&self, segment: &mut Frame, whole: &Frame, slice: &[u8], index: usize, last: bool) {
        segment.offload = Offload::default();
        segment.priority = whole.priority;
        let bytes = segment.bytes_mut();
        bytes[..self.headers].copy_from_slice(&whole.bytes()[..self.headers]);
        bytes[self.headers..].copy_from_slice(slice);
        self.write_ip(bytes, index);
        if self.layout.upper.protocol == IpProto::TCP {
            self.write_tcp(bytes, index, last);
        } else {
            let at = self.layout.upper.at;
            let len = wire_len(bytes.len() - at);
            bytes[at + udp::LENGTH..][..2].copy_from_slice(&len.to_be_bytes());
        }
        self.write_checksum(bytes, whole.bytes());
    }

    fn write_ip(&self, bytes: &mut [u8], index: usize) {
        let packet = &mut bytes[self.layout.ip_at..];
        let len = packet.len();
        match &self.layout.network {
            Network::Ipv4(ip) => {
                let step = u16::try_from(index & 0xffff).expect("masked to 16 bits");
                let id = u16_at(packet, ipv4::ID).wrapping_add(step);
                packet[ipv4::TOTAL_LEN..][..2].copy_from_slice(&wire_len(len).to_be_bytes());
                packet[ipv4::ID..][..2].copy_from_slice(&id.to_be_bytes());
                packet[ipv4::CHECKSUM..][..2].fill(0);
                let checksum = InternetSum::of(&packet[..usize::from(ip.header_len)]).checksum();
                packet[ipv4::CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
            }
            _ => {
                let len = wire_len(len - ipv6::LEN);
                packet[ipv6::PAYLOAD_LEN..][..2].copy_from_slice(&len.to_be_bytes());
            }
        }
    }

    /// `FIN` and `PSH` are for the last segment, `CWR` for the first.
    fn write_tcp(&self, bytes: &mut [u8], index: usize, last: bool) {
        let header = &mut bytes[self.layout.upper.at..];
        let sequence: [u8; 4] = std::array::from_fn(|byte| header[tcp::SEQUENCE + byte]);
        let passed = u32::try_from(index * self.size).unwrap_or(u32::MAX);
        let sequence = u32::from_be_bytes(sequence).wrapping_add(passed);
        header[tcp::SEQUENCE..][..4].copy_from_slice(&sequence.to_be_bytes());
        let mut flags = u16_at(header, tcp::FLAGS);
        if !last {
            flags &= !(tcp::FIN | tcp::PSH);
        }
        if index > 0 {
            flags &= !tcp::CWR;
        }
        header[tcp::FLAGS..][..2].copy_from_slice(&flags.to_be_bytes());
    }

    fn write_checksum(&self, bytes: &mut [u8], whole: &[u8]) {
        let udp = self.layout.upper.protocol == IpProto::UDP;
        let at = self.layout.upper.at + if udp { udp::CHECKSUM } else { tcp::CHECKSUM };
        let len = bytes.len() - self.layout.upper.at;
        let pseudo = self.pseudo(u16_at(whole, at), len);
        bytes[at..at + 2].fill(0);
        let packet = &bytes[self.layout.upper.at..];
        let checksum = match pseudo.plus(InternetSum::of(packet)).checksum() {
            0 if udp => 0xffff,
            checksum => checksum,
        };
        bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Returns the sum of the pseudo-header of a segment with `len` bytes above IP. If a routing
    /// header hides the final destination, only the partial checksum of the large frame contains
    /// it.
    fn pseudo(&self, unfinished: u16, len: usize) -> InternetSum {
        let upper = self.layout.upper;
        match &self.layout.network {
            Network::Ipv4(ip) => InternetSum::pseudo_v4(ip.src, ip.dst, upper.protocol, len),
            Network::Ipv6(ip) if !ip.routed => {
                InternetSum::pseudo_v6(ip.src, ip.dst, upper.protocol, len)
            }
            _ => InternetSum::word(unfinished)
                .minus(InternetSum::word(wire_len(upper.end - upper.at)))
                .plus(InternetSum::word(wire_len(len))),
        }
    }
}

/// Returns a length as a header field.
fn wire_len(len: usize) -> u16 {
    u16::try_from(len).expect("a segment is shorter than its packet")
}

#[cfg(test)]
mod tests;
