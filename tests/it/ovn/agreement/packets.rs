//! Packets of flows: their bytes, their text as OVN's expressions, and the flow that a received
//! packet belongs to.

use std::net::Ipv4Addr;

use crate::support::frames::encode_frames;

/// First number that identifies a flow: a transport port, the identifier of an ICMP message, or
/// the bytes behind an ARP message.
const FIRST_NUMBER: u16 = 20_000;

/// Beyond the last number that identifies a flow.
const END_OF_NUMBERS: u16 = 30_000;

/// Length of an Ethernet header, of an IPv4 header and of an ARP message.
const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;
const ARP_LEN: usize = 28;

/// Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mac(pub(super) [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub(super) const BROADCAST: Self = Self([0xff; 6]);
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0.map(|byte| format!("{byte:02x}"));
        f.write_str(&bytes.join(":"))
    }
}

/// Transport header. The number of the flow is the client's port, or the identifier.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transport {
    Tcp { src: u16, dst: u16, flags: TcpFlags },
    Udp { src: u16, dst: u16 },
    Icmp { is_reply: bool, id: u16 },
}

/// Flags of a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum TcpFlags {
    Syn,
    SynAck,
    Ack,
}

impl TcpFlags {
    const fn letters(self) -> &'static str {
        match self {
            Self::Syn => "S",
            Self::SynAck => "SA",
            Self::Ack => "A",
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Syn => 2,
            Self::SynAck => 0x12,
            Self::Ack => 0x10,
        }
    }
}

/// Content of an Ethernet frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// ARP request.
    Arp {
        sha: Mac,
        spa: Ipv4Addr,
        tpa: Ipv4Addr,
        number: u16,
    },
    Ip {
        src: Ipv4Addr,
        dst: Ipv4Addr,
        ttl: u8,
        transport: Transport,
    },
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) eth_src: Mac,
    pub(super) eth_dst: Mac,
    pub(super) content: Content,
}

impl Packet {
    /// The frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        let Self {
            eth_src, eth_dst, ..
        } = self;
        let content = match self.content {
            Content::Arp {
                sha,
                spa,
                tpa,
                number,
            } => format!(
                "arp(op=1,sha={sha},spa={spa},tha=00:00:00:00:00:00,tpa={tpa}) \
                 / raw(bytes={number:04x}{:032x})",
                0
            ),
            Content::Ip {
                src,
                dst,
                ttl,
                transport,
            } => {
                let transport = match transport {
                    Transport::Tcp { src, dst, flags } => {
                        format!("tcp(src={src},dst={dst},flags={})", flags.letters())
                    }
                    Transport::Udp { src, dst } => format!("udp(src={src},dst={dst})"),
                    Transport::Icmp { is_reply, id } => {
                        let kind = if is_reply { 0 } else { 8 };
                        format!("icmp(type={kind},rest={})", u32::from(id) << 16)
                    }
                };
                format!("ipv4(src={src},dst={dst},ttl={ttl}) / {transport} / data(20)")
            }
        };
        let stack = format!("eth(dst={eth_dst},src={eth_src}) / {content}");
        encode_frames(&[&stack]).remove(0)
    }

    /// The time to live of an IP packet.
    pub(super) const fn ttl(&self) -> Option<u8> {
        match self.content {
            Content::Ip { ttl, .. } => Some(ttl),
            Content::Arp { .. } => None,
        }
    }

    /// True for the reply to an ICMP echo request.
    pub(super) const fn is_icmp_reply(&self) -> bool {
        matches!(
            self.content,
            Content::Ip {
                transport: Transport::Icmp { is_reply: true, .. },
                ..
            }
        )
    }

    /// True for a TCP segment.
    pub(super) const fn is_tcp(&self) -> bool {
        matches!(
            self.content,
            Content::Ip {
                transport: Transport::Tcp { .. },
                ..
            }
        )
    }

    /// Sets the flags of a TCP segment. Returns false for other packets.
    pub(super) const fn set_flags(&mut self, to: TcpFlags) -> bool {
        let Content::Ip { transport, .. } = &mut self.content else {
            return false;
        };
        match transport {
            Transport::Tcp { flags, .. } => {
                *flags = to;
                true
            }
            Transport::Udp { .. } | Transport::Icmp { .. } => false,
        }
    }

    /// The packet with other TCP flags, if it is a TCP segment.
    pub(super) const fn with_flags(mut self, flags: TcpFlags) -> Self {
        self.set_flags(flags);
        self
    }

    /// Exchanges source and destination of an IP packet, and request and reply.
    pub(super) const fn swap_ends(&mut self) {
        let Content::Ip {
            src,
            dst,
            transport,
            ..
        } = &mut self.content
        else {
            return;
        };
        std::mem::swap(src, dst);
        match transport {
            Transport::Tcp { src, dst, .. } | Transport::Udp { src, dst } => {
                std::mem::swap(src, dst);
            }
            Transport::Icmp { is_reply, .. } => *is_reply = !*is_reply,
        }
    }

    /// The packet as an expression of OVN, received at `port`.
    pub(super) fn microflow(&self, port: &str) -> String {
        let Self {
            eth_src, eth_dst, ..
        } = self;
        let content = match self.content {
            Content::Arp { sha, spa, tpa, .. } => format!(
                "arp.op == 1 && arp.sha == {sha} && arp.spa == {spa} \
                 && arp.tha == 00:00:00:00:00:00 && arp.tpa == {tpa}"
            ),
            Content::Ip {
                src,
                dst,
                ttl,
                transport,
            } => {
                let transport = match transport {
                    Transport::Tcp { src, dst, flags } => {
                        let flags = flags.bits();
                        format!("tcp.src == {src} && tcp.dst == {dst} && tcp.flags == {flags}")
                    }
                    Transport::Udp { src, dst } => format!("udp.src == {src} && udp.dst == {dst}"),
                    Transport::Icmp { is_reply, .. } => {
                        let kind = if is_reply { 0 } else { 8 };
                        format!("icmp4.type == {kind} && icmp4.code == 0")
                    }
                };
                format!("ip4.src == {src} && ip4.dst == {dst} && ip.ttl == {ttl} && {transport}")
            }
        };
        format!("inport == \"{port}\" && eth.src == {eth_src} && eth.dst == {eth_dst} && {content}")
    }
}

/// Number of a packet that identifies flow `index`.
pub(super) fn number_of(index: usize) -> u16 {
    let index = u16::try_from(index).expect("a test has few flows");
    FIRST_NUMBER + index
}

/// Relation of a received frame to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowKey {
    /// The packet of the flow with this index, a reply to it, or an error that quotes it.
    Index(usize),
    /// ARP request of a router for this address.
    Request(Ipv4Addr),
}

/// The flow that a received frame belongs to. Frames of other origin have none.
pub(super) fn flow_of(frame: &[u8]) -> Option<FlowKey> {
    let ether_type = frame.get(12..ETHERNET_LEN)?;
    let content = &frame[ETHERNET_LEN..];
    let is_number = |number: &u16| (FIRST_NUMBER..END_OF_NUMBERS).contains(number);
    let index = |number| FlowKey::Index(usize::from(number - FIRST_NUMBER));
    match ether_type {
        [0x08, 0x06] => match word(content, ARP_LEN).filter(is_number) {
            Some(number) => Some(index(number)),
            None => {
                let target: [u8; 4] = content.get(24..ARP_LEN)?.try_into().ok()?;
                Some(FlowKey::Request(target.into()))
            }
        },
        [0x08, 0x00] => number_in_ipv4(content).filter(is_number).map(index),
        _ => None,
    }
}

/// Number in an IPv4 packet without options.
fn number_in_ipv4(packet: &[u8]) -> Option<u16> {
    let transport = packet.get(IPV4_LEN..)?;
    match packet.get(9)? {
        1 if [0, 8].contains(transport.first()?) => word(transport, 4),
        1 => number_in_ipv4(&transport[8..]),
        6 | 17 => [word(transport, 0)?, word(transport, 2)?]
            .into_iter()
            .find(|port| (FIRST_NUMBER..END_OF_NUMBERS).contains(port)),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
