//! Checks of packets that controllers send: packet-outs and resumed packets.

use base::PortNo;
use flow::field::Depth;
use flow::{Action, Continuation, Extension, PacketOut, PipelineFields, Refusal, Resume};
use packet::Headers;

use super::Pipeline;
use crate::bare_frame::frame_of;
use crate::instructions::action_facts::{depth_of, groups_of, meters_of};
use crate::instructions::check::{check_continuation, check_packet_out};
use crate::limits::{NESTING_MAX, STACK_MAX};

impl Pipeline {
    /// Checks a packet-out.
    ///
    /// # Errors
    /// The message names a buffer (there are none), a reserved ingress port or an invalid action, or
    /// a header that the actions read is malformed.
    pub fn check_packet_out(&self, message: &PacketOut) -> Result<(), Refusal> {
        if message.buffer.is_some() {
            return Err(Refusal::RequestBufferUnknown);
        }
        check_origin(&message.registers)?;
        check_packet_out(&message.actions)?;
        self.tlv_map.check_actions(message.actions.iter())?;
        self.groups.check_all_exist(groups_of(&message.actions))?;
        self.meters.check_all_exist(meters_of(&message.actions))?;
        let depth = self.depth_for(&message.actions);
        check_headers(&message.data, &message.registers, depth)
    }

    /// Checks a packet that a controller returns, and its continuation.
    ///
    /// # Errors
    /// The ingress port is a reserved one, a header that something reads is malformed, or the
    /// continuation is invalid: it was modified, or refers to a group that was deleted.
    pub fn check_resume(
        &self,
        message: &Resume,
        continuation: &Continuation,
    ) -> Result<(), Refusal> {
        check_origin(&message.registers)?;
        if continuation.stack.len() > STACK_MAX || continuation.steps.len() > NESTING_MAX {
            return Err(Refusal::ResumeStale);
        }
        check_continuation(continuation)?;
        self.groups
            .check_all_exist(groups_of(continuation.actions()))?;
        let depth = self.depth_to_resume(continuation);
        check_headers(&message.data, &message.registers, depth)
    }

    /// Returns the parse depth of a packet that a controller returns: it may enter the tables.
    pub(crate) fn depth_to_resume(&self, continuation: &Continuation) -> Depth {
        let deepest = continuation.actions().map(depth_of).max();
        deepest.unwrap_or_default().max(self.depth())
    }

    /// Returns the parse depth that `actions` need, with that of the tables if they submit the packet
    /// to them.
    pub(crate) fn depth_for(&self, actions: &[Action]) -> Depth {
        let deepest = actions.iter().map(depth_of).max().unwrap_or_default();
        if actions.iter().any(enters_tables) {
            deepest.max(self.depth())
        } else {
            deepest
        }
    }
}

/// Checks the ingress port that a controller names for its packet. The port need not exist: it may
/// have been removed since the controller received the packet, and Open vSwitch accepts that.
fn check_origin(registers: &PipelineFields) -> Result<(), Refusal> {
    let in_port = registers.in_port;
    let is_valid = in_port < PortNo::MAX
        || matches!(in_port, PortNo::LOCAL | PortNo::CONTROLLER | PortNo::ANY);
    is_valid.then_some(()).ok_or(Refusal::RequestBadPort)
}

/// Checks the headers of a packet to `depth`.
fn check_headers(data: &[u8], registers: &PipelineFields, depth: Depth) -> Result<(), Refusal> {
    let frame = frame_of(data, registers.packet_type).ok_or(Refusal::RequestBadPacket)?;
    Headers::parse(&frame, depth)
        .map(drop)
        .map_err(|_| Refusal::RequestBadPacket)
}

/// True if the action submits the packet to tables or groups, which have their own parse depth.
fn enters_tables(action: &Action) -> bool {
    match action {
        Action::Output { port, .. } => *port == PortNo::TABLE,
        Action::Group(_)
        | Action::Extended(Extension::Resubmit { .. } | Extension::ResubmitConnection { .. }) => {
            true
        }
        Action::Extended(Extension::Clone(actions)) => actions.iter().any(enters_tables),
        _ => false,
    }
}
