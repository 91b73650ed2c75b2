//! Turns: an engine executes a packet by itself, and lets the interpreter execute single actions,
//! or a part of the tables, in between.
//!
//! ```text
//!   engine        match, output, match, ...            ... match, output
//!   interpreter                           move, learn
//!                                         `--- turn ---'
//! ```
//!
//! Action set and stack of the packet stay in the interpreter from turn to turn; all else is in a
//! [`TurnState`].

use base::{Cookie, Instant, PortNo, Priority, TableId};
use flow::{Action, PipelineFields, Subfield, Wide};
use packet::{Frame, Headers, Packet, Pool};

use super::pause::{FinalActionSet, Pause};
use super::resume::ResumePoint;
use super::{Execution, Interpreter};
use crate::counters::Totals;
use crate::instructions::action_set::ActionSet;
use crate::limits::{ACTION_SET_MAX, STACK_MAX};
use crate::lookup::LookupTables;
use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{Cause, DropReason, Verdict};

/// The state of a packet between two turns.
#[derive(Debug)]
pub struct TurnState {
    /// Packets and bytes to count: those of the packet as received.
    pub weight: Totals,
    /// Pipeline fields.
    pub fields: PipelineFields,
    /// True if the packet leaves in its present state; the verdict has the destination.
    pub egress_pending: bool,
    /// Class of the port's queueing discipline.
    pub priority: Priority,
    /// Number of lookups beyond the first.
    pub lookups: usize,
    /// Number of buckets that may still be examined, of [`crate::BUCKETS_PER_FRAME_MAX`].
    pub buckets_left: u32,
    /// Number of actions that the rules and buckets to be executed may have together.
    pub actions_left: usize,
    /// Nesting of resubmissions and copies.
    pub nesting: usize,
    /// Nesting of resubmissions that did not lead to a later table.
    pub recursion: usize,
    /// True if an action has exposed a malformed header.
    pub is_malformed: bool,
    /// True if the packet may have been modified.
    pub is_rewritten: bool,
    /// True if an action has written pipeline fields other than the metadata and general registers.
    pub has_own_fields: bool,
    /// True if processing ends.
    pub exited: bool,
    /// The continuation of a packet that is being paused.
    pub pause: Option<Pause>,
}

/// The rule whose actions are executed.
#[derive(Clone, Copy, Debug)]
pub struct TurnPlace<'a> {
    /// The table.
    pub table: TableId,
    /// The rule, if there is one.
    pub rule: Option<&'a Rule>,
    /// The cause of packet-ins.
    pub cause: Cause,
}

/// The work of a turn.
#[derive(Debug)]
pub enum Turn<'a> {
    /// Executes actions, up to the first that ends processing.
    Actions(&'a [Action]),
    /// Executes the rest of a resubmission.
    Nested(ResumePoint<'a>),
    /// Executes the rest of the tables and the action set, for a copy of a packet.
    Copy(ResumePoint<'a>),
    /// Sends the paused packet, now that its continuation is complete.
    EndPause(FinalActionSet),
}

/// Action set and stack of a packet.
#[derive(Clone, Debug)]
pub struct SavedMemory {
    set: ActionSet,
    stack: Vec<Wide>,
}

impl SavedMemory {
    /// Number of actions and stack entries, which a copy takes memory for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.set.len() + self.stack.len()
    }

    /// True if both are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The packet of the engine.
impl Interpreter {
    /// Empties action set and stack.
    pub fn reset_packet(&mut self) {
        self.set.clear();
        self.stack.clear();
    }

    /// Returns a copy of action set and stack.
    #[must_use]
    pub fn save_packet(&self) -> SavedMemory {
        SavedMemory {
            set: self.set.clone(),
            stack: self.stack.clone(),
        }
    }

    /// Restores action set and stack.
    pub fn restore_packet(&mut self, saved: SavedMemory) {
        (self.set, self.stack) = (saved.set, saved.stack);
    }

    /// Writes actions to the action set, and clears it before if `clears`.
    ///
    /// # Errors
    /// The action set is too long.
    pub fn write_set(&mut self, clears: bool, actions: &[Action]) -> Result<(), DropReason> {
        if clears {
            self.set.clear();
        }
        self.set.write(actions);
        match self.set.len() > ACTION_SET_MAX {
            true => Err(DropReason::ActionSetTooLong),
            false => Ok(()),
        }
    }

    /// Returns the port that the action set outputs to.
    #[must_use]
    pub fn set_output(&self) -> PortNo {
        self.set.output()
    }

    /// Takes the actions of the action set, in their order.
    #[must_use]
    pub fn take_set(&mut self) -> Vec<Action> {
        let actions = self.set.actions().to_vec();
        self.set.clear();
        actions
    }

    /// Puts bits on the stack.
    ///
    /// # Errors
    /// The stack is full.
    pub fn push(&mut self, bits: u128) -> Result<(), DropReason> {
        if self.stack.len() >= STACK_MAX {
            return Err(DropReason::StackTooDeep);
        }
        self.stack.push(bits.into());
        Ok(())
    }

    /// Takes the top of the stack; of a tunnel option, the lowest bits.
    pub fn pop(&mut self) -> Option<u128> {
        self.stack.pop().map(|bits| bits.low())
    }

    /// Returns bits of a field of a packet; zero if the header is missing.
    pub fn read(&mut self, headers: &Headers, fields: &PipelineFields, part: Subfield) -> u128 {
        if part.is_tunnel_option() {
            let option = fields.options.value(part.field());
            return part.wide_of(option.unwrap_or_default()).low();
        }
        self.key.fill(headers, fields);
        part.of(self.key.get(part.field()).unwrap_or(0))
    }

    /// True if turns have released fragments, which [`Self::finish_fragments`] runs.
    #[must_use]
    pub fn has_released_fragments(&self) -> bool {
        !self.released.is_empty()
    }

    /// Runs the fragments that turns have released, once the packet is complete. The result is
    /// added to `verdict`.
    pub fn finish_fragments<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        (in_port, now): (PortNo, Instant),
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let mut run = self.execution(tables, (in_port, now), pool, trace, verdict);
        run.run_released();
    }

    /// Executes a turn. The result is added to `verdict`.
    ///
    /// # Errors
    /// The packet is dropped.
    #[expect(clippy::too_many_arguments, reason = "the parts of an engine's packet")]
    pub fn take_turn<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        (frame, now): (&mut Frame, Instant),
        (state, place): (&mut TurnState, TurnPlace<'a>),
        turn: &Turn<'a>,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) -> Result<(), DropReason> {
        let in_port = state.fields.in_port;
        let mut run = self.execution(tables, (in_port, now), pool, trace, verdict);
        run.enter_turn(state);
        run.table = place.table;
        run.rule = place.rule;
        run.cookie = place.rule.map_or(Cookie::NONE, |rule| rule.cookie);
        run.cause = place.cause;
        let result = run.execute_turn(frame, &mut state.is_malformed, turn);
        run.leave_turn(state);
        result
    }
}

impl<'a> Execution<'a> {
    /// Takes over the state of a packet.
    pub(crate) fn enter_turn(&mut self, state: &mut TurnState) {
        let in_port = state.fields.in_port;
        self.registers = std::mem::replace(&mut state.fields, PipelineFields::new(in_port));
        self.weight = state.weight;
        self.egress_pending = state.egress_pending;
        self.priority = state.priority;
        self.resubmits = state.lookups;
        self.buckets_left = state.buckets_left;
        self.actions_left = state.actions_left;
        self.nesting = state.nesting;
        self.recursion = state.recursion;
        self.exited = state.exited;
        self.pause = state.pause.take();
        self.depth = self.pipeline.depth();
    }

    /// Returns the state of the packet.
    fn leave_turn(mut self, state: &mut TurnState) {
        self.sync_registers();
        state.fields = self.registers;
        state.egress_pending = self.egress_pending;
        state.priority = self.priority;
        state.lookups = self.resubmits;
        state.buckets_left = self.buckets_left;
        state.actions_left = self.actions_left;
        state.is_rewritten |= self.is_rewritten;
        state.has_own_fields |= self.has_own_fields;
        state.exited = self.exited;
        state.pause = self.pause;
    }

    /// Parses the packet of an engine.
    pub(crate) fn parse_for_turn<'f>(
        &self,
        frame: &'f mut Frame,
        is_malformed: bool,
    ) -> Result<Packet<'f>, DropReason> {
        let packet = match is_malformed {
            false => Packet::parse(frame, self.depth),
            true => Packet::parse_leniently(frame, self.depth),
        };
        packet.map_err(DropReason::Malformed)
    }

    fn execute_turn(
        &mut self,
        frame: &mut Frame,
        is_malformed: &mut bool,
        turn: &Turn<'a>,
    ) -> Result<(), DropReason> {
        match turn {
            Turn::EndPause(end) => {
                self.finish_pause(*end);
                Ok(())
            }
            Turn::Copy(point) => self.finish_packet(frame, *is_malformed, point),
            Turn::Nested(point) => {
                let mut packet = self.parse_for_turn(frame, *is_malformed)?;
                let result = self.finish_levels(&mut packet, point);
                *is_malformed = packet.malformed().is_some();
                result.map(drop)
            }
            Turn::Actions(actions) => {
                let mut packet = self.parse_for_turn(frame, *is_malformed)?;
                let result = self.act_in_turn(&mut packet, actions);
                *is_malformed = packet.malformed().is_some();
                result
            }
        }
    }

    /// Executes actions; the engine adds the rest to the continuation of a pause.
    fn act_in_turn(
        &mut self,
        packet: &mut Packet<'_>,
        actions: &[Action],
    ) -> Result<(), DropReason> {
        for action in actions {
            self.act(packet, action)?;
            if self.verdict.is_over_limit {
                return Err(DropReason::TooManyOutputs);
            }
            if self.exited {
                break;
            }
        }
        Ok(())
    }
}
