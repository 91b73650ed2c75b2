//! Frames that leave by a port within the process go on in another bridge, in the same turn
//! and by the same worker: whole batches, of which no frame is touched between two bridges.
//!
//! Bridges can be joined in a ring, in which a flooded frame goes round for ever, and comes
//! back as two where there are two rings: how often a frame goes on is bounded, and how much
//! comes of one batch.

use std::collections::VecDeque;

use base::Instant;
use ports::{Batch, Counter};

use super::Worker;
use crate::dataplane::counters::Drop;
use crate::dataplane::program::Program;
use crate::dataplane::slots::PortKey;
use crate::dataplane::ways::Way;

/// How many bridges a frame may come to one after the other. Open vSwitch, too, ends a frame's
/// way when translations lie 64 deep in one another.
const HOPS_MAX: u8 = 64;

/// Batches that may go on of one that was received: enough for a frame of each to go to a
/// thousand bridges, and over in a millisecond or so, for which no other port is served.
const BATCHES_MAX: usize = 1024;

/// Frames that have left by a port within the process.
struct Departure {
    /// The port.
    exit: PortKey,
    frames: Batch,
    /// How many bridges they have come to so far, but for the first.
    hops: u8,
}

/// What is still to go on.
#[derive(Default)]
pub(super) struct Onward {
    waiting: VecDeque<Departure>,
    /// Batches to be used again.
    spare: Vec<Batch>,
    /// How many bridges those at hand have come to, but for the first.
    hops: u8,
}

impl Worker {
    /// Takes all frames on that have left by ports within the process, until none is left.
    #[inline]
    pub(super) fn pass_on(&mut self, program: &Program, now: Instant) {
        if self.slots.have_inner() {
            self.pass_all_on(program, now);
        }
    }

    #[inline(never)]
    fn pass_all_on(&mut self, program: &Program, now: Instant) {
        self.gather();
        let mut left = BATCHES_MAX;
        while let Some(mut departure) = self.onward.waiting.pop_front() {
            if departure.hops >= HOPS_MAX || left == 0 {
                self.give_up(&mut departure.frames, Drop::TooManyHops);
            } else {
                left -= 1;
                self.onward.hops = departure.hops + 1;
                self.go_on(program, departure.exit, &mut departure.frames, now);
                self.gather();
            }
            self.onward.spare.push(departure.frames);
        }
        self.onward.hops = 0;
    }

    /// Has frames come in at the other end of the port that they have left by.
    fn go_on(&mut self, program: &Program, exit: PortKey, frames: &mut Batch, now: Instant) {
        let Some(Way::Patch(entry)) = program.ways.find(exit) else {
            return self.give_up(frames, Drop::NoPeer);
        };
        let Some(bridge) = program.bridge(entry.bridge) else {
            return self.give_up(frames, Drop::NoBridge);
        };
        self.count_passage(exit, *entry, frames);
        self.forward(bridge, *entry, frames, now);
    }

    /// Both ports count frames that go from one to the other.
    fn count_passage(&mut self, exit: PortKey, entry: PortKey, frames: &Batch) {
        let counted = [
            (exit, Counter::TxPackets, Counter::TxBytes),
            (entry, Counter::RxPackets, Counter::RxBytes),
        ];
        let packets = frames.iter().map(|frame| frame.wire_frames()).sum();
        let bytes = frames.iter().map(|frame| frame.wire_bytes()).sum();
        for (port, of_packets, of_bytes) in counted {
            if let Some(counters) = self.slots.find(port).and_then(|slot| slot.inner.as_ref()) {
                counters.add(of_packets, packets);
                counters.add(of_bytes, bytes);
            }
        }
    }

    /// Takes up what waits at the ports within the process.
    fn gather(&mut self) {
        for place in 0..self.slots.inner().len() {
            let key = self.slots.inner()[place];
            self.depart(key);
        }
    }

    /// Has what waits at a port within the process leave by it.
    pub(super) fn depart(&mut self, exit: PortKey) {
        let Some(slot) = self.slots.find(exit) else {
            return;
        };
        if slot.out.is_empty() {
            return;
        }
        let spare = match self.onward.spare.pop() {
            Some(spare) => spare,
            None => Batch::new(),
        };
        let frames = std::mem::replace(&mut slot.out, spare);
        let hops = self.onward.hops;
        self.onward
            .waiting
            .push_back(Departure { exit, frames, hops });
    }

    fn give_up(&mut self, frames: &mut Batch, reason: Drop) {
        let count = frames.len();
        frames.release(count, &mut self.pool);
        self.shared.counters.add(reason, count);
    }
}
