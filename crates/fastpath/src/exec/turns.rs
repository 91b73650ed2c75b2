//! Turns of the interpreter: single actions on the frame of the executor, the rest of a resubmission,
//! or the rest of the frame. The functions are those of the interpreter; the executor lends them the
//! state of the frame.

use base::TableId;
use flow::{Action, PipelineFields};
use packet::{Frame, Pool};
use pipeline::{
    Cause, DropReason, LookupTables, ResumeAt, ResumePoint, Rule, Turn, TurnPlace, TurnState,
};

use super::ops::stop_at;
use super::{Executor, FrameEnd, Interruption};
use crate::action_program::{ActionSetUpdate, Op, SlowPathReason};
use crate::batch_state::fields_at_ingress;
use crate::classifier::ViewLookup;
use crate::match_result::{MatchResult, look_up};

/// The cause of packet-ins by the actions of a rule.
pub(super) fn cause_of(rule: &Rule) -> Cause {
    match rule.is_table_miss() {
        true => Cause::MissRule,
        false => Cause::Action,
    }
}

/// A place in a rule.
pub(super) fn place_of(rule: &Rule) -> TurnPlace<'_> {
    TurnPlace {
        table: rule.table(),
        rule: Some(rule),
        cause: cause_of(rule),
    }
}

impl<'b, 'a> Executor<'b, 'a> {
    /// Lets the interpreter execute the adjacent actions from number `first` on that have no
    /// operation of their own. Returns the number of the next.
    #[inline(never)]
    pub(super) fn execute_turns(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        (ops, first): (&[Op], usize),
        pool: &mut Pool,
    ) -> Result<usize, Interruption<'a>> {
        let others = ops[first..].iter();
        let count = others.take_while(|op| matches!(op, Op::Turn)).count();
        let end = first + count;
        let actions = rule.instructions.apply.get(first..end).unwrap_or_default();
        self.take_turn(frame, place_of(rule), &Turn::Actions(actions), pool)?;
        match self.needs_interpreter() {
            false => Ok(end),
            true => Err(Interruption::SlowPath(
                SlowPathReason::Action,
                stop_at(rule, end),
            )),
        }
    }

    /// True if compiled tables and operations do not support the frame: it has no Ethernet header,
    /// or GTP-U fields.
    pub(super) fn needs_interpreter(&self) -> bool {
        self.has_own_fields && self.batch.memory.pipeline_fields.need_interpreter()
    }

    /// Lets the interpreter take a turn.
    #[inline(never)]
    pub(super) fn take_turn(
        &mut self,
        frame: &mut Frame,
        place: TurnPlace<'_>,
        turn: &Turn<'_>,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let was_unused = !self.uses_verdict && self.pending_output.is_none();
        self.use_verdict();
        let verdict = &self.batch.memory.verdict;
        let (egress_before, drops_before) = (verdict.egress.len(), verdict.drops.len());
        let mut state = self.begin_turn();
        let context = self.batch.context;
        let memory = &mut *self.batch.memory;
        let tables = LookupTables {
            pipeline: context.pipeline,
            lookup: &ViewLookup::new(context.view, &memory.scratch),
        };
        let result = memory.interpreter.take_turn(
            tables,
            (frame, context.now),
            (&mut state, place),
            turn,
            pool,
            &mut (),
            &mut memory.verdict,
        );
        let has_exited = state.exited;
        if self.is_recording {
            let has_effect = state.is_rewritten
                || state.exited
                || result.is_err()
                || self.batch.memory.verdict.drops.len() != drops_before;
            self.record_turn(turn, has_effect, egress_before);
        }
        self.end_turn(state);
        // Outputs with fields that rules have written are in the verdict.
        if was_unused && !self.has_own_fields && self.batch.memory.verdict.is_empty() {
            self.uses_verdict = false;
        }
        match result {
            Err(reason) => Err(Interruption::Drop(reason)),
            Ok(()) if has_exited => Err(Interruption::Exit),
            Ok(()) => Ok(()),
        }
    }

    /// Lets the interpreter run the fragments that continue after the frame, which is complete.
    #[inline(never)]
    pub(super) fn finish_fragments(&mut self, pool: &mut Pool) {
        let context = self.batch.context;
        let memory = &mut *self.batch.memory;
        let tables = LookupTables {
            pipeline: context.pipeline,
            lookup: &ViewLookup::new(context.view, &memory.scratch),
        };
        memory.interpreter.finish_fragments(
            tables,
            (context.in_port, context.now),
            pool,
            &mut (),
            &mut memory.verdict,
        );
    }

    /// Returns the state of the frame, whose action set and stack are in the interpreter.
    fn begin_turn(&mut self) -> TurnState {
        match self.action_set {
            Some(_) => self.hold_set(),
            None => self.use_interpreter(),
        }
        self.store_pipeline_fields();
        self.uses_pipeline_fields = true;
        let pipeline_fields = &mut self.batch.memory.pipeline_fields;
        let mut fields = std::mem::replace(pipeline_fields, PipelineFields::new(self.in_port));
        fields.in_port = self.in_port;
        TurnState {
            weight: self.weight,
            fields,
            egress_pending: self.is_output,
            priority: self.priority,
            lookups: self.lookups,
            buckets_left: self.buckets_left,
            actions_left: self.actions_left,
            nesting: self.level.nesting.into(),
            recursion: self.level.recursion.into(),
            is_malformed: self.is_malformed,
            is_rewritten: false,
            has_own_fields: false,
            exited: false,
            pause: self.pause.take().map(|pause| *pause),
        }
    }

    /// Takes the state of the frame back.
    fn end_turn(&mut self, state: TurnState) {
        self.is_output = state.egress_pending;
        self.priority = state.priority;
        self.lookups = state.lookups;
        self.buckets_left = state.buckets_left;
        self.actions_left = state.actions_left;
        self.is_malformed = state.is_malformed;
        self.key_is_stale |= state.is_rewritten;
        self.has_own_fields |= state.has_own_fields;
        self.is_lookup_special |= state.has_own_fields;
        self.pause = state.pause.map(Box::new);
        self.key().set_fields(&state.fields);
        if state.fields.in_port != self.in_port {
            self.set_in_port(state.fields.in_port);
        }
        self.batch.memory.pipeline_fields = state.fields;
    }

    /// Uses the memory of the interpreter for this frame.
    pub(super) fn use_interpreter(&mut self) {
        if !self.uses_interpreter {
            self.uses_interpreter = true;
            self.batch.memory.interpreter.reset_packet();
        }
    }

    /// Moves the action set to the interpreter.
    fn hold_set(&mut self) {
        self.use_interpreter();
        if !self.holds_set {
            self.holds_set = true;
            let actions = self.action_set.take();
            let actions = actions.map_or(&[][..], std::slice::from_ref);
            let interpreter = &mut self.batch.memory.interpreter;
            interpreter
                .write_set(true, actions)
                .expect("one action fits");
        }
    }

    /// Updates an action set that the interpreter holds, or holds from now on.
    #[inline(never)]
    pub(super) fn update_held_set(
        &mut self,
        update: ActionSetUpdate,
        write: &[Action],
    ) -> Result<(), Interruption<'a>> {
        self.hold_set();
        let clears = matches!(
            update,
            ActionSetUpdate::Clear
                | ActionSetUpdate::ClearAndOutput
                | ActionSetUpdate::ClearAndWrite
        );
        let interpreter = &mut self.batch.memory.interpreter;
        let result = interpreter.write_set(clears, write);
        let port = interpreter.set_output();
        self.key().set_action_set_output(port);
        result.map_err(Interruption::Drop)
    }

    /// Lets the interpreter execute the rest of the frame.
    #[inline(never)]
    pub(super) fn resume_in_interpreter(
        &mut self,
        frame: Frame,
        at: ResumeAt<'a>,
        pool: &mut Pool,
    ) -> FrameEnd {
        self.give_up_recording();
        if self.is_recording {
            self.end_recording();
        }
        self.use_verdict();
        let state = self.begin_turn();
        self.reset_pipeline_fields();
        let point = ResumePoint {
            at,
            pending: &self.resubmit_stack[..usize::from(self.level.pending)],
            outermost: self.level.outermost,
            base_nesting: self.level.base_nesting.into(),
        };
        let context = self.batch.context;
        let memory = &mut *self.batch.memory;
        let tables = LookupTables {
            pipeline: context.pipeline,
            lookup: &ViewLookup::new(context.view, &memory.scratch),
        };
        memory.interpreter.resume_slow_path(
            tables,
            (frame, context.now),
            (state, point),
            pool,
            &mut (),
            &mut memory.verdict,
        );
        FrameEnd::Verdict
    }

    /// Lets the interpreter execute the rest of this level: of a resubmission, or with the action
    /// set, of a copy.
    #[inline(never)]
    pub(super) fn finish_level_in_interpreter(
        &mut self,
        frame: &mut Frame,
        (place, at): (TurnPlace<'_>, ResumeAt<'a>),
        is_copy: bool,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let level = self.level;
        let pending = usize::from(level.base)..usize::from(level.pending);
        let pending = self.resubmit_stack[pending].to_vec();
        let point = ResumePoint {
            at,
            pending: &pending,
            outermost: level.outermost,
            base_nesting: level.base_nesting.into(),
        };
        let turn = match is_copy {
            true => Turn::Copy(point),
            false => Turn::Nested(point),
        };
        self.take_turn(frame, place, &turn, pool)
    }

    /// Copies the written pipeline fields to those of the worker, for consumers that need all of
    /// them.
    pub(super) fn store_pipeline_fields(&mut self) -> &PipelineFields {
        let memory = &mut *self.batch.memory;
        if memory.written.contains(self.key_index) {
            self.uses_pipeline_fields = true;
            memory.keys[self.key_index].store_written_fields(&mut memory.pipeline_fields);
            memory.pipeline_fields.in_port = self.in_port;
        }
        &memory.pipeline_fields
    }

    /// Resets the pipeline fields of the worker to those at ingress.
    pub(super) fn reset_pipeline_fields(&mut self) {
        let batch = &mut *self.batch;
        let fields = fields_at_ingress(batch.context.in_port, batch.ingress_fields);
        if self.has_own_fields {
            batch.memory.keys[self.key_index].set_ingress_fields(&fields);
        }
        batch.memory.pipeline_fields = fields;
    }

    /// Looks up the packet with the id of no conjunction, by another ingress port if that is set, and
    /// with the fields that rules have written.
    #[inline(never)]
    pub(super) fn look_up_specially(&mut self, table: TableId) -> MatchResult<'a> {
        let view = self.batch.context.view;
        let has_options = match self.has_own_fields {
            true => !self.batch.memory.pipeline_fields.options.is_empty(),
            false => self.batch.has_options(),
        };
        let memory = &mut *self.batch.memory;
        if self.uses_pipeline_fields {
            memory.pipeline_fields.conjunction = 0;
        }
        let key = &mut memory.keys[self.key_index];
        let port = self.lookup_port;
        if let Some(port) = port {
            key.replace_in_port(port);
        }
        let result = look_up(view, view.table(table), key, has_options);
        if port.is_some() {
            key.replace_in_port(self.in_port);
        }
        if !matches!(result, MatchResult::SlowPath(_)) {
            self.lookup_port = None;
        }
        self.is_lookup_special = self.has_own_fields;
        result
    }

    /// Sets the id of the conjunction by which the packet matches, until the next lookup.
    #[inline(never)]
    pub(super) fn set_conjunction(&mut self, id: u32) {
        self.uses_pipeline_fields = true;
        self.is_lookup_special = true;
        self.batch.memory.pipeline_fields.conjunction = id;
    }

    /// Charges actions to the frame.
    #[inline]
    pub(super) fn spend_actions(&mut self, count: usize) -> Result<(), Interruption<'a>> {
        match self.actions_left.checked_sub(count) {
            None => Err(Interruption::Drop(DropReason::TooManyActions)),
            Some(left) => {
                self.actions_left = left;
                Ok(())
            }
        }
    }
}
