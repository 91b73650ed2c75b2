//! The bytes that all frames of a template have in common, headers first. Checksums over changing
//! fields are computed in [`super::pattern`].

use base::SplitMix64;

use super::{Encapsulation, FCS, Party, Protocol, Tag, Template, Tunnel};
use crate::checksum::{checksum, sum};
use crate::layers::{
    ETHERNET_INSIDE, GENEVE, GRE, ICMP, IPV4, IPV6, MPLS, QINQ, TCP, UDP, VLAN, VXLAN,
};

/// The lengths of an Ethernet header and of an IPv4 header without options.
const ETHERNET: usize = 14;
const IPV4_LEN: usize = 20;

/// Offsets of changing fields from the start of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// The innermost Ethernet header, inside any tunnel.
    pub(super) ethernet: usize,
    /// The IP header.
    pub(super) ip: usize,
    /// The transport header.
    pub(super) transport: usize,
    /// The UDP source port of a tunnel.
    pub(super) tunnel_port: Option<usize>,
}

/// The number of bytes before the payload.
pub(super) fn headers_length(template: &Template) -> usize {
    let around = match template.encapsulation {
        Encapsulation::Plain => 0,
        Encapsulation::Vlan(_) | Encapsulation::Mpls(_) => 4,
        Encapsulation::QinQ { .. } => 8,
        Encapsulation::Vxlan(_) | Encapsulation::Geneve(_) => ETHERNET + IPV4_LEN + 8 + 8,
        Encapsulation::Gre(_) => ETHERNET + IPV4_LEN + 4,
    };
    let ip = match template.protocol {
        Protocol::Udp6 => 40,
        Protocol::Udp | Protocol::Tcp | Protocol::Icmp => IPV4_LEN,
    };
    let transport = match template.protocol {
        Protocol::Tcp => 20,
        Protocol::Udp | Protocol::Udp6 | Protocol::Icmp => 8,
    };
    around + ETHERNET + ip + transport
}

/// Builds the frame without FCS, with a filled payload but no signature.
pub(super) fn frame(template: &Template) -> (Vec<u8>, Places) {
    let length = usize::from(template.frame_bytes - FCS);
    let mut frame = Vec::with_capacity(length);
    let tunnel_port = tunnel(&mut frame, template, length);
    let ethernet = frame.len();
    frame.extend(template.destination.mac);
    frame.extend(template.source.mac);
    let kind = match template.protocol {
        Protocol::Udp6 => IPV6,
        Protocol::Udp | Protocol::Tcp | Protocol::Icmp => IPV4,
    };
    tags(&mut frame, template.encapsulation, kind);
    let ip = frame.len();
    ip_header(&mut frame, template, length - ip);
    let transport = frame.len();
    transport_header(&mut frame, template, length - transport);
    // A device cannot reproduce random bytes, so a modified byte is detected.
    let mut random = SplitMix64::new(u64::from(template.frame_bytes));
    frame.resize_with(length, || random.next_u64().to_be_bytes()[0]);
    let places = Places {
        ethernet,
        ip,
        transport,
        tunnel_port,
    };
    (frame, places)
}

/// Writes the headers of a tunnel around a frame, `length` bytes in all; returns the offset of its
/// source port.
fn tunnel(frame: &mut Vec<u8>, template: &Template, length: usize) -> Option<usize> {
    let (tunnel, protocol) = match template.encapsulation {
        Encapsulation::Vxlan(tunnel) | Encapsulation::Geneve(tunnel) => (tunnel, UDP),
        Encapsulation::Gre(tunnel) => (tunnel, GRE),
        Encapsulation::Plain
        | Encapsulation::Vlan(_)
        | Encapsulation::QinQ { .. }
        | Encapsulation::Mpls(_) => return None,
    };
    let Tunnel {
        source,
        destination,
        vni,
    } = tunnel;
    frame.extend(destination.mac);
    frame.extend(source.mac);
    frame.extend(IPV4.to_be_bytes());
    let ends = (&source, &destination);
    let class = Class {
        dscp: template.dscp,
        ttl: template.ttl,
    };
    ipv4(frame, ends, protocol, class, length - ETHERNET);
    let port = frame.len();
    let udp = |frame: &mut Vec<u8>, port: u16| {
        frame.extend(0xc000_u16.to_be_bytes()); // and more, by the flow
        frame.extend(port.to_be_bytes());
        frame.extend(sixteen(length - ETHERNET - IPV4_LEN).to_be_bytes());
        frame.extend([0, 0]); // none: the frame inside has its own (RFC 7348, 4.1)
    };
    match template.encapsulation {
        Encapsulation::Vxlan(_) => {
            udp(frame, VXLAN);
            frame.extend([0x08, 0, 0, 0]); // the VNI is there
            frame.extend((vni << 8).to_be_bytes());
        }
        Encapsulation::Geneve(_) => {
            udp(frame, GENEVE);
            frame.extend([0, 0]);
            frame.extend(ETHERNET_INSIDE.to_be_bytes());
            frame.extend((vni << 8).to_be_bytes());
        }
        _ => {
            frame.extend([0, 0]);
            frame.extend(ETHERNET_INSIDE.to_be_bytes());
        }
    }
    (protocol == UDP).then_some(port)
}

/// Writes tags or a label, and the EtherType of the payload.
fn tags(frame: &mut Vec<u8>, encapsulation: Encapsulation, kind: u16) {
    let mut tag = |tpid: u16, tag: Tag| {
        frame.extend(tpid.to_be_bytes());
        frame.extend((u16::from(tag.pcp) << 13 | tag.vid).to_be_bytes());
    };
    match encapsulation {
        Encapsulation::Vlan(one) => tag(VLAN, one),
        Encapsulation::QinQ { outer, inner } => {
            tag(QINQ, outer);
            tag(VLAN, inner);
        }
        Encapsulation::Mpls(label) => {
            let entry = label.value << 12
                | u32::from(label.class) << 9
                | 1 << 8 // the last of the stack
                | u32::from(label.ttl);
            frame.extend(MPLS.to_be_bytes());
            frame.extend(entry.to_be_bytes());
            return;
        }
        Encapsulation::Plain
        | Encapsulation::Vxlan(_)
        | Encapsulation::Gre(_)
        | Encapsulation::Geneve(_) => {}
    }
    frame.extend(kind.to_be_bytes());
}

/// Writes the IP header of a packet of `length` bytes.
fn ip_header(frame: &mut Vec<u8>, template: &Template, length: usize) {
    let (source, destination) = (&template.source, &template.destination);
    let class = Class {
        dscp: template.dscp,
        ttl: template.ttl,
    };
    let protocol = match template.protocol {
        Protocol::Udp | Protocol::Udp6 => UDP,
        Protocol::Tcp => TCP,
        Protocol::Icmp => ICMP,
    };
    if template.protocol != Protocol::Udp6 {
        return ipv4(frame, (source, destination), protocol, class, length);
    }
    frame.extend((6 << 28 | u32::from(class.dscp) << 22).to_be_bytes());
    frame.extend(sixteen(length - 40).to_be_bytes());
    frame.extend([protocol, class.ttl]);
    frame.extend(source.ipv6.octets());
    frame.extend(destination.ipv6.octets());
}

/// The DSCP and TTL of a packet.
#[derive(Clone, Copy)]
struct Class {
    dscp: u8,
    ttl: u8,
}

/// Writes an IPv4 header (RFC 791) with its checksum, for a packet of `length` bytes.
fn ipv4(
    frame: &mut Vec<u8>,
    (source, destination): (&Party, &Party),
    protocol: u8,
    class: Class,
    length: usize,
) {
    let mut header = [0; IPV4_LEN];
    header[..2].copy_from_slice(&[0x45, class.dscp << 2]);
    header[2..4].copy_from_slice(&sixteen(length).to_be_bytes());
    header[6..10].copy_from_slice(&[0x40, 0, class.ttl, protocol]); // don't fragment
    header[12..16].copy_from_slice(&source.ipv4.octets());
    header[16..].copy_from_slice(&destination.ipv4.octets());
    let checksum = checksum(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(header);
}

/// Writes the header of a segment, datagram or message of `length` bytes, without its checksum.
fn transport_header(frame: &mut Vec<u8>, template: &Template, length: usize) {
    let ports = [template.source.port, template.destination.port].map(u16::to_be_bytes);
    match template.protocol {
        Protocol::Udp | Protocol::Udp6 => {
            frame.extend(ports.as_flattened());
            frame.extend(sixteen(length).to_be_bytes());
            frame.extend([0, 0]);
        }
        Protocol::Tcp => {
            frame.extend(ports.as_flattened());
            frame.extend(1_u32.to_be_bytes());
            frame.extend(1_u32.to_be_bytes());
            frame.extend([0x50, 0x18]); // five words; PSH, ACK
            frame.extend(0xffff_u16.to_be_bytes());
            frame.extend([0; 4]);
        }
        Protocol::Icmp => frame.extend([8, 0, 0, 0, 0, 1, 0, 1]), // an echo request
    }
}

fn sixteen(length: usize) -> u16 {
    u16::try_from(length).expect("frames are shorter than their lengths' fields allow")
}
