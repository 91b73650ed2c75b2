//! Lists of actions that are not the program of a rule: `clone`, buckets of groups, action sets. The
//! operations are determined when they are executed.

use base::PortNo;
use flow::{Action, Extension};
use packet::{Frame, Pool};
use pipeline::{Cause, DropReason, FinalActionSet, Turn, TurnPlace};

use super::{Executor, Interruption};
use crate::action_program::Op;

impl<'a> Executor<'_, 'a> {
    /// Executes actions in order.
    pub(super) fn execute_list(
        &mut self,
        frame: &mut Frame,
        place: TurnPlace<'a>,
        actions: &[Action],
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        for (number, action) in actions.iter().enumerate() {
            let result = self.execute_action(frame, place, action, pool);
            if let Some(pause) = &mut self.pause {
                let cookie = place.rule.map_or(base::Cookie::NONE, |rule| rule.cookie);
                pause.push_actions((place.table, cookie), &actions[number + 1..]);
                return Err(Interruption::Exit);
            }
            result?;
            if self.is_over_limit() {
                return Err(Interruption::Drop(DropReason::TooManyOutputs));
            }
        }
        Ok(())
    }

    fn execute_action(
        &mut self,
        frame: &mut Frame,
        place: TurnPlace<'a>,
        action: &Action,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let op = match (self.needs_interpreter(), place.rule) {
            (false, Some(_)) => Op::of(action),
            _ => Op::Turn,
        };
        let Some(rule) = place.rule else {
            return Ok(());
        };
        match op {
            Op::Controller(max_len) => self.report(rule, place.cause, max_len),
            Op::Group(group) => return self.execute_group(frame, place, group, pool),
            Op::Meter(meter) => return self.apply_meter(frame, meter, pool),
            Op::Resubmit(table) => {
                return self.run_nested(frame, rule, (PortNo::IN_PORT, table), pool);
            }
            Op::ResubmitFrom(port, table) => {
                let table = table.unwrap_or(place.table);
                return self.run_nested(frame, rule, (port, table), pool);
            }
            Op::Clone | Op::Track(_) => return self.execute_branch(frame, place, action, pool),
            Op::Rewrite(_) => return self.rewrite(frame, rule, &[op], 0, pool).map(drop),
            Op::Exit => return Err(Interruption::Exit),
            Op::Turn | Op::Pause | Op::Sample | Op::SlowPath(_) => {
                let actions = std::slice::from_ref(action);
                return self.take_turn(frame, place, &Turn::Actions(actions), pool);
            }
            Op::Push(_) | Op::Pop(_) => return self.move_on_stack(&op),
            Op::SetInPort(port) => self.set_in_port(port),
            Op::Write(write) => self.write_field(write),
            Op::Copy { from, to } => self.key().copy(from, to),
            Op::Untrack => self.untrack(),
            Op::Nop => {}
            _ => self.execute_output(&op),
        }
        Ok(())
    }

    /// Executes `clone` or `ct`.
    fn execute_branch(
        &mut self,
        frame: &mut Frame,
        place: TurnPlace<'a>,
        action: &Action,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        match (action, place.rule) {
            (Action::Extended(Extension::Clone(inner)), _) => {
                self.execute_copy(frame, place, inner, pool)
            }
            (Action::Extended(Extension::Conntrack(_)), _) if self.may_hold(frame)? => {
                let actions = std::slice::from_ref(action);
                self.take_turn(frame, place, &Turn::Actions(actions), pool)
            }
            (Action::Extended(Extension::Conntrack(action)), Some(rule)) => {
                self.track(frame, rule, (action, false), pool).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Executes an action set that the interpreter holds.
    #[inline(never)]
    pub(super) fn execute_held_set(
        &mut self,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<(), Interruption<'a>> {
        let level = self.level;
        let rule = match level.nesting == level.base_nesting {
            true => self.last_rule,
            false => level.outermost,
        };
        let (Some(rule), actions) = (rule, self.batch.memory.interpreter.take_set()) else {
            return Ok(());
        };
        if actions.is_empty() {
            return Ok(());
        }
        self.level = level.begun_again();
        self.key().set_action_set_output(PortNo::UNSET);
        let place = TurnPlace {
            table: rule.table(),
            rule: Some(rule),
            cause: match rule.is_table_miss() {
                true => Cause::MissRule,
                false => Cause::ActionSet,
            },
        };
        let result = self.execute_list(frame, place, &actions, pool);
        self.finish_pause(frame, FinalActionSet::Never, pool);
        match result {
            Err(Interruption::Exit) => Ok(()),
            other => other,
        }
    }
}
