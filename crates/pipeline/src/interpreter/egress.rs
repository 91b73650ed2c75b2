//! Outputs and drops of a packet in execution: an output records that the packet leaves in its present
//! state, and the copy is deferred until that state is modified.

use packet::{Frame, Packet};

use super::Execution;
use crate::verdict::{Destination, DropReason, Egress};

impl Execution<'_> {
    /// Records an output of the packet as it is now.
    pub(crate) fn record_output(&mut self, to: Destination) {
        self.egress_pending = true;
        self.trace.on_output(&to);
        let registers = self.pipeline.may_tunnel(&to).then(|| {
            self.sync_registers();
            Box::new(self.registers.clone())
        });
        self.verdict.push_egress(Egress {
            frame: self.verdict.frames.len(),
            to,
            priority: self.priority,
            registers,
        });
    }

    /// Prepares a modification: if the packet leaves in its present state, a copy keeps that.
    pub(crate) fn preserve_state(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        if self.egress_pending {
            let copy = self.pool.duplicate(packet.frame());
            self.verdict.frames.push(copy.ok_or(DropReason::NoBuffer)?);
            self.egress_pending = false;
        }
        Ok(())
    }

    /// Marks the key as stale before a modification.
    pub(crate) const fn mark_modified(&mut self) {
        self.key_is_stale = true;
        self.is_rewritten = true;
    }

    /// Records a drop of the packet or a copy of it.
    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.verdict.push_drop(reason);
        self.trace.on_drop(reason);
    }

    /// Adds the packet to the verdict if it leaves in its present state; otherwise frees its
    /// buffer.
    pub(crate) fn finish_frame(&mut self, frame: Frame) {
        if self.egress_pending {
            self.verdict.frames.push(frame);
            self.egress_pending = false;
        } else {
            self.pool.put(frame);
        }
    }
}
