//! UDP frames with all their headers named: what an experiment sends, and what it expects to
//! come out. Their bytes are the instrument's.

use std::net::Ipv4Addr;

use trafficgen::Template;
use trafficgen::template::{Encapsulation, NUMBER, NumberedFrame, Party};
pub(crate) use trafficgen::template::{FCS, Tag};

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
        let rest = usize::from(frame_bytes).saturating_sub(self.headers() + usize::from(FCS));
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

    /// Frames of it, each with a number of its own.
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

    /// The frame without its FCS, with this number at its end.
    pub(crate) fn bytes(&self, number: u32) -> Vec<u8> {
        self.numbered().with(number).to_vec()
    }
}

/// The number at the end of a frame. Short ones are padded behind it by some devices, so it
/// is looked for where the frame's own length says.
pub(crate) fn number(frame: &[u8], length: usize) -> Option<u32> {
    let bytes = frame.get(length.checked_sub(NUMBER)?..length)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use trafficgen::checksum::{fold, pseudo, sum};

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
