//! Neighbour resolution: requests by ARP (RFC 826) and by neighbour solicitations (RFC 4861), and the
//! messages from which a neighbour's address can be taken.
//!
//! ```
//! use packet::neighbour::{NeighbourMessage, request};
//! use packet::{Frame, MacAddr};
//!
//! let mac = MacAddr([2, 0, 0, 0, 0, 1]);
//! let (source, target) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
//! let bytes = request(mac, source, target).unwrap();
//! assert_eq!(bytes.len(), 42);
//! // A request is no reply.
//! assert_eq!(NeighbourMessage::parse(&Frame::from_bytes(&bytes)), None);
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::InternetSum;
use crate::wire::arp::ArpAddresses;
use crate::wire::ethernet::{self, EtherType};
use crate::wire::{Fragment, IpProto, icmpv6, ipv6};
use crate::{Depth, Frame, Headers, MacAddr, Network, Transport};

/// Operation codes of ARP.
const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;

/// Hop limit of messages of neighbour discovery: no router forwards them (RFC 4861, 7.1).
const HOP_LIMIT: u8 = 255;

/// First bytes of solicited-node multicast addresses; the last three are those of the address (RFC
/// 4291, 2.7.1).
const SOLICITED_NODE: [u8; 13] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];

/// A message that reports the Ethernet address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourMessage {
    /// The host.
    pub host: IpAddr,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// The recipient; none for a gratuitous ARP message, which is for everyone.
    recipient: Option<IpAddr>,
}

impl NeighbourMessage {
    /// Parses an ARP reply, a gratuitous ARP message, or a neighbour advertisement with a target
    /// link-layer address. Returns `None` for other frames, and for tagged ones.
    #[must_use]
    pub fn parse(frame: &Frame) -> Option<Self> {
        let headers = Headers::parse(frame, Depth::Transport).ok()?;
        if headers.link.tag.is_some() {
            return None;
        }
        match (&headers.network, &headers.transport) {
            (Network::Arp(arp), _) => {
                let addresses = arp.addresses.as_ref()?;
                let is_gratuitous = addresses.spa == addresses.tpa;
                let is_usable = addresses.sha != MacAddr::default()
                    && (arp.op == ARP_REPLY || (is_gratuitous && arp.op == ARP_REQUEST));
                is_usable.then_some(Self {
                    host: addresses.spa.into(),
                    mac: addresses.sha,
                    recipient: (!is_gratuitous).then_some(addresses.tpa.into()),
                })
            }
            (Network::Ipv6(ip), Transport::Icmpv6(message)) => {
                let nd = message.nd.as_ref()?;
                let mac = nd.tll.as_ref()?.address;
                let is_usable = message.kind == icmpv6::ADVERTISEMENT
                    && ip.hop_limit == HOP_LIMIT
                    && mac != MacAddr::default();
                is_usable.then_some(Self {
                    host: nd.target.into(),
                    mac,
                    recipient: Some(ip.dst.into()),
                })
            }
            _ => None,
        }
    }

    /// True if the message is for a host with these addresses.
    #[must_use]
    pub fn is_for(&self, addresses: &[IpAddr]) -> bool {
        let Some(recipient) = self.recipient else {
            return true;
        };
        addresses.iter().any(|address| {
            let group = match address {
                IpAddr::V6(address) => Some(solicited_node(*address).into()),
                IpAddr::V4(_) => None,
            };
            recipient == *address || Some(recipient) == group
        })
    }
}

/// Returns the solicited-node multicast address.
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let mut octets = address.octets();
    octets[..SOLICITED_NODE.len()].copy_from_slice(&SOLICITED_NODE);
    octets.into()
}

/// Returns a request for the Ethernet address of `target`; `None` if the addresses have different
/// IP versions.
#[must_use]
pub fn request(mac: MacAddr, source: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
    match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Some(arp_request(mac, source, target)),
        (IpAddr::V6(source), IpAddr::V6(target)) => Some(solicitation(mac, source, target)),
        _ => None,
    }
}

fn frame_to(dst: MacAddr, src: MacAddr, eth_type: EtherType) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend(dst.0);
    bytes.extend(src.0);
    bytes.extend(eth_type.0.to_be_bytes());
    bytes
}

fn arp_request(mac: MacAddr, source: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let addresses = ArpAddresses {
        sha: mac,
        spa: source,
        tha: MacAddr::default(),
        tpa: target,
    };
    let mut bytes = frame_to(MacAddr([0xff; 6]), mac, EtherType::ARP);
    bytes.extend(addresses.emit(ARP_REQUEST));
    bytes
}

fn solicitation(mac: MacAddr, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let group = solicited_node(target);
    let [.., a, b, c, d] = group.octets();
    // Multicast over Ethernet (RFC 2464, 7).
    let mut bytes = frame_to(MacAddr([0x33, 0x33, a, b, c, d]), mac, EtherType::IPV6);
    let len = icmpv6::ND_LEN + icmpv6::OPTION_LEN;
    let header = ipv6::Ipv6 {
        src: source,
        dst: group,
        protocol: IpProto::ICMPV6,
        protocol_at: 0,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: HOP_LIMIT,
        fragment: Fragment::No,
        extensions: ipv6::Extensions(0),
        routed: false,
        header_len: 40,
        total_len: ipv6::LEN + len,
    };
    bytes.extend(header.emit(IpProto::ICMPV6));
    let mut message = vec![icmpv6::SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    // The option counts its length in units of eight bytes.
    message.extend([icmpv6::OPTION_SOURCE, 1]);
    message.extend(mac.0);
    let sum = InternetSum::pseudo_v6(source, group, IpProto::ICMPV6, len);
    let sum = sum.plus(InternetSum::of(&message)).checksum();
    message[icmpv6::CHECKSUM..][..2].copy_from_slice(&sum.to_be_bytes());
    debug_assert_eq!(bytes.len(), ethernet::LEN + ipv6::LEN);
    bytes.extend(message);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([0xaa, 0x55, 0xaa, 0x55, 0, 0]);
    const PEER: MacAddr = MacAddr([0xf8, 0xbc, 0x12, 0x44, 0x34, 0xb6]);

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn neighbour_requests_are_as_open_vswitch_sends_them() {
        let arp = request(MAC, address("1.1.2.88"), address("1.1.2.92")).expect("one version");
        assert_eq!(
            hex(&arp),
            "ffffffffffffaa55aa55000008060001080006040001aa55aa550000010102580000000000000101025c"
        );
        let nd = request(MAC, address("2001:cafe::88"), address("2001:cafe::92"));
        assert_eq!(
            hex(&nd.expect("one version")),
            "3333ff000092aa55aa55000086dd6000000000203aff2001cafe000000000000000000000088ff02\
             00000000000000000001ff00009287004d48000000002001cafe0000000000000000000000920101\
             aa55aa550000"
        );
        assert_eq!(request(MAC, address("1.1.2.88"), address("fd00::1")), None);
    }

    fn arp(op: u16, spa: &str, tpa: &str, sha: MacAddr) -> Frame {
        let addresses = ArpAddresses {
            sha,
            spa: spa.parse().expect("an address"),
            tha: MacAddr::default(),
            tpa: tpa.parse().expect("an address"),
        };
        let mut bytes = frame_to(MAC, PEER, EtherType::ARP);
        bytes.extend(addresses.emit(op));
        Frame::from_bytes(&bytes)
    }

    #[test]
    fn arp_replies_and_gratuitous_messages_report_neighbours() {
        let own = [address("1.1.2.88")];
        let reply = arp(ARP_REPLY, "1.1.2.92", "1.1.2.88", PEER);
        let message = NeighbourMessage::parse(&reply).expect("a reply");
        assert_eq!((message.host, message.mac), (address("1.1.2.92"), PEER));
        assert!(message.is_for(&own) && !message.is_for(&[address("1.1.2.90")]));
        for op in [ARP_REQUEST, ARP_REPLY] {
            let gratuitous = arp(op, "1.1.2.92", "1.1.2.92", PEER);
            let message = NeighbourMessage::parse(&gratuitous).expect("gratuitous");
            assert!(message.is_for(&[]));
        }
        let request = arp(ARP_REQUEST, "1.1.2.92", "1.1.2.88", PEER);
        assert_eq!(NeighbourMessage::parse(&request), None);
        let unknown = arp(ARP_REPLY, "1.1.2.92", "1.1.2.88", MacAddr::default());
        assert_eq!(NeighbourMessage::parse(&unknown), None);
    }

    #[test]
    fn advertisement_to_own_or_solicited_node_address_reports_neighbour() {
        let (source, target) = (address("2001:cafe::88"), address("2001:cafe::92"));
        let solicitation = request(MAC, source, target).expect("one version");
        assert_eq!(
            NeighbourMessage::parse(&Frame::from_bytes(&solicitation)),
            None
        );
        let mut bytes = solicitation;
        bytes[54] = icmpv6::ADVERTISEMENT;
        bytes[78] = icmpv6::OPTION_TARGET;
        let message = NeighbourMessage::parse(&Frame::from_bytes(&bytes)).expect("a message");
        assert_eq!((message.host, message.mac), (target, MAC));
        // The destination is the group of ...:92.
        assert!(message.is_for(&[target]) && !message.is_for(&[source]));
        bytes[21] = 64;
        assert_eq!(NeighbourMessage::parse(&Frame::from_bytes(&bytes)), None);
    }
}
