//! The output of a packet-out to the tables (`TABLE`).

use base::Cookie;
use packet::Packet;

use super::Execution;
use super::pause::FinalActionSet;
use crate::verdict::{Cause, DropReason};

impl Execution<'_> {
    /// Submits a copy of a packet-out to the tables.
    pub(crate) fn submit_to_tables(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        self.preserve_state(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        let (from, registers) = (self.in_port, self.registers.clone());
        let priority = self.priority;
        let stack = std::mem::take(self.stack);
        let result = match Packet::parse(&mut copy, self.pipeline.depth()) {
            Ok(mut copied) => self.run_tables(&mut copied),
            Err(reason) => Err(DropReason::Malformed(reason)),
        };
        let error = result.err();
        if let Some(reason) = error.filter(|reason| !reason.drops_all()) {
            self.drop(reason);
        }
        self.finish_pause(FinalActionSet::Executed);
        self.finish_frame(copy);
        (self.in_port, self.registers, self.priority) = (from, registers, priority);
        (*self.stack, self.exited) = (stack, false);
        self.mark_modified();
        self.set.clear();
        (self.rule, self.cookie) = (None, Cookie::NONE);
        self.cause = Cause::PacketOut;
        match error {
            Some(reason) if reason.drops_all() => Err(reason),
            _ => Ok(()),
        }
    }
}
