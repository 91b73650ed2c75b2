//! The operation of `ct`: the tracker of the bridge, the translation of the frame, and its
//! connection in the key.
//!
//! ```text
//!   ct(table=5)         last action, no pending rule:  the frame itself continues in table 5
//!   ct(commit), ...     no table:                      the frame continues with the next action
//!   ct(table=5), ...    anything else:                 interpreter, which copies the frame
//!   ct of a fragment                                   interpreter, which holds it
//! ```

use base::TableId;
use flow::{Action, ConntrackAction, Extension};
use packet::wire::Fragment;
use packet::{Frame, Pool};
use pipeline::{
    ConntrackSource, DropReason, Rule, connection_fields, conntrack_request, is_translated,
    track_packet, write_outcome,
};

use super::ops::stop_at;
use super::{Executor, Interruption, LOOKUPS_MAX};
use crate::action_program::{ActionProgram, SlowPathReason};

impl<'a> Executor<'_, 'a> {
    /// Executes the action `ct` with this number. Returns the table in which the packet continues,
    /// if any.
    pub(super) fn track(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        program: &ActionProgram,
        number: usize,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let action = rule.instructions.apply.get(number);
        let Some(Action::Extended(Extension::Conntrack(action))) = action else {
            return Err(self.leave_to_interpreter(rule, number));
        };
        let context = self.batch.context;
        let Some(tracker) = context.pipeline.tracker() else {
            return Err(Interruption::Drop(DropReason::NoConntrack));
        };
        if action.table.is_some() && !self.may_continue(rule, program, number, action) {
            return Err(self.leave_to_interpreter(rule, number));
        }
        let key = self.key();
        let earlier = key.connection();
        let request = conntrack_request(action, |source| match source {
            ConntrackSource::Subfield(part) => Some(key.written_bits(part)),
            ConntrackSource::StackTop => None,
        });
        let packet = self.parse(frame)?;
        if packet.headers().fragment() != Some(Fragment::No) && context.pipeline.holds_fragments() {
            return Err(self.leave_to_interpreter(rule, number));
        }
        let outcome = track_packet(tracker, &packet, earlier.as_ref(), &request, context.now);
        let fields = connection_fields(&outcome.metadata, &packet);
        if action.table.is_some() || is_translated(&outcome) {
            // What was output before leaves as it was, and apart from the tracked packet.
            self.copy_before_rewrite(frame, pool)
                .map_err(Interruption::Drop)?;
        }
        if is_translated(&outcome) {
            self.key_is_stale = true;
            let mut packet = self.parse(frame)?;
            write_outcome(&mut packet, &outcome).map_err(Interruption::Drop)?;
        }
        if action.table.is_none() {
            self.untrack();
            return Ok(None);
        }
        // The resubmissions are complete, but still count as nested, as in the interpreter.
        self.outer_nesting += self.nesting + 1;
        self.nesting = 0;
        self.key().set_connection(&fields);
        Ok(action.table)
    }

    /// Makes the packet one that is not tracked.
    pub(super) fn untrack(&mut self) {
        // The key of a packet that was tracked is already one that was written.
        self.batch.memory.keys[self.key_index].clear_connection();
    }

    /// True if nothing is executed after `ct`, so that the packet itself continues in its table.
    fn may_continue(
        &self,
        rule: &Rule,
        program: &ActionProgram,
        number: usize,
        action: &ConntrackAction,
    ) -> bool {
        let all = (1_u64 << self.nesting) - 1;
        program.ends_with(number)
            && self.action_set.is_none()
            && u64::from(self.finished) & all == all
            && action.table.is_some_and(|table| table > rule.table())
            && self.lookups < LOOKUPS_MAX
    }

    fn leave_to_interpreter(&self, rule: &'a Rule, number: usize) -> Interruption<'a> {
        Interruption::SlowPath(SlowPathReason::Action, stop_at(rule, number))
    }
}
