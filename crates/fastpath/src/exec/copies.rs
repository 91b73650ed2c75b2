//! Copies of the frame: `clone`, buckets that change it, and tracked copies. A copy has pipeline
//! fields, action set and stack of its own, which end with it.

use base::{PortNo, Priority, TableId};
use flow::{Action, ConnectionFields, PipelineFields};
use packet::{Frame, Pool};
use pipeline::{DropReason, FinalActionSet, NESTING_MAX, Rule, SavedMemory, Turn, TurnPlace};

use super::levels::Level;
use super::track::TrackCall;
use super::turns::place_of;
use super::{ExecPoint, Executor, Interruption};
use crate::batch_state::fields_at_ingress;
use crate::packed_key::PackedKey;
use crate::walk_cache::WalkEffect;

/// State of the frame before a copy.
struct SavedFrame<'a> {
    key: PackedKey,
    /// Pipeline fields, unless they are those at ingress and those of the key.
    fields: Option<PipelineFields>,
    memory: Option<SavedMemory>,
    action_set: Option<&'a Action>,
    holds_set: bool,
    last_rule: Option<&'a Rule>,
    level: Level<'a>,
    in_port: PortNo,
    priority: Priority,
    key_is_stale: bool,
    has_own_fields: bool,
    is_lookup_special: bool,
    is_malformed: bool,
}

impl<'a> Executor<'_, 'a> {
    /// Executes actions on a copy of the frame.
    #[inline(never)]
    pub(super) fn execute_copy(
        &mut self,
        frame: &Frame,
        place: TurnPlace<'a>,
        actions: &[Action],
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        if usize::from(self.level.nesting) >= NESTING_MAX {
            return Err(Interruption::Drop(DropReason::RecursionTooDeep));
        }
        let mut copy = self.copy_frame(frame, pool)?;
        let saved = self.save_frame();
        self.level.nesting += 1;
        self.record(|| WalkEffect::BeginCopy);
        let result = self.execute_list(&mut copy, place, actions, pool);
        self.end_copy(copy, saved, FinalActionSet::Never, pool);
        self.record(|| WalkEffect::EndCopy);
        self.contain(result, DropReason::drops_all)
    }

    /// Executes the tables from `table` on with a copy of the frame that has the fields of its
    /// connection.
    #[inline(never)]
    pub(super) fn execute_tracked_copy(
        &mut self,
        frame: &Frame,
        rule: &'a Rule,
        call: &TrackCall,
        (table, fields): (TableId, &ConnectionFields),
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let saved = self.save_frame();
        self.nest(table <= rule.table())?;
        let mut copy = self.copy_frame(frame, pool)?;
        self.level = self.level.begun();
        let walk = self.record_tracked(call, table, false);
        self.key().set_connection(fields);
        let was_recording = self.is_recording;
        self.begin_tracked_recording(walk, &copy);
        let result = self.look_up(&copy, table);
        let result = match self.run_tables(&mut copy, ExecPoint::Table(table, result), pool) {
            Err(Interruption::SlowPath(reason, at)) => {
                self.batch.memory.count_slow_path(reason);
                self.finish_level_in_interpreter(&mut copy, (place_of(rule), at), true, pool)
            }
            Err(Interruption::Pause(at)) => {
                self.finish_level_in_interpreter(&mut copy, (place_of(rule), at), true, pool)
            }
            other => other,
        };
        if was_recording {
            self.end_nested_recording();
        }
        self.end_copy(copy, saved, FinalActionSet::Executed, pool);
        self.contain(result, DropReason::drops_all)
    }

    /// Returns a copy of the frame. If the current state of the frame is to be sent, another copy
    /// is.
    pub(super) fn copy_frame(
        &mut self,
        frame: &Frame,
        pool: &mut Pool,
    ) -> Result<Frame, Interruption<'a>> {
        self.use_verdict();
        self.copy_before_rewrite(frame, pool)
            .map_err(Interruption::Drop)?;
        let copy = pool.duplicate(frame);
        copy.ok_or(Interruption::Drop(DropReason::NoBuffer))
    }

    fn save_frame(&self) -> SavedFrame<'a> {
        let memory = &*self.batch.memory;
        SavedFrame {
            key: memory.keys[self.key_index].clone(),
            fields: self
                .uses_pipeline_fields
                .then(|| memory.pipeline_fields.clone()),
            memory: self
                .uses_interpreter
                .then(|| memory.interpreter.save_packet()),
            action_set: self.action_set,
            holds_set: self.holds_set,
            last_rule: self.last_rule,
            level: self.level,
            in_port: self.in_port,
            priority: self.priority,
            key_is_stale: self.key_is_stale,
            has_own_fields: self.has_own_fields,
            is_lookup_special: self.is_lookup_special,
            is_malformed: self.is_malformed,
        }
    }

    /// Ends a copy, and restores the state of the frame.
    fn end_copy(
        &mut self,
        mut copy: Frame,
        saved: SavedFrame<'a>,
        end: FinalActionSet,
        pool: &mut Pool,
    ) {
        self.finish_pause(&mut copy, end, pool);
        match std::mem::take(&mut self.is_output) {
            true => self.batch.memory.verdict.frames.push(copy),
            false => pool.put(copy),
        }
        let batch = &mut *self.batch;
        match saved.memory {
            Some(memory) => batch.memory.interpreter.restore_packet(memory),
            None if self.uses_interpreter => batch.memory.interpreter.reset_packet(),
            None => {}
        }
        match saved.fields {
            Some(fields) => batch.memory.pipeline_fields = fields,
            None if self.uses_pipeline_fields => {
                let fields = fields_at_ingress(batch.context.in_port, batch.ingress_fields);
                batch.memory.pipeline_fields = fields;
            }
            None => {}
        }
        batch.memory.keys[self.key_index] = saved.key;
        self.action_set = saved.action_set;
        self.holds_set = saved.holds_set;
        self.last_rule = saved.last_rule;
        self.level = saved.level;
        self.in_port = saved.in_port;
        self.priority = saved.priority;
        self.key_is_stale = saved.key_is_stale;
        self.has_own_fields = saved.has_own_fields;
        self.is_lookup_special = saved.is_lookup_special;
        self.is_malformed = saved.is_malformed;
        self.lookup_port = None;
    }

    /// Sends the packet that is being paused, if there is one.
    pub(super) fn finish_pause(&mut self, frame: &mut Frame, end: FinalActionSet, pool: &mut Pool) {
        if self.pause.is_some() {
            let place = TurnPlace {
                table: TableId::FIRST,
                rule: None,
                cause: pipeline::Cause::Action,
            };
            // The turn reports its drops itself.
            let _ = self.take_turn(frame, place, &Turn::EndPause(end), pool);
        }
    }

    /// Ends only a copy or a bucket, except for reasons that apply to the frame and all copies.
    pub(super) fn contain(
        &mut self,
        result: Result<(), Interruption<'a>>,
        applies_to_all: impl Fn(DropReason) -> bool,
    ) -> Result<(), Interruption<'a>> {
        match result {
            Err(Interruption::Drop(reason)) if !applies_to_all(reason) => {
                self.drop(reason);
                Ok(())
            }
            Err(Interruption::Exit) => Ok(()),
            other => other,
        }
    }
}
