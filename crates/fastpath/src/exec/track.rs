//! The operation of `ct`: the tracker of the bridge, the translation of the frame, and its
//! connection in the key.
//!
//! ```text
//!   ct(table=5)         last action, no pending rule:  the frame itself continues in table 5
//!   ct(commit), ...     no table:                      the frame continues with the next action
//!   ct(table=5), ...    anything else:                 a copy continues in table 5, and the frame
//!                                                      with the next action
//!   ct of a fragment                                   interpreter, which holds it
//! ```

use base::TableId;
use conntrack::{ConnectionWrites, CtRequest, SteadyNat, SteadyPacket};
use flow::{Action, ConnectionFields, ConntrackAction, ConntrackFlags, Extension, Subfield};
use packet::wire::Fragment;
use packet::{Frame, Headers, Pool};
use pipeline::{
    ConntrackSource, DropReason, Rule, connection_fields, conntrack_request, is_translated,
    track_packet, write_outcome,
};

use super::ops::stop_at;
use super::{Executor, Interruption};
use crate::action_program::{ActionProgram, SlowPathReason, is_readable};
use crate::batch_lookup::track::{
    begin_lookup, checksum_check, is_plain_commit, is_steady_action, is_writing_commit, steady_nat,
    write_ends,
};

/// The arguments of `ct`.
pub(super) struct TrackCall {
    pub(super) request: CtRequest,
    /// Fields of the connection before.
    pub(super) earlier: Option<ConnectionFields>,
    /// The kind of `ct` to which connections in a steady state have a shorter way.
    pub(super) steady: SteadyCall,
}

/// The kind of a `ct`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SteadyCall {
    /// It replaces connections, or writes mark or label without `commit`.
    None,
    /// It has no other argument but a zone and a table.
    Plain,
    /// It commits, and has no other argument but a zone and a table.
    PlainCommit,
    /// It commits, and writes mark or label.
    WritingCommit,
    /// It translates.
    Nat,
}

impl SteadyCall {
    fn of(action: &ConntrackAction) -> Self {
        match steady_nat(action) {
            _ if is_writing_commit(action) => Self::WritingCommit,
            _ if !is_steady_action(action) => Self::None,
            SteadyNat::Apply => Self::Nat,
            SteadyNat::Ignore if is_plain_commit(action) => Self::PlainCommit,
            SteadyNat::Ignore if action.flags.contains(ConntrackFlags::COMMIT) => Self::None,
            SteadyNat::Ignore => Self::Plain,
        }
    }
}

impl<'a> Executor<'_, 'a> {
    /// Executes the action `ct` with this number of a rule. Returns the table in which the packet
    /// itself continues, if any.
    pub(super) fn track_last(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        program: &ActionProgram,
        number: usize,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let action = rule.instructions.apply.get(number);
        let Some(Action::Extended(Extension::Conntrack(action))) = action else {
            return Ok(None);
        };
        // A walk records the arguments of `ct`.
        let may_be_steady = action.table.is_none() && !self.is_recording;
        if may_be_steady && self.track_steady(frame, action, pool)? {
            return Ok(None);
        }
        if self.may_hold(frame)? {
            let stop = stop_at(rule, number);
            return Err(Interruption::SlowPath(SlowPathReason::Action, stop));
        }
        let is_last = self.is_last(program, number);
        self.track(frame, rule, (action, is_last), pool)
    }

    /// Tracks a plain packet of a connection, or one that begins a connection, by a `ct` without a
    /// table. Returns false, without a change, if it is another one.
    fn track_steady(
        &mut self,
        frame: &mut Frame,
        action: &ConntrackAction,
        pool: &mut Pool,
    ) -> Result<bool, Interruption<'a>> {
        let (context, key_index) = (self.batch.context, self.key_index);
        let Some(tracker) = context
            .pipeline
            .tracker()
            .filter(|_| is_steady_action(action))
        else {
            return Ok(false);
        };
        let key = &self.batch.memory.keys[key_index];
        let Some(mut lookup) = begin_lookup(tracker, key, frame, action) else {
            return Ok(false);
        };
        let check = checksum_check(frame);
        let settings = (check, steady_nat(action));
        let mut packet = SteadyPacket::NONE;
        let is_steady = match tracker.find_steady(&mut lookup).is_some() {
            false
                if is_plain_commit(action)
                    && tracker.commit_absent(
                        &lookup,
                        check,
                        &ConnectionWrites::NONE,
                        context.now,
                    ) =>
            {
                self.untrack();
                return Ok(true);
            }
            false => false,
            true => tracker.track_steady(&lookup, settings, context.now, &mut packet),
        };
        if !is_steady {
            tracker.begin_absent(&mut lookup);
            if !tracker.track_changing(&lookup, check, context.now, &mut packet) {
                return Ok(false);
            }
        }
        if let Some(ends) = packet.translation {
            self.copy_before_rewrite(frame, pool)
                .map_err(Interruption::Drop)?;
            self.key_is_stale = true;
            write_ends(frame, ends);
        }
        self.untrack();
        Ok(true)
    }

    /// True if the interpreter executes `ct`, because the packet may be a fragment to hold.
    pub(super) fn may_hold(&self, frame: &mut Frame) -> Result<bool, Interruption<'a>> {
        if !self.batch.context.pipeline.holds_fragments() {
            return Ok(false);
        }
        Ok(self.parse(frame)?.headers().fragment() != Some(Fragment::No))
    }

    /// Executes `ct`. Returns the table in which the packet itself continues, if any, which it may
    /// only if nothing is executed afterwards.
    pub(super) fn track(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        (action, is_last): (&ConntrackAction, bool),
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let context = self.batch.context;
        let Some(tracker) = context.pipeline.tracker() else {
            return Err(Interruption::Drop(DropReason::NoConntrack));
        };
        let earlier = self.key().connection();
        let request = conntrack_request(action, |source| self.read_source(frame, source));
        let packet = self.parse(frame)?;
        let outcome = track_packet(tracker, &packet, earlier.as_ref(), &request, context.now);
        let call = TrackCall {
            request,
            earlier,
            steady: SteadyCall::of(action),
        };
        let fields =
            (action.table).map(|table| (table, connection_fields(&outcome.metadata, &packet)));
        if action.table.is_some() && is_last || is_translated(&outcome) {
            // What was output before leaves as it was, and apart from the tracked packet.
            self.copy_before_rewrite(frame, pool)
                .map_err(Interruption::Drop)?;
        }
        if is_translated(&outcome) {
            self.key_is_stale = true;
            let mut packet = self.parse(frame)?;
            write_outcome(&mut packet, &outcome).map_err(Interruption::Drop)?;
        }
        match fields {
            Some((table, fields)) if is_last => {
                // The resubmissions are complete, but still count as nested, as in the interpreter.
                self.nest(table <= rule.table())?;
                self.level = self.level.begun();
                let walk = self.record_tracked(&call, table, true);
                self.key().set_connection(&fields);
                if self.is_recording {
                    self.end_nested_recording();
                    self.begin_tracked_recording(walk, frame);
                }
                Ok(Some(table))
            }
            Some((table, fields)) => {
                self.execute_tracked_copy(frame, rule, &call, (table, &fields), pool)?;
                self.untrack();
                Ok(None)
            }
            None => {
                self.record_committed(&call);
                self.untrack();
                Ok(None)
            }
        }
    }

    /// Returns a value that `ct` reads.
    fn read_source(&mut self, frame: &Frame, source: ConntrackSource) -> Option<u128> {
        match source {
            ConntrackSource::Subfield(part) if is_readable(part) => {
                Some(self.key().written_bits(part))
            }
            ConntrackSource::Subfield(part) => {
                self.record_read(part.field());
                Some(self.read_field(frame, part))
            }
            ConntrackSource::StackTop => {
                self.use_interpreter();
                self.batch.memory.interpreter.pop()
            }
        }
    }

    /// Returns bits of any field; zero if the header is missing.
    #[inline(never)]
    fn read_field(&mut self, frame: &Frame, part: Subfield) -> u128 {
        let Ok(headers) = Headers::parse(frame, self.batch.ingress.depth) else {
            return 0;
        };
        self.store_pipeline_fields();
        let memory = &mut *self.batch.memory;
        let fields = &memory.pipeline_fields;
        memory.interpreter.read(&headers, fields, part)
    }

    /// Makes the packet one that is not tracked.
    pub(super) fn untrack(&mut self) {
        // The key of a packet that was tracked is already one that was written.
        self.batch.memory.keys[self.key_index].clear_connection();
    }

    /// True if nothing is executed after `ct`, so that the packet itself continues in its table.
    fn is_last(&self, program: &ActionProgram, number: usize) -> bool {
        program.ends_with(number)
            && self.action_set.is_none()
            && !self.holds_set
            && self.level.pending == self.level.base
            && !self.level.is_in_list
    }
}
