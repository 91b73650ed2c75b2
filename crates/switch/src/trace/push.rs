//! Outputs to tunnels whose headers the datapath adds itself: `tnl_push(...)` and the path of the
//! tunnel packet, and `tnl_pop(...)` for a tunnel packet that reaches the host.

use std::fmt::Write;

use config::TunnelConfig;
use dataplane::slots::PortKey;
use dataplane::tunnels::{Encapsulation, TunnelRefusal};
use flow::PipelineFields;
use packet::tunnel;
use packet::{Frame, Pool};

use super::tunnel::egress_fields;
use super::{TraceEgress, TraceOutput, TraceRequest, TraceVisit, TracedBridge, Tracer};
use crate::odp::{OdpHeaders, tunnel_push};

/// Buffers for a tunnel packet.
const BUFFERS: usize = 4;

impl Tracer {
    /// Adds a tunnel header to an output, and follows the packet into the bridge of its route.
    pub(super) fn push_tunnel(
        &self,
        visit: &TraceVisit,
        (bridge, tunnel): (&TracedBridge, &TunnelConfig),
        leaving: &TraceEgress,
        output: &mut TraceOutput,
    ) {
        let none = PipelineFields::new(leaving.port);
        let fields = leaving.registers.as_deref().unwrap_or(&none);
        output.text += "     -> output to native tunnel\n";
        let found = Encapsulation::new(&self.underlay, &bridge.pipeline, tunnel, fields);
        let mut packet = leaving.frame.clone();
        let pushed = found.and_then(|mut encapsulation| {
            encapsulation.complete(&leaving.frame)?;
            let headers = encapsulation.clone();
            let number = headers.is_sequenced().then_some(0);
            encapsulation.encapsulate(&mut packet, number, &mut Pool::new(BUFFERS))?;
            Ok((headers, number))
        });
        let (mut headers, number) = match pushed {
            Ok(pushed) => pushed,
            Err(refusal) => {
                output.text += &self.refusal_text(refusal);
                return;
            }
        };
        headers.header.sequence = number;
        let (outer, by) = (&headers.outer, headers.by);
        let name = self.host_port_name(by);
        // Writing to a string cannot fail.
        let _ = write!(
            output.text,
            "     -> tunneling to {} via {name}\n     -> tunneling from {} {} to {} {}\n",
            headers.next, outer.eth_src, outer.src, outer.eth_dst, headers.next
        );
        let egress = egress_fields(tunnel, fields, &leaving.frame);
        output.commit(&leaving.frame, Some(&egress));
        let before = std::mem::take(&mut output.actions);
        let state = (output.headers.take(), output.tunnel.take());
        // The bits of the tunnel packet are not those of the frame, which alone decides its path.
        let examined = output.megaflow.clone();
        let own = bridge.datapath_port(leaving.port, output.names);
        let out_port = self.datapath_port_of(by, output.names);
        output.add(tunnel_push(&own, outer, &headers.header, &out_port));
        let pushes = output.actions.len();
        let mut arrival = PipelineFields::new(by.port);
        arrival.mark = egress.mark;
        output.headers = OdpHeaders::read(&packet, &arrival);
        output.text += "\n";
        let request = TraceRequest::received(packet, by.port, visit.learns);
        self.follow(by.bridge, request, output);
        if output.actions.len() == pushes {
            // The packet leaves by no port: the header is not added.
            output.actions.clear();
        }
        output.close_clone(before);
        (output.headers, output.tunnel) = state;
        output.megaflow = examined;
    }

    /// Returns the line about a frame that a tunnel does not send.
    fn refusal_text(&self, refusal: TunnelRefusal) -> String {
        let why = match refusal {
            TunnelRefusal::NoRemote => "Tunneling decided against output".to_owned(),
            TunnelRefusal::ToSelf => "Not tunneling to our own address".to_owned(),
            TunnelRefusal::NoRoute => "native tunnel routing failed".to_owned(),
            TunnelRefusal::NoNeighbour(by, next) => {
                let name = self.host_port_name(by);
                let kind = if next.is_ipv4() { "ARP" } else { "ND" };
                return format!(
                    "     -> tunneling to {next} via {name}\n     -> neighbor cache miss for \
                     {next} on bridge {name}, sending {kind} request\n"
                );
            }
            TunnelRefusal::Field | TunnelRefusal::Payload => {
                "native tunnel header build failed".to_owned()
            }
            TunnelRefusal::TooLong => "the tunnel packet is too long".to_owned(),
        };
        format!("     >> {why}\n")
    }

    /// Returns the datapath number of the tunnels that receive a packet which is sent to a port of
    /// the host; none for other packets.
    pub(super) fn popping_port(&self, to: PortKey, frame: &Frame, named: bool) -> Option<String> {
        let host_port = self.underlay.ports_of_host.get(&to)?;
        let packet = tunnel::parse_outer(frame.bytes())?;
        if packet.outer.eth_dst != host_port.mac || !host_port.addresses.contains(&packet.outer.dst)
        {
            return None;
        }
        let header = frame.bytes().get(packet.at..packet.end).unwrap_or_default();
        let (_, first) = self.underlay.tunnels.listener(packet.outer.upper, header)?;
        Some(self.datapath_port_of(first, named))
    }

    fn host_port_name(&self, port: PortKey) -> String {
        let host_port = self.underlay.ports_of_host.get(&port);
        host_port.map_or_else(String::new, |host_port| host_port.name.clone())
    }

    fn datapath_port_of(&self, port: PortKey, named: bool) -> String {
        let bridge = self.bridges.get(&port.bridge);
        bridge.map_or_else(
            || port.port.to_string(),
            |bridge| bridge.datapath_port(port.port, named),
        )
    }
}
