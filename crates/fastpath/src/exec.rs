//! Executor: runs action programs on one frame, table by table, until the frame is complete or
//! reaches an action that only the interpreter executes (Open vSwitch `odp_execute_actions`).
//!
//! Most frames leave by one port unmodified. For these no verdict is written: the executor returns
//! only the port. The verdict of the worker is used from the first effect that needs it. The
//! operations are in [`ops`], those of groups in [`groups`], and lists of actions that are not the
//! program of a rule (`clone`, buckets, action sets) in [`lists`].
//!
//! An action without an operation of its own is executed by the interpreter in a turn ([`turns`]):
//! on the frame as it is, after which the executor continues.
//!
//! ```text
//!            +-------------------------------------------------+
//!            v                                                 |
//!   result of a table -- rule --> meter, operations, set, metadata -- goto_table, resubmit
//!            |                          |                      |
//!            | miss                     | slow path            | end
//!            v                          v                      v
//!        miss policy            interpreter resumes     rule before the innermost resubmission,
//!                               at rule and action      or the action set
//! ```

use base::{PortNo, Priority, TableId};
use flow::Action;
use packet::{Frame, Pool};
use pipeline::{
    ACTIONS_PER_FRAME_MAX, BUCKETS_PER_FRAME_MAX, Cause, Destination, DropReason, MissPolicy,
    Pause, PendingRule, RESUBMITS_MAX, ResumeAt, Rule, Totals, Verdict,
};

use crate::action_program::{ActionProgram, ActionSetUpdate, SlowPathReason};
use crate::batch_state::BatchState;
use crate::frame_progress::{BATCH_RESUBMITS_MAX, FrameProgress};
use crate::match_result::MatchResult;

mod copies;
mod groups;
mod levels;
mod lists;
mod ops;
mod recording;
mod replay;
mod track;
mod turns;

use levels::Level;
pub(crate) use track::SteadyCall;

/// Most rules with something to execute after a resubmission that is in progress. Beyond it, the
/// interpreter continues.
pub(crate) const PENDING_MAX: usize = 32;

/// Outcome of one frame, or of several that leave together.
#[derive(Debug)]
pub enum FrameOutcome<'a> {
    /// These frames leave as they are by this port, which exists and may send; nothing else is to
    /// be done. The caller takes them out of the batch.
    Forward(&'a mut [Frame], PortNo),
    /// The verdict for one frame.
    Verdict(&'a mut Verdict),
}

/// The end of a frame.
enum FrameEnd {
    /// It is in the batch again, and leaves by this port.
    Forward(PortNo),
    /// Its outputs are in the verdict of the worker.
    Verdict,
}

/// Pending rule of each nested resubmission after which something is executed.
pub(crate) type ResubmitStack<'a> = [Option<PendingRule<'a>>; PENDING_MAX];

/// Reason to stop before the end of the program.
enum Interruption<'a> {
    /// The frame is dropped.
    Drop(DropReason),
    /// The interpreter resumes.
    SlowPath(SlowPathReason, ResumeAt<'a>),
    /// The interpreter pauses the packet, which ends its processing.
    Pause(ResumeAt<'a>),
    /// Processing has ended.
    Exit,
}

/// Execution of one frame.
pub(crate) struct Executor<'b, 'a> {
    batch: &'b mut BatchState<'a>,
    resubmit_stack: &'b mut ResubmitStack<'a>,
    /// Index of the frame in the batch, and of its key.
    frame_index: usize,
    key_index: usize,
    /// Packets and bytes that the frame counts for, as received.
    weight: Totals,
    /// The action set: an output, if anything.
    action_set: Option<&'a Action>,
    /// Lookups after the first.
    lookups: usize,
    /// Buckets that may still be executed.
    buckets_left: u32,
    /// Actions that may still be executed.
    actions_left: usize,
    /// Ingress port; rules may write it.
    in_port: PortNo,
    /// Nesting of resubmissions and copies.
    level: Level<'a>,
    /// Rule of the action set, if the interpreter holds it.
    last_rule: Option<&'a Rule>,
    /// Ingress port of the next lookup, if it is another one.
    lookup_port: Option<PortNo>,
    /// The continuation of a copy that is being paused.
    pause: Option<Box<Pause>>,
    /// True if the current state of the frame is to be sent.
    is_output: bool,
    /// Class of a port's queueing discipline.
    priority: Priority,
    /// Port of the first output, while there is no other effect.
    pending_output: Option<PortNo>,
    /// True if the verdict of the worker is that of this frame.
    uses_verdict: bool,
    /// True if the frame was rewritten after its key was filled.
    key_is_stale: bool,
    /// True if the pipeline fields of the worker are those of this frame.
    uses_pipeline_fields: bool,
    /// True if rules have written fields of the frame that are not in the list of the key's written
    /// fields, for instance those of a tunnel.
    has_own_fields: bool,
    /// True if the next lookup is not an ordinary one.
    is_lookup_special: bool,
    /// True if the interpreter holds the stack, and the action set if `holds_set`, of this frame.
    uses_interpreter: bool,
    /// True if the interpreter holds the action set.
    holds_set: bool,
    /// True if an action has exposed a malformed header.
    is_malformed: bool,
    /// True if `ct` has verified the checksums of the frame, which rewrites keep right.
    is_verified: bool,
    /// True if a walk is recorded.
    is_recording: bool,
}

/// Point at which execution continues.
enum ExecPoint<'a> {
    /// The result of a table.
    Table(TableId, MatchResult<'a>),
    /// A rule, after so many of its operations.
    Rule(&'a Rule, usize),
}

impl<'b, 'a> Executor<'b, 'a> {
    /// An executor that continues from the progress of the batch lookup; `resubmitted` holds the
    /// rules of its resubmissions, which are complete but for the tables that they lead to.
    #[inline]
    pub(crate) fn new(
        batch: &'b mut BatchState<'a>,
        resubmit_stack: &'b mut ResubmitStack<'a>,
        (frame_index, key_index): (usize, usize),
        progress: &FrameProgress<'a>,
        resubmitted: Option<&[Option<&'a Rule>; BATCH_RESUBMITS_MAX]>,
    ) -> Self {
        let (weight, lookups) = (progress.weight, progress.lookups.into());
        let outermost = match resubmitted {
            Some([outermost, ..]) if progress.resubmits > 0 => *outermost,
            _ => None,
        };
        let level = Level::resubmitted(progress, outermost);
        Self {
            in_port: batch.context.in_port,
            batch,
            resubmit_stack,
            frame_index,
            key_index,
            weight,
            action_set: progress.action_set,
            lookups,
            buckets_left: BUCKETS_PER_FRAME_MAX,
            actions_left: ACTIONS_PER_FRAME_MAX,
            level,
            last_rule: None,
            lookup_port: None,
            pause: None,
            is_output: false,
            priority: Priority::NONE,
            pending_output: None,
            uses_verdict: false,
            key_is_stale: false,
            uses_pipeline_fields: false,
            has_own_fields: false,
            is_lookup_special: false,
            uses_interpreter: false,
            holds_set: false,
            is_malformed: false,
            is_verified: false,
            is_recording: false,
        }
    }

    /// Executes the frame from the result of a table.
    pub(crate) fn run(
        mut self,
        table: TableId,
        result: MatchResult<'a>,
        pool: &mut Pool,
    ) -> FrameOutcome<'b> {
        let mut frame = std::mem::take(&mut self.batch.frames[self.frame_index]);
        self.priority = frame.priority;
        let result = self.run_tables(&mut frame, ExecPoint::Table(table, result), pool);
        let end = self.complete(frame, result, pool);
        self.outcome(end)
    }

    /// Returns the outcome of the frame.
    #[inline]
    fn outcome(self, end: FrameEnd) -> FrameOutcome<'b> {
        match end {
            FrameEnd::Forward(port) => {
                let frame = &mut self.batch.frames[self.frame_index];
                FrameOutcome::Forward(std::slice::from_mut(frame), port)
            }
            FrameEnd::Verdict => FrameOutcome::Verdict(&mut self.batch.memory.verdict),
        }
    }

    /// Completes a frame after its tables.
    #[inline(always)]
    fn complete(
        &mut self,
        frame: Frame,
        result: Result<(), Interruption<'a>>,
        pool: &mut Pool,
    ) -> FrameEnd {
        match result {
            Ok(()) | Err(Interruption::Exit) => {}
            Err(Interruption::Drop(_)) if self.is_over_limit() => {}
            Err(Interruption::Drop(reason)) => {
                self.drop(reason);
                if reason.drops_all() {
                    self.batch.memory.verdict.discard_outputs(pool);
                    self.is_output = false;
                }
            }
            Err(Interruption::SlowPath(reason, stop)) => {
                self.batch.memory.count_slow_path(reason);
                return self.resume_in_interpreter(frame, stop, pool);
            }
            Err(Interruption::Pause(stop)) => {
                return self.resume_in_interpreter(frame, stop, pool);
            }
        }
        self.finish(frame, pool)
    }

    /// Executes the tables and the pending rules of resubmissions, then the action set.
    #[inline(always)]
    fn run_tables(
        &mut self,
        frame: &mut Frame,
        point: ExecPoint<'a>,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        if let ExecPoint::Table(_, MatchResult::Standalone) = point {
            // It depends on the connections of controllers.
            self.give_up_recording();
            self.send_to(Destination::Normal);
            return Ok(());
        }
        match self.run_level(frame, point, pool)? {
            None if self.holds_set => self.execute_held_set(frame, pool),
            None => {
                self.execute_action_set();
                Ok(())
            }
            Some(table) => self.handle_miss(table),
        }
    }

    /// Executes rules until one does not lead to another table. Returns the table in which no rule
    /// matched, if that ended it.
    #[inline(always)]
    fn run_chain(
        &mut self,
        frame: &mut Frame,
        point: ExecPoint<'a>,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let (mut table, mut rule, mut first_op) = match point {
            ExecPoint::Table(table, result) => (table, self.count_result(table, result)?, 0),
            ExecPoint::Rule(rule, done) => (rule.table(), Some(rule), done),
        };
        while let Some(matched) = rule {
            match self.execute_rule(frame, matched, first_op, pool)? {
                Some(next) => table = next,
                None => {
                    if self.holds_set {
                        self.last_rule = Some(matched);
                    }
                    return Ok(None);
                }
            }
            let result = self.look_up(frame, table);
            (rule, first_op) = (self.count_result(table, result)?, 0);
        }
        Ok(Some(table))
    }

    /// Counts the result of a table. Returns the rule, or `None` if no rule matches.
    #[inline]
    fn count_result(
        &mut self,
        table: TableId,
        result: MatchResult<'a>,
    ) -> Result<Option<&'a Rule>, Interruption<'a>> {
        if self.is_recording {
            self.record_lookup(table, &result);
        }
        match result {
            MatchResult::Rule(Some(rule)) => {
                self.batch.count_match(table, rule, self.weight);
                self.spend_actions(rule.instructions.apply.len())?;
                Ok(Some(rule))
            }
            MatchResult::Conjunction(rule, id) => {
                self.set_conjunction(id);
                self.batch.count_match(table, rule, self.weight);
                self.spend_actions(rule.instructions.apply.len())?;
                Ok(Some(rule))
            }
            MatchResult::Rule(None) => {
                let tables = &mut self.batch.memory.table_stats;
                tables.count_lookups(table, self.weight);
                tables.count_misses(table, self.weight);
                Ok(None)
            }
            MatchResult::Drop(reason) => Err(Interruption::Drop(reason)),
            MatchResult::SlowPath(reason) => {
                let at = match self.lookup_port.take() {
                    None => ResumeAt::Table(table),
                    Some(port) => ResumeAt::TableAsFrom(table, port),
                };
                Err(Interruption::SlowPath(reason, at))
            }
            MatchResult::Standalone => Ok(None),
        }
    }

    fn look_up(&mut self, frame: &Frame, table: TableId) -> MatchResult<'a> {
        self.lookups += 1;
        self.batch.memory.walk_cache.count_lookups(1);
        if self.lookups > RESUBMITS_MAX {
            return MatchResult::Drop(DropReason::TooManyResubmits);
        }
        if std::mem::take(&mut self.key_is_stale)
            && let Err(reason) = self.batch.parse_again(self.key_index, frame, self.in_port)
        {
            self.key_is_stale = true;
            return MatchResult::Drop(reason);
        }
        match self.is_lookup_special {
            false => self.batch.look_up(self.key_index, table),
            true => {
                if self.is_recording {
                    self.record_special_lookup(table);
                }
                self.look_up_specially(table)
            }
        }
    }

    /// Executes the program of a rule from an operation on. Returns the table in which the packet
    /// continues, if any (OF 1.3.5, 5.9).
    fn execute_rule(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        first_op: usize,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let Some(program) = rule.instructions.program_slot().program::<ActionProgram>() else {
            let stop = ResumeAt::Rule {
                rule,
                metered: first_op > 0,
                actions_done: first_op,
            };
            return Err(Interruption::SlowPath(SlowPathReason::Action, stop));
        };
        if let Some(meter) = program.meter.filter(|_| first_op == 0) {
            self.apply_meter(frame, meter, pool)?;
        }
        if let Some(table) = self.execute_ops(frame, rule, program, first_op, pool)? {
            return Ok(Some(table));
        }
        if program.action_set != ActionSetUpdate::Keep {
            self.update_action_set(program.action_set, rule)?;
        }
        if let Some(write) = program.metadata {
            self.write_field(write);
        }
        Ok(program.goto)
    }

    fn handle_miss(&mut self, table: TableId) -> Result<(), Interruption<'a>> {
        // The settings of misses may change while the tables do not.
        self.give_up_recording();
        let drop = |reason| Err(Interruption::Drop(reason));
        match self.batch.context.pipeline.miss_policy_of(table) {
            MissPolicy::Drop => drop(DropReason::NoMatch),
            MissPolicy::Controller if !self.reports_misses() => drop(DropReason::NoPacketIn),
            MissPolicy::Controller => {
                let sent = self.send_packet_in(Cause::Miss, table, None, None);
                sent.map_err(Interruption::Drop)
            }
        }
    }

    /// Uses the verdict of the worker for this frame, and moves the pending output to it.
    fn use_verdict(&mut self) {
        let verdict = &mut self.batch.memory.verdict;
        if !self.uses_verdict {
            self.uses_verdict = true;
            verdict.clear();
        }
        if let Some(port) = self.pending_output.take() {
            let to = Destination::Port(port);
            verdict.push_egress(pipeline::Egress {
                priority: self.priority,
                ..pipeline::Egress::new(0, to)
            });
        }
    }

    /// Returns the outcome of a frame that is complete.
    #[inline(always)]
    fn finish(&mut self, frame: Frame, pool: &mut Pool) -> FrameEnd {
        if self.is_recording {
            self.end_recording();
        }
        if self.uses_pipeline_fields {
            self.reset_pipeline_fields();
        }
        if let Some(port) = self.pending_output {
            self.batch.frames[self.frame_index] = frame;
            return FrameEnd::Forward(port);
        }
        self.use_verdict();
        let verdict = &mut self.batch.memory.verdict;
        if verdict.is_over_limit {
            verdict.discard_outputs(pool);
            verdict.push_drop(DropReason::TooManyOutputs);
            verdict.is_over_limit = false;
            self.is_output = false;
        }
        if !verdict.has_result() {
            verdict.drops.push(DropReason::NoOutput);
        }
        match self.is_output {
            true => verdict.frames.push(frame),
            false => pool.put(frame),
        }
        if self.uses_interpreter && self.batch.memory.interpreter.has_released_fragments() {
            self.finish_fragments(pool);
        }
        FrameEnd::Verdict
    }

    /// True if the frame has more results than are permitted.
    fn is_over_limit(&self) -> bool {
        self.uses_verdict && self.batch.memory.verdict.is_over_limit
    }
}
