//! Going on with a frame that somebody quicker has run so far, and who then came to
//! what only the interpreter knows. Nothing is done twice: neither counted, nor
//! metered, nor sent.

use base::TableId;
use flow::{Action, Registers};
use packet::{Packet, Pool};

use crate::counters::Totals;
use crate::interpreter::{Arrival, Interpreter, Run};
use crate::lookup::Tables;
use crate::rule::Rule;
use crate::trace::Trace;
use crate::verdict::{DropReason, Verdict};

/// How far a frame was run.
#[derive(Debug)]
pub struct Handover<'a> {
    /// What it counts for: itself, as it came.
    pub weight: Totals,
    /// What goes with it now.
    pub registers: Registers,
    /// What was written into its action set.
    pub set: Option<&'a Action>,
    /// Whether it is to leave in the state it has now; where to, is in the verdict.
    pub promised: bool,
    /// Where to go on.
    pub stop: Stop<'a>,
}

/// Where a frame was left.
#[derive(Debug)]
pub enum Stop<'a> {
    /// Before it was looked up in this table.
    Table(TableId),
    /// In this table it found nothing.
    Missed(TableId),
    /// At a rule that it has found. Of what that applies, so much is done; before, the
    /// frame is submitted to the rule's meter.
    Rule {
        /// The rule.
        rule: &'a Rule,
        /// Whether the frame was submitted to the rule's meter.
        metered: bool,
        /// How many actions are done.
        done: usize,
    },
}

impl Interpreter {
    /// Runs a frame from where it was left. To `verdict`, which says what became of it
    /// so far, is added what becomes of it now.
    pub fn take_over<'a>(
        &'a mut self,
        tables: Tables<'a>,
        arrival: Arrival,
        handover: Handover<'a>,
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
            .write(handover.set.map_or(&[], std::slice::from_ref));
        run.set_promised(handover.promised);
        let mut frame = arrival.frame;
        let depth = run.pipeline.depth();
        run.depth = depth;
        let result = match Packet::read(&mut frame, depth) {
            Ok(mut packet) => run.go_on_from(&mut packet, &handover.stop),
            Err(reason) => Err(DropReason::Malformed(reason)),
        };
        run.end(frame, result);
    }
}

impl<'a> Run<'a> {
    fn go_on_from(&mut self, packet: &mut Packet<'_>, stop: &Stop<'a>) -> Result<(), DropReason> {
        let by_rule = match *stop {
            Stop::Table(table) => {
                self.table = table;
                let found = self.look_up(packet);
                self.traverse(packet, found)?
            }
            Stop::Missed(table) => {
                self.table = table;
                false
            }
            Stop::Rule {
                rule,
                metered,
                done,
            } => {
                self.table = rule.table();
                self.come_to(rule);
                let next = match metered {
                    false => self.follow(packet, &rule.instructions)?,
                    true => self.follow_behind(packet, &rule.instructions, done)?,
                };
                self.lead(packet, next)?
            }
        };
        match by_rule {
            true => self.execute_set(packet),
            false => self.missed(),
        }
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
