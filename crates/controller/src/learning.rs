//! The learning controller of experiment B, NOX's `pyswitch`: it learns the port of each address,
//! floods frames to unknown addresses, and installs a rule for each conversation in one direction.
//! A rule matches all header fields of the frame and expires after sixty idle seconds.
//!
//! Not supported: spanning trees, or links between switches.

use std::collections::BTreeMap;

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, MatchBuilder, PacketIn};
use openflow::{Message, Version};

use super::application::{flood, forward};

/// Maximum number of learned stations.
const STATIONS_MAX: usize = 65_536;

/// The default priority of `ovs-ofctl` and NOX.
const PRIORITY: u16 = 0x8000;

/// EtherTypes (IEEE 802 numbers).
mod ethernet {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const ARP: u16 = 0x0806;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const LLDP: u16 = 0x88cc;
}

/// IP protocol numbers (IANA).
mod protocol {
    pub(super) const ICMP: u8 = 1;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
}

/// The learned stations.
#[derive(Clone, Debug)]
pub struct Learning {
    stations: BTreeMap<[u8; 6], PortNo>,
    /// Idle timeout of rules, in seconds.
    idle_timeout_s: u16,
}

impl Default for Learning {
    fn default() -> Self {
        Self::with_idle_timeout(60)
    }
}

impl Learning {
    /// Returns a learner whose rules expire after this idle time.
    #[must_use]
    pub const fn with_idle_timeout(seconds: u16) -> Self {
        Self {
            stations: BTreeMap::new(),
            idle_timeout_s: seconds,
        }
    }

    /// Returns the port of a station, if it is known.
    #[must_use]
    pub fn port_of(&self, station: [u8; 6]) -> Option<PortNo> {
        self.stations.get(&station).copied()
    }

    /// Learns from a packet-in, and returns the messages that answer it.
    pub fn packet_in(&mut self, frame: &PacketIn, version: Version) -> Vec<Message> {
        let in_port = frame.registers.in_port;
        let Some(headers) = Headers::of(&frame.data) else {
            return Vec::new();
        };
        if headers.kind == ethernet::LLDP {
            return Vec::new();
        }
        self.learn(headers.source, in_port);
        let destination_port = match is_group(headers.destination) {
            true => None,
            false => self.port_of(headers.destination),
        };
        match destination_port {
            Some(port) if port != in_port => {
                let rule = self.rule(&headers, in_port, port, version);
                let mut replies = vec![Message::FlowMod(rule)];
                replies.extend(forward(frame, port));
                replies
            }
            _ => flood(frame).into_iter().collect(),
        }
    }

    fn learn(&mut self, station: [u8; 6], port: PortNo) {
        let has_room = self.stations.len() < STATIONS_MAX;
        if !is_group(station) && (has_room || self.stations.contains_key(&station)) {
            self.stations.insert(station, port);
        }
    }

    fn rule(&self, headers: &Headers, in_port: PortNo, port: PortNo, version: Version) -> FlowMod {
        let actions = Instructions::apply(vec![Action::output(port)]);
        let matching = headers.exact(in_port);
        // In 1.0 a match on all fields has the highest priority in any case (OF 1.0.1, 3.4).
        let priority = match version {
            Version::V10 => u16::MAX,
            _ => PRIORITY,
        };
        let mut rule = FlowMod::new(FlowModCommand::Add, priority, matching, actions);
        rule.idle_timeout_s = self.idle_timeout_s;
        rule
    }
}

/// Returns whether an address is a group address.
const fn is_group(station: [u8; 6]) -> bool {
    station[0] & 1 == 1
}

/// The header fields of OpenFlow 1.0 (OF 1.0.1, 5.2.3). The parser here is independent of that of
/// every device under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Headers {
    destination: [u8; 6],
    source: [u8; 6],
    /// Priority and VLAN of the tag, if present.
    tag: Option<(u8, u16)>,
    kind: u16,
    network: Option<Network>,
}

/// The fields of an IPv4 or ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    dscp: u8,
    /// The operation, for ARP.
    protocol: u8,
    source: u32,
    destination: u32,
    /// The ports, or type and code of ICMP; `None` for later fragments.
    transport: Option<(u16, u16)>,
}

impl Headers {
    /// Parses a frame; `None` if it is not an Ethernet frame.
    fn of(frame: &[u8]) -> Option<Self> {
        let (destination, rest) = frame.split_first_chunk()?;
        let (source, rest) = rest.split_first_chunk()?;
        let (kind, rest) = number(rest)?;
        let (tag, kind, rest) = match kind {
            ethernet::VLAN => {
                let (control, rest) = number(rest)?;
                let (kind, rest) = number(rest)?;
                let priority = u8::try_from(control >> 13).expect("three bits");
                (Some((priority, control & 0x0fff)), kind, rest)
            }
            kind => (None, kind, rest),
        };
        let network = match kind {
            ethernet::IPV4 => ipv4(rest),
            ethernet::ARP => arp(rest),
            _ => None,
        };
        Some(Self {
            destination: *destination,
            source: *source,
            tag,
            kind,
            network,
        })
    }

    /// Returns the match of all fields of the frame.
    fn exact(&self, in_port: PortNo) -> Match {
        let mut fields = vec![
            (Field::InPort, in_port.0.into()),
            (Field::EthDst, address(self.destination)),
            (Field::EthSrc, address(self.source)),
            (Field::EthType, self.kind.into()),
        ];
        match self.tag {
            // Bit 12 marks the presence of a tag (OF 1.3.5, 7.2.3.7).
            Some((priority, vlan)) => fields.extend([
                (Field::VlanVid, (0x1000 | vlan).into()),
                (Field::VlanPcp, priority.into()),
            ]),
            None => fields.push((Field::VlanVid, 0)),
        }
        if let Some(network) = self.network {
            network.add_to(self.kind, &mut fields);
        }
        let mut building = MatchBuilder::default();
        for (field, value) in fields {
            let added = building.add_exact(field, value);
            added.expect("fields follow their prerequisites");
        }
        building.build()
    }
}

impl Network {
    fn add_to(&self, kind: u16, fields: &mut Vec<(Field, u128)>) {
        if kind == ethernet::ARP {
            fields.extend([
                (Field::ArpOp, self.protocol.into()),
                (Field::ArpSpa, self.source.into()),
                (Field::ArpTpa, self.destination.into()),
            ]);
            return;
        }
        fields.extend([
            (Field::IpDscp, self.dscp.into()),
            (Field::IpProto, self.protocol.into()),
            (Field::Ipv4Src, self.source.into()),
            (Field::Ipv4Dst, self.destination.into()),
        ]);
        let port_fields = match self.protocol {
            protocol::ICMP => (Field::Icmpv4Type, Field::Icmpv4Code),
            protocol::TCP => (Field::TcpSrc, Field::TcpDst),
            _ => (Field::UdpSrc, Field::UdpDst),
        };
        if let Some((source, destination)) = self.transport {
            fields.extend([
                (port_fields.0, source.into()),
                (port_fields.1, destination.into()),
            ]);
        }
    }
}

/// Parses an IPv4 packet (RFC 791; RFC 9293, 3.1; RFC 768; RFC 792).
fn ipv4(packet: &[u8]) -> Option<Network> {
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return None;
    }
    let is_later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    let protocol = header[9];
    let transport = packet.get(length..).filter(|_| !is_later_fragment);
    let transport = transport.and_then(|bytes| match protocol {
        protocol::TCP | protocol::UDP => {
            let (source, rest) = number(bytes)?;
            Some((source, number(rest)?.0))
        }
        protocol::ICMP => {
            let [kind, code] = *bytes.first_chunk()?;
            Some((kind.into(), code.into()))
        }
        _ => None,
    });
    Some(Network {
        dscp: header[1] >> 2,
        protocol,
        source: word(&header[12..])?,
        destination: word(&header[16..])?,
        transport,
    })
}

/// Parses an ARP packet for IPv4 over Ethernet (RFC 826).
fn arp(packet: &[u8]) -> Option<Network> {
    let packet = packet.first_chunk::<28>()?;
    if packet[..6] != [0, 1, 0x08, 0x00, 6, 4] || packet[6] != 0 {
        return None;
    }
    Some(Network {
        dscp: 0,
        protocol: packet[7],
        source: word(&packet[14..])?,
        destination: word(&packet[24..])?,
        transport: None,
    })
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u16::from_be_bytes(*number), rest))
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_be_bytes)
}

fn address(station: [u8; 6]) -> u128 {
    station
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests;
