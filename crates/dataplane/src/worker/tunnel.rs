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

use super::Worker;
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
    shim: TunnelHeader,
    egress_ports: (u16, u16),
    by: PortKey,
}

impl Worker {
    /// Encapsulates frames that have left by a tunnel, and recirculates the packets.
    pub(super) fn encapsulate(
        &mut self,
        program: &Program,
        exit: PortKey,
        tunnel: &TunnelConfig,
        passage: &mut RecirculatedBatch,
    ) {
        let none = PipelineFields::new(PortNo::ANY);
        let words = passage.words.as_deref().unwrap_or(&none);
        match self.prepare(program, exit, tunnel, words) {
            Err(reason) => self.give_up(&mut passage.frames, reason),
            Ok(mut wrapping) => {
                let counted = [Counter::TxPackets, Counter::TxBytes];
                self.count(exit, counted, &passage.frames);
                for frame in passage.frames.drain() {
                    self.wrap_all(exit, &mut wrapping, frame);
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
        words: &PipelineFields,
    ) -> Result<Encapsulation<'a>, WorkerDrop> {
        let underlay = &program.underlay;
        let bridge = program.bridge(exit.bridge).ok_or(WorkerDrop::NoBridge)?;
        let ends = tunnels::ends(tunnel, words).ok_or(WorkerDrop::TunnelNoRemote)?;
        let ports_of_host = underlay.ports_of_host.values();
        let mut own = ports_of_host.flat_map(|ground| &ground.addresses);
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
            self.tell(WorkerEvent::Resolve(by, next), WorkerDrop::LearnQueueFull);
            return Err(WorkerDrop::TunnelNoNeighbour);
        };
        let local: IpAddr = ends.local.unwrap_or(source);
        Ok(Encapsulation {
            tunnel,
            outer: tunnels::outer(tunnel, (mac, *station), (local, ends.remote)),
            shim: tunnels::shim(tunnel, words, &bridge.pipeline),
            egress_ports: underlay.egress_ports,
            by,
        })
    }

    /// Encapsulates a frame, or its segments.
    fn wrap_all(&mut self, exit: PortKey, wrapping: &mut Encapsulation<'_>, mut frame: Frame) {
        if frame.offload.segmentation.is_none() {
            frame.complete_checksum();
            return self.wrap(exit, wrapping, frame);
        }
        let mut segments = std::mem::take(&mut self.segments);
        let cut = segment(&frame, &mut self.pool, &mut segments);
        self.pool.put(frame);
        if cut.is_err() {
            self.shared.counters.count(WorkerDrop::NoBuffer);
        }
        for segment in segments.drain(..) {
            self.wrap(exit, wrapping, segment);
        }
        self.segments = segments;
    }

    fn wrap(&mut self, exit: PortKey, wrapping: &mut Encapsulation<'_>, mut frame: Frame) {
        let within = tunnels::within(frame.bytes());
        let Some(skip) = dress_down(wrapping, &within) else {
            return self.drop_frame(frame, WorkerDrop::TunnelPayload);
        };
        let outer = &mut wrapping.outer;
        (outer.tos, outer.ttl) = tunnels::around(wrapping.tunnel, &within);
        if let OuterTransport::Udp { src, .. } = &mut outer.upper {
            *src = tunnels::source_port(frame.bytes(), &within, wrapping.egress_ports);
        }
        if wrapping.tunnel.sequenced {
            let number = self.numbers.entry(exit).or_default();
            wrapping.shim.sequence = Some(*number);
            *number = number.wrapping_add(1);
        }
        let done = tunnel::encapsulate(&mut frame, skip, outer, &wrapping.shim, &mut self.pool);
        match done {
            Ok(()) => self.onward.enter(wrapping.by, &None, frame),
            Err(_) => self.drop_frame(frame, WorkerDrop::TunnelTooLong),
        }
    }

    /// Decapsulates tunnel packets, and recirculates their frames; sends all other packets to the
    /// host.
    pub(super) fn terminate(
        &mut self,
        program: &Program,
        at: PortKey,
        ground: &UnderlayPort,
        frames: &mut Batch,
    ) {
        let mut hosts = self.onward.spare();
        for frame in frames.drain() {
            match judge(program, ground, &frame) {
                Some((protocol, found)) => self.unwrap_from(program, &found, protocol, frame),
                None => hosts.put(frame),
            }
        }
        if !hosts.is_empty() {
            self.send_to_host(at, &mut hosts);
        }
        self.onward.give_back(hosts);
    }

    /// Decapsulates tunnel packets that an interface of the host received, and recirculates their
    /// frames. All other packets are copies of packets that the host has, and are dropped.
    pub(super) fn take_from_host(&mut self, program: &Program, at: PortKey, frames: &mut Batch) {
        let Some(ground) = program.underlay.ports_of_host.get(&at) else {
            let count = frames.len();
            return frames.release(count, &mut self.pool);
        };
        for frame in frames.drain() {
            match judge(program, ground, &frame) {
                Some((protocol, found)) => self.unwrap_from(program, &found, protocol, frame),
                None => self.pool.put(frame),
            }
        }
    }

    fn send_to_host(&mut self, at: PortKey, frames: &mut Batch) {
        let Some(slot) = self.slots.find(at) else {
            return self.give_up(frames, WorkerDrop::NoPort);
        };
        let sent = slot.queue.send(frames, &mut self.pool);
        self.give_up(frames, WorkerDrop::PortFull);
        if let Err(error) = sent {
            self.retire(at, error);
        }
    }

    fn unwrap_from(
        &mut self,
        program: &Program,
        found: &TunnelPacket,
        protocol: TunnelProtocol,
        mut frame: Frame,
    ) {
        match open(program, found, protocol, &mut frame) {
            Err(reason) => self.drop_frame(frame, reason),
            Ok((port, words)) => {
                let counted = [Counter::RxPackets, Counter::RxBytes];
                self.count(port, counted, std::slice::from_ref(&frame));
                self.onward.enter(port, &Some(words), frame);
            }
        }
    }
}

/// Parses a tunnel packet to the host, and returns its protocol; none for other packets.
fn judge(
    program: &Program,
    ground: &UnderlayPort,
    frame: &Frame,
) -> Option<(TunnelProtocol, TunnelPacket)> {
    let found = tunnel::parse_outer(frame.bytes())?;
    if found.outer.eth_dst != ground.mac {
        return None;
    }
    match program.underlay.judge(ground, &found) {
        HostPacket::Tunnel(protocol) => Some((protocol, found)),
        HostPacket::Host => None,
    }
}

/// Decapsulates a packet. Returns the tunnel port and the pipeline fields of the frame.
fn open(
    program: &Program,
    found: &TunnelPacket,
    protocol: TunnelProtocol,
    frame: &mut Frame,
) -> Result<(PortKey, Arc<PipelineFields>), WorkerDrop> {
    let shim = tunnel::decapsulate(frame, found, protocol).map_err(|error| match error {
        TunnelError::Payload => WorkerDrop::TunnelPayload,
        TunnelError::TooLong => WorkerDrop::TunnelTooLong,
        TunnelError::Truncated | TunnelError::Unknown | TunnelError::Checksum => {
            WorkerDrop::TunnelMalformed
        }
    })?;
    let port = program.underlay.find(found, &shim);
    let port = port.ok_or(WorkerDrop::TunnelNoPort)?;
    let bridge = program.bridge(port.bridge).ok_or(WorkerDrop::NoBridge)?;
    let words = tunnels::told(&found.outer, &shim, &bridge.pipeline);
    let words = words.ok_or(WorkerDrop::TunnelOption)?;
    if !tunnels::dress(frame, shim.payload) {
        return Err(WorkerDrop::TunnelTooLong);
    }
    match tunnels::tell_congestion(frame, &found.outer) {
        true => Ok((port, Arc::new(words))),
        false => Err(WorkerDrop::TunnelCongested),
    }
}

/// Returns the number of leading bytes that the tunnel does not carry; none if it does not carry
/// the frame.
fn dress_down(wrapping: &mut Encapsulation<'_>, within: &tunnels::InnerHeaders) -> Option<u16> {
    if !wrapping.tunnel.is_layer3 {
        return within.payload_at.map(|_| 0);
    }
    if within.tagged {
        return None;
    }
    let payload = tunnels::bare_payload(within.eth_type, wrapping.tunnel.protocol)?;
    wrapping.shim.payload = TunnelPayload::Packet(payload);
    u16::try_from(within.payload_at?).ok()
}
