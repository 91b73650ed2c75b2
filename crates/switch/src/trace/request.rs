//! The frame to trace.

use std::sync::Arc;

use base::PortNo;
use flow::{Action, Field, HeaderFields, Match, PacketOut, PacketType, PipelineFields, Wide};
use packet::Frame;

use super::{FrozenPacket, TracedBridge};
use crate::megaflow::{Megaflow, MegaflowBuilder, OuterHeader};
use crate::odp::{OAM, OdpFlow, OdpGeneveOption, OdpTunnel, key_of};

/// The frame to trace.
#[derive(Clone)]
pub struct TraceRequest {
    /// The frame.
    pub frame: Frame,
    /// The ingress port; [`PortNo::ANY`] for none.
    pub from: PortNo,
    /// Pipeline fields besides those of the tunnel.
    fields: PipelineFields,
    /// The tunnel of a datapath flow.
    tunnel: Option<OdpTunnel>,
    /// The queue of the frame on arrival.
    pub skb_priority: u32,
    /// The actions of a packet-out; none for a received frame.
    pub actions: Option<Vec<Action>>,
    /// True if the caller installs the learned rules and addresses.
    pub learns: bool,
    /// True if ports are printed by name.
    pub names: bool,
    /// True if `debug_recirc` is shown as a recirculation.
    pub recirculates: bool,
    /// The packet that continues after a recirculation; none for a received frame.
    pub frozen: Option<Arc<FrozenPacket>>,
    /// The number of recirculations before.
    pub(super) recirculations: u32,
    /// The states of the connection at the next `ct` actions, the last one first; without one, the
    /// packet is new.
    pub connection_states: Vec<u8>,
}

/// The tunnel by which a frame arrived.
#[derive(Clone, Debug)]
pub struct ArrivalTunnel {
    /// The tunnel.
    pub tunnel: OdpTunnel,
    /// The type of its payload.
    pub packet_type: PacketType,
}

impl TraceRequest {
    /// Returns the request of a frame that a port receives.
    #[must_use]
    pub const fn received(frame: Frame, from: PortNo, learns: bool) -> Self {
        Self {
            frame,
            from,
            fields: PipelineFields::new(from),
            tunnel: None,
            skb_priority: 0,
            actions: None,
            learns,
            names: false,
            recirculates: false,
            frozen: None,
            recirculations: 0,
            connection_states: Vec::new(),
        }
    }

    /// Returns the request of `frame`, or of a frame with the values of `matching`. Of the match,
    /// the port and the pipeline fields count in any case.
    #[must_use]
    pub fn of_match(matching: &Match, frame: Option<Frame>) -> Self {
        let mut fields = PipelineFields::from_match(matching);
        if fields.in_port == PortNo(0) {
            fields.in_port = PortNo::ANY;
        }
        let frame = frame.unwrap_or_else(|| HeaderFields::of_match(matching).frame(0));
        let mut request = Self::received(frame, fields.in_port, false);
        request.fields = fields;
        request
    }

    /// Returns the request of `frame`, or of a frame with the values of a datapath flow, at this
    /// port.
    #[must_use]
    pub fn of_datapath(flow: &OdpFlow, from: PortNo, frame: Option<Frame>) -> Self {
        let frame = frame.unwrap_or_else(|| flow.frame_fields().frame(0));
        let mut request = Self::received(frame, from, false);
        let low = |number: u128| u32::try_from(number).unwrap_or_default();
        request.fields.mark = low(flow.skb_mark.value);
        request.skb_priority = low(flow.skb_priority.value);
        if let Some((space, id)) = flow.packet_type {
            let number = u128::from(space) << 16 | u128::from(id);
            request.fields.set(Field::PacketType, number);
        }
        request.tunnel = flow.tunnel.clone().filter(OdpTunnel::is_set);
        request
    }

    /// Returns the request with the tunnel by which the frame arrived.
    #[must_use]
    pub fn by_tunnel(mut self, arrival: Option<&ArrivalTunnel>) -> Self {
        if let Some(ArrivalTunnel {
            tunnel,
            packet_type,
        }) = arrival
        {
            self.fields.packet_type = *packet_type;
            self.tunnel = Some(tunnel.clone());
        }
        self
    }

    /// Returns the tunnel of the frame.
    #[must_use]
    pub const fn tunnel(&self) -> Option<&OdpTunnel> {
        self.tunnel.as_ref()
    }

    /// Returns the pipeline fields in this bridge, which maps the options of the tunnel.
    pub(super) fn registers(&self, bridge: &TracedBridge) -> PipelineFields {
        let mut fields = self.fields.clone();
        if let Some(tunnel) = &self.tunnel {
            set_tunnel(&mut fields, tunnel, bridge);
        }
        fields
    }

    /// Returns the record of the frame as the data path receives it, with these pipeline fields:
    /// without the congestion mark of its tunnel.
    pub(super) fn examined(&self, fields: &PipelineFields) -> Option<MegaflowBuilder> {
        let key = key_of(&self.frame, fields)?;
        let mut examined = MegaflowBuilder::new(&key, &self.frame);
        let octet = |number: u128| u8::try_from(number).unwrap_or_default();
        examined.leave_tunnel(
            self.tunnel
                .as_ref()
                .map_or_else(OuterHeader::default, |tunnel| OuterHeader {
                    tos: octet(tunnel.tos.value),
                    flags: octet(tunnel.flags.value),
                }),
        );
        Some(examined)
    }

    /// Gives a packet of a layer 3 tunnel its Ethernet header in the bridge, which has it already.
    pub(super) const fn enter_as_frame(&mut self) {
        self.fields.packet_type = PacketType::ETHERNET;
    }

    /// Returns the frame as a packet-out.
    pub(super) fn message(&self, bridge: &TracedBridge) -> PacketOut {
        PacketOut {
            buffer: None,
            registers: self.registers(bridge),
            actions: self.actions.clone().unwrap_or_default(),
            data: self.frame.bytes().to_vec(),
        }
    }

    /// Returns the text of a run with the queue of the frame in its flows, after the mark.
    pub(super) fn with_priority(priority: u32, text: &str) -> String {
        if priority == 0 {
            return text.to_owned();
        }
        let mut all = String::new();
        for line in text.split_inclusive('\n') {
            let is_flow = line.starts_with("Flow: ") || line.starts_with("Final flow: ");
            let first = line.find(": ").map(|at| at + 2);
            let first = first.filter(|at| is_flow && !line[*at..].starts_with("unchanged"));
            let Some(first) = first else {
                all += line;
                continue;
            };
            let marked = line[first..].starts_with("pkt_mark=");
            let mark = line[first..].find(',').filter(|_| marked);
            let (head, tail) = line.split_at(first + mark.map_or(0, |comma| comma + 1));
            all += &format!("{head}skb_priority={priority:#x},{tail}");
        }
        all
    }

    /// Copies the congestion mark of the tunnel to the frame. Returns false if the frame must be
    /// dropped because its transport ignores ECN.
    pub(super) fn copy_congestion_mark(&mut self) -> bool {
        let tos = self.tunnel.as_ref().map_or(0, |tunnel| tunnel.tos.value);
        let tos = u8::try_from(tos).unwrap_or_default();
        dataplane::tunnels::mark_inner(&mut self.frame, tos)
    }
}

/// Sets the pipeline fields of a frame that came by this tunnel.
fn set_tunnel(fields: &mut PipelineFields, tunnel: &OdpTunnel, bridge: &TracedBridge) {
    let terms = [
        (Field::TunnelId, tunnel.id.value),
        (Field::TunSrc, tunnel.src.value),
        (Field::TunDst, tunnel.dst.value),
        (Field::TunIpv6Src, tunnel.ipv6_src.value),
        (Field::TunIpv6Dst, tunnel.ipv6_dst.value),
        (Field::TunGbpId, tunnel.gbp.value & 0xffff),
        (Field::TunGbpFlags, tunnel.gbp.value >> 16 & 0xff),
        (Field::TunFlags, tunnel.flags.value & u128::from(OAM)),
    ];
    for (field, value) in terms {
        fields.set(field, value);
    }
    (fields.erspan, fields.gtpu) = (tunnel.erspan, tunnel.gtpu);
    for option in &tunnel.options {
        if let Some(field) = field_of(option, bridge) {
            let value = Wide::from_be_bytes(&option.value).unwrap_or(Wide::ZERO);
            fields.options.set(field, value);
        }
    }
}

/// Returns the field that the bridge maps an option to.
fn field_of(option: &OdpGeneveOption, bridge: &TracedBridge) -> Option<Field> {
    let mapping = bridge.pipeline.tunnel_options().find(|mapping| {
        (mapping.class, mapping.kind) == (option.class, option.kind)
            && usize::from(mapping.length) == option.value.len()
    });
    let fields = Field::tunnel_options();
    fields.get(usize::from(mapping?.index)).copied()
}

impl TracedBridge {
    /// Returns the megaflow of a packet that arrived by a tunnel, with all of its options.
    pub(super) fn with_tunnel(&self, megaflow: Megaflow, tunnel: &OdpTunnel) -> Megaflow {
        megaflow.with_tunnel(tunnel, |option| field_of(option, self))
    }
}
