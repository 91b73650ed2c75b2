//! Resubmissions: the nesting of tables that lead back to the rule.
//!
//! A rule with something to execute after its resubmission is *pending* until the tables that the
//! resubmission leads to are complete. A resubmission that ends its rule leaves nothing pending: it
//! only counts as nested.
//!
//! ```text
//!   rule A: resubmit(,1), output:3     pending      A      nesting 1
//!     rule B: resubmit(,2)             pending      A      nesting 2
//!       rule C: output:2               then A from output:3, nesting 0
//! ```

use base::{PortNo, TableId};
use packet::{Frame, Pool};
use pipeline::{DropReason, NESTING_MAX, PendingRule, RECURSION_MAX, Rule};

use super::ops::stop_at;
use super::turns::place_of;
use super::{ExecPoint, Executor, Interruption, PENDING_MAX};
use crate::action_program::SlowPathReason;
use crate::frame_progress::FrameProgress;

/// The nesting of a packet, and of the tables that the executor returns from next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level<'a> {
    /// Nesting of resubmissions and copies.
    pub(super) nesting: u16,
    /// Nesting of resubmissions that did not lead to a later table.
    pub(super) recursion: u16,
    /// Nesting outside all resubmissions of this level: a miss in a deeper one is not reported.
    pub(super) base_nesting: u16,
    /// `recursion` there.
    pub(super) base_recursion: u16,
    /// Number of pending rules, and those of outer levels among them.
    pub(super) pending: u8,
    pub(super) base: u8,
    /// True if a list of actions is executed, which continues after the level.
    pub(super) is_in_list: bool,
    /// The rule of the outermost resubmission, if nothing is executed after it.
    pub(super) outermost: Option<&'a Rule>,
}

impl<'a> Level<'a> {
    /// The level of a packet from a port.
    pub(super) const FIRST: Self = Self {
        nesting: 0,
        recursion: 0,
        base_nesting: 0,
        base_recursion: 0,
        pending: 0,
        base: 0,
        is_in_list: false,
        outermost: None,
    };

    /// The level after the resubmissions of the batch lookup, each of which ended its rule.
    #[inline]
    pub(super) fn resubmitted(progress: &FrameProgress<'_>, outermost: Option<&'a Rule>) -> Self {
        Self {
            nesting: progress.outer_nesting + u16::from(progress.resubmits),
            base_nesting: progress.outer_nesting,
            outermost,
            ..Self::FIRST
        }
    }

    /// The level of a tracked packet, in the tables that it continues in.
    pub(super) const fn begun(self) -> Self {
        Self {
            base_nesting: self.nesting,
            base_recursion: self.recursion,
            base: self.pending,
            is_in_list: false,
            outermost: None,
            ..self
        }
    }

    /// The level outside of all its resubmissions.
    pub(super) const fn begun_again(self) -> Self {
        Self {
            nesting: self.base_nesting,
            recursion: self.base_recursion,
            pending: self.base,
            ..self
        }
    }
}

impl<'a> Executor<'_, 'a> {
    /// Executes tables and the pending rules of this level. Returns the table in which no rule
    /// matched, if that ended it outside of resubmissions.
    #[inline(always)]
    pub(super) fn run_level(
        &mut self,
        frame: &mut Frame,
        mut point: ExecPoint<'a>,
        pool: &mut Pool,
    ) -> Result<Option<TableId>, Interruption<'a>> {
        loop {
            let result = self.run_chain(frame, point, pool);
            if self.level.nesting == self.level.base_nesting {
                return result;
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
            point = match self.pop_pending() {
                Some(pending) => ExecPoint::Rule(pending.rule, pending.actions_done as usize),
                None => return Ok(None),
            };
        }
    }

    /// Returns the innermost pending rule of this level, and leaves its resubmission.
    #[inline]
    fn pop_pending(&mut self) -> Option<PendingRule<'a>> {
        if self.level.pending == self.level.base {
            return None;
        }
        self.level.pending -= 1;
        let pending = self.resubmit_stack[usize::from(self.level.pending) % PENDING_MAX]?;
        (self.level.nesting, self.level.recursion) = (pending.nesting, pending.recursion);
        Some(pending)
    }

    /// Starts a resubmission, with the operations after it pending, unless there are none.
    pub(super) fn resubmit(
        &mut self,
        rule: &'a Rule,
        number: usize,
        table: TableId,
        is_last: bool,
    ) -> Result<(), Interruption<'a>> {
        let level = &mut self.level;
        if !is_last {
            if usize::from(level.pending) == PENDING_MAX {
                let stop = stop_at(rule, number);
                return Err(Interruption::SlowPath(SlowPathReason::Resubmit, stop));
            }
            self.resubmit_stack[usize::from(level.pending) % PENDING_MAX] = Some(PendingRule {
                rule,
                // A message has at most 8,192 actions.
                actions_done: u32::try_from(number + 1).unwrap_or(u32::MAX),
                nesting: level.nesting,
                recursion: level.recursion,
            });
            level.pending += 1;
        } else if level.pending == level.base && level.outermost.is_none() {
            level.outermost = Some(rule);
        }
        self.nest(table <= rule.table())
    }

    /// Counts a resubmission as nested, up to the limits.
    pub(super) fn nest(&mut self, is_backward: bool) -> Result<(), Interruption<'a>> {
        let level = &mut self.level;
        let recursion = level.recursion + u16::from(is_backward);
        if usize::from(recursion) > RECURSION_MAX || usize::from(level.nesting) >= NESTING_MAX {
            return Err(Interruption::Drop(DropReason::RecursionTooDeep));
        }
        level.recursion = recursion;
        level.nesting += 1;
        Ok(())
    }

    /// Executes a resubmission of a list of actions, and returns to the list.
    #[inline(never)]
    pub(super) fn run_nested(
        &mut self,
        frame: &mut Frame,
        rule: &'a Rule,
        (port, table): (PortNo, TableId),
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let outer = self.level;
        self.level.base = outer.pending;
        self.level.base_nesting = outer.nesting;
        self.level.is_in_list = true;
        self.level.outermost = None;
        self.nest(table <= rule.table())?;
        self.look_up_as(port);
        let result = self.look_up(frame, table);
        let result = self.run_level(frame, ExecPoint::Table(table, result), pool);
        let result = match result {
            Err(Interruption::SlowPath(reason, stop)) => {
                self.batch.memory.count_slow_path(reason);
                self.finish_level_in_interpreter(frame, (place_of(rule), stop), false, pool)
            }
            Err(Interruption::Pause(stop)) => {
                self.finish_level_in_interpreter(frame, (place_of(rule), stop), false, pool)
            }
            other => other.map(drop),
        };
        self.level = outer;
        result
    }

    /// Makes the next lookup one by this ingress port.
    pub(super) fn look_up_as(&mut self, port: PortNo) {
        if port != PortNo::IN_PORT {
            self.lookup_port = Some(port);
            self.is_lookup_special = true;
        }
    }
}
