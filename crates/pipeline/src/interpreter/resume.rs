//! Entry into the interpreter in the middle of a packet's processing: with the pipeline fields of a
//! tunnel, or where the fast path has stopped. Nothing is done twice: neither counted, nor metered,
//! nor sent.

use base::{Instant, PortNo, TableId};
use flow::PipelineFields;
use packet::{Frame, Packet, Pool};

use super::extension::LookupTuple;
use super::turn::TurnState;
use super::{Execution, InputFrame, Interpreter, reject_malformed};
use crate::lookup::LookupTables;
use crate::rules::Rule;
use crate::trace::Trace;
use crate::verdict::{DropReason, Verdict};

/// The point at which an engine stopped in the tables.
#[derive(Debug)]
pub struct ResumePoint<'a> {
    /// The point of continuation.
    pub at: ResumeAt<'a>,
    /// Rules to complete after that, each after a resubmission; the first is completed last. The
    /// first `None` ends the list.
    pub pending: &'a [Option<PendingRule<'a>>],
    /// The rule of the outermost resubmission, if nothing is executed after it.
    pub outermost: Option<&'a Rule>,
    /// Nesting outside all resubmissions of this part: a miss in a deeper one is not reported.
    pub base_nesting: usize,
}

/// A rule to complete after a resubmission.
#[derive(Clone, Copy, Debug)]
pub struct PendingRule<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Number of executed actions, including the resubmission.
    pub actions_done: u32,
    /// Nesting of resubmissions and copies at the rule.
    pub nesting: u16,
    /// Nesting of resubmissions that did not lead to a later table, at the rule.
    pub recursion: u16,
}

/// The point of continuation.
#[derive(Debug)]
pub enum ResumeAt<'a> {
    /// Before the lookup in this table.
    Table(TableId),
    /// Before the lookup in this table, as if the packet had arrived by this port.
    TableAsFrom(TableId, PortNo),
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

    /// Continues a packet at a point of the tables, to its end. The result is added to `verdict`,
    /// which holds the result so far.
    pub fn resume_slow_path<'a>(
        &'a mut self,
        tables: LookupTables<'a>,
        (mut frame, now): (Frame, Instant),
        (mut state, point): (TurnState, ResumePoint<'a>),
        pool: &'a mut Pool,
        trace: &'a mut dyn Trace,
        verdict: &'a mut Verdict,
    ) {
        let in_port = state.fields.in_port;
        let mut run = self.execution(tables, (in_port, now), pool, trace, verdict);
        run.enter_turn(&mut state);
        let result = run.finish_packet(&mut frame, state.is_malformed, &point);
        run.end(frame, result);
    }
}

impl<'a> Execution<'a> {
    /// Executes the rest of the tables, then the action set.
    pub(crate) fn finish_packet(
        &mut self,
        frame: &mut Frame,
        is_malformed: bool,
        point: &ResumePoint<'a>,
    ) -> Result<(), DropReason> {
        let mut packet = self.parse_for_turn(frame, is_malformed)?;
        match self.finish_levels(&mut packet, point)? {
            true => self.execute_set(&mut packet),
            false => self.handle_miss(),
        }
    }

    /// Executes the rest of the tables, and of the rules that resubmitted. Returns as
    /// [`Self::run_rules`].
    pub(crate) fn finish_levels(
        &mut self,
        packet: &mut Packet<'_>,
        point: &ResumePoint<'a>,
    ) -> Result<bool, DropReason> {
        let mut done = self.continue_at(packet, &point.at);
        for pending in point.pending.iter().rev().flatten() {
            self.end_resubmission(done)?;
            self.nesting = pending.nesting.into();
            self.recursion = pending.recursion.into();
            done = self.continue_after_resubmit(packet, *pending);
        }
        if self.nesting == point.base_nesting {
            return done;
        }
        self.end_resubmission(done)?;
        if let Some(rule) = point.outermost {
            self.table = rule.table();
            self.begin_rule(rule);
            self.pause_actions(&[]);
        }
        Ok(true)
    }

    /// Ends a resubmission with this result. A miss in it is not reported.
    fn end_resubmission(&mut self, done: Result<bool, DropReason>) -> Result<(), DropReason> {
        match done {
            // Ends the resubmission, and no more.
            Err(DropReason::InvalidTtl) => self.drop(DropReason::InvalidTtl),
            Err(reason) => return Err(reason),
            Ok(_) => {}
        }
        Ok(())
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
            ResumeAt::TableAsFrom(table, port) => {
                self.table = table;
                let found = self.look_up_as_from(packet, (port, LookupTuple::Packet));
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
        let rule = behind.rule;
        let actions_done = usize::try_from(behind.actions_done).unwrap_or(usize::MAX);
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
