//! Software segmentation: a frame that stands for many becomes the many, where
//! the egress cannot do it, as the sender's own stack would have made them.
//!
//! Each segment is a whole frame: headers repeated, lengths, identification,
//! sequence number and flags its own, checksums complete (Linux' `tcp_offload.c`
//! and `udp_offload.c` are the reference that receivers are used to).

use crate::checksum::InternetSum;
use crate::headers::Network;
use crate::ip_layout::IpLayout;
use crate::wire::{IpProto, ipv4, ipv6, tcp, u16_at, udp};
use crate::{Frame, Offload, Pool, Segmentation, SegmentationKind};

/// Why a frame was not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The frame is not of the kind that its metadata says.
    #[error("the frame is not what its segmentation metadata says")]
    Mismatch,
    /// The pool has too few buffers left.
    #[error("no buffers left for the segments")]
    NoBuffer,
}

/// What all segments of a frame have in common.
struct SegmentPlan {
    layout: IpLayout,
    /// Bytes of all headers.
    headers: usize,
    /// Payload bytes of each segment.
    size: usize,
}

/// Appends to `out` what `frame` is on the wire: its segments, in order, or, if
/// there is nothing to cut, one copy of it with its checksum finished.
///
/// # Errors
/// The frame cannot be cut, or there are not enough buffers; `out` and `pool`
/// are then as they were.
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
    let last = slices.len().saturating_sub(1);
    for (index, slice) in slices.enumerate() {
        let Some(mut segment) = pool.take() else {
            out.drain(first..).for_each(|segment| pool.put(segment));
            return Err(SegmentError::NoBuffer);
        };
        segment
            .set_len(cut.headers + slice.len())
            .expect("a segment is no longer than what it is cut from");
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
                let step = u16::try_from(index & 0xffff).expect("sixteen bits");
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

    /// The pseudo-header of a segment with `len` bytes above IP. Where a routing
    /// header hides the destination, the unfinished checksum of the whole is the
    /// only one who knows it.
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

/// A length of a segment, as its headers write it.
fn wire_len(len: usize) -> u16 {
    u16::try_from(len).expect("a segment is shorter than the packet it is cut from")
}

#[cfg(test)]
mod tests;
