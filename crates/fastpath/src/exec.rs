//! Executor: runs action programs on one frame, table by table, until the frame is complete or
//! reaches an action that only the interpreter executes (Open vSwitch `odp_execute_actions`).
//!
//! Most frames leave by one port unmodified. For these no verdict is written: the executor returns
//! only the port. The verdict of the worker is used from the first effect that needs it. The
//! operations are in [`ops`], those of groups in [`groups`].
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
use flow::{Action, PipelineFields};
use packet::{Frame, Pool};
use pipeline::{
    BUCKETS_PER_FRAME_MAX, Cause, Destination, DropReason, InputFrame, LookupTables, MissPolicy,
    PendingRule, ResumeAt, ResumeState, Rule, Totals, Verdict,
};

use crate::action_program::{ActionProgram, SlowPathReason};
use crate::batch_state::{BatchState, fields_at_ingress};
use crate::classifier::ViewLookup;
use crate::frame_progress::{BATCH_RESUBMITS_MAX, FrameProgress};
use crate::match_result::MatchResult;

mod groups;
mod ops;
mod track;

/// Greatest depth of nested resubmissions. Beyond it, the interpreter returns to the rules with
/// the resubmissions.
pub(crate) const RESUBMITS_MAX: usize = u32::BITS as usize;

const _: () = assert!(
    BATCH_RESUBMITS_MAX < RESUBMITS_MAX,
    "the executor continues all resubmissions of the batch lookup"
);

/// Most lookups of a frame. Beyond it, the interpreter counts them, and drops the frame when they
/// are too many.
const LOOKUPS_MAX: usize = 256;

/// Outcome of one frame, or of several that leave together.
#[derive(Debug)]
pub enum FrameOutcome<'a> {
    /// These frames leave unmodified by this port, which exists and may send; nothing else is to
    /// be done. The caller takes them out of the batch.
    Forward(&'a mut [Frame], PortNo),
    /// The verdict for one frame.
    Verdict(&'a mut Verdict),
}

/// Pending rule of each nested resubmission.
pub(crate) type ResubmitStack<'a> = [Option<PendingRule<'a>>; RESUBMITS_MAX];

/// Reason to stop before the end of the program.
enum Interruption<'a> {
    /// The frame is dropped.
    Drop(DropReason),
    /// The interpreter resumes.
    SlowPath(SlowPathReason, ResumeAt<'a>),
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
    /// Number of nested resubmissions.
    nesting: usize,
    /// Number of resubmissions and tracked packets that were complete when the packet was tracked.
    outer_nesting: usize,
    /// Bit for each nested resubmission after which nothing is executed.
    finished: u32,
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
}

/// Point at which execution continues.
enum ExecPoint<'a> {
    /// The result of a table.
    Table(TableId, MatchResult<'a>),
    /// A rule, after so many of its operations.
    Rule(&'a Rule, usize),
    /// The end of a rule.
    End,
}

impl<'b, 'a> Executor<'b, 'a> {
    /// An executor that continues from the progress of the batch lookup; `resubmitted` holds the
    /// rules of its resubmissions.
    #[inline]
    pub(crate) fn new(
        batch: &'b mut BatchState<'a>,
        resubmit_stack: &'b mut ResubmitStack<'a>,
        (frame_index, key_index): (usize, usize),
        progress: &FrameProgress<'a>,
        resubmitted: Option<&[Option<&'a Rule>; BATCH_RESUBMITS_MAX]>,
    ) -> Self {
        let (weight, lookups) = (progress.weight, progress.lookups.into());
        let nesting = usize::from(progress.resubmits);
        if let Some(rules) = resubmitted {
            for (pending, rule) in resubmit_stack.iter_mut().zip(rules.iter().take(nesting)) {
                *pending = rule.map(|rule| PendingRule {
                    rule,
                    actions_done: rule.instructions.apply.len(),
                });
            }
        }
        Self {
            batch,
            resubmit_stack,
            frame_index,
            key_index,
            weight,
            action_set: progress.action_set,
            lookups,
            buckets_left: BUCKETS_PER_FRAME_MAX,
            nesting,
            outer_nesting: progress.outer_nesting.into(),
            finished: (1 << nesting) - 1,
            is_output: false,
            priority: Priority::NONE,
            pending_output: None,
            uses_verdict: false,
            key_is_stale: false,
            uses_pipeline_fields: false,
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
        match self.run_tables(&mut frame, ExecPoint::Table(table, result), pool) {
            Ok(()) => self.finish(frame, pool),
            Err(Interruption::Drop(reason)) => {
                self.drop(reason);
                if reason.drops_all() {
                    self.batch.memory.verdict.discard_outputs(pool);
                    self.is_output = false;
                }
                self.finish(frame, pool)
            }
            Err(Interruption::SlowPath(reason, stop)) => {
                self.enter_slow_path(frame, reason, stop, pool)
            }
        }
    }

    /// Executes the tables, then the pending rules of resubmissions.
    fn run_tables(
        &mut self,
        frame: &mut Frame,
        mut point: ExecPoint<'a>,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        if let ExecPoint::Table(_, MatchResult::Standalone) = point {
            self.send_to(Destination::Normal);
            return Ok(());
        }
        loop {
            let result = self.run_chain(frame, point, pool);
            if self.nesting == 0 {
                return match result? {
                    None => {
                        self.execute_action_set();
                        Ok(())
                    }
                    Some(table) => self.handle_miss(table),
                };
            }
            match result {
                // Ends the resubmitted rules only.
                Err(Interruption::Drop(DropReason::InvalidTtl)) => {
                    self.drop(DropReason::InvalidTtl);
                }
                Err(interruption) => return Err(interruption),
                // A miss is not reported: a resubmission to a table without a match has no effect.
                Ok(_) => {}
            }
            point = match self.pop_resubmission() {
                Some(pending) => ExecPoint::Rule(pending.rule, pending.actions_done),
                None => ExecPoint::End,
            };
        }
    }

    /// Returns the pending rule of the innermost resubmission after which something is executed,
    /// and leaves that resubmission and those nested in it.
    fn pop_resubmission(&mut self) -> Option<PendingRule<'a>> {
        let depth = u32::try_from(self.nesting).expect("resubmissions are nested 32 deep at most");
        let pending = !self.finished & u32::MAX.checked_shr(u32::BITS - depth)?;
        self.nesting = pending.checked_ilog2().map_or(0, |last| last as usize);
        if pending == 0 {
            return None;
        }
        self.resubmit_stack[self.nesting]
    }

    /// Executes rules until one does not lead to another table. Returns the table in which no rule
    /// matched, if that ended it.
    fn run_chain(
        &mut self,
        frame: &mut Frame,
        point: ExecPoint<'a>,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        let (mut table, mut rule, mut first_op) = match point {
            ExecPoint::Table(table, result) => (table, self.count_result(table, result)?, 0),
            ExecPoint::Rule(rule, done) => (rule.table(), Some(rule), done),
            ExecPoint::End => return Ok(None),
        };
        while let Some(matched) = rule {
            match self.execute_rule(frame, matched, first_op, pool)? {
                Some(next) => table = next,
                None => return Ok(None),
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
        match result {
            MatchResult::Rule(Some(rule)) => {
                self.batch.count_match(table, rule, self.weight);
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
                Err(Interruption::SlowPath(reason, ResumeAt::Table(table)))
            }
            MatchResult::Standalone => Ok(None),
        }
    }

    fn look_up(&mut self, frame: &Frame, table: TableId) -> MatchResult<'a> {
        self.lookups += 1;
        if std::mem::take(&mut self.key_is_stale)
            && let Err(reason) = self.batch.parse_again(self.key_index, frame)
        {
            return MatchResult::Drop(reason);
        }
        self.batch.look_up(self.key_index, table)
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
        self.update_action_set(program.action_set, &rule.instructions.write);
        if let Some(write) = program.metadata {
            self.write_field(write);
        }
        Ok(program.goto)
    }

    fn handle_miss(&mut self, table: TableId) -> Result<(), Interruption<'a>> {
        let drop = |reason| Err(Interruption::Drop(reason));
        match self.batch.context.pipeline.miss_policy_of(table) {
            MissPolicy::Drop => drop(DropReason::NoMatch),
            MissPolicy::Controller if !self.batch.reports_misses() => drop(DropReason::NoPacketIn),
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
    #[inline]
    fn finish(mut self, frame: Frame, pool: &mut Pool) -> FrameOutcome<'b> {
        if self.uses_pipeline_fields {
            self.batch.memory.pipeline_fields =
                fields_at_ingress(self.batch.context.in_port, self.batch.ingress_fields);
        }
        if let Some(port) = self.pending_output {
            let slot = &mut self.batch.frames[self.frame_index];
            *slot = frame;
            return FrameOutcome::Forward(std::slice::from_mut(slot), port);
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
        FrameOutcome::Verdict(verdict)
    }

    /// Lets the interpreter execute the rest.
    fn enter_slow_path(
        mut self,
        frame: Frame,
        reason: SlowPathReason,
        stop: ResumeAt<'a>,
        pool: &mut Pool,
    ) -> FrameOutcome<'b> {
        self.use_verdict();
        self.store_pipeline_fields();
        let batch = self.batch;
        let context = batch.context;
        let memory = &mut *batch.memory;
        let fields = std::mem::replace(
            &mut memory.pipeline_fields,
            fields_at_ingress(context.in_port, batch.ingress_fields),
        );
        let state = ResumeState {
            weight: self.weight,
            registers: fields,
            action_set: self.action_set,
            egress_pending: self.is_output,
            priority: self.priority,
            lookups: self.lookups,
            buckets_left: self.buckets_left,
            nesting: self.outer_nesting,
            pending: &self.resubmit_stack[..self.nesting],
            at: stop,
        };
        memory.count_slow_path(reason);
        let tables = LookupTables {
            pipeline: context.pipeline,
            lookup: &ViewLookup::new(context.view, &memory.scratch),
        };
        let arrival = InputFrame {
            frame,
            in_port: context.in_port,
            now: context.now,
        };
        let verdict = &mut memory.verdict;
        memory
            .interpreter
            .resume_slow_path(tables, arrival, state, pool, &mut (), verdict);
        FrameOutcome::Verdict(verdict)
    }

    /// Copies the written pipeline fields to those of the worker, for consumers that need all of them.
    fn store_pipeline_fields(&mut self) -> &PipelineFields {
        let memory = &mut *self.batch.memory;
        if memory.written.contains(self.key_index) {
            self.uses_pipeline_fields = true;
            memory.keys[self.key_index].store_written_fields(&mut memory.pipeline_fields);
        }
        &memory.pipeline_fields
    }
}
