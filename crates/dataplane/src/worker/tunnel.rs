//! Tunnels in a worker: encapsulation, and decapsulation of packets that reach the host on a port
//! with its addresses. Software builds the outer headers for each segment: no device segments or
//! computes checksums within a tunnel.

use std::net::IpAddr;
use std::sync::Arc;

use base::PortNo;
use flow::PipelineFields;
use packet::neighbour::NeighbourMessage;
use packet::tunnel::{self, OuterHeaders, TunnelError, TunnelHeader, TunnelPacket, TunnelProtocol};
use packet::{Frame, MacAddr, segment};
use ports::{Batch, Counter};

use super::forwarder::BatchForwarder;
use super::recirculation::RecirculatedBatch;
use crate::counters::WorkerDrop;
use crate::messages::WorkerEvent;
use crate::program::{CrossingMode, Program};
use crate::slots::PortKey;
use crate::tunnels::{self, Encapsulation, TunnelRefusal};
use crate::underlay::{HostPacket, TunnelLookup, UnderlayPort};
use crate::virtual_links::VirtualLink;
use config::TunnelConfig;

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
        let Some(bridge) = program.bridge(exit.bridge) else {
            return self.drop_batch(&mut transit.frames, WorkerDrop::NoBridge);
        };
        match Encapsulation::new(&program.underlay, &bridge.pipeline, tunnel, fields) {
            Err(refusal) => {
                if let TunnelRefusal::NoNeighbour(by, next) = refusal {
                    self.reporter
                        .report(WorkerEvent::Resolve(by, next), WorkerDrop::LearnQueueFull);
                }
                self.drop_batch(&mut transit.frames, drop_reason(refusal));
            }
            Ok(mut encapsulation) => {
                encapsulation.set_time(self.now);
                let counted = [Counter::TxPackets, Counter::TxBytes];
                self.count(exit, counted, &transit.frames);
                for frame in transit.frames.drain() {
                    self.encapsulate_segments(exit, &mut encapsulation, frame);
                }
            }
        }
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
        if let Err(error) = cut {
            self.reporter.count(error.into());
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
        let number = encapsulation
            .is_sequenced()
            .then(|| self.recirculation.next_number(exit));
        match encapsulation.encapsulate(&mut frame, number, &mut self.pool) {
            Ok(()) => self.recirculation.enter(encapsulation.by, &None, frame),
            Err(refusal) => self.drop_frame(frame, drop_reason(refusal)),
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
                Some((protocol, packet)) => {
                    if host_port.snoops {
                        self.snoop_sender(program, at, &packet.outer);
                    }
                    self.deliver_inner(program, &packet, protocol, frame);
                }
                None => {
                    if host_port.snoops {
                        self.snoop(at, host_port, &frame);
                    }
                    to_host.put(frame);
                }
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

    /// Reports the neighbour that a frame to the host names.
    fn snoop(&mut self, at: PortKey, host_port: &UnderlayPort, frame: &Frame) {
        let message = NeighbourMessage::parse(frame);
        let message = message.filter(|message| message.is_for(&host_port.addresses));
        if let Some(NeighbourMessage { host, mac, .. }) = message {
            self.report_neighbour(at, host, mac);
        }
    }

    /// Reports the sender of a tunnel packet, unless it is known.
    fn snoop_sender(&mut self, program: &Program, at: PortKey, outer: &OuterHeaders) {
        let known = program.underlay.neighbours.get(&(at, outer.src));
        if known != Some(&outer.eth_src) {
            self.report_neighbour(at, outer.src, outer.eth_src);
        }
    }

    fn report_neighbour(&mut self, at: PortKey, host: IpAddr, mac: MacAddr) {
        self.reporter.report(
            WorkerEvent::Neighbour(at, host, mac),
            WorkerDrop::LearnQueueFull,
        );
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
            Ok(inner) => {
                // The Ethernet header of a bare packet is no part of it.
                let counted = [Counter::RxPackets, Counter::RxBytes];
                self.count(inner.port, counted, std::slice::from_ref(&frame));
                if !tunnels::add_ethernet_header(&mut frame, inner.header.payload) {
                    return self.drop_frame(frame, WorkerDrop::TunnelTooLong);
                }
                if program.crossing != CrossingMode::Off {
                    self.note_decapsulated(program, &packet.outer, &inner, &frame);
                }
                if !tunnels::copy_congestion_mark(&mut frame, &packet.outer) {
                    return self.drop_frame(frame, WorkerDrop::TunnelCongested);
                }
                let fields = Some(Arc::new(inner.fields));
                self.recirculation.enter(inner.port, &fields, frame);
            }
        }
    }
}

/// The tunnel port of a decapsulated packet, its pipeline fields and its tunnel header.
pub(super) struct InnerPacket {
    pub(super) port: PortKey,
    pub(super) fields: PipelineFields,
    pub(super) header: TunnelHeader,
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
    match program.underlay.classify(host_port, &packet, frame.bytes()) {
        HostPacket::Tunnel(protocol) => Some((protocol, packet)),
        HostPacket::Host => None,
    }
}

/// Decapsulates a packet.
fn decapsulate(
    program: &Program,
    packet: &TunnelPacket,
    protocol: TunnelProtocol,
    frame: &mut Frame,
) -> Result<InnerPacket, WorkerDrop> {
    let tunnel_header =
        tunnel::decapsulate(frame, packet, protocol).map_err(|error| match error {
            TunnelError::Payload => WorkerDrop::TunnelPayload,
            TunnelError::TooLong => WorkerDrop::TunnelTooLong,
            TunnelError::Truncated | TunnelError::Unknown | TunnelError::Checksum => {
                WorkerDrop::TunnelMalformed
            }
        })?;
    let lookup = TunnelLookup::new(packet, &tunnel_header);
    let port = program.underlay.tunnels.find(&lookup);
    let port = port.ok_or(WorkerDrop::TunnelNoPort)?;
    let bridge = program.bridge(port.bridge).ok_or(WorkerDrop::NoBridge)?;
    let fields = tunnels::decapsulated_fields(&packet.outer, &tunnel_header, &bridge.pipeline);
    let mut fields = fields.ok_or(WorkerDrop::TunnelOption)?;
    if let Some(VirtualLink::Tunnel(tunnel)) = program.virtual_links.find(port) {
        fields.packet_type = tunnels::packet_type(tunnel, tunnel_header.payload);
    }
    Ok(InnerPacket {
        port,
        fields,
        header: tunnel_header,
    })
}

/// Returns the reason to count.
const fn drop_reason(refusal: TunnelRefusal) -> WorkerDrop {
    match refusal {
        TunnelRefusal::NoRemote => WorkerDrop::TunnelNoRemote,
        TunnelRefusal::ToSelf => WorkerDrop::TunnelToSelf,
        TunnelRefusal::NoRoute => WorkerDrop::TunnelNoRoute,
        TunnelRefusal::NoNeighbour(..) => WorkerDrop::TunnelNoNeighbour,
        TunnelRefusal::Field => WorkerDrop::TunnelField,
        TunnelRefusal::Payload => WorkerDrop::TunnelPayload,
        TunnelRefusal::TooLong => WorkerDrop::TunnelTooLong,
    }
}
