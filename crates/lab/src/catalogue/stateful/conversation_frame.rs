//! Frames of scripted connections: a TCP connection with one request and one reply, or UDP
//! datagrams in turn. Each frame names its connection by the client's address and port, and its
//! step by flags or payload.

use trafficgen::checksum::{checksum, pseudo, sum};

/// Client ports of one address.
const PORTS: u32 = 50_000;
const FIRST_PORT: u32 = 1024;
/// Networks for benchmarks (RFC 2544, C.2.2): clients, and the server.
const CLIENT_NETWORK: u32 = 0xc612_0000;
const SERVER: u32 = 0xc613_0001;
const SERVICE: u16 = 80;

/// Ethernet addresses of the two ends.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 0xd1], [2, 0, 0, 0, 0, 0xd2]];

/// Most connections of a trial.
pub(super) const CONNECTIONS_MAX: u64 = 4_000_000;

/// Offsets in a frame: IPv4 protocol, source address, ports, and the byte with the step.
const PROTOCOL: usize = 23;
const SOURCE: usize = 26;
const TRANSPORT: usize = 34;
const TCP_STEP: usize = TRANSPORT + 20;
const UDP_STEP: usize = TRANSPORT + 8;

/// Protocol of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConversationProtocol {
    /// Handshake, request, reply, close: seven frames.
    Tcp,
    /// Request and reply in turn.
    Udp,
}

/// A frame of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConversationFrame {
    pub(super) protocol: ConversationProtocol,
    /// Number of the connection.
    pub(super) number: u32,
    /// Number of the frame in its connection; the client sends those with even numbers.
    pub(super) step: u8,
}

/// Flags, sequence and acknowledgement numbers relative to the first ones, by step.
const TCP_STEPS: [(u8, u32, u32); 7] = [
    (0x02, 0, 0),
    (0x12, 0, 1),
    (0x18, 1, 1),
    (0x18, 1, 1 + PAYLOAD),
    (0x11, 1 + PAYLOAD, 1 + PAYLOAD),
    (0x11, 1 + PAYLOAD, 2 + PAYLOAD),
    (0x10, 2 + PAYLOAD, 2 + PAYLOAD),
];

/// Bytes of a request and of a reply.
const PAYLOAD: u32 = 10;

impl ConversationFrame {
    /// Returns true if the client sends it.
    pub(super) const fn is_of_client(self) -> bool {
        self.step.is_multiple_of(2)
    }

    /// Encodes the frame without its FCS.
    pub(super) fn encode(self) -> Vec<u8> {
        let client = (
            CLIENT_NETWORK + self.number / PORTS,
            u16::try_from(FIRST_PORT + self.number % PORTS).expect("ports are below 2^16"),
        );
        let server = (SERVER, SERVICE);
        let (from, to) = match self.is_of_client() {
            true => (client, server),
            false => (server, client),
        };
        let mut transport = match self.protocol {
            ConversationProtocol::Tcp => self.tcp(from.1, to.1),
            ConversationProtocol::Udp => self.udp(from.1, to.1),
        };
        let (protocol, offset) = match self.protocol {
            ConversationProtocol::Tcp => (6, 16),
            ConversationProtocol::Udp => (17, 6),
        };
        let addresses = [from.0.to_be_bytes(), to.0.to_be_bytes()].concat();
        let total = pseudo(&addresses, protocol, transport.len()) + sum(&transport);
        transport[offset..offset + 2].copy_from_slice(&checksum(total).to_be_bytes());
        let length = u16::try_from(20 + transport.len()).expect("a frame is short");
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip.extend(addresses);
        let header = checksum(sum(&ip));
        ip[10..12].copy_from_slice(&header.to_be_bytes());
        let [source, destination] = match self.is_of_client() {
            true => MACS,
            false => [MACS[1], MACS[0]],
        };
        [&destination[..], &source, &[8, 0], &ip, &transport].concat()
    }

    fn tcp(self, from: u16, to: u16) -> Vec<u8> {
        let (flags, sequence, acknowledgement) = TCP_STEPS[usize::from(self.step)];
        let acknowledgement = match self.step {
            0 => 0,
            _ => first(!self.is_of_client()) + acknowledgement,
        };
        let sequence = first(self.is_of_client()) + sequence;
        let mut bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(acknowledgement.to_be_bytes());
        bytes.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        if matches!(self.step, 2 | 3) {
            bytes.extend([self.step; PAYLOAD as usize]);
        }
        bytes
    }

    fn udp(self, from: u16, to: u16) -> Vec<u8> {
        let mut bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
        let length = 8 + u16::try_from(PAYLOAD).expect("a payload is short");
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend([self.step; PAYLOAD as usize]);
        bytes
    }

    /// Parses a received frame; `None` if it belongs to no conversation.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.get(12..15)? != [8, 0, 0x45] {
            return None;
        }
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let port = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let is_of_client = port(TRANSPORT + 2)? == SERVICE;
        let (address, port) = match is_of_client {
            true => (word(SOURCE)?, port(TRANSPORT)?),
            false => (word(SOURCE + 4)?, port(TRANSPORT + 2)?),
        };
        let number = address.checked_sub(CLIENT_NETWORK)?.checked_mul(PORTS)?;
        let number = number.checked_add(u32::from(port).checked_sub(FIRST_PORT)?)?;
        let (protocol, step) = match bytes[PROTOCOL] {
            6 => (ConversationProtocol::Tcp, tcp_step(bytes, is_of_client)?),
            17 => (ConversationProtocol::Udp, *bytes.get(UDP_STEP)?),
            _ => return None,
        };
        Some(Self {
            protocol,
            number,
            step,
        })
    }
}

/// First sequence number of an end.
const fn first(is_client: bool) -> u32 {
    if is_client { 1_000 } else { 5_000_000 }
}

fn tcp_step(bytes: &[u8], is_of_client: bool) -> Option<u8> {
    Some(match (bytes.get(TRANSPORT + 13)?, is_of_client) {
        (0x02, true) => 0,
        (0x12, false) => 1,
        (0x18, _) => *bytes.get(TCP_STEP)?,
        (0x11, true) => 4,
        (0x11, false) => 5,
        (0x10, true) => 6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trafficgen::checksum::fold;

    #[test]
    fn conversation_frames_parse_as_they_were_encoded() {
        for (protocol, steps) in [
            (ConversationProtocol::Tcp, 7),
            (ConversationProtocol::Udp, 4),
        ] {
            for number in [0, 1, 49_999, 50_000, 3_999_999] {
                for step in 0..steps {
                    let frame = ConversationFrame {
                        protocol,
                        number,
                        step,
                    };
                    assert_eq!(ConversationFrame::parse(&frame.encode()), Some(frame));
                }
            }
        }
        assert_eq!(ConversationFrame::parse(&[0; 60]), None);
        assert_eq!(ConversationFrame::parse(&[8, 0]), None);
    }

    #[test]
    fn conversation_frames_have_valid_checksums() {
        for (protocol, step) in [
            (ConversationProtocol::Tcp, 2),
            (ConversationProtocol::Udp, 1),
        ] {
            let frame = ConversationFrame {
                protocol,
                number: 7,
                step,
            };
            let bytes = frame.encode();
            assert_eq!(fold(sum(&bytes[14..34])), 0xffff);
            let transport = &bytes[34..];
            let pseudo = pseudo(&bytes[26..34], bytes[PROTOCOL], transport.len());
            assert_eq!(fold(pseudo + sum(transport)), 0xffff);
        }
    }
}
