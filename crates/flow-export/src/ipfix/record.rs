//! Flow keys, flow counters, and the encoding of flow records.

use base::Instant;
use packet::wire::vlan::VlanTag;
use packet::{Headers, Network, Transport};

use super::IpfixObservation;
use super::template::{NetworkLayer, TemplateKind, TransportLayer};
use crate::FrameExcerpt;

/// The key of a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IpfixFlowKey {
    pub(super) observation: IpfixObservation,
    pub(super) template: TemplateKind,
    /// The encoded key, with which a record begins.
    bytes: Vec<u8>,
}

/// The length of a frame in bytes, and of its IP packet.
pub(super) type Lengths = [u64; 2];

/// The counters of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IpfixFlowCounts {
    first: Instant,
    last: Instant,
    packets: u64,
    /// Bytes of frames, and of IP packets.
    octets: [u64; 2],
    sum_of_squares: u64,
    shortest: u64,
    longest: u64,
}

impl IpfixFlowCounts {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            first: now,
            last: now,
            packets: 0,
            octets: [0; 2],
            sum_of_squares: 0,
            shortest: u64::MAX,
            longest: 0,
        }
    }

    /// Adds a sampled frame that represents `stands_for` frames of the same length.
    pub(super) fn add(&mut self, [whole, packet]: Lengths, stands_for: u64, now: Instant) {
        self.last = now;
        self.packets += stands_for;
        self.octets[0] += whole * stands_for;
        self.octets[1] += packet * stands_for;
        self.sum_of_squares += packet * packet * stands_for;
        self.shortest = self.shortest.min(packet);
        self.longest = self.longest.max(packet);
    }
}

/// Returns the flow key and the lengths of a frame; none if the frame is malformed.
pub(super) fn read(
    observation: IpfixObservation,
    frame: &FrameExcerpt,
) -> Option<(IpfixFlowKey, Lengths)> {
    let headers = frame.headers.as_ref()?;
    let network = match headers.network {
        Network::Ipv4(_) => NetworkLayer::Ipv4,
        Network::Ipv6(_) => NetworkLayer::Ipv6,
        Network::None | Network::Mpls(_) | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => {
            NetworkLayer::Other
        }
    };
    let transport = match headers.transport {
        Transport::None => TransportLayer::Other,
        Transport::Tcp(_) | Transport::Udp(_) | Transport::Sctp(_) => TransportLayer::Ports,
        Transport::Icmpv4(_) | Transport::Icmpv6(_) => TransportLayer::Icmp,
    };
    let template = TemplateKind {
        is_tagged: headers.link.tag.is_some(),
        network,
        transport,
    };
    let mut bytes = Vec::with_capacity(96);
    write_link(observation, headers, &mut bytes);
    write_network(headers, &mut bytes);
    write_transport(headers, &mut bytes);
    let before = headers.link.payload_at() as u64;
    let whole = frame.length as u64;
    let packet = whole.saturating_sub(before);
    // A short packet is followed by padding.
    let packet = match headers.network {
        Network::Ipv4(ip) => packet.min(ip.total_len.into()),
        Network::Ipv6(ip) => packet.min(ip.total_len as u64),
        Network::None | Network::Mpls(_) | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => {
            packet
        }
    };
    let key = IpfixFlowKey {
        observation,
        template,
        bytes,
    };
    Some((key, [whole, packet]))
}

fn write_link(observation: IpfixObservation, headers: &Headers, to: &mut Vec<u8>) {
    let link = &headers.link;
    to.extend(observation.point.to_be_bytes());
    to.push(observation.leaves.into());
    observation
        .interfaces
        .into_iter()
        .for_each(|index| to.extend(index.to_be_bytes()));
    to.extend(link.src.0);
    to.extend(link.dst.0);
    to.extend(link.eth_type.0.to_be_bytes());
    to.push(u8::try_from(link.payload_at()).unwrap_or(u8::MAX));
    if let Some(VlanTag { vid, pcp, .. }) = link.tag {
        // The customer's VLAN and the outermost VLAN are the same if there is one tag.
        to.extend(vid.to_be_bytes());
        to.extend(vid.to_be_bytes());
        to.push(pcp);
    }
}

fn write_network(headers: &Headers, to: &mut Vec<u8>) {
    let mut write = |version: u8, ttl: u8, protocol: u8, tos: u8| {
        to.extend([version, ttl, protocol, tos >> 2, tos >> 5, tos]);
    };
    match headers.network {
        Network::Ipv4(ip) => {
            write(4, ip.ttl, ip.protocol.0, ip.tos);
            to.extend(ip.src.octets());
            to.extend(ip.dst.octets());
        }
        Network::Ipv6(ip) => {
            write(6, ip.hop_limit, ip.protocol.0, ip.traffic_class);
            to.extend(ip.src.octets());
            to.extend(ip.dst.octets());
            to.extend(ip.flow_label.to_be_bytes());
        }
        Network::None | Network::Mpls(_) | Network::Pbb(_) | Network::Nsh(_) | Network::Arp(_) => {}
    }
}

fn write_transport(headers: &Headers, to: &mut Vec<u8>) {
    let mut ports = |src: u16, dst: u16| {
        to.extend(src.to_be_bytes());
        to.extend(dst.to_be_bytes());
    };
    match headers.transport {
        Transport::None => {}
        Transport::Tcp(tcp) => ports(tcp.src, tcp.dst),
        Transport::Udp(udp) => ports(udp.src, udp.dst),
        Transport::Sctp(sctp) => ports(sctp.src, sctp.dst),
        Transport::Icmpv4(icmp) => to.extend([icmp.kind, icmp.code]),
        Transport::Icmpv6(icmp) => to.extend([icmp.kind, icmp.code]),
    }
}

/// Writes the record of a flow as its template describes it.
pub(super) fn write(
    key: &IpfixFlowKey,
    counts: &IpfixFlowCounts,
    exporter_name: Option<&str>,
    reason: u8,
    now: Instant,
    to: &mut Vec<u8>,
) {
    to.extend(&key.bytes);
    if let Some(name) = exporter_name {
        // Lengths below 255 take one byte (RFC 7011, 7).
        let name = &name.as_bytes()[..name.len().min(254)];
        to.push(u8::try_from(name.len()).unwrap_or(0));
        to.extend(name);
    }
    for time in [counts.first, counts.last] {
        let micros = (now - time).as_micros();
        to.extend(u32::try_from(micros).unwrap_or(u32::MAX).to_be_bytes());
    }
    to.extend(counts.packets.to_be_bytes());
    to.extend(counts.octets[0].to_be_bytes());
    to.push(reason);
    if key.template.network != NetworkLayer::Other {
        let ip_counts = [
            counts.octets[1],
            counts.sum_of_squares,
            counts.shortest,
            counts.longest,
        ];
        ip_counts
            .into_iter()
            .for_each(|count| to.extend(count.to_be_bytes()));
    }
}
