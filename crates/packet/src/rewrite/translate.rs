//! Address translation: the packet that an ICMP error quotes, sequence numbers, and the payload of
//! a control connection (RFC 3022, 4).
//!
//! ```text
//!  | IP | ICMP error | IP | ports ... |
//!                    '-- quoted packet: its addresses and ports, and the checksums over them --'
//! ```
//!
//! The quoted packet's own checksums are updated where they are quoted, so that its sender, which
//! sees its own addresses again, sees its own checksums too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::checksum_update::sum_delta;
use super::{Packet, RewriteError};
use crate::checksum::InternetSum;
use crate::headers::{Network, Transport};
use crate::wire::{IpProto, ipv4, ipv6, tcp, u16_at, udp};
use crate::{Checksum, NoBufferSpace};

/// Length of an ICMP error before the packet that it quotes.
const QUOTE_AT: usize = 8;

/// Offset of the checksum, and of the identifier, of an ICMP query (RFC 792; RFC 4443, 4.1).
const ICMP_CHECKSUM: usize = 2;
const ICMP_IDENTIFIER: usize = 4;

/// Both ends of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEnds {
    /// Source.
    pub src: IpAddr,
    /// Destination, of the same family.
    pub dst: IpAddr,
    /// Source and destination port of TCP, UDP or SCTP. For a query of ICMP, both are its
    /// identifier.
    pub ports: [u16; 2],
}

impl Packet<'_> {
    /// Writes the ends of the packet that this ICMP error quotes. Without a quoted packet of the
    /// family, nothing changes.
    pub fn set_quoted_ends(&mut self, ends: &PacketEnds) {
        let is_icmp = matches!(
            self.headers.transport,
            Transport::Icmpv4(_) | Transport::Icmpv6(_)
        );
        let Some(upper) = self.headers.upper.filter(|_| is_icmp) else {
            return;
        };
        let at = upper.at + QUOTE_AT;
        let Some(quote) = self.frame.bytes().get(at..upper.end) else {
            return;
        };
        let old = quote.to_vec();
        let mut new = old.clone();
        let is_written = match (ends.src, ends.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => write_v4(&mut new, src, dst, ends.ports),
            (IpAddr::V6(src), IpAddr::V6(dst)) => write_v6(&mut new, src, dst, ends.ports),
            _ => None,
        };
        if is_written.is_some() {
            self.frame.bytes_mut()[at..upper.end].copy_from_slice(&new);
            self.update_transport_checksum(at, &old, &new, false);
        }
    }

    /// Sets the identifier of a query of ICMP or ICMPv6.
    pub fn set_icmp_identifier(&mut self, identifier: u16) {
        let is_icmp = matches!(
            self.headers.transport,
            Transport::Icmpv4(_) | Transport::Icmpv6(_)
        );
        let upper = self.headers.upper.filter(|_| is_icmp);
        if upper.is_some_and(|upper| upper.at + ICMP_IDENTIFIER + 2 <= upper.end) {
            self.write_transport(ICMP_IDENTIFIER, identifier.to_be_bytes());
        }
    }

    /// Adds to the sequence and the acknowledgment number of TCP, and to the edges of its selective
    /// acknowledgments as to the latter.
    pub fn adjust_tcp_numbers(&mut self, sequence: i32, acknowledgment: i32) {
        if !matches!(self.headers.transport, Transport::Tcp(_)) {
            return;
        }
        for (offset, amount) in [
            (tcp::SEQUENCE, sequence),
            (tcp::ACKNOWLEDGMENT, acknowledgment),
        ] {
            let Some(at) = self.headers.transport_at().filter(|_| amount != 0) else {
                continue;
            };
            let bytes = self.frame.bytes();
            let Some(number) = bytes.get(at + offset..).and_then(<[u8]>::first_chunk) else {
                continue;
            };
            let number = u32::from_be_bytes(*number).wrapping_add_signed(amount);
            self.write_transport(offset, number.to_be_bytes());
        }
        self.adjust_tcp_sack(acknowledgment);
    }

    fn adjust_tcp_sack(&mut self, amount: i32) {
        let Some(upper) = self.headers.upper.filter(|_| amount != 0) else {
            return;
        };
        let segment = &self.frame.bytes()[upper.at..upper.end];
        for (offset, edge) in sack_edges(segment) {
            let edge = edge.wrapping_add_signed(amount);
            self.write_transport(offset, edge.to_be_bytes());
        }
    }

    /// Replaces bytes of the payload of TCP or UDP. A frame that awaits segmentation is left
    /// unchanged.
    ///
    /// # Errors
    /// The buffer has no space, the range is not in the payload, or the packet exceeds IP's length.
    pub fn replace_payload(
        &mut self,
        range: Range<usize>,
        text: &[u8],
    ) -> Result<(), RewriteError> {
        let (Some(upper), None) = (self.headers.upper, self.frame.offload.segmentation) else {
            return Ok(());
        };
        let header_len = match self.headers.transport {
            Transport::Tcp(_) => usize::from(self.frame.bytes()[upper.at + tcp::FLAGS] >> 4) * 4,
            Transport::Udp(_) => udp::LEN,
            _ => return Ok(()),
        };
        let payload_at = upper.at + header_len;
        let (begin, end) = (payload_at + range.start, payload_at + range.end);
        if begin > end || end > upper.end {
            return Err(NoBufferSpace.into());
        }
        let new_end = upper.end + text.len() - (end - begin);
        let more = u16::try_from(text.len().abs_diff(end - begin)).map_err(|_| NoBufferSpace)?;
        let lens = self.lens(upper.at, new_end).ok_or(NoBufferSpace)?;
        self.frame.complete_checksum();
        if text.len() > end - begin {
            self.frame.insert_zeros(begin, more)?;
        } else {
            self.frame.remove(begin, more);
        }
        self.write_lens(upper.at, lens);
        self.frame.bytes_mut()[begin..begin + text.len()].copy_from_slice(text);
        self.reparse()?;
        self.compute_transport_checksum();
        Ok(())
    }

    /// Returns the lengths of IP and UDP for a packet that ends at `end`, if they fit.
    fn lens(&self, upper_at: usize, end: usize) -> Option<[u16; 2]> {
        let before = match &self.headers.network {
            Network::Ipv4(_) => self.headers.network_at(),
            _ => self.headers.network_at() + ipv6::LEN,
        };
        let of_ip = u16::try_from(end - before).ok()?;
        Some([of_ip, u16::try_from(end - upper_at).ok()?])
    }

    fn write_lens(&mut self, upper_at: usize, [of_ip, of_udp]: [u16; 2]) {
        match &self.headers.network {
            Network::Ipv4(_) => self.write_ip_len(ipv4::TOTAL_LEN, of_ip),
            _ => self.write_ip_len(ipv6::PAYLOAD_LEN, of_ip),
        }
        if matches!(self.headers.transport, Transport::Udp(_)) {
            let field = &mut self.frame.bytes_mut()[upper_at + udp::LENGTH..][..2];
            field.copy_from_slice(&of_udp.to_be_bytes());
        }
    }

    /// Computes the checksum of TCP or UDP from all bytes. UDP without a checksum keeps none.
    fn compute_transport_checksum(&mut self) {
        let Some(upper) = self.headers.upper else {
            return;
        };
        let offset = match upper.protocol {
            IpProto::TCP => tcp::CHECKSUM,
            IpProto::UDP => udp::CHECKSUM,
            _ => return,
        };
        let len = upper.end - upper.at;
        let pseudo = match &self.headers.network {
            Network::Ipv4(ip) => InternetSum::pseudo_v4(ip.src, ip.dst, upper.protocol, len),
            Network::Ipv6(ip) => InternetSum::pseudo_v6(ip.src, ip.dst, upper.protocol, len),
            _ => return,
        };
        let bytes = &mut self.frame.bytes_mut()[upper.at..upper.end];
        let is_udp = upper.protocol == IpProto::UDP;
        if is_udp && u16_at(bytes, offset) == 0 {
            return;
        }
        bytes[offset..offset + 2].fill(0);
        let checksum = match pseudo.plus(InternetSum::of(bytes)).checksum() {
            0 if is_udp => 0xffff,
            checksum => checksum,
        };
        bytes[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
        self.frame.offload.checksum = Checksum::Complete;
    }
}

/// Returns the edges of the selective acknowledgments of a TCP segment, with their offsets (RFC
/// 2018, 3).
fn sack_edges(segment: &[u8]) -> Vec<(usize, u32)> {
    /// Kinds of options.
    const END: u8 = 0;
    const NOP: u8 = 1;
    const SACK: u8 = 5;
    let offset = segment.get(tcp::FLAGS).copied().unwrap_or(0);
    let options = segment
        .get(..usize::from(offset >> 4) * 4)
        .unwrap_or_default();
    let (mut edges, mut at) = (Vec::new(), tcp::LEN_MIN);
    while let Some([kind, rest @ ..]) = options.get(at..) {
        let len = match (*kind, rest.first()) {
            (END, _) | (_, None) => break,
            (NOP, _) => 1,
            (_, Some(len)) => usize::from(*len),
        };
        // An option has at least its kind and its length.
        let Some(option) = options.get(at..at + len).filter(|_| len > 0) else {
            break;
        };
        if *kind == SACK && len > 2 {
            let (blocks, _) = option[2..].as_chunks::<4>();
            let offsets = (at + 2..).step_by(4);
            edges.extend(offsets.zip(blocks.iter().map(|edge| u32::from_be_bytes(*edge))));
        }
        at += len;
    }
    edges
}

/// Writes the ends of a quoted IPv4 packet. `None` if it is none.
fn write_v4(quote: &mut [u8], src: Ipv4Addr, dst: Ipv4Addr, ports: [u16; 2]) -> Option<()> {
    let header: &mut [u8; ipv4::LEN_MIN] = quote.first_chunk_mut()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < ipv4::LEN_MIN {
        return None;
    }
    let protocol = IpProto(header[ipv4::PROTOCOL]);
    let is_later = u16_at(header, ipv4::FRAGMENT) & ipv4::OFFSET_MASK != 0;
    let change = write_addresses(&mut header[ipv4::SRC..], &src.octets(), &dst.octets());
    let checksum = InternetSum::from_checksum(u16_at(header, ipv4::CHECKSUM));
    let checksum = checksum.plus(change).checksum().to_be_bytes();
    header[ipv4::CHECKSUM..ipv4::CHECKSUM + 2].copy_from_slice(&checksum);
    if !is_later {
        write_ports(quote.get_mut(header_len..)?, protocol, ports, change);
    }
    Some(())
}

/// Writes the ends of a quoted IPv6 packet. `None` if it is none. The ports behind extension
/// headers stay: those of a connection that is tracked are quoted without.
fn write_v6(quote: &mut [u8], src: Ipv6Addr, dst: Ipv6Addr, ports: [u16; 2]) -> Option<()> {
    let header: &mut [u8; ipv6::LEN] = quote.first_chunk_mut()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let protocol = IpProto(header[ipv6::NEXT]);
    let change = write_addresses(&mut header[ipv6::SRC..], &src.octets(), &dst.octets());
    write_ports(quote.get_mut(ipv6::LEN..)?, protocol, ports, change);
    Some(())
}

/// Writes two addresses, one after the other. Returns the change of a sum over them.
fn write_addresses(bytes: &mut [u8], src: &[u8], dst: &[u8]) -> InternetSum {
    let (first, rest) = bytes.split_at_mut(src.len());
    let second = &mut rest[..dst.len()];
    let change = sum_delta(0, first, src).plus(sum_delta(0, second, dst));
    first.copy_from_slice(src);
    second.copy_from_slice(dst);
    change
}

/// Writes the ports of TCP, UDP or SCTP, or the identifier of ICMP, and updates an Internet
/// checksum if it is quoted. The CRC of SCTP covers bytes that are not quoted, and stays.
fn write_ports(bytes: &mut [u8], protocol: IpProto, ports: [u16; 2], addresses: InternetSum) {
    let [[a, b], [c, d]] = ports.map(u16::to_be_bytes);
    let both = [a, b, c, d];
    let (offset, new, checksum_at, pseudo) = match protocol {
        IpProto::TCP => (0, &both[..], Some(tcp::CHECKSUM), addresses),
        IpProto::UDP => (0, &both[..], Some(udp::CHECKSUM), addresses),
        IpProto::SCTP => (0, &both[..], None, addresses),
        IpProto::ICMPV4 => {
            let none = InternetSum::word(0);
            (ICMP_IDENTIFIER, &both[..2], Some(ICMP_CHECKSUM), none)
        }
        IpProto::ICMPV6 => (ICMP_IDENTIFIER, &both[..2], Some(ICMP_CHECKSUM), addresses),
        _ => return,
    };
    let Some(field) = bytes.get_mut(offset..offset + new.len()) else {
        return;
    };
    let change = sum_delta(0, field, new).plus(pseudo);
    field.copy_from_slice(new);
    let Some(at) = checksum_at else {
        return;
    };
    let Some(field) = bytes.get_mut(at..at + 2) else {
        return;
    };
    let value = u16_at(field, 0);
    let is_udp = protocol == IpProto::UDP;
    if is_udp && value == 0 {
        return;
    }
    let checksum = match InternetSum::from_checksum(value).plus(change).checksum() {
        0 if is_udp => 0xffff,
        checksum => checksum,
    };
    field.copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Stack;
    use crate::{Depth, Frame};

    fn frame(text: &str) -> Frame {
        text.parse::<Stack>().expect("a stack").build()
    }

    fn ends(src: [u8; 4], dst: [u8; 4], ports: [u16; 2]) -> PacketEnds {
        PacketEnds {
            src: Ipv4Addr::from(src).into(),
            dst: Ipv4Addr::from(dst).into(),
            ports,
        }
    }

    /// An error with a quoted packet in its payload, whose checksum is right.
    fn error(quoted: &Frame) -> Frame {
        let quote = &quoted.bytes()[14..14 + 28];
        let mut error = frame("eth / ipv4 / icmp(type=3,code=1) / data(28)");
        let at = error.len() - quote.len();
        error.bytes_mut()[at..].copy_from_slice(quote);
        let sum = InternetSum::of(&error.bytes()[34..36]);
        let sum = sum.plus(InternetSum::of(&error.bytes()[38..]));
        error.bytes_mut()[36..38].copy_from_slice(&sum.checksum().to_be_bytes());
        error
    }

    #[test]
    fn quoted_packet_has_the_checksums_of_its_new_ends() {
        for protocol in ["udp", "tcp"] {
            let before = format!("eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / {protocol}(src=5,dst=6)");
            let after =
                format!("eth / ipv4(src=192.0.2.1,dst=192.0.2.2) / {protocol}(src=7,dst=8)");
            let mut error_frame = error(&frame(&before));
            let mut packet =
                Packet::parse(&mut error_frame, Depth::Transport).expect("well formed");
            packet.set_quoted_ends(&ends([192, 0, 2, 1], [192, 0, 2, 2], [7, 8]));
            assert_eq!(error_frame, error(&frame(&after)), "{protocol}");
        }
    }

    #[test]
    fn identifier_of_a_query_is_written_with_the_checksum() {
        let query = |rest: u32| {
            let mut query = frame("eth / ipv4 / icmp(type=8) / data(20)");
            query.bytes_mut()[38..42].copy_from_slice(&rest.to_be_bytes());
            query.bytes_mut()[36..38].fill(0);
            let sum = InternetSum::of(&query.bytes()[34..]).checksum();
            query.bytes_mut()[36..38].copy_from_slice(&sum.to_be_bytes());
            query
        };
        let mut changed = query(0x0102_0304);
        let mut packet = Packet::parse(&mut changed, Depth::Transport).expect("well formed");
        packet.set_icmp_identifier(0x0506);
        assert_eq!(changed, query(0x0506_0304));
        let mut quoting = error(&query(0x0102_0304));
        let mut packet = Packet::parse(&mut quoting, Depth::Transport).expect("well formed");
        packet.set_quoted_ends(&ends([10, 0, 0, 1], [10, 0, 0, 2], [0x0506; 2]));
        let quote = &quoting.bytes()[42..];
        assert_eq!(quote[20..], query(0x0506_0304).bytes()[34..42]);
    }

    #[test]
    fn truncated_quote_is_left_unchanged() {
        let mut short = frame("eth / ipv4 / icmp(type=3,code=1) / data(19)");
        let before = short.clone();
        let mut packet = Packet::parse(&mut short, Depth::Transport).expect("well formed");
        packet.set_quoted_ends(&ends([192, 0, 2, 1], [192, 0, 2, 2], [7, 8]));
        assert_eq!(short, before);
    }

    #[test]
    fn payload_of_another_length_replaces_bytes() {
        for protocol in ["tcp", "udp"] {
            for (text, len) in [("abcdef", 14), ("ab", 10), ("abcd", 12)] {
                let mut changed = frame(&format!("eth / ipv4 / {protocol} / data(12)"));
                let headers = changed.len() - 12;
                let mut packet =
                    Packet::parse(&mut changed, Depth::Transport).expect("well formed");
                packet
                    .replace_payload(4..8, text.as_bytes())
                    .expect("the buffer has space");
                assert_eq!(changed.len(), headers + len);
                let mut expected = frame(&format!("eth / ipv4 / {protocol} / data({len})"));
                let payload: Vec<u8> = changed.bytes()[headers..].to_vec();
                assert_eq!(&payload[4..4 + text.len()], text.as_bytes());
                // The same bytes in a packet that is built from scratch.
                expected.bytes_mut()[headers..].copy_from_slice(&payload);
                let mut packet =
                    Packet::parse(&mut expected, Depth::Transport).expect("well formed");
                packet.compute_transport_checksum();
                assert_eq!(changed, expected, "{protocol} {text}");
            }
        }
    }

    #[test]
    fn selective_acknowledgments_are_found_between_other_options() {
        let mut segment = [0; 36];
        segment[tcp::FLAGS] = 9 << 4;
        segment[20..24].copy_from_slice(&[1, 1, 5, 10]);
        segment[24..28].copy_from_slice(&7_u32.to_be_bytes());
        segment[28..32].copy_from_slice(&9_u32.to_be_bytes());
        assert_eq!(sack_edges(&segment), [(24, 7), (28, 9)]);
        // An option that ends after the header has no edges.
        segment[23] = 200;
        assert!(sack_edges(&segment).is_empty());
        assert!(sack_edges(&segment[..5]).is_empty());
    }

    #[test]
    fn tcp_numbers_are_adjusted_with_the_checksum() {
        let mut adjusted = frame("eth / ipv4 / tcp / data(3)");
        let before = adjusted.clone();
        let mut packet = Packet::parse(&mut adjusted, Depth::Transport).expect("well formed");
        packet.adjust_tcp_numbers(5, -3);
        let at = 14 + 20;
        let number = |frame: &Frame, offset: usize| {
            let bytes = frame.bytes()[at + offset..]
                .first_chunk()
                .expect("a header");
            u32::from_be_bytes(*bytes)
        };
        for (offset, amount) in [(tcp::SEQUENCE, 5), (tcp::ACKNOWLEDGMENT, -3)] {
            let expected = number(&before, offset).wrapping_add_signed(amount);
            assert_eq!(number(&adjusted, offset), expected);
        }
        let mut computed = adjusted.clone();
        let mut packet = Packet::parse(&mut computed, Depth::Transport).expect("well formed");
        packet.compute_transport_checksum();
        assert_eq!(computed, adjusted);
    }
}
