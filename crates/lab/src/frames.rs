//! UDP frames with named header fields, as an experiment sends them and expects them at the
//! receiver. [`trafficgen`] encodes them.

use std::net::Ipv4Addr;

use trafficgen::Template;
use trafficgen::template::{Encapsulation, NUMBER, NumberedFrame, Party};
pub(crate) use trafficgen::template::{FCS, Tag};

/// UDP/IPv4 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UdpFrame {
    /// Ethernet source address.
    pub(crate) eth_src: [u8; 6],
    /// Ethernet destination address.
    pub(crate) eth_dst: [u8; 6],
    /// VLAN tag.
    pub(crate) tag: Option<Tag>,
    /// IPv4 source address.
    pub(crate) ip_src: Ipv4Addr,
    /// IPv4 destination address.
    pub(crate) ip_dst: Ipv4Addr,
    /// DSCP: the six upper bits of the ToS byte.
    pub(crate) dscp: u8,
    /// UDP source port.
    pub(crate) udp_src: u16,
    /// UDP destination port.
    pub(crate) udp_dst: u16,
    /// Bytes after the UDP header, [`NUMBER`] at least; the last ones are the frame's number.
    pub(crate) payload: usize,
}

impl UdpFrame {
    /// Returns the bytes of all headers.
    pub(crate) const fn headers(&self) -> usize {
        let tag = if self.tag.is_some() { 4 } else { 0 };
        14 + tag + 20 + 8
    }

    /// Returns the frame with a payload that makes it `frame_bytes` long with its checksum (FCS),
    /// or as short as possible.
    #[must_use]
    pub(crate) fn sized(mut self, frame_bytes: u16) -> Self {
        let rest = usize::from(frame_bytes).saturating_sub(self.headers() + usize::from(FCS));
        self.payload = rest.max(NUMBER);
        self
    }

    /// Returns the frame of the opposite direction.
    #[must_use]
    pub(crate) const fn reversed(mut self) -> Self {
        (self.eth_src, self.eth_dst) = (self.eth_dst, self.eth_src);
        (self.ip_src, self.ip_dst) = (self.ip_dst, self.ip_src);
        (self.udp_src, self.udp_dst) = (self.udp_dst, self.udp_src);
        self
    }

    /// Returns frames that differ in their numbers.
    pub(crate) fn numbered(&self) -> NumberedFrame {
        let party = |mac, ipv4, port| Party {
            mac,
            ipv4,
            port,
            ..Party::numbered(0)
        };
        let bytes = self.headers() + self.payload + usize::from(FCS);
        let frame_bytes = u16::try_from(bytes).expect("a frame is short");
        NumberedFrame::new(&Template {
            encapsulation: self.tag.map_or(Encapsulation::Plain, Encapsulation::Vlan),
            source: party(self.eth_src, self.ip_src, self.udp_src),
            destination: party(self.eth_dst, self.ip_dst, self.udp_dst),
            dscp: self.dscp,
            ..Template::udp(frame_bytes)
        })
    }

    /// Returns the frame without its FCS, with this number at its end.
    pub(crate) fn bytes(&self, number: u32) -> Vec<u8> {
        self.numbered().with(number).to_vec()
    }
}

/// Returns the number at the end of a frame of this length. Some devices pad short frames, so the
/// number may precede the end of a received frame.
pub(crate) fn number(frame: &[u8], length: usize) -> Option<u32> {
    let bytes = frame.get(length.checked_sub(NUMBER)?..length)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use trafficgen::checksum::{fold, pseudo, sum};

    /// Returns a frame of the least size.
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
            assert_eq!(frame().sized(size).bytes(1).len(), usize::from(size - FCS));
            assert_eq!(tagged.sized(size).bytes(1).len(), usize::from(size - FCS));
        }
        assert_eq!(tagged.bytes(0)[12..16], [0x81, 0x00, 0x60, 5]);
    }

    #[test]
    fn checksums_of_ipv4_and_udp_are_valid() {
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
    fn reversed_frame_swaps_its_addresses() {
        let back = frame().reversed();
        assert_eq!(back.eth_dst, frame().eth_src);
        assert_eq!(back.reversed(), frame());
        assert_eq!(number(&[1, 2, 3], 3), None);
    }
}
