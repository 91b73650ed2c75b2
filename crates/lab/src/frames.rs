//! UDP frames with all their headers named, and their checksums right: what an experiment
//! sends, and what it expects to come out.
//!
//! Made here from nothing, and not by the switch's own means: what one rewrites and the other
//! would check by the same code proves little.

use std::net::Ipv4Addr;

use crate::instrument::checksum::{checksum, pseudo, sum};

/// Bytes of the checksum at the end of a frame (FCS), which the interface adds.
pub(crate) const FCS: usize = 4;
/// Bytes at the end of a frame that number it.
pub(crate) const NUMBER: usize = 4;

/// An 802.1Q tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The VLAN, of 12 bits.
    pub(crate) vid: u16,
    /// The priority, of 3 bits.
    pub(crate) pcp: u8,
}

/// A UDP/IPv4 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UdpFrame {
    /// The Ethernet source.
    pub(crate) eth_src: [u8; 6],
    /// The Ethernet destination.
    pub(crate) eth_dst: [u8; 6],
    /// The tag, if there is one.
    pub(crate) tag: Option<Tag>,
    /// The IPv4 source.
    pub(crate) ip_src: Ipv4Addr,
    /// The IPv4 destination.
    pub(crate) ip_dst: Ipv4Addr,
    /// The six upper bits of the ToS byte.
    pub(crate) dscp: u8,
    /// The UDP source port.
    pub(crate) udp_src: u16,
    /// The UDP destination port.
    pub(crate) udp_dst: u16,
    /// Bytes behind the UDP header, [`NUMBER`] at least; the last are the frame's number.
    pub(crate) payload: usize,
}

impl UdpFrame {
    /// Bytes of all headers.
    pub(crate) const fn headers(&self) -> usize {
        let tag = if self.tag.is_some() { 4 } else { 0 };
        14 + tag + 20 + 8
    }

    /// The same with so many bytes behind the UDP header that the frame has `frame_bytes` with
    /// its checksum (FCS), or the fewest that can be.
    #[must_use]
    pub(crate) fn sized(mut self, frame_bytes: u16) -> Self {
        let rest = usize::from(frame_bytes).saturating_sub(self.headers() + FCS);
        self.payload = rest.max(NUMBER);
        self
    }

    /// The frame that goes the other way.
    #[must_use]
    pub(crate) const fn reversed(mut self) -> Self {
        (self.eth_src, self.eth_dst) = (self.eth_dst, self.eth_src);
        (self.ip_src, self.ip_dst) = (self.ip_dst, self.ip_src);
        (self.udp_src, self.udp_dst) = (self.udp_dst, self.udp_src);
        self
    }

    /// The frame without its FCS, with this number at its end.
    pub(crate) fn bytes(&self, number: u32) -> Vec<u8> {
        let mut frame = Vec::with_capacity(self.headers() + self.payload);
        frame.extend(self.eth_dst);
        frame.extend(self.eth_src);
        if let Some(tag) = self.tag {
            frame.extend([0x81, 0x00]);
            frame.extend((u16::from(tag.pcp) << 13 | tag.vid).to_be_bytes());
        }
        frame.extend([0x08, 0x00]);
        let ip = self.ip_header();
        frame.extend(ip);
        let udp = frame.len();
        let length = short(8 + self.payload);
        frame.extend(self.udp_src.to_be_bytes());
        frame.extend(self.udp_dst.to_be_bytes());
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0]);
        // What no switch could guess, so that a changed byte shows.
        let filling = (0..self.payload - NUMBER).map(|place| place.to_le_bytes()[0] ^ 0x5a);
        frame.extend(filling);
        frame.extend(number.to_be_bytes());
        // RFC 768: the addresses, the protocol and the length count too.
        let pseudo = pseudo(&ip[12..20], 17, length.into());
        let checksum = match checksum(pseudo + sum(&frame[udp..])) {
            0 => 0xffff,
            checksum => checksum,
        };
        frame[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    fn ip_header(&self) -> [u8; 20] {
        let mut ip = [0; 20];
        ip[..2].copy_from_slice(&[0x45, self.dscp << 2]);
        ip[2..4].copy_from_slice(&short(20 + 8 + self.payload).to_be_bytes());
        ip[6..10].copy_from_slice(&[0x40, 0, 64, 17]); // don't fragment; TTL 64; UDP
        ip[12..16].copy_from_slice(&self.ip_src.octets());
        ip[16..].copy_from_slice(&self.ip_dst.octets());
        let checksum = checksum(sum(&ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip
    }
}

/// The number at the end of a frame. Short ones are padded behind it by some devices, so it
/// is looked for where the frame's own length says.
pub(crate) fn number(frame: &[u8], length: usize) -> Option<u32> {
    let bytes = frame.get(length.checked_sub(NUMBER)?..length)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn short(length: usize) -> u16 {
    u16::try_from(length).expect("a frame is short")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::instrument::checksum::fold;

    /// Some frame, the shortest that there can be.
    pub(crate) fn frame() -> UdpFrame {
        UdpFrame {
            eth_src: [2, 0, 0, 0, 0, 1],
            eth_dst: [2, 0, 0, 0, 0, 2],
            tag: None,
            ip_src: Ipv4Addr::new(10, 0, 0, 1),
            ip_dst: Ipv4Addr::new(10, 0, 0, 2),
            dscp: 10,
            udp_src: 7,
            udp_dst: 9,
            payload: NUMBER,
        }
    }

    #[test]
    fn sizes_count_the_checksum_and_the_tag() {
        let tagged = UdpFrame {
            tag: Some(Tag { vid: 5, pcp: 3 }),
            ..frame()
        };
        for size in [64_u16, 65, 128, 1518] {
            assert_eq!(frame().sized(size).bytes(1).len(), usize::from(size) - FCS);
            assert_eq!(tagged.sized(size).bytes(1).len(), usize::from(size) - FCS);
        }
        assert_eq!(tagged.bytes(0)[12..16], [0x81, 0x00, 0x60, 5]);
    }

    #[test]
    fn whoever_sums_them_up_finds_both_checksums_right() {
        for size in [64, 65, 200] {
            let bytes = frame().sized(size).bytes(0xdead_beef);
            assert_eq!(fold(sum(&bytes[14..34])), 0xffff);
            let udp = &bytes[34..];
            let pseudo = pseudo(&bytes[26..34], 17, udp.len());
            assert_eq!(fold(pseudo + sum(udp)), 0xffff);
            assert_eq!(number(&bytes, bytes.len()), Some(0xdead_beef));
        }
    }

    #[test]
    fn what_goes_back_goes_back() {
        let back = frame().reversed();
        assert_eq!(back.eth_dst, frame().eth_src);
        assert_eq!(back.reversed(), frame());
        assert_eq!(number(&[1, 2, 3], 3), None);
    }
}
