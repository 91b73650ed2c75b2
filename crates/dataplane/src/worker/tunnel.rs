//! Tunnels in a worker: encapsulation, and decapsulation of packets that reach the host on a port
//! with its addresses. Software builds the outer headers for each segment: no device segments or
//! computes checksums within a tunnel.

use std::net::IpAddr;
use std::sync::Arc;

use base::PortNo;
use flow::PipelineFields;
use packet::tunnel::{
    self, OuterHeaders, OuterTransport, TunnelError, TunnelHeader, TunnelPacket, TunnelPayload,
    TunnelProtocol,
};
use packet::{Frame, segment};
use ports::{Batch, Counter};

use super::forwarder::BatchForwarder;
use super::recirculation::RecirculatedBatch;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::Program;
use crate::slots::PortKey;
use crate::tunnels;
use crate::underlay::{HostPacket, NextHop, UnderlayPort};
use config::TunnelConfig;

/// The common headers of all packets of a batch.
struct Encapsulation<'a> {
    tunnel: &'a TunnelConfig,
    outer: OuterHeaders,
    tunnel_header: TunnelHeader,
    egress_ports: (u16, u16),
    by: PortKey,
}

impl BatchForwarder {
    /// Encapsulates frames that have left by a tunnel, and recirculates the packets.
    pub(super) fn encapsulate(
        &mut self,
        program: &Program,
        exit: PortKey,
        tunnel: &TunnelConfig,
        transit: &mut RecirculatedBatch,
    ) {
        let none = PipelineFields::new(PortNo::ANY);
        let fields = transit.fields.as_deref().unwrap_or(&none);
        match self.prepare(program, exit, tunnel, fields) {
            Err(reason) => self.drop_batch(&mut transit.frames, reason),
            Ok(mut encapsulation) => {
                let counted = [Counter::TxPackets, Counter::TxBytes];
                self.count(exit, counted, &transit.frames);
                for frame in transit.frames.drain() {
                    self.encapsulate_segments(exit, &mut encapsulation, frame);
                }
            }
        }
    }

    /// Returns the outer headers of frames with these pipeline fields.
    fn prepare<'a>(
        &mut self,
        program: &Program,
        exit: PortKey,
        tunnel: &'a TunnelConfig,
        fields: &PipelineFields,
    ) -> Result<Encapsulation<'a>, WorkerDrop> {
        let underlay = &program.underlay;
        let bridge = program.bridge(exit.bridge).ok_or(WorkerDrop::NoBridge)?;
        let ends = tunnels::endpoints(tunnel, fields).ok_or(WorkerDrop::TunnelNoRemote)?;
        let ports_of_host = underlay.ports_of_host.values();
        let mut own = ports_of_host.flat_map(|host_port| &host_port.addresses);
        if own.any(|address| *address == ends.remote) {
            return Err(WorkerDrop::TunnelToSelf);
        }
        let hop = underlay.hop(ends.remote).ok_or(WorkerDrop::TunnelNoRoute)?;
        let NextHop {
            by,
            mac,
            next,
            source,
        } = hop;
        let Some(station) = underlay.neighbours.get(&(by, next)) else {
            self.reporter
                .report(WorkerEvent::Resolve(by, next), WorkerDrop::LearnQueueFull);
            return Err(WorkerDrop::TunnelNoNeighbour);
        };
        let local: IpAddr = ends.local.unwrap_or(source);
        Ok(Encapsulation {
            tunnel,
            outer: tunnels::outer(tunnel, (mac, *station), (local, ends.remote)),
            tunnel_header: tunnels::tunnel_header(tunnel, fields, &bridge.pipeline),
            egress_ports: underlay.egress_ports,
            by,
        })
    }

    /// Encapsulates a frame, or its segments.
    fn encapsulate_segments(
        &mut self,
        exit: PortKey,
        encapsulation: &mut Encapsulation<'_>,
        mut frame: Frame,
    ) {
        if frame.offload.segmentation.is_none() {
            frame.complete_checksum();
            return self.encapsulate_frame(exit, encapsulation, frame);
        }
        let mut segments = std::mem::take(&mut self.segments);
        let cut = segment(&frame, &mut self.pool, &mut segments);
        self.pool.put(frame);
        if cut.is_err() {
            self.reporter.count(WorkerDrop::NoBuffer);
        }
        for segment in segments.drain(..) {
            self.encapsulate_frame(exit, encapsulation, segment);
        }
        self.segments = segments;
    }

    fn encapsulate_frame(
        &mut self,
        exit: PortKey,
        encapsulation: &mut Encapsulation<'_>,
        mut frame: Frame,
    ) {
        let within = tunnels::inner_headers(frame.bytes());
        let Some(skip) = payload_offset(encapsulation, &within) else {
            return self.drop_frame(frame, WorkerDrop::TunnelPayload);
        };
        let outer = &mut encapsulation.outer;
        (outer.tos, outer.ttl) = tunnels::outer_tos_ttl(encapsulation.tunnel, &within);
        if let OuterTransport::Udp { src, .. } = &mut outer.upper {
            *src = tunnels::source_port(frame.bytes(), &within, encapsulation.egress_ports);
        }
        if encapsulation.tunnel.sequenced {
            let number = self.recirculation.next_number(exit);
            encapsulation.tunnel_header.sequence = Some(number);
        }
        let done = tunnel::encapsulate(
            &mut frame,
            skip,
            outer,
            &encapsulation.tunnel_header,
            &mut self.pool,
        );
        match done {
            Ok(()) => self.recirculation.enter(encapsulation.by, &None, frame),
            Err(_) => self.drop_frame(frame, WorkerDrop::TunnelTooLong),
        }
    }

    /// Decapsulates tunnel packets, and recirculates their frames; sends all other packets to the
    /// host.
    pub(super) fn terminate(
        &mut self,
        program: &Program,
        at: PortKey,
        host_port: &UnderlayPort,
        frames: &mut Batch,
    ) {
        let mut to_host = self.recirculation.spare();
        for frame in frames.drain() {
            match classify(program, host_port, &frame) {
                Some((protocol, packet)) => self.deliver_inner(program, &packet, protocol, frame),
                None => to_host.put(frame),
            }
        }
        if !to_host.is_empty() {
            self.send_to_host(at, &mut to_host);
        }
        self.recirculation.give_back(to_host);
    }

    /// Decapsulates tunnel packets that an interface of the host received, and recirculates their
    /// frames. All other packets are copies of packets that the host has, and are dropped.
    pub(super) fn receive_from_host(&mut self, program: &Program, at: PortKey, frames: &mut Batch) {
        let Some(host_port) = program.underlay.ports_of_host.get(&at) else {
            let count = frames.len();
            return frames.release(count, &mut self.pool);
        };
        for frame in frames.drain() {
            match classify(program, host_port, &frame) {
                Some((protocol, packet)) => self.deliver_inner(program, &packet, protocol, frame),
                None => self.pool.put(frame),
            }
        }
    }

    fn send_to_host(&mut self, at: PortKey, frames: &mut Batch) {
        let Some(slot) = self.slots.find(at) else {
            return self.drop_batch(frames, WorkerDrop::NoPort);
        };
        let sent = slot.queue.send(frames, &mut self.pool);
        self.drop_batch(frames, WorkerDrop::PortFull);
        if let Err(error) = sent {
            self.retire(at, error);
        }
    }

    fn deliver_inner(
        &mut self,
        program: &Program,
        packet: &TunnelPacket,
        protocol: TunnelProtocol,
        mut frame: Frame,
    ) {
        match decapsulate(program, packet, protocol, &mut frame) {
            Err(reason) => self.drop_frame(frame, reason),
            Ok((port, fields)) => {
                let counted = [Counter::RxPackets, Counter::RxBytes];
                self.count(port, counted, std::slice::from_ref(&frame));
                self.recirculation.enter(port, &Some(fields), frame);
            }
        }
    }
}

/// Parses a tunnel packet to the host, and returns its protocol; none for other packets.
fn classify(
    program: &Program,
    host_port: &UnderlayPort,
    frame: &Frame,
) -> Option<(TunnelProtocol, TunnelPacket)> {
    let packet = tunnel::parse_outer(frame.bytes())?;
    if packet.outer.eth_dst != host_port.mac {
        return None;
    }
    match program.underlay.classify(host_port, &packet) {
        HostPacket::Tunnel(protocol) => Some((protocol, packet)),
        HostPacket::Host => None,
    }
}

/// Decapsulates a packet. Returns the tunnel port and the pipeline fields of the frame.
fn decapsulate(
    program: &Program,
    packet: &TunnelPacket,
    protocol: TunnelProtocol,
    frame: &mut Frame,
) -> Result<(PortKey, Arc<PipelineFields>), WorkerDrop> {
    let tunnel_header =
        tunnel::decapsulate(frame, packet, protocol).map_err(|error| match error {
            TunnelError::Payload => WorkerDrop::TunnelPayload,
            TunnelError::TooLong => WorkerDrop::TunnelTooLong,
            TunnelError::Truncated | TunnelError::Unknown | TunnelError::Checksum => {
                WorkerDrop::TunnelMalformed
            }
        })?;
    let port = program.underlay.find(packet, &tunnel_header);
    let port = port.ok_or(WorkerDrop::TunnelNoPort)?;
    let bridge = program.bridge(port.bridge).ok_or(WorkerDrop::NoBridge)?;
    let fields = tunnels::decapsulated_fields(&packet.outer, &tunnel_header, &bridge.pipeline);
    let fields = fields.ok_or(WorkerDrop::TunnelOption)?;
    if !tunnels::add_ethernet_header(frame, tunnel_header.payload) {
        return Err(WorkerDrop::TunnelTooLong);
    }
    match tunnels::copy_congestion_mark(frame, &packet.outer) {
        true => Ok((port, Arc::new(fields))),
        false => Err(WorkerDrop::TunnelCongested),
    }
}

/// Returns the number of leading bytes that the tunnel does not carry; none if it does not carry
/// the frame.
fn payload_offset(
    encapsulation: &mut Encapsulation<'_>,
    within: &tunnels::InnerHeaders,
) -> Option<u16> {
    if !encapsulation.tunnel.is_layer3 {
        return within.payload_at.map(|_| 0);
    }
    if within.tagged {
        return None;
    }
    let payload = tunnels::bare_payload(within.eth_type, encapsulation.tunnel.protocol)?;
    encapsulation.tunnel_header.payload = TunnelPayload::Packet(payload);
    u16::try_from(within.payload_at?).ok()
}
