//! Header parsing of received frames, as far as a tester needs it: the position of the IP packet,
//! and the verification of all checksums, including those of packets in tunnels.
//!
//! The parser returns a result for any input, and every loop is bounded.

use super::checksum::{fold, pseudo, sum};

/// The most tags, labels and Ethernet headers before an IP packet.
const HEADERS_MAX: usize = 16;
/// The most nested tunnels.
const TUNNELS_MAX: usize = 4;

/// UDP ports of tunnels (RFC 7348, RFC 8926).
pub(super) const VXLAN: u16 = 4789;
pub(super) const GENEVE: u16 = 6081;
/// Ethernet in GRE (RFC 1701's "transparent Ethernet bridging"), and in GENEVE.
pub(super) const ETHERNET_INSIDE: u16 = 0x6558;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const QINQ: u16 = 0x88a8;
const OLD_QINQ: u16 = 0x9100;
const BACKBONE: u16 = 0x88e7;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const GRE: u8 = 47;
const ICMPV6: u8 = 58;

/// The extent of an IP packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpExtent {
    /// The offset of its first byte.
    pub(super) start: usize,
    /// The offset after its last byte. Padding may follow, or the frame may be truncated before it.
    pub(super) end: usize,
}

/// The outermost IP packet, after VLAN tags (IEEE 802.1Q, 802.1ad), MPLS labels (RFC 3032) and a
/// provider backbone header (IEEE 802.1ah).
pub(super) fn outermost_ip(frame: &[u8]) -> Option<IpExtent> {
    let mut at = 12;
    let mut kind = word(frame, at)?;
    at += 2;
    for _ in 0..HEADERS_MAX {
        match kind {
            VLAN | QINQ | OLD_QINQ => {
                kind = word(frame, at + 2)?;
                at += 4;
            }
            MPLS | MPLS_MULTICAST => {
                let is_last = frame.get(at + 2)? & 1 == 1;
                at += 4;
                if is_last {
                    // MPLS does not name its payload; the version nibble of the IP header does.
                    kind = match frame.get(at)? >> 4 {
                        4 => IPV4,
                        6 => IPV6,
                        _ => return None,
                    };
                }
            }
            BACKBONE => {
                kind = word(frame, at + 4 + 12)?;
                at += 4 + 14;
            }
            IPV4 | IPV6 => return ip_extent(frame, at),
            _ => return None,
        }
    }
    None
}

/// The extent of the IP packet that begins at `start`.
fn ip_extent(frame: &[u8], start: usize) -> Option<IpExtent> {
    let length = match frame.get(start)? >> 4 {
        4 => usize::from(word(frame, start + 2)?),
        6 => 40 + usize::from(word(frame, start + 4)?),
        _ => return None,
    };
    Some(IpExtent {
        start,
        end: start + length,
    })
}

/// Returns true if all checksums are correct: IPv4 headers, UDP, TCP and ICMP, also in tunnels. A
/// UDP checksum of zero is allowed over IPv4 (RFC 768), and over IPv6 only for tunnels (RFC 6935).
pub(super) fn checksums_hold(frame: &[u8]) -> bool {
    hold(frame, TUNNELS_MAX).unwrap_or(false)
}

/// Verifies the checksums; `None` if headers are inconsistent or truncated.
fn hold(frame: &[u8], depth: usize) -> Option<bool> {
    let Some(place) = outermost_ip(frame) else {
        return Some(true);
    };
    let packet = frame.get(place.start..place.end)?;
    let (protocol, payload, addresses) = match packet.first()? >> 4 {
        4 => {
            let length = usize::from(packet[0] & 15) * 4;
            let header = packet.get(..length).filter(|header| header.len() >= 20)?;
            if fold(sum(header)) != 0xffff {
                return Some(false);
            }
            // A fragment does not carry a verifiable transport checksum (RFC 791).
            if word(packet, 6)? & 0x3fff != 0 {
                return Some(true);
            }
            (header[9], &packet[length..], &header[12..20])
        }
        _ => (*packet.get(6)?, packet.get(40..)?, &packet[8..40]),
    };
    let pseudo = || pseudo(addresses, protocol, payload.len());
    match protocol {
        UDP => {
            let is_tunnel = [Some(VXLAN), Some(GENEVE)].contains(&word(payload, 2));
            let is_none = word(payload, 6)? == 0;
            let may_be_none = addresses.len() == 8 || is_tunnel;
            if is_none && !may_be_none {
                return Some(false);
            }
            if !is_none && fold(pseudo() + sum(payload)) != 0xffff {
                return Some(false);
            }
            inside(payload, depth)
        }
        TCP | ICMPV6 => Some(fold(pseudo() + sum(payload)) == 0xffff),
        ICMP => Some(fold(sum(payload)) == 0xffff),
        GRE => hold(
            payload.get(ethernet_in_gre(payload)?..)?,
            depth.checked_sub(1)?,
        ),
        _ => Some(true),
    }
}

/// Verifies the frame inside a UDP tunnel, if the datagram is one.
fn inside(datagram: &[u8], depth: usize) -> Option<bool> {
    let start = match word(datagram, 2)? {
        VXLAN => 8 + 8,
        GENEVE if word(datagram, 10)? == ETHERNET_INSIDE => {
            8 + 8 + usize::from(datagram[8] & 0x3f) * 4
        }
        _ => return Some(true),
    };
    hold(datagram.get(start..)?, depth.checked_sub(1)?)
}

/// A packet with space for a signature at the end of its payload.
pub(super) struct SignatureSpace {
    pub(super) transport: usize,
    pub(super) end: usize,
    /// The offset of the checksum, its presence, and whether it must not be zero.
    pub(super) checksum: usize,
    pub(super) has_checksum: bool,
    pub(super) never_zero: bool,
    /// The sum of the pseudo-header.
    pub(super) pseudo: u64,
}

/// Finds the space for a signature in a frame from a capture file.
pub(super) fn signature_space(frame: &[u8]) -> Option<SignatureSpace> {
    let IpExtent { start, end } = outermost_ip(frame)?;
    let packet = frame.get(start..end)?;
    let (protocol, header, addresses) = match packet.first()? >> 4 {
        4 => {
            let length = usize::from(packet[0] & 15) * 4;
            if word(packet, 6)? & 0x3fff != 0 || length < 20 {
                return None;
            }
            (packet[9], length, packet.get(12..20)?)
        }
        _ => (*packet.get(6)?, 40, packet.get(8..40)?),
    };
    let payload = packet.get(header..)?;
    let (length, checksum) = match protocol {
        UDP if [VXLAN, GENEVE].contains(&word(payload, 2)?) => return None,
        UDP => (8, 6),
        TCP => (usize::from(payload.get(12)? >> 4) * 4, 16),
        ICMP => (8, 2),
        _ => return None,
    };
    let is_long = payload.len() >= length.max(checksum + 2) + super::Signature::LEN;
    let has_checksum = protocol != UDP || word(payload, checksum)? != 0;
    is_long.then(|| SignatureSpace {
        transport: start + header,
        end,
        checksum: start + header + checksum,
        has_checksum,
        never_zero: protocol == UDP,
        pseudo: match protocol {
            ICMP => 0,
            _ => pseudo(addresses, protocol, payload.len()),
        },
    })
}

/// The offset of the Ethernet frame in a GRE packet (RFC 2784, RFC 2890), or the packet's length if
/// it carries none.
fn ethernet_in_gre(packet: &[u8]) -> Option<usize> {
    if word(packet, 2)? != ETHERNET_INSIDE {
        return Some(packet.len());
    }
    let optional = (packet[0] >> 4 & 0b1011).count_ones() as usize;
    Some(4 + 4 * optional)
}

/// The 16-bit word at `at`.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}
