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
            let mut waiting = exits.iter().filter(|exit| exit.frame == index).peekable();
            if waiting.peek().is_none() {
                self.pool.put(frame);
                continue;
            }
            self.send_copies(from, frame, waiting.copied());
        }
        self.outputs.exits = exits;
    }

    /// Sends the frame to each of these outputs.
    pub(super) fn send_copies(
        &mut self,
        from: PortKey,
        frame: Frame,
        exits: impl Iterator<Item = PortOutput>,
    ) {
        let mut exits = exits.peekable();
        let mut frame = Some(frame);
        while let Some(exit) = exits.next() {
            let PortOutput {
                port,
                retag,
                priority,
                ..
            } = exit;
            let leaving = match exits.peek() {
                Some(_) => frame.as_ref().and_then(|frame| self.pool.duplicate(frame)),
                None => frame.take(),
            };
            match leaving {
                Some(mut leaving) => match retag.change(&mut leaving) {
                    true => {
                        leaving.priority = priority;
                        self.send(PortKey { port, ..from }, leaving);
                    }
                    false => self.drop_frame(leaving, WorkerDrop::Tag),
                },
                None => self.reporter.count(WorkerDrop::NoBuffer),
            }
        }
    }
}
