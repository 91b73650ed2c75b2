//! Recirculation: frames that leave by a virtual port continue in another bridge, in the same turn
//! and in the same worker, as whole batches; no frame is copied between two bridges. Frames into
//! and out of tunnels do likewise.
//!
//! Bridges can be joined in a ring, in which a flooded frame circulates forever, and doubles with
//! each round if there are two rings. So the hops of a frame and the batches that result from one
//! are limited.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::Instant;
use fastpath::Runner;
use flow::PipelineFields;
use packet::Frame;
use ports::{Batch, Counter};

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::program::{BridgeId, Program};
use crate::slots::PortKey;
use crate::virtual_links::VirtualLink;

/// The maximum number of bridges that a frame passes in succession. Open vSwitch also stops at a
/// translation depth of 64.
const HOPS_MAX: u8 = 64;

/// The maximum number of recirculated batches that result from one received batch: enough for a
/// frame of each to pass a thousand bridges, and over within about a millisecond, in which no other
/// port is served.
const BATCHES_MAX: usize = 1024;

/// The pipeline fields that accompany frames.
pub(super) type FrameFields = Option<Arc<PipelineFields>>;

/// The stage of recirculated frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecirculationStage {
    /// They have left by the port.
    Left,
    /// They arrive on the port next.
    Arriving,
}

/// Frames between two bridges.
pub(super) struct RecirculatedBatch {
    at: PortKey,
    stage: RecirculationStage,
    pub(super) fields: FrameFields,
    pub(super) frames: Batch,
    /// The number of bridges passed so far, without the first.
    hops: u8,
}

/// The pending recirculated batches.
#[derive(Default)]
pub(super) struct Recirculation {
    waiting: VecDeque<RecirculatedBatch>,
    /// Empty batches for reuse.
    spare: Vec<Batch>,
    /// The number of bridges that the current frames have passed, without the first.
    hops: u8,
    /// The pipeline fields of the current frames.
    fields: FrameFields,
    /// The next sequence numbers of tunnels with sequence numbers.
    numbers: BTreeMap<PortKey, u32>,
}

impl Recirculation {
    /// Returns the pipeline fields of the current frames on arrival.
    pub(super) fn fields(&self) -> FrameFields {
        self.fields.clone()
    }

    /// Returns the key of the tunnel through which the current frames arrived, or zero.
    pub(super) fn tunnel_key(&self) -> u64 {
        let fields = self.fields.as_ref();
        fields.map_or(0, |fields| fields.tunnel_id)
    }

    /// Returns the next sequence number of a tunnel.
    pub(super) fn next_number(&mut self, tunnel: PortKey) -> u32 {
        let number = self.numbers.entry(tunnel).or_default();
        let next = *number;
        *number = next.wrapping_add(1);
        next
    }

    /// Returns an empty batch.
    pub(super) fn spare(&mut self) -> Batch {
        match self.spare.pop() {
            Some(spare) => spare,
            None => Batch::new(),
        }
    }

    /// Returns an empty batch to the spares.
    pub(super) fn give_back(&mut self, batch: Batch) {
        debug_assert!(batch.is_empty(), "remaining frames would be sent again");
        self.spare.push(batch);
    }

    /// Queues a frame for arrival on a virtual port, with these pipeline fields.
    pub(super) fn enter(&mut self, at: PortKey, fields: &FrameFields, frame: Frame) {
        let hops = self.hops;
        if let Some(last) = self.waiting.back_mut()
            && (last.at, last.stage, last.hops) == (at, RecirculationStage::Arriving, hops)
            && last.fields == *fields
            && last.frames.remaining_capacity() > 0
        {
            last.frames.put(frame);
            return;
        }
        let mut frames = self.spare();
        frames.put(frame);
        self.waiting.push_back(RecirculatedBatch {
            at,
            stage: RecirculationStage::Arriving,
            fields: fields.clone(),
            frames,
            hops,
        });
    }
}

impl BatchForwarder {
    /// Recirculates frames that have left by virtual ports, until none is left.
    #[inline]
    pub(super) fn recirculate(&mut self, program: &Program, runner: &mut Runner, now: Instant) {
        if self.slots.have_inner() {
            self.recirculate_all(program, runner, now);
        }
    }

    #[inline(never)]
    fn recirculate_all(&mut self, program: &Program, runner: &mut Runner, now: Instant) {
        self.gather();
        let mut left = BATCHES_MAX;
        while let Some(mut transit) = self.recirculation.waiting.pop_front() {
            if transit.hops >= HOPS_MAX || left == 0 {
                self.drop_batch(&mut transit.frames, WorkerDrop::TooManyHops);
            } else {
                left -= 1;
                self.recirculation.hops = transit.hops + 1;
                self.continue_batch(program, runner, &mut transit, now);
                self.gather();
                self.recirculation.fields = None;
            }
            self.recirculation.give_back(transit.frames);
        }
        self.recirculation.hops = 0;
    }

    fn continue_batch(
        &mut self,
        program: &Program,
        runner: &mut Runner,
        transit: &mut RecirculatedBatch,
        now: Instant,
    ) {
        let at = transit.at;
        if transit.stage == RecirculationStage::Arriving {
            self.recirculation.fields = transit.fields.take();
            return self.arrive(program, runner, at, &mut transit.frames, now);
        }
        match program.virtual_links.find(at) {
            Some(VirtualLink::Patch(entry)) => {
                self.count(at, [Counter::TxPackets, Counter::TxBytes], &transit.frames);
                self.count(
                    *entry,
                    [Counter::RxPackets, Counter::RxBytes],
                    &transit.frames,
                );
                self.arrive(program, runner, *entry, &mut transit.frames, now);
            }
            Some(VirtualLink::Tunnel(tunnel)) => self.encapsulate(program, at, tunnel, transit),
            None => match program.underlay.ports_of_host.get(&at) {
                Some(host_port) => self.terminate(program, at, host_port, &mut transit.frames),
                None => self.drop_batch(&mut transit.frames, WorkerDrop::NoPeer),
            },
        }
    }

    /// Runs frames that arrive on a port through its bridge.
    fn arrive(
        &mut self,
        program: &Program,
        runner: &mut Runner,
        at: PortKey,
        frames: &mut Batch,
        now: Instant,
    ) {
        match program.bridge(at.bridge) {
            Some(bridge) => self.forward(bridge, runner, at, frames, now),
            None if at.bridge == BridgeId::HOST => {
                self.send_together(at, frames);
                // Sent frames leave empty ones behind.
                frames.clear();
            }
            None => self.drop_batch(frames, WorkerDrop::NoBridge),
        }
    }

    /// Counts frames that pass a virtual port.
    pub(super) fn count(&mut self, port: PortKey, counters: [Counter; 2], frames: &[Frame]) {
        let [of_packets, of_bytes] = counters;
        if let Some(counts) = self.slots.find(port).and_then(|slot| slot.inner.as_ref()) {
            counts.add(of_packets, frames.iter().map(Frame::wire_frames).sum());
            counts.add(of_bytes, frames.iter().map(Frame::wire_bytes).sum());
        }
    }

    /// Queues the pending frames of all virtual ports.
    fn gather(&mut self) {
        for place in 0..self.slots.inner().len() {
            let key = self.slots.inner()[place];
            self.depart(key);
        }
    }

    /// Queues the pending frames of a virtual port.
    pub(super) fn depart(&mut self, exit: PortKey) {
        let Some(slot) = self.slots.find(exit) else {
            return;
        };
        if slot.out.is_empty() {
            return;
        }
        let spare = self.recirculation.spare();
        if let Some(slot) = self.slots.find(exit) {
            let frames = std::mem::replace(&mut slot.out, spare);
            self.leave(exit, frames, self.recirculation.fields());
        }
    }

    fn leave(&mut self, at: PortKey, frames: Batch, fields: FrameFields) {
        let hops = self.recirculation.hops;
        self.recirculation.waiting.push_back(RecirculatedBatch {
            at,
            stage: RecirculationStage::Left,
            fields,
            frames,
            hops,
        });
    }

    /// Executes the outputs to virtual ports at once, of those from `first` on, with these pipeline
    /// fields.
    pub(super) fn depart_with(
        &mut self,
        from: PortKey,
        frame: &Frame,
        first: usize,
        fields: &PipelineFields,
    ) {
        let fields = Some(Arc::new(fields.clone()));
        let mut place = first;
        while let Some(exit) = self.outputs.exits.get(place).copied() {
            let at = PortKey {
                port: exit.port,
                ..from
            };
            if self.slots.find(at).is_none_or(|slot| slot.inner.is_none()) {
                place += 1;
                continue;
            }
            self.outputs.exits.remove(place);
            match self.pool.duplicate(frame) {
                Some(mut copy) => {
                    copy.priority = exit.priority;
                    self.leave_alone(at, copy, fields.clone());
                }
                None => self.reporter.count(WorkerDrop::NoBuffer),
            }
        }
    }

    fn leave_alone(&mut self, at: PortKey, frame: Frame, fields: FrameFields) {
        let mut frames = self.recirculation.spare();
        frames.put(frame);
        self.leave(at, frames, fields);
    }

    /// Sends a frame of a packet-out.
    pub(super) fn transmit(
        &mut self,
        key: PortKey,
        frame: Frame,
        fields: Option<Box<PipelineFields>>,
    ) {
        let is_inner = self
            .slots
            .find(key)
            .is_some_and(|slot| slot.inner.is_some());
        match fields {
            Some(fields) if is_inner => self.leave_alone(key, frame, Some(Arc::from(fields))),
            _ => self.send(key, frame),
        }
    }

    pub(super) fn drop_batch(&mut self, frames: &mut Batch, reason: WorkerDrop) {
        let count = frames.len();
        frames.release(count, &mut self.pool);
        self.reporter.links.counters.add(reason, count);
    }
}
