//! Flow-mods (OF 1.3.5, 6.4 and 7.3.4.1; OF 1.0.1, 4.6).
//!
//! All reasons for a refusal are checked first, so that a refused flow-mod changes nothing. Where
//! versions differ, the flow-mod itself says which behaviour it requests:
//!
//! - *Add* with the match and priority of an existing rule replaces it, without a message to the
//!   controller. The counters continue unless `RESET_COUNTS` is set, as in every addition of
//!   OpenFlow 1.0.
//! - *Modify* without a matching rule does nothing, or adds one ([`FlowMod::cookie_if_added`]). It
//!   replaces the instructions and keeps cookie, timeouts, flags, counters, duration and idle time,
//!   except for a `new_cookie`.
//! - Buffers do not exist here. A flow-mod with a buffer is equivalent to two messages (OF 1.3.5,
//!   7.3.4.1): the tables change first, then the missing buffer is refused.

use std::sync::Arc;

use base::{Cookie, Instant, TableId};
use flow::{FlowFlags, FlowMod, FlowModCommand, FlowRemovedReason, Refusal};

use super::Pipeline;
use crate::instructions::SharedInstructions;
use crate::instructions::check::check_instructions;
use crate::instructions::match_facts::MatchFacts;
use crate::limits::EXPIRIES_MAX;
use crate::rules::{Changes, Rule, RuleFilter};

impl Pipeline {
    /// Applies `command` completely or, with a refusal, not at all.
    ///
    /// # Errors
    /// The specification's reasons: an unknown table, a full table, an overlap if the command
    /// requests the check, invalid instructions.
    ///
    /// # Examples
    /// ```
    /// use base::{Instant, TableId};
    /// use pipeline::{Limits, Pipeline};
    ///
    /// let mut pipeline = Pipeline::new(Limits::default(), 1);
    /// let command = flow::text::parse_flow_line("priority=5,ip,actions=output:2").unwrap();
    /// let changes = pipeline.flow_mod(&command, Instant::START).unwrap();
    /// assert_eq!((changes.added.len(), changes.removed.len()), (1, 0));
    ///
    /// // The same identity again: the rule is replaced.
    /// let changes = pipeline.flow_mod(&command, Instant::START).unwrap();
    /// assert_eq!((changes.added.len(), changes.removed.len()), (1, 1));
    /// assert_eq!(pipeline.rules(TableId::ALL).count(), 1);
    /// ```
    pub fn flow_mod(&mut self, command: &FlowMod, now: Instant) -> Result<Changes, Refusal> {
        let mut changes = Changes::default();
        self.flow_mod_into(command, now, &mut changes)?;
        Ok(changes)
    }

    /// Does the same and writes the result to `changes`, which it empties first: a caller with many
    /// commands reuses the memory.
    ///
    /// # Errors
    /// As [`Pipeline::flow_mod`]. Then nothing has changed, whatever `changes` holds.
    pub fn flow_mod_into(
        &mut self,
        command: &FlowMod,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        changes.clear();
        let instructions = self.rules.intern(&command.instructions);
        let facts = self.rules.facts_of(&command.matching);
        self.tlv_map
            .check_rule(&command.matching, facts, &instructions)?;
        let instructions = match instructions.facts().has_options {
            true => {
                let with_lengths = self.tlv_map.with_lengths(&instructions);
                self.rules.intern(&with_lengths)
            }
            false => instructions,
        };
        match command.command {
            FlowModCommand::Add => {
                self.add(command, facts, instructions, command.cookie, now, changes)?;
            }
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                self.modify(command, facts, instructions, now, changes)?;
            }
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                self.delete(command, now, changes)?;
            }
        }
        self.delete_orphaned(now, changes);
        let is_deletion = command.command.is_deletion();
        let buffer = command.buffer.filter(|_| !is_deletion);
        changes.deferred_refusal = buffer.map(|_| Refusal::RequestBufferUnknown);
        Ok(())
    }

    fn add(
        &mut self,
        command: &FlowMod,
        facts: MatchFacts,
        instructions: Arc<SharedInstructions>,
        cookie: Cookie,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        check_internal_table(command)?;
        check_table(command.table)?;
        // These fields are internal to data paths of another kind.
        if facts.has_internal() {
            return Err(Refusal::RequestPermission);
        }
        check_instructions(
            &instructions,
            &command.matching,
            command.table,
            command.consistency,
        )?;
        self.check_references(&instructions)?;
        let (hash, identity) = self.rules.identify(command);
        let old = self.rules.find_hashed(hash, &identity).cloned();
        let table = self.rules.table(command.table);
        if command.flags.contains(FlowFlags::CHECK_OVERLAP)
            && table.is_some_and(|table| table.overlaps(&identity))
        {
            return Err(Refusal::FlowModOverlap);
        }
        let needs_space = old.is_none() && !self.has_space(command.table);
        if needs_space && !self.evict(command.table, now, changes) {
            return Err(Refusal::FlowModTableFull);
        }
        let keeps_counters = |_: &&Arc<Rule>| !command.flags.contains(FlowFlags::RESET_COUNTS);
        let counters = old
            .as_ref()
            .filter(keeps_counters)
            .map_or_else(|| self.allocator.allocate(), |old| old.counters.clone());
        // As in Open vSwitch, a replacement keeps the time of the last packet.
        counters.touch(old.as_ref().map_or(now, |old| old.last_used()));
        let position = old.map_or_else(
            || self.rules.next_position(command.priority),
            |old| old.position,
        );
        let rule = Rule {
            identity,
            position,
            cookie,
            instructions,
            idle_timeout_s: command.idle_timeout_s,
            hard_timeout_s: command.hard_timeout_s,
            importance: command.importance,
            flags: command.flags,
            created: now,
            modified: now,
            counters,
        };
        let depth = facts.depth().max(rule.instructions.facts().depth);
        self.insert_hashed(hash, Arc::new(rule), depth, now, changes);
        Ok(())
    }

    fn modify(
        &mut self,
        command: &FlowMod,
        facts: MatchFacts,
        instructions: Arc<SharedInstructions>,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        // OpenFlow 1.0 cannot name a table, and so means all of them.
        if command.table != TableId::ALL {
            check_table(command.table)?;
        }
        check_instructions(
            &instructions,
            &command.matching,
            command.table,
            command.consistency,
        )?;
        self.check_references(&instructions)?;
        let filter = RuleFilter::of_modification(command);
        let selected = self.rules.selected(command, &filter);
        if selected.is_empty()
            && let Some(cookie) = command.cookie_if_added()
        {
            let table = match command.table {
                TableId::ALL => TableId::FIRST,
                table => table,
            };
            let addition = FlowMod {
                table,
                ..command.clone()
            };
            return self.add(&addition, facts, instructions, cookie, now, changes);
        }
        let goto = command.instructions.goto;
        if selected
            .iter()
            .any(|rule| goto.is_some_and(|next| next <= rule.table()))
        {
            return Err(Refusal::InstructionBadTable);
        }
        changes.is_modification = true;
        for old in selected {
            let rule = self.modified(&old, command, &instructions, now);
            self.insert(Arc::new(rule), now, changes);
        }
        Ok(())
    }

    /// Checks that the groups and meters that instructions name exist.
    fn check_references(&self, instructions: &SharedInstructions) -> Result<(), Refusal> {
        let facts = instructions.facts();
        self.groups.check_all_exist(facts.groups.iter().copied())?;
        self.meters.check_all_exist(facts.meters.iter().copied())
    }

    /// Returns `old` with these instructions, which are those of `command`.
    fn modified(
        &mut self,
        old: &Rule,
        command: &FlowMod,
        instructions: &Arc<SharedInstructions>,
        now: Instant,
    ) -> Rule {
        let counters = if command.flags.contains(FlowFlags::RESET_COUNTS) {
            let counters = self.allocator.allocate();
            counters.touch(old.last_used());
            counters
        } else {
            old.counters.clone()
        };
        Rule {
            cookie: command.new_cookie.unwrap_or(old.cookie),
            instructions: Arc::clone(instructions),
            modified: now,
            counters,
            ..old.copy()
        }
    }

    fn delete(
        &mut self,
        command: &FlowMod,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        if command.table != TableId::ALL {
            check_table(command.table)?;
        }
        let reason = Some(FlowRemovedReason::Delete);
        let filter = RuleFilter::of_deletion(command);
        let is_loose = command.command == FlowModCommand::Delete;
        let mut rules = self.rules.rules(command.table);
        if is_loose && rules.all(|rule| filter.selects(rule)) {
            drop(rules);
            self.remove_all(command.table, reason, now, changes);
            return Ok(());
        }
        drop(rules);
        for rule in self.rules.selected(command, &filter) {
            self.remove(&rule, reason, now, changes);
        }
        Ok(())
    }

    /// Removes expired rules, at most a number that bounds the time of one call. After that,
    /// [`Pipeline::next_expiry`] is still in the past.
    pub fn expire(&mut self, now: Instant) -> Changes {
        let mut changes = Changes::default();
        for _ in 0..EXPIRIES_MAX {
            let Some(rule) = self.rules.expiry().overdue(now) else {
                break;
            };
            let is_past = |deadline: Option<Instant>| deadline.is_some_and(|at| at <= now);
            if is_past(rule.hard_deadline()) {
                let reason = FlowRemovedReason::HardTimeout;
                self.remove(&rule, Some(reason), now, &mut changes);
            } else if is_past(rule.idle_deadline()) {
                let reason = FlowRemovedReason::IdleTimeout;
                self.remove(&rule, Some(reason), now, &mut changes);
            } else {
                self.rules.rearm(&rule);
            }
        }
        self.delete_orphaned(now, &mut changes);
        changes
    }

    /// Returns the time of the next call to [`Pipeline::expire`].
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.rules.expiry().next()
    }
}

/// Checks that a flow-mod does not add a rule to the table after the last, which Open vSwitch has for
/// itself. A bundle refuses such a flow-mod before its commit.
///
/// # Errors
/// The table is internal.
pub fn check_internal_table(command: &FlowMod) -> Result<(), Refusal> {
    let adds = command.command == FlowModCommand::Add;
    match adds && command.table.0 == TableId::LAST.0 + 1 {
        true => Err(Refusal::RequestPermission),
        false => Ok(()),
    }
}

fn check_table(table: TableId) -> Result<(), Refusal> {
    if table > TableId::LAST {
        Err(Refusal::FlowModBadTable)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
