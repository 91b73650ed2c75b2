//! Outputs to tunnels, as datapath actions.

use std::net::IpAddr;

use config::{TunnelConfig, TunnelEndpoint, TunnelKey};
use dataplane::tunnels;
use flow::{PacketType, PipelineFields};
use packet::tunnel::{ErspanHeader, TunnelPayload, TunnelProtocol};
use packet::wire::ethernet::EtherType;
use packet::{Frame, Link};

use super::actions::OdpAction;
use super::{TraceEgress, TraceOutput, TracedBridge};
use crate::odp::{CHECKSUM, DONT_FRAGMENT, KEY, MaskedNumber, OAM, OdpGeneveOption, OdpTunnel};

fn exact(value: impl Into<u128>) -> MaskedNumber {
    MaskedNumber {
        value: value.into(),
        mask: u128::MAX,
    }
}

impl TraceOutput {
    /// Adds the tunnel of an output, if the actions have not set it. Returns the pipeline fields of
    /// the packet; none if the frame cannot leave.
    pub(super) fn set_tunnel(
        &mut self,
        bridge: &TracedBridge,
        tunnel: &TunnelConfig,
        leaving: &TraceEgress,
    ) -> Option<PipelineFields> {
        let none = PipelineFields::new(leaving.port);
        let fields = leaving.registers.as_deref().unwrap_or(&none);
        let Some(set) = tunnel_of(bridge, tunnel, (fields, leaving)) else {
            self.text += "     >> Tunneling decided against output\n";
            return None;
        };
        let text = set.text();
        if self.tunnel.as_ref() != Some(&text) {
            self.actions
                .push(OdpAction::Plain(format!("set(tunnel({text}))")));
            self.tunnel = Some(text);
        }
        Some(egress_fields(tunnel, fields, &leaving.frame))
    }
}

/// Returns the tunnel of a frame with these pipeline fields; none without a remote address.
fn tunnel_of(
    bridge: &TracedBridge,
    tunnel: &TunnelConfig,
    (fields, leaving): (&PipelineFields, &TraceEgress),
) -> Option<OdpTunnel> {
    let mut set = OdpTunnel::default();
    let (local, remote) = local_and_remote(tunnel, fields);
    match remote? {
        IpAddr::V4(address) => set.dst = exact(address.to_bits()),
        IpAddr::V6(address) => set.ipv6_dst = exact(address.to_bits()),
    }
    match local {
        Some(IpAddr::V4(address)) => set.src = exact(address.to_bits()),
        Some(IpAddr::V6(address)) => set.ipv6_src = exact(address.to_bits()),
        None => {}
    }
    set.id = match tunnel.out_key {
        TunnelKey::None => exact(0_u8),
        TunnelKey::Given(key) => exact(key),
        TunnelKey::Flow => exact(fields.tunnel_id),
    };
    let within = tunnels::inner_headers(leaving.frame.bytes());
    let (tos, ttl) = tunnels::outer_tos_ttl(tunnel, &within);
    (set.tos, set.ttl, set.tp_dst) = (exact(tos), exact(ttl), exact(tunnel.port));
    let flags = [
        (DONT_FRAGMENT, tunnel.dont_fragment),
        (CHECKSUM, tunnel.checksum),
        (KEY, tunnel.out_key != TunnelKey::None),
        (OAM, fields.tunnel_flags & OAM != 0),
    ];
    let flags = flags.iter().filter(|(_, is_set)| *is_set);
    set.flags = exact(flags.fold(0, |sum, (bit, _)| sum | bit));
    if matches!(tunnel.protocol, TunnelProtocol::Vxlan(_)) {
        set.gbp = exact(u32::from(fields.gbp_flags) << 16 | u32::from(fields.gbp_id));
    }
    let header = tunnels::tunnel_header(tunnel, fields, &bridge.pipeline)?;
    match header.erspan {
        None => {}
        Some(ErspanHeader::V1 { index }) => (set.erspan.version, set.erspan.index) = (1, index),
        Some(ErspanHeader::V2 {
            direction,
            hardware,
            ..
        }) => {
            set.erspan.version = 2;
            (set.erspan.direction, set.erspan.hardware) = (direction, hardware);
        }
    }
    // Open vSwitch writes these only if rules set them.
    set.gtpu = fields.gtpu;
    let options = header.options.into_iter();
    set.options = options
        .map(|option| OdpGeneveOption {
            class: option.class,
            kind: option.kind,
            value: option.value,
        })
        .collect();
    Some(set)
}

/// Returns the pipeline fields of a frame that leaves by a tunnel: with the packet mark of its
/// packets, and with the packet type of their payload.
pub(super) fn egress_fields(
    tunnel: &TunnelConfig,
    fields: &PipelineFields,
    frame: &Frame,
) -> PipelineFields {
    let mut egress = fields.clone();
    egress.mark = tunnels::mark(tunnel, fields);
    let eth_type = Link::parse(frame.bytes()).map_or(0, |link| link.eth_type.0);
    let payload = tunnels::payload(tunnel, eth_type, fields.packet_type);
    if let Some(TunnelPayload::Packet(EtherType(number))) = payload {
        egress.packet_type = PacketType::of_ether_type(number);
    }
    egress
}

/// Returns the source and the destination of tunnel packets for these pipeline fields. The source
/// is none if the route determines it.
pub(super) fn local_and_remote(
    tunnel: &TunnelConfig,
    fields: &PipelineFields,
) -> (Option<IpAddr>, Option<IpAddr>) {
    let by_flow = |v4: u32, v6: u128| match (v4, v6) {
        (0, 0) => None,
        (0, v6) => Some(IpAddr::V6(v6.into())),
        (v4, _) => Some(IpAddr::V4(v4.into())),
    };
    let remote = match tunnel.remote {
        TunnelEndpoint::Given(address) => Some(address),
        TunnelEndpoint::Any | TunnelEndpoint::Flow => {
            by_flow(fields.tunnel_v4[1], fields.tunnel_v6[1])
        }
    };
    let local = match tunnel.local {
        TunnelEndpoint::Given(address) => Some(address),
        TunnelEndpoint::Any => None,
        TunnelEndpoint::Flow => by_flow(fields.tunnel_v4[0], fields.tunnel_v6[0]),
    };
    (local, remote)
}
