//! The outputs of a verdict's frames: the last output of each takes the frame, the others copies.

use base::{PortNo, Priority};
use packet::Frame;
use pipeline::Verdict;

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::slots::PortKey;
use crate::vlans::TagRewrite;

/// An output of a frame of the verdict.
#[derive(Clone, Copy)]
pub(super) struct PortOutput {
    pub(super) frame: usize,
    pub(super) port: PortNo,
    pub(super) retag: TagRewrite,
    pub(super) priority: Priority,
}

impl BatchForwarder {
    /// Returns a copy of a frame as it leaves by an output; none if there is no buffer or no room
    /// for a tag, so that it does not leave.
    pub(super) fn egress_copy(&mut self, frame: &Frame, exit: PortOutput) -> Option<Frame> {
        let mut leaving = self.pool.duplicate(frame)?;
        if exit.retag.change(&mut leaving) {
            return Some(leaving);
        }
        self.pool.put(leaving);
        None
    }

    /// Sends each frame to each of its outputs; the last takes the frame, the others copies.
    pub(super) fn send_all(&mut self, from: PortKey, verdict: &mut Verdict) {
        let exits = std::mem::take(&mut self.outputs.exits);
        for (index, frame) in verdict.frames.drain(..).enumerate() {
            let is_waiting = |exit: &&PortOutput| exit.frame == index;
            match exits.iter().rposition(|exit| is_waiting(&exit)) {
                None => self.pool.put(frame),
                Some(last) => {
                    let others = exits[..last].iter().filter(is_waiting);
                    self.send_copies(from, frame, others, &exits[last]);
                }
            }
        }
        self.outputs.exits = exits;
    }

    /// Sends a copy of the frame to each of the `others`, and then the frame to its last output.
    pub(super) fn send_copies<'e>(
        &mut self,
        from: PortKey,
        frame: Frame,
        others: impl Iterator<Item = &'e PortOutput>,
        last: &PortOutput,
    ) {
        for exit in others {
            match self.pool.duplicate(&frame) {
                Some(copy) => self.send_to(from, copy, exit),
                None => self.reporter.count(WorkerDrop::NoBuffer),
            }
        }
        self.send_to(from, frame, last);
    }

    /// Sends a frame to an output, with its tags.
    fn send_to(&mut self, from: PortKey, mut leaving: Frame, exit: &PortOutput) {
        if !exit.retag.change(&mut leaving) {
            return self.drop_frame(leaving, WorkerDrop::Tag);
        }
        leaving.priority = exit.priority;
        let port = exit.port;
        self.send(PortKey { port, ..from }, leaving);
    }
}
