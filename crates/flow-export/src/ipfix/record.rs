//! Flow keys, flow counters, and the encoding of flow records.

use base::Instant;
use packet::wire::vlan::VlanTag;
use packet::{Headers, Network as Header, Transport as Upper};

use super::IpfixObservation;
use super::template::{Network, TemplateKind, Transport};
use crate::FrameExcerpt;

/// The key of a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) seen: IpfixObservation,
    pub(super) shape: TemplateKind,
    /// The encoded key, with which a record begins.
    bytes: Vec<u8>,
}

/// The length of a frame in bytes, and of its IP packet.
pub(super) type Lengths = [u64; 2];

/// The counters of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    began: Instant,
    last: Instant,
    packets: u64,
    /// Bytes of frames, and of IP packets.
    octets: [u64; 2],
    squares: u64,
    shortest: u64,
    longest: u64,
}

impl Counts {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            began: now,
            last: now,
            packets: 0,
            octets: [0; 2],
            squares: 0,
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
        self.squares += packet * packet * stands_for;
        self.shortest = self.shortest.min(packet);
        self.longest = self.longest.max(packet);
    }
}

/// Returns the flow key and the lengths of a frame; none if the frame is malformed.
pub(super) fn read(seen: IpfixObservation, frame: &FrameExcerpt) -> Option<(Key, Lengths)> {
    let headers = frame.headers.as_ref()?;
    let network = match headers.network {
        Header::Ipv4(_) => Network::Ipv4,
        Header::Ipv6(_) => Network::Ipv6,
        Header::None | Header::Mpls(_) | Header::Pbb(_) | Header::Nsh(_) | Header::Arp(_) => {
            Network::Other
        }
    };
    let transport = match headers.transport {
        Upper::None => Transport::Other,
        Upper::Tcp(_) | Upper::Udp(_) | Upper::Sctp(_) => Transport::Ports,
        Upper::Icmpv4(_) | Upper::Icmpv6(_) => Transport::Icmp,
    };
    let shape = TemplateKind {
        is_tagged: headers.link.tag.is_some(),
        network,
        transport,
    };
    let mut bytes = Vec::with_capacity(96);
    write_link(seen, headers, &mut bytes);
    write_network(headers, &mut bytes);
    write_transport(headers, &mut bytes);
    let before = headers.link.payload_at() as u64;
    let whole = frame.length as u64;
    let packet = whole.saturating_sub(before);
    // A short packet is followed by padding.
    let packet = match headers.network {
        Header::Ipv4(ip) => packet.min(ip.total_len.into()),
        Header::Ipv6(ip) => packet.min(ip.total_len as u64),
        Header::None | Header::Mpls(_) | Header::Pbb(_) | Header::Nsh(_) | Header::Arp(_) => packet,
    };
    let key = Key { seen, shape, bytes };
    Some((key, [whole, packet]))
}

fn write_link(seen: IpfixObservation, headers: &Headers, to: &mut Vec<u8>) {
    let link = &headers.link;
    to.extend(seen.point.to_be_bytes());
    to.push(seen.leaves.into());
    seen.interfaces
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
        Header::Ipv4(ip) => {
            write(4, ip.ttl, ip.protocol.0, ip.tos);
            to.extend(ip.src.octets());
            to.extend(ip.dst.octets());
        }
        Header::Ipv6(ip) => {
            write(6, ip.hop_limit, ip.protocol.0, ip.traffic_class);
            to.extend(ip.src.octets());
            to.extend(ip.dst.octets());
            to.extend(ip.flow_label.to_be_bytes());
        }
        Header::None | Header::Mpls(_) | Header::Pbb(_) | Header::Nsh(_) | Header::Arp(_) => {}
    }
}

fn write_transport(headers: &Headers, to: &mut Vec<u8>) {
    let mut ports = |src: u16, dst: u16| {
        to.extend(src.to_be_bytes());
        to.extend(dst.to_be_bytes());
    };
    match headers.transport {
        Upper::None => {}
        Upper::Tcp(tcp) => ports(tcp.src, tcp.dst),
        Upper::Udp(udp) => ports(udp.src, udp.dst),
        Upper::Sctp(sctp) => ports(sctp.src, sctp.dst),
        Upper::Icmpv4(icmp) => to.extend([icmp.kind, icmp.code]),
        Upper::Icmpv6(icmp) => to.extend([icmp.kind, icmp.code]),
    }
}

/// Writes the record of a flow as its template describes it.
pub(super) fn write(
    key: &Key,
    counts: &Counts,
    named: Option<&str>,
    reason: u8,
    now: Instant,
    to: &mut Vec<u8>,
) {
    to.extend(&key.bytes);
    if let Some(name) = named {
        // Lengths below 255 take one byte (RFC 7011, 7).
        let name = &name.as_bytes()[..name.len().min(254)];
        to.push(u8::try_from(name.len()).unwrap_or(0));
        to.extend(name);
    }
    for then in [counts.began, counts.last] {
        let micros = (now - then).as_micros();
        to.extend(u32::try_from(micros).unwrap_or(u32::MAX).to_be_bytes());
    }
    to.extend(counts.packets.to_be_bytes());
    to.extend(counts.octets[0].to_be_bytes());
    to.push(reason);
    if key.shape.network != Network::Other {
        let of_ip = [
            counts.octets[1],
            counts.squares,
            counts.shortest,
            counts.longest,
        ];
        of_ip
            .into_iter()
            .for_each(|count| to.extend(count.to_be_bytes()));
    }
}
