//! Paying what a frame owes: its checksum, where the egress will not compute it.

use crate::checksum::{InternetSum, crc32c};
use crate::headers::Network;
use crate::ip_layout::IpLayout;
use crate::wire::ethernet::EtherType;
use crate::wire::{Fragment, IpProto, ipv4, sctp, tcp, u16_at, udp};
use crate::{Checksum, Frame};

impl Frame {
    /// Completes an unfinished checksum. A frame that is still to be cut is left
    /// alone: each segment gets a checksum of its own.
    ///
    /// The metadata cannot say that the checksum is SCTP's, which is no Internet
    /// checksum; the frame can.
    pub fn complete_checksum(&mut self) {
        let Checksum::Partial { start, offset } = self.offload.checksum else {
            return;
        };
        if self.offload.segmentation.is_some() || self.offload.validate(0, self.len()).is_err() {
            return;
        }
        let (start, offset) = (usize::from(start), usize::from(offset));
        if offset != sctp::CHECKSUM || !self.complete_sctp(start) {
            self.complete_internet(start, offset);
        }
        self.offload.checksum = Checksum::Complete;
    }

    fn complete_internet(&mut self, start: usize, offset: usize) {
        let checksum = match InternetSum::of(&self.bytes()[start..]).checksum() {
            0 if offset == udp::CHECKSUM => 0xffff,
            checksum => checksum,
        };
        self.bytes_mut()[start + offset..][..2].copy_from_slice(&checksum.to_be_bytes());
    }

    /// False if this is no SCTP packet.
    fn complete_sctp(&mut self, start: usize) -> bool {
        let upper = IpLayout::find(self.bytes()).map(|layout| layout.upper);
        let Some(upper) = upper.filter(|upper| {
            upper.protocol == IpProto::SCTP && upper.at == start && upper.end >= start + sctp::LEN
        }) else {
            return false;
        };
        let packet = &mut self.bytes_mut()[start..upper.end];
        packet[sctp::CHECKSUM..sctp::LEN].fill(0);
        let checksum = crc32c(packet);
        packet[sctp::CHECKSUM..sctp::LEN].copy_from_slice(&checksum.to_le_bytes());
        true
    }

    /// Takes the checksum for unfinished where TCP's or UDP's field holds just the sum
    /// of the pseudo-header: what a host leaves there that has its device compute the
    /// checksum. For devices that hand such frames over without a word about it.
    ///
    /// A finished checksum may happen to be that number; finished again, it is the same.
    /// SCTP leaves nothing there to know it by.
    pub fn detect_partial_checksum(&mut self) {
        if self.offload.checksum == Checksum::Complete && !is_plainly_complete(self.bytes()) {
            self.detect_by_layout();
        }
    }

    /// The same, of any frame whose checksum is not known to be unfinished.
    fn detect_by_layout(&mut self) {
        let Some(layout) = IpLayout::find(self.bytes()) else {
            return;
        };
        let upper = layout.upper;
        let offset = match upper.protocol {
            IpProto::TCP => tcp::CHECKSUM,
            IpProto::UDP => udp::CHECKSUM,
            _ => return,
        };
        let Some(len) = upper.end.checked_sub(upper.at) else {
            return;
        };
        let pseudo = match &layout.network {
            Network::Ipv4(ip) if ip.fragment == Fragment::No => {
                InternetSum::pseudo_v4(ip.src, ip.dst, upper.protocol, len)
            }
            Network::Ipv6(ip) if ip.fragment == Fragment::No && !ip.routed => {
                InternetSum::pseudo_v6(ip.src, ip.dst, upper.protocol, len)
            }
            _ => return,
        };
        let at = upper.at + offset;
        let (Ok(start), Ok(offset)) = (u16::try_from(upper.at), u16::try_from(offset)) else {
            return;
        };
        if at + 2 <= upper.end && u16_at(self.bytes(), at) == pseudo.value() {
            self.offload.checksum = Checksum::Partial { start, offset };
        }
    }

    /// Frames that this one is on the wire: one, or as many as it will be cut into.
    #[must_use]
    #[inline]
    pub fn wire_frames(&self) -> u64 {
        match self.offload.segmentation {
            None => 1,
            Some(_) => self.segment_count(),
        }
    }

    /// As many as it will be cut into. Not in the way of those that are not.
    #[inline(never)]
    fn segment_count(&self) -> u64 {
        let headers = self.segment_headers();
        match (self.offload.segmentation, self.len().checked_sub(headers)) {
            (Some(how), Some(payload)) if how.size > 0 => {
                (payload.div_ceil(usize::from(how.size)) as u64).max(1)
            }
            _ => 1,
        }
    }

    /// Bytes of these frames, without preamble and frame check sequence.
    #[must_use]
    #[inline]
    pub fn wire_bytes(&self) -> u64 {
        let repeated = match self.offload.segmentation {
            None => 0,
            Some(_) => self.repeated_header_bytes(),
        };
        self.len() as u64 + repeated
    }

    /// Bytes that more than one of them will have.
    #[inline(never)]
    fn repeated_header_bytes(&self) -> u64 {
        (self.segment_count() - 1) * self.segment_headers() as u64
    }

    /// Bytes of headers that every segment will have: by the headers themselves
    /// where the metadata shows the way to them, else by the sender's hint.
    fn segment_headers(&self) -> usize {
        let Some(how) = self.offload.segmentation else {
            return 0;
        };
        let Checksum::Partial { start, offset } = self.offload.checksum else {
            return usize::from(how.header_len);
        };
        let start = usize::from(start);
        if usize::from(offset) == udp::CHECKSUM {
            start + udp::LEN
        } else {
            match self.bytes().get(start + 12..start + 14) {
                Some(flags) => start + usize::from(u16_at(flags, 0) >> 12) * 4,
                None => usize::from(how.header_len),
            }
        }
    }
}

/// Whether these are a TCP segment or UDP datagram right behind an IPv4 header without
/// options behind addresses without tags, as most are, and the checksum's field does not hold
/// the sum of the pseudo-header. What is false takes a closer look.
#[inline]
fn is_plainly_complete(bytes: &[u8]) -> bool {
    const TYPE: usize = 12;
    const IP: usize = 14;
    const UPPER: usize = IP + ipv4::LEN_MIN;
    let Some(headers) = bytes.first_chunk::<{ UPPER + tcp::LEN_MIN }>() else {
        return false;
    };
    if u16_at(headers, TYPE) != EtherType::IPV4.0 || headers[IP] != 0x45 {
        return false;
    }
    let protocol = IpProto(headers[IP + 9]);
    let field = match protocol {
        IpProto::TCP => UPPER + tcp::CHECKSUM,
        IpProto::UDP => UPPER + udp::CHECKSUM,
        _ => return false,
    };
    let total = usize::from(u16_at(headers, IP + 2));
    let len = match total.checked_sub(ipv4::LEN_MIN) {
        Some(len) if IP + total <= bytes.len() => len,
        _ => return false,
    };
    let addresses = InternetSum::of(&headers[IP + 12..UPPER]);
    u16_at(headers, field)
        != addresses
            .plus(InternetSum::pseudo_tail(protocol, len))
            .value()
}

#[cfg(test)]
mod tests;
