//! Entry into the interpreter in the middle of a packet's processing: with the pipeline fields of a
//! tunnel, or where the fast path has stopped. Nothing is done twice: neither counted, nor metered,
//! nor sent.

use base::{Priority, TableId};
use flow::{Action, PipelineFields};
use packet::{Packet, Pool};

use super::{Execution, InputFrame, Interpreter, reject_malformed};
use crate::counters::Totals;
use crate::lookup::LookupTables;
use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{DropReason, Verdict};

/// The state of a packet at the point where the fast path stopped.
#[derive(Debug)]
pub struct ResumeState<'a> {
    /// Packets and bytes to count: those of the packet as received.
    pub weight: Totals,
    /// Pipeline fields.
    pub registers: PipelineFields,
    /// The action set, which has one action at most.
    pub action_set: Option<&'a Action>,
    /// True if the packet leaves in its present state; the verdict has the destination.
    pub egress_pending: bool,
    /// Class of the port's queueing discipline.
    pub priority: Priority,
    /// Number of lookups beyond the first.
    pub lookups: usize,
    /// Number of buckets that may still be examined, of [`crate::BUCKETS_PER_FRAME_MAX`].
    pub buckets_left: u32,
    /// Nesting of resubmissions and copies, without those of `pending`.
    pub nesting: usize,
    /// Rules to complete after that, each after a resubmission to a later table; the first is
    /// completed last. The first `None` ends the list.
    pub pending: &'a [Option<PendingRule<'a>>],
    /// The point of continuation.
    pub at: ResumeAt<'a>,
}

/// A rule to complete after a resubmission.
#[derive(Clone, Copy, Debug)]
pub struct PendingRule<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Number of executed actions, including the resubmission.
    pub actions_done: usize,
}

/// The point of continuation.
#[derive(Debug)]
pub enum ResumeAt<'a> {
    /// Before the lookup in this table.
    Table(TableId),
    /// At a rule that the packet has matched.
    Rule {
        /// The rule.
        rule: &'a Rule,
        /// True if the packet was submitted to the rule's meter.
        metered: bool,
        /// Number of executed actions of `apply_actions`.
        actions_done: usize,
    },
}

impl Interpreter {
    /// Runs a packet from a port as [`Self::run`] does, with pipeline fields, for instance those of
    /// a tunnel.
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

    /// Continues a packet. The result is added to `verdict`, which holds the result so far.
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
        run.set_egress_pending(handover.egress_pending);
        run.priority = handover.priority;
        run.resubmits = handover.lookups;
        run.buckets_left = handover.buckets_left;
        run.nesting = handover.nesting;
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
        self.nesting += behind.len();
        let mut done = self.continue_at(packet, stop);
        for behind in behind.iter().rev() {
            match done {
                // Ends the resubmission, and no more.
                Err(DropReason::InvalidTtl) => self.drop(DropReason::InvalidTtl),
                Err(reason) => return Err(reason),
                Ok(_) => {}
            }
            self.nesting -= 1;
            done = self.continue_after_resubmit(packet, *behind);
        }
        match done? {
            true => self.execute_set(packet),
            false => self.handle_miss(),
        }
    }

    /// Continues at the point. Returns as [`Self::run_rules`].
    fn continue_at(
        &mut self,
        packet: &mut Packet<'_>,
        stop: &ResumeAt<'a>,
    ) -> Result<bool, DropReason> {
        match *stop {
            ResumeAt::Table(table) => {
                self.table = table;
                let found = self.look_up_onward(packet);
                self.run_rules(packet, found)
            }
            ResumeAt::Rule {
                rule,
                metered,
                actions_done,
            } => {
                self.table = rule.table();
                self.begin_rule(rule);
                let next = match metered {
                    false => self.execute_instructions(packet, &rule.instructions)?,
                    true => self.execute_remaining(packet, &rule.instructions, actions_done)?,
                };
                self.continue_at_table(packet, next)
            }
        }
    }

    /// Continues after a resubmission. Returns as [`Self::run_rules`].
    fn continue_after_resubmit(
        &mut self,
        packet: &mut Packet<'_>,
        behind: PendingRule<'a>,
    ) -> Result<bool, DropReason> {
        let PendingRule { rule, actions_done } = behind;
        let instructions = &rule.instructions;
        self.table = rule.table();
        self.begin_rule(rule);
        if self.pause.is_some() {
            self.pause_actions(&instructions.apply[actions_done..]);
            self.pause_instructions(instructions);
            return Ok(true);
        }
        let next = self.execute_remaining(packet, instructions, actions_done)?;
        self.continue_at_table(packet, next)
    }

    /// Continues in the next table, if there is one. Returns as [`Self::run_rules`].
    fn continue_at_table(
        &mut self,
        packet: &mut Packet<'_>,
        next: Option<TableId>,
    ) -> Result<bool, DropReason> {
        match next {
            Some(table) if !self.exited => self.table = table,
            _ => return Ok(true),
        }
        self.count_lookup()?;
        reject_malformed(packet)?;
        let found = self.look_up_onward(packet);
        self.run_rules(packet, found)
    }
}
