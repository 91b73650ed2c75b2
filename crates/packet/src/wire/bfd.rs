//! Bidirectional Forwarding Detection: control packets (RFC 5880, 4.1), each in a UDP datagram of
//! IPv4 (RFC 5881, 4).
//!
//! ```text
//!  0     3      8   10          16            24             32 bits
//! +-----+------+---+-----------+-------------+--------------+
//! |  1  | diag |sta|P F C A D M| detect mult |   length     |
//! +-----+------+---+-----------+-------------+--------------+
//! |                   my discriminator                      |
//! |                  your discriminator                     |
//! |           desired min TX interval, in µs                |
//! |           required min RX interval, in µs               |
//! |         required min echo RX interval, in µs            |
//! +---------------------------------------------------------+
//! ```

use std::net::Ipv4Addr;

use super::ethernet::{self, EtherType, Ethernet};
use super::ipv4::{self, Ipv4};
use super::udp::{self, Udp};
use super::{Fragment, IpProto};
use crate::checksum::InternetSum;
use crate::{Link, MacAddr};

/// Length of a control packet without authentication, in bytes.
pub const LEN: usize = 24;
/// The length field of such a packet.
const LENGTH: u8 = 24;
/// Length of a frame with a control packet, in bytes.
pub const FRAME_LEN: usize = ethernet::LEN + ipv4::LEN_MIN + udp::LEN + LEN;
/// The length fields of the headers before it.
const IP_HEADER_LEN: u8 = 20;
const IP_LEN: u16 = 52;
const UDP_LEN: u16 = 32;
/// The UDP destination port of control packets (RFC 5881, 4).
pub const UDP_PORT: u16 = 3784;
/// The TTL of control packets. A router cannot forward a packet with this value, so a packet that
/// has it is from a neighbour (RFC 5881, 5; RFC 5082).
pub const TTL: u8 = 255;
/// The IP precedence "Internetwork Control" (RFC 791).
const TOS: u8 = 0xc0;
/// The protocol version.
const VERSION: u8 = 1;

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BfdState {
    /// The session is disabled by its operator.
    AdminDown,
    /// The session is down, or has just begun.
    #[default]
    Down,
    /// The remote system sends packets, and its session is down.
    Init,
    /// Both systems receive each other's packets.
    Up,
}

impl BfdState {
    const ALL: [Self; 4] = [Self::AdminDown, Self::Down, Self::Init, Self::Up];

    /// Returns the name that Open vSwitch prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdminDown => "admin_down",
            Self::Down => "down",
            Self::Init => "init",
            Self::Up => "up",
        }
    }
}

/// The reason for the last change of a session's state; unknown numbers survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfdDiagnostic(pub u8);

impl BfdDiagnostic {
    /// No diagnostic.
    pub const NONE: Self = Self(0);
    /// No control packet arrived within the detection time.
    pub const EXPIRED: Self = Self(1);
    /// The neighbour signaled that its session is down.
    pub const NEIGHBOR_DOWN: Self = Self(3);
    /// The path is down.
    pub const PATH_DOWN: Self = Self(5);
    /// The path behind the sender is down.
    pub const CONCATENATED_PATH_DOWN: Self = Self(6);
    /// The reverse path behind the sender is down.
    pub const REVERSE_CONCATENATED_PATH_DOWN: Self = Self(8);

    /// Returns the name (RFC 5880, 4.1).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "No Diagnostic",
            1 => "Control Detection Time Expired",
            2 => "Echo Function Failed",
            3 => "Neighbor Signaled Session Down",
            4 => "Forwarding Plane Reset",
            5 => "Path Down",
            6 => "Concatenated Path Down",
            7 => "Administratively Down",
            8 => "Reverse Concatenated Path Down",
            _ => "Invalid Diagnostic",
        }
    }
}

/// The flags of a control packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfdFlags(pub u8);

impl BfdFlags {
    /// Reserved for point-to-multipoint extensions.
    pub const MULTIPOINT: Self = Self(1);
    /// The sender uses demand mode.
    pub const DEMAND: Self = Self(1 << 1);
    /// An authentication section follows.
    pub const AUTHENTICATION: Self = Self(1 << 2);
    /// The sender's session survives a restart of its control plane.
    pub const CONTROL_PLANE_INDEPENDENT: Self = Self(1 << 3);
    /// The packet answers a poll.
    pub const FINAL: Self = Self(1 << 4);
    /// The sender requests an answer with the flag `FINAL`.
    pub const POLL: Self = Self(1 << 5);

    /// The bits by name, in the order in which Open vSwitch prints them.
    const NAMES: [(Self, &'static str); 6] = [
        (Self::MULTIPOINT, "multipoint"),
        (Self::DEMAND, "demand"),
        (Self::AUTHENTICATION, "auth"),
        (Self::CONTROL_PLANE_INDEPENDENT, "ctl"),
        (Self::FINAL, "final"),
        (Self::POLL, "poll"),
    ];

    /// Returns true if all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns the flags with `bits` set or cleared.
    #[must_use]
    pub const fn with(self, bits: Self, set: bool) -> Self {
        if set {
            Self(self.0 | bits.0)
        } else {
            Self(self.0 & !bits.0)
        }
    }

    /// Returns the names of the set bits, or "none".
    #[must_use]
    pub fn names(self) -> String {
        let set = Self::NAMES.into_iter().filter(|(bit, _)| self.has(*bit));
        let names: Vec<_> = set.map(|(_, name)| name).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(" "),
        }
    }
}

/// A control packet without authentication. Intervals are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfdControl {
    /// The sender's diagnostic.
    pub diagnostic: BfdDiagnostic,
    /// The sender's state.
    pub state: BfdState,
    /// The flags.
    pub flags: BfdFlags,
    /// The number of missing packets after which the receiver declares the session down.
    pub multiplier: u8,
    /// The sender's number of the session.
    pub my_discriminator: u32,
    /// The receiver's number of the session; zero if the sender does not know it.
    pub your_discriminator: u32,
    /// The shortest interval at which the sender wants to transmit.
    pub min_tx_us: u32,
    /// The shortest interval at which the sender is able to receive.
    pub min_rx_us: u32,
    /// The shortest interval of echo packets that the sender returns; zero if it returns none.
    pub min_echo_rx_us: u32,
}

/// The reason to discard a control packet (RFC 5880, 6.8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedBfd {
    /// The packet is truncated.
    #[error("truncated BFD control packet")]
    Truncated,
    /// The version is unknown.
    #[error("BFD version other than 1")]
    Version,
    /// The packet is authenticated; there is no key.
    #[error("authenticated BFD control packet, but authentication is disabled")]
    Authenticated,
    /// The length field is shorter than the packet, or longer than the datagram.
    #[error("BFD length field is wrong")]
    Length,
    /// The detection multiplier is zero.
    #[error("BFD detection multiplier is zero")]
    Multiplier,
    /// The multipoint bit is set.
    #[error("BFD multipoint bit is set")]
    Multipoint,
    /// The sender's discriminator is zero.
    #[error("BFD discriminator of the sender is zero")]
    Discriminator,
}

impl BfdControl {
    /// Parses the payload of a UDP datagram.
    ///
    /// # Errors
    /// The packet must be discarded.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedBfd> {
        let packet: &[u8; LEN] = bytes.first_chunk().ok_or(MalformedBfd::Truncated)?;
        if packet[0] >> 5 != VERSION {
            return Err(MalformedBfd::Version);
        }
        let flags = BfdFlags(packet[1] & 0x3f);
        if flags.has(BfdFlags::AUTHENTICATION) {
            return Err(MalformedBfd::Authenticated);
        }
        let length = usize::from(packet[3]);
        if length < LEN || length > bytes.len() {
            return Err(MalformedBfd::Length);
        }
        let control = Self {
            diagnostic: BfdDiagnostic(packet[0] & 0x1f),
            state: BfdState::ALL[usize::from(packet[1] >> 6)],
            flags,
            multiplier: packet[2],
            my_discriminator: u32_at(packet, 4),
            your_discriminator: u32_at(packet, 8),
            min_tx_us: u32_at(packet, 12),
            min_rx_us: u32_at(packet, 16),
            min_echo_rx_us: u32_at(packet, 20),
        };
        match control {
            Self { multiplier: 0, .. } => Err(MalformedBfd::Multiplier),
            _ if flags.has(BfdFlags::MULTIPOINT) => Err(MalformedBfd::Multipoint),
            Self {
                my_discriminator: 0,
                ..
            } => Err(MalformedBfd::Discriminator),
            control => Ok(control),
        }
    }

    /// Returns the bytes of the packet.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut packet = [0; LEN];
        packet[0] = VERSION << 5 | self.diagnostic.0 & 0x1f;
        packet[1] = (self.state as u8) << 6 | self.flags.0 & 0x3f;
        packet[2] = self.multiplier;
        packet[3] = LENGTH;
        let words = [
            self.my_discriminator,
            self.your_discriminator,
            self.min_tx_us,
            self.min_rx_us,
            self.min_echo_rx_us,
        ];
        for (place, word) in packet[4..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        packet
    }
}

/// The addresses of the datagram of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdAddresses {
    /// Ethernet destination.
    pub eth_dst: MacAddr,
    /// Ethernet source.
    pub eth_src: MacAddr,
    /// IPv4 source.
    pub ip_src: Ipv4Addr,
    /// IPv4 destination.
    pub ip_dst: Ipv4Addr,
    /// UDP source port, from 49152 on (RFC 5881, 4).
    pub udp_src: u16,
}

impl BfdAddresses {
    /// Returns the frame with a control packet. Its UDP checksum is absent, which IPv4 permits.
    #[must_use]
    pub fn emit(&self, control: &BfdControl) -> [u8; FRAME_LEN] {
        let header = Ethernet {
            dst: self.eth_dst,
            src: self.eth_src,
        };
        let mut network = Ipv4 {
            src: self.ip_src,
            dst: self.ip_dst,
            protocol: IpProto::UDP,
            tos: TOS,
            ttl: TTL,
            fragment: Fragment::No,
            header_len: IP_HEADER_LEN,
            total_len: IP_LEN,
        }
        .emit();
        let sum = InternetSum::of(&network).checksum();
        network[ipv4::CHECKSUM..ipv4::SRC].copy_from_slice(&sum.to_be_bytes());
        let transport = Udp {
            src: self.udp_src,
            dst: UDP_PORT,
        }
        .emit(UDP_LEN);
        let mut frame = [0; FRAME_LEN];
        let parts = [
            &header.emit(EtherType::IPV4.0)[..],
            &network,
            &transport,
            &control.emit(),
        ];
        let mut at = 0;
        for part in parts {
            frame[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        frame
    }
}

/// A UDP datagram to the port of control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdDatagram<'a> {
    /// Ethernet destination.
    pub eth_dst: MacAddr,
    /// IPv4 destination.
    pub ip_dst: Ipv4Addr,
    /// TTL.
    pub ttl: u8,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> BfdDatagram<'a> {
    /// Returns the datagram in a frame; none if the frame holds something else. VLAN tags are
    /// skipped.
    #[must_use]
    pub fn find(frame: &'a [u8]) -> Option<Self> {
        let link = Link::parse(frame).ok()?;
        if link.eth_type != EtherType::IPV4 {
            return None;
        }
        let packet = frame.get(link.payload_at()..)?;
        let network = Ipv4::parse(packet).ok()?;
        if network.protocol != IpProto::UDP || network.fragment == Fragment::Later {
            return None;
        }
        let packet = packet.get(usize::from(network.header_len)..usize::from(network.total_len))?;
        let transport = Udp::parse(packet).ok()?;
        (transport.dst == UDP_PORT).then(|| Self {
            eth_dst: link.dst,
            ip_dst: network.dst,
            ttl: network.ttl,
            payload: &packet[udp::LEN..],
        })
    }
}

/// Returns the word at `at`.
fn u32_at(packet: &[u8; LEN], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&packet[at..at + 4]);
    u32::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control packet written by hand after the figure of RFC 5880, 4.1.
    const BY_HAND: [u8; LEN] = [
        0x23, 0xe0, 3, 24, 0, 0, 0, 7, 0, 0, 0, 9, 0, 1, 0x86, 0xa0, 0, 0x0f, 0x42, 0x40, 0, 0, 0,
        0,
    ];

    fn control() -> BfdControl {
        BfdControl {
            diagnostic: BfdDiagnostic::NEIGHBOR_DOWN,
            state: BfdState::Up,
            flags: BfdFlags::POLL,
            multiplier: 3,
            my_discriminator: 7,
            your_discriminator: 9,
            min_tx_us: 100_000,
            min_rx_us: 1_000_000,
            min_echo_rx_us: 0,
        }
    }

    #[test]
    fn bfd_control_packet_round_trips() {
        assert_eq!(BfdControl::parse(&BY_HAND), Ok(control()));
        assert_eq!(control().emit(), BY_HAND);
    }

    #[test]
    fn malformed_bfd_control_packet_is_refused() {
        for len in 0..LEN {
            let truncated = BfdControl::parse(&BY_HAND[..len]);
            assert_eq!(truncated, Err(MalformedBfd::Truncated), "{len}");
        }
        let cases = [
            (0, 0x43, MalformedBfd::Version),
            (1, 0xc4, MalformedBfd::Authenticated),
            (1, 0xc1, MalformedBfd::Multipoint),
            (2, 0, MalformedBfd::Multiplier),
            (3, 23, MalformedBfd::Length),
            (3, 25, MalformedBfd::Length),
            (7, 0, MalformedBfd::Discriminator),
        ];
        for (at, byte, expected) in cases {
            let mut packet = BY_HAND;
            packet[at] = byte;
            assert_eq!(BfdControl::parse(&packet), Err(expected), "{at}");
        }
    }

    #[test]
    fn bfd_frame_round_trips_with_and_without_tag() {
        let addresses = BfdAddresses {
            eth_dst: MacAddr([0, 0x23, 0x20, 0, 0, 1]),
            eth_src: MacAddr([2, 0, 0, 0, 0, 1]),
            ip_src: Ipv4Addr::new(169, 254, 1, 1),
            ip_dst: Ipv4Addr::new(169, 254, 1, 0),
            udp_src: 49152,
        };
        let frame = addresses.emit(&control());
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        for frame in [&frame[..], &tagged] {
            let found = BfdDatagram::find(frame).expect("a control packet");
            assert_eq!((found.ttl, found.ip_dst), (255, addresses.ip_dst));
            assert_eq!(BfdControl::parse(found.payload), Ok(control()));
        }
        // The checksum of a header with a valid checksum is zero.
        assert_eq!(InternetSum::of(&frame[14..34]).checksum(), 0);
        let mut other = frame;
        other[37] = 0xc9;
        assert_eq!(BfdDatagram::find(&other), None);
        let mut fragment = frame;
        fragment[21] = 1;
        assert_eq!(BfdDatagram::find(&fragment), None);
    }

    #[test]
    fn bfd_flags_have_names() {
        assert_eq!(BfdFlags::default().names(), "none");
        let flags = BfdFlags::FINAL.with(BfdFlags::CONTROL_PLANE_INDEPENDENT, true);
        assert_eq!(flags.names(), "ctl final");
    }
}
