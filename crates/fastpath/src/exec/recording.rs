//! Recording of walks for the [walk cache](crate::walk_cache), while the executor runs a packet.
//!
//! Each effect on the frame is recorded where it happens. What a walk cannot repeat ends the
//! recording, and the packet is executed as always.

use std::cell::Cell;

use base::{PortNo, TableId};
use flow::{Action, Extension, Field};
use packet::{Depth, Frame, Pool};
use pipeline::{Destination, Rule, Turn};

use super::track::TrackCall;
use super::{ExecPoint, Executor, FrameOutcome};
use crate::match_result::MatchResult;
use crate::packed_key::OptionalBits;
use crate::walk_cache::{FROM_PORT, ResumeState, TrackEffect, TrackedWalk, WalkEffect};

/// The rules of a table on which the result of a lookup depends.
#[derive(Clone, Copy)]
enum ExaminedRules<'r> {
    All,
    /// This rule, and all that are tried before it.
    UpTo(&'r Rule),
}

impl<'b> Executor<'b, '_> {
    /// Executes a frame from the first table, and records its walk.
    pub(crate) fn run_recorded(mut self, pool: &mut Pool) -> FrameOutcome<'b> {
        let mut frame = std::mem::take(&mut self.batch.frames[self.frame_index]);
        self.priority = frame.priority;
        let memory = &mut *self.batch.memory;
        let key = &memory.keys[self.key_index];
        memory.walk_cache.begin_recording(Some(key), FROM_PORT);
        self.is_recording = true;
        let result = self.batch.look_up(self.key_index, TableId::FIRST);
        let point = ExecPoint::Table(TableId::FIRST, result);
        let result = self.run_tables(&mut frame, point, pool);
        let end = self.complete(frame, result, pool);
        self.outcome(end)
    }

    /// Records an effect, if a walk is recorded.
    #[inline]
    pub(super) fn record(&mut self, effect: impl FnOnce() -> WalkEffect) {
        if self.is_recording {
            self.record_effect(effect());
        }
    }

    #[inline(never)]
    pub(super) fn record_effect(&mut self, effect: WalkEffect) {
        self.batch.memory.walk_cache.recorder.add_effect(effect);
    }

    /// Makes the walk one that is not cached: it depends on more than its key, or has other effects
    /// than walks have.
    #[inline]
    pub(super) fn give_up_recording(&mut self) {
        if self.is_recording {
            self.batch.memory.walk_cache.recorder.give_up();
        }
    }

    /// Ends the recording of the packet.
    #[inline(never)]
    pub(super) fn end_recording(&mut self) {
        if self.batch.memory.verdict.is_over_limit {
            self.give_up_recording();
        }
        self.end_nested_recording();
        self.is_recording = false;
    }

    /// Ends the innermost walk.
    #[inline(never)]
    pub(super) fn end_nested_recording(&mut self) {
        let reads_network = self.batch.ingress.depth != Depth::Link;
        self.batch.memory.walk_cache.recorder.end(reads_network);
    }

    /// Records the result of a lookup.
    #[inline(never)]
    pub(super) fn record_lookup(&mut self, table: TableId, result: &MatchResult<'_>) {
        let (rule, examined) = match result {
            MatchResult::Rule(Some(rule)) => (Some(*rule), ExaminedRules::UpTo(rule)),
            MatchResult::Rule(None) => (None, ExaminedRules::All),
            // Clauses may have any priority.
            MatchResult::Conjunction(rule, _) => (Some(*rule), ExaminedRules::All),
            MatchResult::SlowPath(_) | MatchResult::Standalone | MatchResult::Drop(_) => {
                return self.give_up_recording();
            }
        };
        self.record_examined(table, examined);
        let recorder = &mut self.batch.memory.walk_cache.recorder;
        recorder.add_lookup(table, rule.map(|rule| &rule.counters));
    }

    /// Records the optional bits on which a result depends: those that tell which of the rules the
    /// packet matches. If there are too many, its structures are examined.
    fn record_examined(&mut self, table: TableId, examined: ExaminedRules<'_>) {
        let (context, memory) = (self.batch.context, &mut *self.batch.memory);
        let Some(view) = context.view.table(table) else {
            return;
        };
        let recorder = &mut memory.walk_cache.recorder;
        let has_conjunctions = view.fallback.is_some();
        let mut is_after = false;
        let rules = context.pipeline.rules(table).map(|rule| &**rule);
        let rules = rules.take_while(|rule| match examined {
            ExaminedRules::All => true,
            // Clauses of the same priority may follow.
            ExaminedRules::UpTo(last) if has_conjunctions => rule.priority() >= last.priority(),
            ExaminedRules::UpTo(last) => {
                !std::mem::replace(&mut is_after, std::ptr::eq(*rule, last))
            }
        });
        let key = &memory.keys[self.key_index];
        if !view.is_compiled() {
            recorder.add_table(&view.optional_bits());
        } else if !recorder.examine(key, rules) {
            let least = match examined {
                ExaminedRules::All => 0,
                ExaminedRules::UpTo(last) => last.priority(),
            };
            recorder.examine_structures(key, (view, context.view.epoch()), least);
        }
    }

    /// Records a lookup by another port, or with fields that are not in the key.
    #[inline(never)]
    pub(super) fn record_special_lookup(&mut self, table: TableId) {
        if let Some(view) = self.batch.context.view.table(table) {
            let recorder = &mut self.batch.memory.walk_cache.recorder;
            recorder.add_table(&view.optional_bits());
        }
    }

    /// Records that an action reads a field.
    pub(super) fn record_read(&mut self, field: Field) {
        if self.is_recording {
            let recorder = &mut self.batch.memory.walk_cache.recorder;
            recorder.add_bits(&OptionalBits::of_field(field));
        }
    }

    /// Records an output.
    #[inline(never)]
    pub(super) fn record_send(&mut self, port: PortNo) {
        let effect = match self.has_own_fields {
            false => WalkEffect::Send(port),
            true => WalkEffect::SendWith(port, Box::new(self.store_pipeline_fields().clone())),
        };
        self.record_effect(effect);
    }

    /// Records a turn of the interpreter. Moves between fields have no effect on the frame, unless
    /// they rewrite it.
    #[inline(never)]
    pub(super) fn record_turn(&mut self, turn: &Turn<'_>, has_effect: bool, egress_before: usize) {
        let is_move = |action: &Action| {
            matches!(
                action,
                Action::SetField { .. }
                    | Action::Extended(
                        Extension::Move { .. }
                            | Extension::Load { .. }
                            | Extension::Push(_)
                            | Extension::Pop(_)
                            | Extension::OutputReg { .. }
                    )
            )
        };
        match turn {
            Turn::Actions(actions) if !has_effect && actions.iter().all(is_move) => {
                for action in *actions {
                    if let Action::Extended(
                        Extension::Move { from, .. }
                        | Extension::Push(from)
                        | Extension::OutputReg { from, .. },
                    ) = action
                    {
                        self.record_read(from.field());
                    }
                }
            }
            _ => return self.give_up_recording(),
        }
        self.record_outputs_of_turn(egress_before);
    }

    /// Records the outputs that a turn has added.
    fn record_outputs_of_turn(&mut self, egress_before: usize) {
        let egress = &self.batch.memory.verdict.egress;
        let added = egress.get(egress_before..).unwrap_or_default().iter();
        let effects: Option<Vec<_>> = added
            .map(|egress| match (&egress.to, &egress.registers) {
                (Destination::Port(port), None) => Some(WalkEffect::Send(*port)),
                (Destination::Port(port), Some(fields)) => {
                    Some(WalkEffect::SendWith(*port, fields.clone()))
                }
                _ => None,
            })
            .collect();
        match effects {
            Some(effects) => effects.into_iter().for_each(|one| self.record_effect(one)),
            None => self.give_up_recording(),
        }
    }

    /// Records a `ct` after which the packet continues untracked.
    pub(super) fn record_committed(&mut self, call: &TrackCall) {
        self.record(|| {
            WalkEffect::Track(Box::new(TrackEffect {
                request: call.request,
                earlier: call.earlier,
                steady: call.steady,
                next: None,
            }))
        });
    }

    /// Records a `ct` after which the packet, or else a copy, continues in `table`. Called before
    /// the packet has the fields of its connection. Returns the start of the walk there.
    pub(super) fn record_tracked(
        &mut self,
        call: &TrackCall,
        table: TableId,
        is_last: bool,
    ) -> Option<u64> {
        match self.is_recording {
            false => None,
            true => self.record_continuation(call, table, is_last),
        }
    }

    #[inline(never)]
    fn record_continuation(
        &mut self,
        call: &TrackCall,
        table: TableId,
        is_last: bool,
    ) -> Option<u64> {
        let has_other_state =
            self.has_own_fields || self.holds_set || self.action_set.is_some() || self.is_malformed;
        let memory = &mut *self.batch.memory;
        let recorder = &mut memory.walk_cache.recorder;
        if has_other_state || !recorder.is_valid() {
            recorder.give_up();
            return None;
        }
        let id = recorder.next_id();
        let resume = ResumeState {
            key: memory.keys[self.key_index].clone(),
            memory: self
                .uses_interpreter
                .then(|| memory.interpreter.save_packet()),
            nesting: self.level.nesting,
            recursion: self.level.recursion,
            lookups: self.lookups,
            buckets_left: self.buckets_left,
            actions_left: self.actions_left,
        };
        recorder.add_effect(WalkEffect::Track(Box::new(TrackEffect {
            request: call.request,
            earlier: call.earlier,
            steady: call.steady,
            next: Some(TrackedWalk {
                id,
                table,
                is_last,
                resume,
                later_zone: Cell::default(),
            }),
        })));
        Some(id)
    }

    /// Starts to record the walk of a packet that has the fields of its connection now.
    pub(super) fn begin_tracked_recording(&mut self, start: Option<u64>, frame: &Frame) {
        if !self.is_recording {
            return;
        }
        let has_key = start.is_some() && self.refresh_key(frame);
        let memory = &mut *self.batch.memory;
        let key = has_key.then(|| &memory.keys[self.key_index]);
        memory
            .walk_cache
            .begin_recording(key, start.unwrap_or(FROM_PORT));
    }

    /// Parses a rewritten frame again. Returns false if its key stays stale.
    pub(super) fn refresh_key(&mut self, frame: &Frame) -> bool {
        if self.key_is_stale {
            let parsed = self.batch.parse_again(self.key_index, frame, self.in_port);
            self.key_is_stale = parsed.is_err();
        }
        !self.key_is_stale
    }

    /// True if an output with these fields may be one by a tunnel.
    pub(super) fn may_tunnel(&self, port: PortNo) -> bool {
        let pipeline = self.batch.context.pipeline;
        pipeline.may_tunnel(&Destination::Port(port))
    }
}
