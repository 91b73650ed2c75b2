//! Frames that do not begin with nothing: one comes with what a tunnel tells of it, another was run
//! so far by somebody quicker, who then came to what only the interpreter knows. Nothing is done
//! twice: neither counted, nor metered, nor sent.

use base::{Priority, TableId};
use flow::{Action, PipelineFields};
use packet::{Packet, Pool};

use super::{Execution, InputFrame, Interpreter};
use crate::counters::Totals;
use crate::lookup::LookupTables;
use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{DropReason, Verdict};

/// How far a frame was run.
#[derive(Debug)]
pub struct ResumeState<'a> {
    /// What it counts for: itself, as it came.
    pub weight: Totals,
    /// What goes with it now.
    pub registers: PipelineFields,
    /// What was written into its action set.
    pub action_set: Option<&'a Action>,
    /// Whether it is to leave in the state it has now; where to, is in the verdict.
    pub egress_pending: bool,
    /// Which class of a port's queueing discipline it is for.
    pub priority: Priority,
    /// How many lookups there were beyond the first.
    pub lookups: usize,
    /// How many buckets may still be looked at, of [`crate::BUCKETS_PER_FRAME_MAX`].
    pub buckets_left: u32,
    /// What is to be done after that, each behind a resubmission to a later table; the
    /// first at last. Behind one that is none, there are none.
    pub pending: &'a [Option<PendingRule<'a>>],
    /// Where to go on.
    pub at: ResumeAt<'a>,
}

/// What of a rule is to be done behind a resubmission.
#[derive(Clone, Copy, Debug)]
pub struct PendingRule<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// How many of its actions are done, the resubmission among them.
    pub actions_done: usize,
}

/// Where a frame was left.
#[derive(Debug)]
pub enum ResumeAt<'a> {
    /// Before it was looked up in this table.
    Table(TableId),
    /// At a rule that it has found. Of what that applies, so much is done; before, the
    /// frame is submitted to the rule's meter.
    Rule {
        /// The rule.
        rule: &'a Rule,
        /// Whether the frame was submitted to the rule's meter.
        metered: bool,
        /// How many actions are done.
        actions_done: usize,
    },
}

impl Interpreter {
    /// Runs a frame that came in by a port, as [`Self::run`] does, with which this goes: what a
    /// tunnel tells of it, say.
    pub fn run_with_registers<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        arrival: InputFrame,
        registers: PipelineFields,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let mut run = self.begin(tables, &arrival, pool, trace, verdict);
        run.registers = registers;
        let mut frame = arrival.frame;
        let result = run.receive(&mut frame);
        run.end(frame, result);
    }

    /// Runs a frame from where it was left. To `verdict`, which says what became of it
    /// so far, is added what becomes of it now.
    pub fn resume_slow_path<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        arrival: InputFrame,
        handover: ResumeState<'a>,
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let so_far = std::mem::take(verdict);
        let mut run = self.begin(tables, &arrival, pool, trace, verdict);
        *run.verdict = so_far;
        run.weight = handover.weight;
        run.registers = handover.registers;
        run.set
            .write(handover.action_set.map_or(&[], std::slice::from_ref));
        run.set_promised(handover.egress_pending);
        run.priority = handover.priority;
        run.resubmits = handover.lookups;
        run.buckets_left = handover.buckets_left;
        let mut frame = arrival.frame;
        let depth = run.pipeline.depth();
        run.depth = depth;
        let result = match Packet::parse(&mut frame, depth) {
            Ok(mut packet) => run.go_on_from(&mut packet, &handover.at, handover.pending),
            Err(reason) => Err(DropReason::Malformed(reason)),
        };
        run.end(frame, result);
    }
}

impl<'a> Execution<'a> {
    fn go_on_from(
        &mut self,
        packet: &mut Packet<'_>,
        stop: &ResumeAt<'a>,
        behind: &[Option<PendingRule<'a>>],
    ) -> Result<(), DropReason> {
        let behind = behind.iter().map_while(|behind| *behind);
        let behind: Vec<_> = behind.collect();
        self.nesting = behind.len();
        let mut done = self.go_on_at(packet, stop);
        for behind in behind.iter().rev() {
            match done {
                // Ends what the resubmission led to, and no more.
                Err(DropReason::InvalidTtl) => self.drop(DropReason::InvalidTtl),
                Err(reason) => return Err(reason),
                Ok(_) => {}
            }
            self.nesting -= 1;
            done = self.come_back(packet, *behind);
        }
        match done? {
            true => self.execute_set(packet),
            false => self.missed(),
        }
    }

    /// Goes on where the frame was left. Answers as [`Self::traverse`].
    fn go_on_at(
        &mut self,
        packet: &mut Packet<'_>,
        stop: &ResumeAt<'a>,
    ) -> Result<bool, DropReason> {
        match *stop {
            ResumeAt::Table(table) => {
                self.table = table;
                let found = self.look_up(packet);
                self.traverse(packet, found)
            }
            ResumeAt::Rule {
                rule,
                metered,
                actions_done,
            } => {
                self.table = rule.table();
                self.come_to(rule);
                let next = match metered {
                    false => self.follow(packet, &rule.instructions)?,
                    true => self.follow_behind(packet, &rule.instructions, actions_done)?,
                };
                self.lead(packet, next)
            }
        }
    }

    /// Goes on behind a resubmission. Answers as [`Self::traverse`].
    fn come_back(
        &mut self,
        packet: &mut Packet<'_>,
        behind: PendingRule<'a>,
    ) -> Result<bool, DropReason> {
        let PendingRule { rule, actions_done } = behind;
        let instructions = &rule.instructions;
        self.table = rule.table();
        self.come_to(rule);
        if self.pause.is_some() {
            self.leave(&instructions.apply[actions_done..]);
            self.leave_instructions(instructions);
            return Ok(true);
        }
        let next = self.follow_behind(packet, instructions, actions_done)?;
        self.lead(packet, next)
    }

    /// Goes on to the next table, if there is one. Answers as [`Self::traverse`].
    fn lead(&mut self, packet: &mut Packet<'_>, next: Option<TableId>) -> Result<bool, DropReason> {
        match next {
            Some(table) if !self.exited => self.table = table,
            _ => return Ok(true),
        }
        self.count_lookup()?;
        let found = self.look_up(packet);
        self.traverse(packet, found)
    }
}
