//! Whether a packet-out can be carried out, and how deep its frame must be read.
//! How it is carried out, the interpreter knows, but for what submits it to the tables.

use base::{Cookie, PortNo};
use flow::field::Depth;
use flow::{Action, Extension, PacketOut, Refusal};
use packet::{Headers, Packet};

use crate::check::check_packet_out;
use crate::encap::frame_of;
use crate::group::groups_of;
use crate::interpreter::Execution;
use crate::meter_table::meters_of;
use crate::pause::FinalActionSet;
use crate::pipeline::Pipeline;
use crate::rule::depth_of;
use crate::verdict::{Cause, DropReason};

impl Pipeline {
    /// Whether a packet-out can be carried out.
    ///
    /// # Errors
    /// It names a buffer (there are none) or a port of arrival that cannot be, an
    /// action is none that can be done, or the frame is damaged as far as the
    /// actions look.
    pub fn check_packet_out(&self, message: &PacketOut) -> Result<(), Refusal> {
        if message.buffer.is_some() {
            return Err(Refusal::RequestBufferUnknown);
        }
        let in_port = message.registers.in_port;
        let from_nowhere = matches!(in_port, PortNo::CONTROLLER | PortNo::ANY);
        if !from_nowhere && self.port(in_port).is_none() {
            return Err(Refusal::RequestBadPort);
        }
        check_packet_out(&message.actions)?;
        self.options.check_actions(message.actions.iter())?;
        self.check_groups(groups_of(&message.actions))?;
        self.check_meters(meters_of(&message.actions))?;
        let depth = self.depth_for(&message.actions);
        let frame = frame_of(&message.data, message.registers.packet_type);
        let frame = frame.ok_or(Refusal::RequestBadPacket)?;
        match Headers::parse(&frame, depth) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal::RequestBadPacket),
        }
    }

    /// How deep a frame must be read for `actions`, the tables included if they
    /// send it there.
    pub(crate) fn depth_for(&self, actions: &[Action]) -> Depth {
        let deepest = actions.iter().map(depth_of).max().unwrap_or_default();
        if actions.iter().any(to_tables) {
            deepest.max(self.depth())
        } else {
            deepest
        }
    }
}

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

/// Whether the action sends a frame to tables or groups, which know how deep they look.
fn to_tables(action: &Action) -> bool {
    match action {
        Action::Output { port, .. } => *port == PortNo::TABLE,
        Action::Group(_) | Action::Extended(Extension::Resubmit { .. }) => true,
        Action::Extended(Extension::Clone(actions)) => actions.iter().any(to_tables),
        _ => false,
    }
}
