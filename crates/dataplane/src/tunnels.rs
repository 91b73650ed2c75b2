//! Tunnel headers: those of a frame on egress, from the tunnel's configuration and the frame's
//! pipeline fields; and the pipeline fields of a decapsulated frame. No I/O.

mod encapsulation;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flow::{Field, PacketType, PipelineFields, Wide};
use packet::tunnel::{
    ErspanHeader, GTPU_FLAGS, GTPU_USER_PACKET, GroupPolicy, GtpuHeader, OuterHeaders,
    OuterTransport, TunnelHeader, TunnelOption, TunnelPayload, TunnelProtocol, VxlanExtension,
};
use packet::wire::ethernet::{self, EtherType};
use packet::{Frame, Link, MacAddr};
use pipeline::Pipeline;

use config::{ErspanOption, OuterField, PacketTypeMode, TunnelConfig, TunnelEndpoint, TunnelKey};

pub use encapsulation::{Encapsulation, TunnelRefusal};

/// The flag of `tun_flags` for packets of the tunnel endpoints themselves (`ovs-fields(7)`).
const OAM: u8 = 1;

/// ECN, the lowest bits of the octet (RFC 3168, 5).
const ECN: u8 = 3;
/// ECN codepoint CE: congestion experienced.
const CONGESTED: u8 = 3;
/// ECN codepoint ECT(0): ECN-capable transport.
const CAPABLE: u8 = 2;

/// The endpoints of a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelEndpoints {
    /// The destination.
    pub(crate) remote: IpAddr,
    /// The source; none if the route determines it.
    pub(crate) local: Option<IpAddr>,
}

/// Returns the endpoints of a tunnel packet for a frame with these pipeline fields; none if there
/// is no remote address.
pub fn endpoints(tunnel: &TunnelConfig, fields: &PipelineFields) -> Option<TunnelEndpoints> {
    let address = |v4: u32, v6: u128| match (v4, v6) {
        (0, 0) => None,
        (0, v6) => Some(IpAddr::V6(Ipv6Addr::from_bits(v6))),
        (v4, _) => Some(IpAddr::V4(Ipv4Addr::from_bits(v4))),
    };
    let remote = match tunnel.remote {
        TunnelEndpoint::Given(remote) => remote,
        TunnelEndpoint::Flow | TunnelEndpoint::Any => {
            address(fields.tunnel_v4[1], fields.tunnel_v6[1])?
        }
    };
    let local = match tunnel.local {
        TunnelEndpoint::Given(local) => Some(local),
        TunnelEndpoint::Any => None,
        TunnelEndpoint::Flow => address(fields.tunnel_v4[0], fields.tunnel_v6[0]),
    };
    // A local address of the other IP version remains from the tunnel that delivered the frame.
    let local = local.filter(|local| local.is_ipv4() == remote.is_ipv4());
    Some(TunnelEndpoints { remote, local })
}

/// Returns the packet mark of tunnel packets for frames with these pipeline fields.
pub fn mark(tunnel: &TunnelConfig, fields: &PipelineFields) -> u32 {
    tunnel.egress_mark.unwrap_or(fields.mark)
}

/// Returns the tunnel header for frames with these pipeline fields; none if the header cannot
/// express them: an ERSPAN version other than 1 and 2, or a session id of more than ten bits.
pub fn tunnel_header(
    tunnel: &TunnelConfig,
    fields: &PipelineFields,
    pipeline: &Pipeline,
) -> Option<TunnelHeader> {
    let mut tunnel_header = TunnelHeader::new(tunnel.protocol);
    let low = |key: u64| u32::try_from(key & u64::from(u32::MAX)).unwrap_or(0);
    tunnel_header.key = match tunnel.out_key {
        TunnelKey::None => None,
        TunnelKey::Given(key) => Some(key),
        TunnelKey::Flow => Some(low(fields.tunnel_id)),
    };
    tunnel_header.oam = fields.tunnel_flags & OAM != 0;
    tunnel_header.summed = tunnel.checksum;
    if tunnel.protocol == TunnelProtocol::Vxlan(VxlanExtension::Gbp)
        && (fields.gbp_id, fields.gbp_flags) != (0, 0)
    {
        tunnel_header.policy = Some(GroupPolicy {
            id: fields.gbp_id,
            flags: fields.gbp_flags,
        });
    }
    if tunnel.protocol == TunnelProtocol::Geneve && !fields.options.is_empty() {
        tunnel_header.options = options(fields, pipeline);
    }
    match tunnel.protocol {
        TunnelProtocol::Erspan => {
            tunnel_header.erspan = Some(erspan_header(tunnel, fields)?);
            let session = tunnel_header.key.unwrap_or(0);
            (session <= tunnel.protocol.key_max()).then_some(())?;
        }
        TunnelProtocol::Gtpu => {
            let or = |value, default| if value == 0 { default } else { value };
            tunnel_header.gtpu = Some(GtpuHeader {
                flags: or(fields.gtpu.flags, GTPU_FLAGS),
                message: or(fields.gtpu.message, GTPU_USER_PACKET),
            });
        }
        _ => {}
    }
    Some(tunnel_header)
}

/// Returns the ERSPAN header without a timestamp.
fn erspan_header(tunnel: &TunnelConfig, fields: &PipelineFields) -> Option<ErspanHeader> {
    let value = |option, field: u32| match option {
        ErspanOption::Given(value) => value,
        ErspanOption::Flow => field,
    };
    let octet = |value: u32| u8::try_from(value & 0xff).unwrap_or(0);
    let (config, fields) = (&tunnel.erspan, fields.erspan);
    match value(config.version, fields.version.into()) {
        1 => Some(ErspanHeader::V1 {
            index: value(config.index, fields.index),
        }),
        2 => Some(ErspanHeader::V2 {
            direction: octet(value(config.direction, fields.direction.into())),
            hardware: octet(value(config.hardware, fields.hardware.into())),
            timestamp: 0,
        }),
        _ => None,
    }
}

/// Returns the mapped options with their values in the pipeline fields.
fn options(fields: &PipelineFields, pipeline: &Pipeline) -> Vec<TunnelOption> {
    let known = pipeline.tunnel_options();
    known
        .filter_map(|mapping| {
            let field = Field::tunnel_options()
                .get(usize::from(mapping.index))
                .copied()?;
            let value = fields.options.value(field)?;
            let bytes = value.to_be_bytes();
            let first = bytes.len().checked_sub(mapping.length.into())?;
            Some(TunnelOption {
                class: mapping.class,
                kind: mapping.kind,
                value: bytes[first..].to_vec(),
            })
        })
        .collect()
}

/// The inner headers that determine outer ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnerHeaders {
    /// The EtherType.
    pub(crate) eth_type: u16,
    /// The offset of the payload; none if the frame is malformed.
    pub(crate) payload_at: Option<usize>,
    /// True if the frame has a VLAN tag.
    pub(crate) tagged: bool,
    /// The octet of DSCP and ECN, and the TTL, of an IP packet.
    ip: Option<(u8, u8)>,
}

/// Parses the inner headers.
pub fn inner_headers(frame: &[u8]) -> InnerHeaders {
    let Ok(link) = Link::parse(frame) else {
        return InnerHeaders::default();
    };
    let packet = frame.get(link.payload_at()..).unwrap_or_default();
    let ip = match (link.eth_type, packet) {
        (EtherType::IPV4, [_, tos, _, _, _, _, _, _, ttl, ..]) => Some((*tos, *ttl)),
        (EtherType::IPV6, [first, second, _, _, _, _, _, ttl, ..]) => {
            Some((first << 4 | second >> 4, *ttl))
        }
        _ => None,
    };
    InnerHeaders {
        eth_type: link.eth_type.0,
        payload_at: Some(link.payload_at()),
        tagged: link.tag.is_some(),
        ip,
    }
}

/// Returns the outer DSCP and ECN, and the TTL. The outer ECN of a congested packet is ECT(0),
/// because the inner packet already carries the mark (RFC 6040, 4.1).
pub fn outer_tos_ttl(tunnel: &TunnelConfig, within: &InnerHeaders) -> (u8, u8) {
    let dscp = match (tunnel.tos, within.ip) {
        (OuterField::Inherit(_), Some((tos, _))) => tos & !ECN,
        (OuterField::Inherit(usual), None) => usual,
        (OuterField::Given(tos), _) => tos,
    };
    let ecn = match within.ip.map(|(tos, _)| tos & ECN) {
        Some(CONGESTED) => CAPABLE,
        Some(ecn) => ecn,
        None => 0,
    };
    let ttl = match (tunnel.ttl, within.ip) {
        (OuterField::Inherit(_), Some((_, ttl))) => ttl,
        (OuterField::Inherit(usual), None) => usual,
        (OuterField::Given(ttl), _) => ttl,
    };
    (dscp | ecn, ttl)
}

/// Returns the UDP source port for a frame: one for each flow (RFC 7348, 5).
pub(crate) fn source_port(frame: &[u8], within: &InnerHeaders, range: (u16, u16)) -> u16 {
    // The hash is the same in every process: flows keep their path across a restart.
    let mut hasher = DefaultHasher::new();
    let link = frame.get(..ethernet::LEN).unwrap_or_default();
    let packet = within.payload_at.and_then(|at| frame.get(at..));
    match (EtherType(within.eth_type), packet) {
        (EtherType::IPV4, Some(packet)) if packet.len() >= 24 => {
            let header = 4 * usize::from(packet[0] & 15);
            // Later fragments have no ports.
            let is_whole = packet[6] & 0x3f == 0 && packet[7] == 0;
            packet[12..20].hash(&mut hasher);
            packet[9].hash(&mut hasher);
            if is_whole {
                packet.get(header..header + 4).hash(&mut hasher);
            }
        }
        (EtherType::IPV6, Some(packet)) if packet.len() >= 44 => {
            packet[8..40].hash(&mut hasher);
            packet[6].hash(&mut hasher);
            if matches!(packet[6], 6 | 17 | 132) {
                packet[40..44].hash(&mut hasher);
            }
        }
        _ => link.hash(&mut hasher),
    }
    let (first, last) = range;
    let count = u64::from(last.saturating_sub(first)) + 1;
    first + u16::try_from(hasher.finish() % count).unwrap_or(0)
}

/// Returns the outer transport header of a tunnel's packets.
pub(crate) fn upper(tunnel: &TunnelConfig, source: u16, is_v6: bool) -> OuterTransport {
    match tunnel.protocol {
        TunnelProtocol::Gre | TunnelProtocol::Erspan => OuterTransport::Gre,
        TunnelProtocol::Vxlan(_)
        | TunnelProtocol::Geneve
        | TunnelProtocol::Gtpu
        | TunnelProtocol::Lisp => OuterTransport::Udp {
            src: source,
            dst: tunnel.port,
            // IPv6 itself has no checksum (RFC 8200, 8.1).
            summed: tunnel.checksum || is_v6,
        },
    }
}

/// Returns the pipeline fields of a decapsulated frame. None if the packet has an unknown critical
/// option: a receiver must drop it (RFC 8926, 3.5).
pub fn decapsulated_fields(
    outer: &OuterHeaders,
    tunnel_header: &TunnelHeader,
    pipeline: &Pipeline,
) -> Option<PipelineFields> {
    let mut fields = PipelineFields::new(base::PortNo::ANY);
    fields.tunnel_id = tunnel_header.key.unwrap_or(0).into();
    match (outer.src, outer.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => fields.tunnel_v4 = [src.to_bits(), dst.to_bits()],
        (IpAddr::V6(src), IpAddr::V6(dst)) => fields.tunnel_v6 = [src.to_bits(), dst.to_bits()],
        _ => return None,
    }
    fields.tunnel_flags = if tunnel_header.oam { OAM } else { 0 };
    if let Some(policy) = tunnel_header.policy {
        (fields.gbp_id, fields.gbp_flags) = (policy.id, policy.flags);
    }
    if let Some(GtpuHeader { flags, message }) = tunnel_header.gtpu {
        (fields.gtpu.flags, fields.gtpu.message) = (flags, message);
    }
    match tunnel_header.erspan {
        None => {}
        Some(ErspanHeader::V1 { index }) => {
            (fields.erspan.version, fields.erspan.index) = (1, index);
        }
        Some(ErspanHeader::V2 {
            direction,
            hardware,
            ..
        }) => {
            fields.erspan.version = 2;
            (fields.erspan.direction, fields.erspan.hardware) = (direction, hardware);
        }
    }
    for option in &tunnel_header.options {
        let known = pipeline.tunnel_options().find(|mapping| {
            (mapping.class, mapping.kind) == (option.class, option.kind)
                && usize::from(mapping.length) == option.value.len()
        });
        match known.and_then(|mapping| {
            Field::tunnel_options()
                .get(usize::from(mapping.index))
                .copied()
        }) {
            Some(field) => fields.options.set(
                field,
                Wide::from_be_bytes(&option.value).unwrap_or(Wide::ZERO),
            ),
            None if option.is_critical() => return None,
            None => {}
        }
    }
    Some(fields)
}

/// Returns the payload of a tunnel packet for a frame with this EtherType and packet type; none if
/// the tunnel does not carry it.
pub fn payload(
    tunnel: &TunnelConfig,
    eth_type: u16,
    packet_type: PacketType,
) -> Option<TunnelPayload> {
    let is_frame = packet_type.is_ethernet();
    match tunnel.packet_type {
        PacketTypeMode::LegacyL2 | PacketTypeMode::Aware if is_frame => {
            Some(TunnelPayload::Ethernet)
        }
        PacketTypeMode::LegacyL2 => None,
        PacketTypeMode::LegacyL3 | PacketTypeMode::Aware => {
            bare_payload(eth_type, tunnel.protocol).map(TunnelPayload::Packet)
        }
    }
}

/// Returns the EtherType of a packet that a layer 3 tunnel carries, if it does.
fn bare_payload(eth_type: u16, protocol: TunnelProtocol) -> Option<EtherType> {
    let known = match (EtherType(eth_type), protocol) {
        (EtherType::IPV4 | EtherType::IPV6, _) => true,
        // Their payload is identified by its IP version.
        (_, TunnelProtocol::Gtpu | TunnelProtocol::Lisp) => false,
        (EtherType::MPLS, _) => true,
        (EtherType::NSH, protocol) => protocol != TunnelProtocol::Gre,
        _ => false,
    };
    known.then_some(EtherType(eth_type))
}

/// Returns the packet type of a decapsulated packet on this tunnel. Only packet-type-aware ports
/// have other types than Ethernet.
pub fn packet_type(tunnel: &TunnelConfig, payload: TunnelPayload) -> PacketType {
    match (tunnel.packet_type, payload) {
        (PacketTypeMode::Aware, TunnelPayload::Packet(EtherType(number))) => {
            PacketType::of_ether_type(number)
        }
        _ => PacketType::ETHERNET,
    }
}

/// Prepends an Ethernet header without addresses to a bare packet, because bridges process frames
/// only. Returns false if there is no room.
pub(crate) fn add_ethernet_header(frame: &mut Frame, payload: TunnelPayload) -> bool {
    let TunnelPayload::Packet(EtherType(number)) = payload else {
        return true;
    };
    if frame.insert_zeros(0, 14).is_err() {
        return false;
    }
    frame.bytes_mut()[ethernet::TYPE..ethernet::LEN].copy_from_slice(&number.to_be_bytes());
    true
}

/// Copies the congestion mark of the outer header to the inner packet (RFC 6040, 4.2). Returns
/// false if the frame must be dropped because its transport ignores ECN.
pub(crate) fn copy_congestion_mark(frame: &mut Frame, outer: &OuterHeaders) -> bool {
    mark_inner(frame, outer.tos)
}

/// Copies the congestion mark of an outer octet of DSCP and ECN to the inner packet. Returns false
/// if the frame must be dropped because its transport ignores ECN.
pub fn mark_inner(frame: &mut Frame, outer_tos: u8) -> bool {
    if outer_tos & ECN != CONGESTED {
        return true;
    }
    let within = inner_headers(frame.bytes());
    let Some(((tos, _), at)) = within.ip.zip(within.payload_at) else {
        return true;
    };
    match tos & ECN {
        0 => false,
        CONGESTED => true,
        _ => {
            mark_congested(&mut frame.bytes_mut()[at..], within.eth_type);
            true
        }
    }
}

fn mark_congested(packet: &mut [u8], eth_type: u16) {
    if EtherType(eth_type) == EtherType::IPV6 {
        packet[1] |= CONGESTED << 4;
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= CONGESTED;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    // RFC 1624, equation 3.
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let total = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let folded = (total & 0xffff) + (total >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let sum = !u16::try_from(folded & 0xffff).unwrap_or(0);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the outer headers; fields that depend on the frame are set later.
pub fn outer(
    tunnel: &TunnelConfig,
    macs: (MacAddr, MacAddr),
    ends: (IpAddr, IpAddr),
) -> OuterHeaders {
    OuterHeaders {
        eth_dst: macs.1,
        eth_src: macs.0,
        src: ends.0,
        dst: ends.1,
        tos: 0,
        ttl: 0,
        dont_fragment: tunnel.dont_fragment || ends.0.is_ipv6(),
        upper: upper(tunnel, 0, ends.1.is_ipv6()),
    }
}

#[cfg(test)]
mod tests;
