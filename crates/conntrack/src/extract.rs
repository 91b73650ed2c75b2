//! Facts of a packet from its bytes: IP header, transport header, and the packet that an ICMP error
//! quotes.
//!
//! ```text
//!  | IP | TCP, UDP, SCTP, ICMP query | ...           key of the packet
//!  | IP | ICMP error | IP | 8 bytes or more |        key of the quoted packet, reversed
//!                    '--- quoted packet ----'
//! ```
//!
//! An error quotes a packet that its receiver sent, so the quoted source must be the receiver. The
//! reversed quoted key has the direction of the error. Lengths are checked as Open vSwitch does; a
//! fragment, a port of zero and an ICMP message that belongs to no connection have no facts.
//! Checksums of quoted packets are not verified: routers quote them after changes.

use packet::wire::Fragment;
use packet::wire::ipv4::Ipv4;
use packet::wire::ipv6::Ipv6;
use packet::wire::tcp;

use crate::facts::{PacketFacts, PacketTuple, SctpChunks, TcpFacts, TransportFacts};
use crate::key::{AddressFamily, CtAddress, Endpoint, KeyProtocol};
use crate::protocol::opposite_message;

/// Length of the UDP header.
const UDP_LEN: usize = 8;
/// Length of the ICMP header before a quoted packet.
const ICMP_LEN: usize = 8;
/// Length of the SCTP common header.
const SCTP_LEN: usize = 12;
/// Bytes of a quoted transport header that hold both ports and TCP's sequence number (RFC 792).
const QUOTE_MIN: usize = 8;
/// Errors of ICMP: unreachable, source quench, redirect, time exceeded, parameter problem.
const ERRORS_V4: [u8; 5] = [3, 4, 5, 11, 12];
/// Errors of ICMPv6: unreachable, packet too big, time exceeded, parameter problem.
const ERRORS_V6: [u8; 4] = [1, 2, 3, 4];
/// Options of TCP (RFC 9293, 3.1; RFC 7323, 2.2).
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_WINDOW_SCALE: u8 = 3;
const WINDOW_SCALE_MAX: u8 = 14;

/// Verification of checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumCheck {
    /// The packet's checksums must be right.
    #[default]
    Verify,
    /// The device has verified them, or the sender leaves them to a device.
    Skip,
}

/// Reason for which a packet cannot be tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtractError {
    /// The IP header is malformed.
    Network,
    /// A fragment.
    Fragment,
    /// The transport header is truncated, or its lengths do not fit the packet.
    Transport,
    /// A checksum is wrong.
    Checksum,
    /// A port is zero.
    PortZero,
    /// An ICMP message that belongs to no connection.
    IcmpType,
    /// An ICMP error quotes a packet that is truncated, or that its receiver did not send.
    Quote,
}

/// Facts of a packet and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtractedPacket<'a> {
    /// The facts.
    pub facts: PacketFacts,
    /// Payload of TCP or UDP; empty for other protocols.
    pub payload: &'a [u8],
}

/// IP header.
#[derive(Clone, Copy)]
struct NetworkFacts {
    src: CtAddress,
    dst: CtAddress,
    protocol: KeyProtocol,
    family: AddressFamily,
    fragment: Fragment,
    header_len: usize,
    total_len: usize,
}

/// Extracts the facts of a packet. `bytes` begin with the IP header and may end with padding.
///
/// # Errors
/// The packet cannot be tracked.
pub fn extract(
    bytes: &[u8],
    family: AddressFamily,
    check: ChecksumCheck,
) -> Result<ExtractedPacket<'_>, ExtractError> {
    let network = read_network(bytes, family)?;
    let upper = bytes
        .get(network.header_len..network.total_len)
        .ok_or(ExtractError::Network)?;
    if check == ChecksumCheck::Verify {
        if family == AddressFamily::V4 && sum(&bytes[..network.header_len], 0) != 0xffff {
            return Err(ExtractError::Checksum);
        }
        verify_transport(&network, upper)?;
    }
    let payload = match network.protocol {
        KeyProtocol::TCP => upper.get(tcp_header_len(upper)?..).unwrap_or(&[]),
        KeyProtocol::UDP => upper.get(UDP_LEN..udp_len(upper)?).unwrap_or(&[]),
        _ => &[],
    };
    let facts = if is_icmp_error(&network, upper) {
        read_error(&network, upper)?
    } else {
        read_transport(&network, upper)?
    };
    Ok(ExtractedPacket { facts, payload })
}

fn read_network(bytes: &[u8], family: AddressFamily) -> Result<NetworkFacts, ExtractError> {
    let network = match family {
        AddressFamily::V4 => {
            let ip = Ipv4::parse(bytes).map_err(|_| ExtractError::Network)?;
            NetworkFacts {
                src: ip.src.into(),
                dst: ip.dst.into(),
                protocol: ip.protocol.into(),
                family,
                fragment: ip.fragment,
                header_len: usize::from(ip.header_len),
                total_len: usize::from(ip.total_len),
            }
        }
        AddressFamily::V6 => {
            let ip = Ipv6::parse(bytes).map_err(|_| ExtractError::Network)?;
            NetworkFacts {
                src: ip.src.into(),
                dst: ip.dst.into(),
                protocol: ip.protocol.into(),
                family,
                fragment: ip.fragment,
                header_len: usize::from(ip.header_len),
                total_len: ip.total_len,
            }
        }
    };
    if network.fragment == Fragment::No {
        Ok(network)
    } else {
        Err(ExtractError::Fragment)
    }
}

fn read_transport(network: &NetworkFacts, upper: &[u8]) -> Result<PacketFacts, ExtractError> {
    let transport = match network.protocol {
        KeyProtocol::TCP => TransportFacts::Tcp(read_tcp(upper)?),
        KeyProtocol::SCTP => TransportFacts::Sctp(read_sctp(upper)?),
        _ if is_icmp(network) => TransportFacts::Icmp,
        _ => TransportFacts::Other,
    };
    let tuple = read_tuple(network, upper)?;
    Ok(PacketFacts { tuple, transport })
}

/// Reads the endpoints. `upper` may be the beginning of a quoted transport header.
fn read_tuple(network: &NetworkFacts, upper: &[u8]) -> Result<PacketTuple, ExtractError> {
    let (src, dst) = match network.protocol {
        KeyProtocol::TCP | KeyProtocol::UDP | KeyProtocol::SCTP => {
            let src = u16_at(upper, 0).ok_or(ExtractError::Transport)?;
            let dst = u16_at(upper, 2).ok_or(ExtractError::Transport)?;
            if src == 0 || dst == 0 {
                return Err(ExtractError::PortZero);
            }
            ((src, 0), (dst, 0))
        }
        _ if is_icmp(network) => {
            let [kind, code, ..] = *upper else {
                return Err(ExtractError::Transport);
            };
            let id = u16_at(upper, 4).ok_or(ExtractError::Transport)?;
            let opposite = opposite_message(network.family, kind);
            let opposite = opposite
                .filter(|_| code == 0)
                .ok_or(ExtractError::IcmpType)?;
            ((id, kind), (id, opposite))
        }
        _ => ((0, 0), (0, 0)),
    };
    let endpoint = |address, (port, message_type)| Endpoint {
        address,
        port,
        message_type,
    };
    Ok(PacketTuple {
        src: endpoint(network.src, src),
        dst: endpoint(network.dst, dst),
        protocol: network.protocol,
        family: network.family,
    })
}

fn read_error(network: &NetworkFacts, upper: &[u8]) -> Result<PacketFacts, ExtractError> {
    let quoted = upper.get(ICMP_LEN..).ok_or(ExtractError::Transport)?;
    let inner = read_quoted_network(quoted, network.family)?;
    if inner.src != network.dst {
        return Err(ExtractError::Quote);
    }
    let rest = quoted.get(inner.header_len..).unwrap_or(&[]);
    if rest.len() < QUOTE_MIN || is_icmp_error(&inner, rest) {
        return Err(ExtractError::Quote);
    }
    let tuple = read_tuple(&inner, rest)?;
    Ok(PacketFacts {
        tuple: PacketTuple {
            src: tuple.dst,
            dst: tuple.src,
            ..tuple
        },
        transport: TransportFacts::IcmpError,
    })
}

/// Reads a quoted IP header. The packet behind it is truncated, so its length does not fit, and the
/// parsers of complete packets refuse it: it is parsed with the length that it has here.
fn read_quoted_network(quoted: &[u8], family: AddressFamily) -> Result<NetworkFacts, ExtractError> {
    const HEADER_MAX: usize = 128;
    let mut copy = [0; HEADER_MAX];
    let len = quoted.len().min(HEADER_MAX);
    let header = &mut copy[..len];
    header.copy_from_slice(&quoted[..len]);
    let (at, len) = match family {
        AddressFamily::V4 => (2, len),
        AddressFamily::V6 => (4, len.saturating_sub(40)),
    };
    let length = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    header
        .get_mut(at..at + 2)
        .ok_or(ExtractError::Quote)?
        .copy_from_slice(&length);
    read_network(header, family).map_err(|_| ExtractError::Quote)
}

pub(crate) fn read_tcp(upper: &[u8]) -> Result<TcpFacts, ExtractError> {
    let header_len = tcp_header_len(upper)?;
    let read = |at: usize| u16_at(upper, at).ok_or(ExtractError::Transport);
    let read_long = |at: usize| -> Result<u32, ExtractError> {
        Ok(u32::from(read(at)?) << 16 | u32::from(read(at + 2)?))
    };
    Ok(TcpFacts {
        flags: read(tcp::FLAGS)? & 0x0fff,
        sequence: read_long(tcp::SEQUENCE)?,
        acknowledgment: read_long(tcp::ACKNOWLEDGMENT)?,
        window: read(tcp::WINDOW)?,
        window_scale: window_scale(&upper[tcp::LEN_MIN..header_len]),
        payload_len: u32::try_from(upper.len() - header_len).unwrap_or(u32::MAX),
    })
}

fn tcp_header_len(upper: &[u8]) -> Result<usize, ExtractError> {
    let offset = upper.get(tcp::FLAGS).ok_or(ExtractError::Transport)?;
    let len = usize::from(offset >> 4) * 4;
    if len < tcp::LEN_MIN || len > upper.len() {
        return Err(ExtractError::Transport);
    }
    Ok(len)
}

/// Returns the length in the UDP header, which may be below that of the IP packet.
fn udp_len(upper: &[u8]) -> Result<usize, ExtractError> {
    let len = usize::from(u16_at(upper, 4).ok_or(ExtractError::Transport)?);
    if len < UDP_LEN || len > upper.len() {
        return Err(ExtractError::Transport);
    }
    Ok(len)
}

/// Returns the shift of the window scale option.
fn window_scale(options: &[u8]) -> Option<u8> {
    let mut rest = options;
    loop {
        rest = match rest {
            [OPTION_NOP, tail @ ..] => tail,
            [OPTION_WINDOW_SCALE, 3, shift, ..] => return Some((*shift).min(WINDOW_SCALE_MAX)),
            [OPTION_END, ..] | [] | [_] => return None,
            [_, len, ..] => rest.get(usize::from(*len).max(2)..)?,
        };
    }
}

/// Returns the chunk types of a packet.
fn read_sctp(upper: &[u8]) -> Result<SctpChunks, ExtractError> {
    let mut rest = upper.get(SCTP_LEN..).ok_or(ExtractError::Transport)?;
    let mut chunks = 0;
    while let [kind, _, high, low, ..] = *rest {
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len < 4 || len > rest.len() {
            return Err(ExtractError::Transport);
        }
        if kind < 16 {
            chunks |= 1_u16 << kind;
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(SctpChunks(chunks))
}

const fn is_icmp(network: &NetworkFacts) -> bool {
    matches!(
        (network.family, network.protocol),
        (AddressFamily::V4, KeyProtocol::ICMPV4) | (AddressFamily::V6, KeyProtocol::ICMPV6)
    )
}

fn is_icmp_error(network: &NetworkFacts, upper: &[u8]) -> bool {
    let errors: &[u8] = match network.family {
        AddressFamily::V4 => &ERRORS_V4,
        AddressFamily::V6 => &ERRORS_V6,
    };
    is_icmp(network) && upper.first().is_some_and(|kind| errors.contains(kind))
}

/// Verifies the checksum of TCP, UDP, ICMP and ICMPv6. The CRC of SCTP is left to the ends.
fn verify_transport(network: &NetworkFacts, upper: &[u8]) -> Result<(), ExtractError> {
    let covered = match network.protocol {
        KeyProtocol::TCP => upper,
        KeyProtocol::UDP => {
            let is_absent = network.family == AddressFamily::V4 && u16_at(upper, 6) == Some(0);
            if is_absent {
                return Ok(());
            }
            &upper[..udp_len(upper)?]
        }
        _ if is_icmp(network) => upper,
        _ => return Ok(()),
    };
    let start = if network.protocol == KeyProtocol::ICMPV4 {
        0
    } else {
        pseudo_header(network, covered.len())
    };
    if sum(covered, start) == 0xffff {
        Ok(())
    } else {
        Err(ExtractError::Checksum)
    }
}

/// Returns the sum of the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1).
fn pseudo_header(network: &NetworkFacts, len: usize) -> u32 {
    let mut total = u64::from(network.protocol.0) + len as u64;
    for address in [network.src, network.dst] {
        let bytes = address.to_bits().to_be_bytes();
        total += u64::from(sum(&bytes, 0));
    }
    fold(total)
}

/// Returns the ones' complement sum of 16-bit words (RFC 1071).
#[inline]
pub(crate) fn sum(bytes: &[u8], start: u32) -> u32 {
    let total = fold_16(unfolded_sum(bytes));
    fold(u64::from(start) + u64::from(u16::from_be(total)))
}

/// Returns the sum of 32-bit words in the order of the machine: swapping the octets of all words
/// swaps those of the folded sum (RFC 1071, 2).
#[inline]
pub(crate) fn unfolded_sum(bytes: &[u8]) -> u64 {
    /// Shorter packets are added word by word, longer ones in vectors.
    const SHORT: usize = 128;
    let (words, rest) = bytes.as_chunks::<4>();
    let mut total = match bytes.len() {
        ..SHORT => short_sum(words),
        _ => words.iter().fold(0, |total, word| {
            total + u64::from(u32::from_ne_bytes(*word))
        }),
    };
    let last = match *rest {
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        _ => [0; 4],
    };
    total += u64::from(u32::from_ne_bytes(last));
    total
}

/// Returns the sum of few words, by two at a time.
#[inline]
fn short_sum(words: &[[u8; 4]]) -> u64 {
    let (pairs, last) = words.as_chunks::<2>();
    let mut total = 0_u64;
    let mut carries = 0_u64;
    for [[a, b, c, d], [e, f, g, h]] in pairs {
        let (sum, carry) =
            total.overflowing_add(u64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h]));
        total = sum;
        carries += u64::from(carry);
    }
    let last = last
        .first()
        .map_or(0, |word| u64::from(u32::from_ne_bytes(*word)));
    (total & 0xffff_ffff) + (total >> 32) + carries + last
}

#[inline]
fn fold(total: u64) -> u32 {
    u32::from(fold_16(total))
}

/// Folds a sum of 32-bit words into 16 bits.
#[inline]
pub(crate) const fn fold_16(total: u64) -> u16 {
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    let [low, high, ..] = total.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Returns the two bytes at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*word))
}

#[cfg(test)]
mod tests;
