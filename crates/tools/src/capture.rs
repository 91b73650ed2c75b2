//! The OpenFlow messages in a capture file of tcpdump or Wireshark (pcap): reassembles the TCP
//! streams of the OpenFlow ports and prints them message by message, like `ovs-ofctl
//! ofp-parse-pcap`. IPv6, VLANs and captures on all interfaces are supported.
//!
//! Encrypted streams and pcapng are **not** supported.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;

use capture_file::pcap::{FILE_HEADER_LEN, PcapHeader};
use capture_file::pcapng;
use openflow::{Detail, print, split_message};
use packet::{Depth, Frame, Headers, Network, Transport};

use crate::error::ToolError;

/// The ports of OpenFlow: the unofficial one, and the one that IANA assigned.
pub const PORTS: [u16; 2] = [6633, 6653];

/// The maximum number of segments of a stream that wait for an earlier one. Captures are nearly in
/// order: a segment that is missing for longer was not captured.
const EARLY_MAX: usize = 256;

/// Bits of a TCP header's flags.
const FIN: u8 = 1 << 0;
const SYN: u8 = 1 << 1;

/// The length of an Ethernet header in bytes; its last two bytes are the type.
const ETHERNET: usize = 14;

/// Prints the messages in a capture, each after a line with its source and destination.
///
/// # Errors
/// The file is not a supported capture file.
pub fn print_capture(file: &[u8], ports: &[u16], detail: Detail) -> Result<String, ToolError> {
    let mut streams: HashMap<StreamEndpoints, StreamAssembler> = HashMap::new();
    let mut texts: Vec<String> = Vec::new();
    for bytes in frames(file)? {
        let Some(segment) = TcpSegment::read(&bytes?) else {
            continue;
        };
        let StreamEndpoints { from, to } = segment.endpoints;
        if ports.contains(&from.1) || ports.contains(&to.1) {
            let stream = streams.entry(segment.endpoints).or_default();
            stream.add(&segment);
            for message in stream.messages() {
                texts.push(format!(
                    "{}:\n{}",
                    segment.endpoints,
                    print(&message, detail)
                ));
            }
        }
    }
    Ok(texts.join("\n"))
}

/// The link layer of a capture, before the network header.
#[derive(Clone, Copy)]
enum LinkType {
    Ethernet,
    /// No link-layer header.
    Raw,
    /// A header of this length that ends with an Ethernet type ("any" interface).
    Cooked(usize),
}

impl LinkType {
    /// Returns the link layer for its number in the file.
    const fn numbered(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            12 | 101 | 228 | 229 => Some(Self::Raw),
            113 => Some(Self::Cooked(16)),
            _ => None,
        }
    }

    /// Converts a packet to an Ethernet frame.
    fn frame(self, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET];
        match self {
            Self::Ethernet => return packet.to_vec(),
            Self::Raw => {
                let version = packet.first().map_or(0, |byte| byte >> 4);
                let eth_type: u16 = if version == 6 { 0x86dd } else { 0x0800 };
                frame[ETHERNET - 2..].copy_from_slice(&eth_type.to_be_bytes());
                frame.extend_from_slice(packet);
            }
            Self::Cooked(head) => {
                let (head, packet) = packet.split_at(head.min(packet.len()));
                if let [.., high, low] = head {
                    frame[ETHERNET - 2..].copy_from_slice(&[*high, *low]);
                }
                frame.extend_from_slice(packet);
            }
        }
        frame
    }
}

/// Returns the packets of a file as Ethernet frames.
fn frames(file: &[u8]) -> Result<impl Iterator<Item = Result<Vec<u8>, ToolError>>, ToolError> {
    let bad = |problem: &str| ToolError::MalformedCapture(problem.to_owned());
    let (_, rest) = file
        .split_at_checked(FILE_HEADER_LEN)
        .ok_or_else(|| bad("the file header is truncated"))?;
    if file.starts_with(&pcapng::MAGIC) {
        return Err(bad(
            "pcapng is not supported (`editcap -F pcap` converts it)",
        ));
    }
    let header = PcapHeader::parse(file).map_err(|error| bad(&error.to_string()))?;
    let number = header.link_type;
    let link = LinkType::numbered(number)
        .ok_or_else(|| bad(&format!("link type {number} is not supported")))?;
    Ok(header.packets(rest).map(move |packet| match packet {
        Ok(packet) => Ok(link.frame(packet.bytes)),
        Err(error) => Err(ToolError::MalformedCapture(error.to_string())),
    }))
}

/// The source and destination of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StreamEndpoints {
    from: (IpAddr, u16),
    to: (IpAddr, u16),
}

impl fmt::Display for StreamEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((from, source), (to, destination)) = (self.from, self.to);
        write!(f, "{from}.{source} > {to}.{destination}")
    }
}

/// A TCP segment.
struct TcpSegment {
    endpoints: StreamEndpoints,
    sequence: u32,
    flags: u8,
    payload: Vec<u8>,
}

impl TcpSegment {
    /// Parses the segment in a frame; none if the frame has none, or it is truncated.
    fn read(bytes: &[u8]) -> Option<Self> {
        let frame = Frame::from_bytes(bytes);
        let headers = Headers::parse(&frame, Depth::Transport).ok()?;
        let Transport::Tcp(tcp) = headers.transport else {
            return None;
        };
        let (from, to) = match headers.network {
            Network::Ipv4(ip) => (ip.src.into(), ip.dst.into()),
            Network::Ipv6(ip) => (ip.src.into(), ip.dst.into()),
            Network::None
            | Network::Mpls(_)
            | Network::Nsh(_)
            | Network::Pbb(_)
            | Network::Arp(_) => return None,
        };
        let header = bytes.get(headers.transport_at()?..headers.transport_end()?)?;
        let payload = header.get(usize::from(header.get(12)? >> 4) * 4..)?;
        Some(Self {
            endpoints: StreamEndpoints {
                from: (from, tcp.src),
                to: (to, tcp.dst),
            },
            sequence: u32::from_be_bytes(*header.get(4..)?.first_chunk()?),
            flags: *header.get(13)?,
            payload: payload.to_vec(),
        })
    }
}

/// The reassembly of one direction of a connection.
#[derive(Default)]
struct StreamAssembler {
    /// The sequence number of the next byte, once it is known.
    next: Option<u32>,
    /// Bytes of incomplete messages.
    bytes: Vec<u8>,
    /// Segments that arrived before earlier ones, by sequence number.
    out_of_order: BTreeMap<u32, Vec<u8>>,
}

impl StreamAssembler {
    fn add(&mut self, segment: &TcpSegment) {
        let mut sequence = segment.sequence;
        if segment.flags & SYN != 0 {
            *self = Self::default();
            sequence = sequence.wrapping_add(1);
        }
        let next = *self.next.get_or_insert(sequence);
        if segment.payload.is_empty() {
            return;
        }
        if self.out_of_order.len() >= EARLY_MAX {
            // The missing segment was not captured: the stream restarts here.
            *self = Self::default();
            self.next = Some(sequence);
        } else if is_after(sequence, next) {
            self.out_of_order.insert(sequence, segment.payload.clone());
            return;
        }
        self.append(sequence, &segment.payload);
        while let Some(sequence) = self.next_in_order() {
            let payload = self
                .out_of_order
                .remove(&sequence)
                .expect("the key was found above");
            self.append(sequence, &payload);
        }
        if segment.flags & FIN != 0 {
            self.out_of_order.clear();
        }
    }

    /// Returns the sequence number of a buffered segment that is now in order.
    fn next_in_order(&self) -> Option<u32> {
        let next = self.next?;
        let mut numbers = self.out_of_order.keys().copied();
        numbers.find(|number| !is_after(*number, next))
    }

    /// Appends the bytes of a segment that are new.
    fn append(&mut self, sequence: u32, payload: &[u8]) {
        let next = self.next.unwrap_or(sequence);
        let overlap = usize::try_from(next.wrapping_sub(sequence)).unwrap_or(usize::MAX);
        let new = payload.get(overlap..).unwrap_or_default();
        self.bytes.extend_from_slice(new);
        let count = u32::try_from(new.len()).expect("a packet is short");
        self.next = Some(next.wrapping_add(count));
    }

    /// Removes and returns the complete messages. An invalid length ends the stream: the start of
    /// the next message is unknown.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        loop {
            match split_message(&self.bytes) {
                Ok(Some((message, rest))) => {
                    messages.push(message.to_vec());
                    self.bytes = rest.to_vec();
                }
                Ok(None) => return messages,
                Err(_) => messages.push(std::mem::take(&mut self.bytes)),
            }
        }
    }
}

/// Returns whether a sequence number follows another, modulo 2^32.
const fn is_after(number: u32, other: u32) -> bool {
    let distance = number.wrapping_sub(other);
    distance != 0 && distance < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sequence: u32, payload: &[u8]) -> TcpSegment {
        let end = (IpAddr::from([10, 0, 0, 1]), 6653);
        TcpSegment {
            endpoints: StreamEndpoints { from: end, to: end },
            sequence,
            flags: 0,
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn stream_restarts_after_gap() {
        let mut stream = StreamAssembler::default();
        stream.add(&segment(0, b"ab"));
        let out_of_order = u32::try_from(EARLY_MAX).expect("few");
        for number in 0..out_of_order {
            stream.add(&segment(10 + 2 * number, b"cd"));
        }
        assert_eq!(stream.bytes, b"ab", "the missing segment may still arrive");
        stream.add(&segment(10 + 2 * out_of_order, b"ef"));
        assert_eq!(stream.bytes, b"ef");
        stream.add(&segment(12 + 2 * out_of_order, b"gh"));
        assert_eq!(stream.bytes, b"efgh");
    }
}
