//! The output of a packet-out to the tables (`TABLE`).

use base::Cookie;
use packet::Packet;

use super::Execution;
use super::pause::FinalActionSet;
use crate::verdict::{Cause, DropReason};

impl Execution<'_> {
    /// Submits a copy to the tables, from within a packet-out.
    pub(crate) fn submit(&mut self, packet: &Packet<'_>) -> Result<(), DropReason> {
        self.keep(packet)?;
        let copy = self.pool.duplicate(packet.frame());
        let mut copy = copy.ok_or(DropReason::NoBuffer)?;
        let (from, registers) = (self.from, self.registers.clone());
        let priority = self.priority;
        let stack = std::mem::take(self.stack);
        let result = match Packet::parse(&mut copy, self.pipeline.depth()) {
            Ok(mut copied) => self.walk(&mut copied),
            Err(reason) => Err(DropReason::Malformed(reason)),
        };
        if let Err(reason) = result {
            self.drop(reason);
        }
        self.wait(FinalActionSet::Executed);
        self.settle(copy);
        (self.from, self.registers, self.priority) = (from, registers, priority);
        (*self.stack, self.exited) = (stack, false);
        self.changes();
        self.set.clear();
        (self.rule, self.cookie) = (None, Cookie::NONE);
        self.cause = Cause::PacketOut;
        Ok(())
    }
}
