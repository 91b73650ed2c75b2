//! Changing the tables (OF 1.3.5, 6.4 and 7.3.4.1; OF 1.0.1, 4.6).
//!
//! Everything that can be refused is asked first, so that a refused flow-mod has
//! changed nothing. Where versions differ, the flow-mod says which way it means:
//!
//! - *Add* over a rule of the same match and priority takes its place, without a
//!   word to the controller. The counters go on, unless `RESET_COUNTS` asks for
//!   new ones, which is what an addition of OpenFlow 1.0 always asks.
//! - *Modify* that finds nothing does nothing, or adds ([`FlowMod::cookie_if_added`]).
//!   It writes the instructions and leaves cookie, timeouts, flags, counters,
//!   duration and idle time as they are, but for a `new_cookie`.
//! - A buffer never exists here, and is missed only after the tables have changed:
//!   a flow-mod with one is as good as two messages (OF 1.3.5, 7.3.4.1).

use std::sync::Arc;

use base::{Cookie, GroupId, Instant, PortNo, TableId};
use flow::{
    FlowFlags, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason, FlowStatsRequest, Match,
    Refusal,
};

use crate::check::check_deed;
use crate::instructions::SharedInstructions;
use crate::limits::EXPIRIES_MAX;
use crate::match_facts::MatchFacts;
use crate::pipeline::Pipeline;
use crate::rule::{Rule, RulePosition};

/// What a change of the tables came to.
#[derive(Debug, Default)]
pub struct Changes {
    /// Rules that are new or stand in the place of others.
    pub added: Vec<Arc<Rule>>,
    /// Rules that are gone.
    pub removed: Vec<Removal>,
    /// Whether the rules in `added` are those that were there, and only do something
    /// else now.
    pub is_modification: bool,
    /// What is to be answered though the tables have changed.
    pub deferred_refusal: Option<Refusal>,
}

impl Changes {
    /// As if nothing had changed.
    fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.is_modification = false;
        self.deferred_refusal = None;
    }
}

/// The end of a rule.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The rule. Its counters are final once no worker runs older tables.
    pub rule: Arc<Rule>,
    /// Why it is gone; none if another took its place.
    pub reason: Option<FlowRemovedReason>,
    /// When it went.
    pub at: Instant,
}

impl Removal {
    /// What the controller is to be told, if it is to be told at all.
    #[must_use]
    pub fn flow_removed(&self) -> Option<FlowRemoved> {
        let rule = &self.rule;
        let reason = self.reason?;
        let totals = rule.counters.totals();
        rule.flags
            .contains(FlowFlags::SEND_FLOW_REMOVED)
            .then(|| FlowRemoved {
                matching: rule.matching().clone(),
                cookie: rule.cookie,
                priority: rule.priority(),
                reason,
                table: rule.table(),
                duration: self.at - rule.created,
                idle_timeout_s: rule.idle_timeout_s,
                hard_timeout_s: rule.hard_timeout_s,
                packets: totals.packets,
                bytes: totals.bytes,
            })
    }
}

/// Which rules a loose command or a request is about.
pub(crate) struct RuleFilter<'a> {
    pub(crate) matching: &'a Match,
    pub(crate) cookie: Cookie,
    pub(crate) cookie_mask: u64,
    pub(crate) out_port: PortNo,
    pub(crate) out_group: GroupId,
}

impl RuleFilter<'_> {
    pub(crate) fn takes(&self, rule: &Rule) -> bool {
        self.takes_cookie(rule)
            && (self.out_port == PortNo::ANY || rule.outputs_to(self.out_port))
            && (self.out_group == GroupId::ANY
                || rule.groups().any(|group| group == self.out_group))
            && self.matching.covers(rule.matching())
    }

    fn takes_cookie(&self, rule: &Rule) -> bool {
        (rule.cookie.0 ^ self.cookie.0) & self.cookie_mask == 0
    }
}

impl Pipeline {
    /// Does all of `command` or, with a refusal, none of it.
    ///
    /// # Errors
    /// The specification's reasons: a table that does not exist, a full table, an
    /// overlap where the check was asked for, instructions that cannot be.
    pub fn flow_mod(&mut self, command: &FlowMod, now: Instant) -> Result<Changes, Refusal> {
        let mut changes = Changes::default();
        self.flow_mod_into(command, now, &mut changes)?;
        Ok(changes)
    }

    /// The same, with what it comes to in `changes`, which is emptied before: one who does
    /// it a million times takes the same again.
    ///
    /// # Errors
    /// As [`Pipeline::flow_mod`]; nothing has changed then, whatever `changes` holds.
    pub fn flow_mod_into(
        &mut self,
        command: &FlowMod,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        changes.clear();
        let deed = self.shared(&command.instructions);
        let asked = self.asked_by(&command.matching);
        self.options.check_rule(&command.matching, asked, &deed)?;
        match command.command {
            FlowModCommand::Add => self.add(command, asked, deed, command.cookie, now, changes)?,
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                self.modify(command, asked, deed, now, changes)?;
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
        asked: MatchFacts,
        deed: Arc<SharedInstructions>,
        cookie: Cookie,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        check_table(command.table)?;
        // What data paths of another kind tell of a frame among themselves is none of the
        // controller's.
        if asked.has_internal() {
            return Err(Refusal::RequestPermission);
        }
        check_deed(&deed, &command.matching, command.table, command.consistency)?;
        self.check_named(&deed)?;
        let (hash, identity) = self.identify(command);
        let old = self.look_for(hash, &identity).cloned();
        let table = self.table(command.table);
        if command.flags.contains(FlowFlags::CHECK_OVERLAP)
            && table.is_some_and(|table| table.overlaps(&identity))
        {
            return Err(Refusal::FlowModOverlap);
        }
        let needs_room = old.is_none() && !self.has_room(command.table);
        if needs_room && !self.evict(command.table, now, changes) {
            return Err(Refusal::FlowModTableFull);
        }
        let keeps = |_: &&Arc<Rule>| !command.flags.contains(FlowFlags::RESET_COUNTS);
        let counters = old
            .as_ref()
            .filter(keeps)
            .map_or_else(|| self.allocator().allocate(), |old| old.counters.clone());
        counters.touch(now);
        let place = old.map_or_else(
            || RulePosition::new(command.priority, self.next_serial()),
            |old| old.place,
        );
        let rule = Rule {
            identity,
            place,
            cookie,
            instructions: deed,
            idle_timeout_s: command.idle_timeout_s,
            hard_timeout_s: command.hard_timeout_s,
            importance: command.importance,
            flags: command.flags,
            created: now,
            modified: now,
            counters,
        };
        let depth = asked.depth().max(rule.instructions.facts().depth);
        self.put_hashed(hash, Arc::new(rule), depth, now, changes);
        Ok(())
    }

    fn modify(
        &mut self,
        command: &FlowMod,
        asked: MatchFacts,
        deed: Arc<SharedInstructions>,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        // OpenFlow 1.0 has no word for a table, and so means all of them.
        if command.table != TableId::ALL {
            check_table(command.table)?;
        }
        check_deed(&deed, &command.matching, command.table, command.consistency)?;
        self.check_named(&deed)?;
        let found = self.found(command, &RuleFilter::of_modification(command));
        if found.is_empty()
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
            return self.add(&addition, asked, deed, cookie, now, changes);
        }
        let goto = command.instructions.goto;
        if found
            .iter()
            .any(|rule| goto.is_some_and(|next| next <= rule.table()))
        {
            return Err(Refusal::InstructionBadTable);
        }
        changes.is_modification = true;
        for old in found {
            let rule = self.modified(&old, command, &deed, now);
            self.put(Arc::new(rule), now, changes);
        }
        Ok(())
    }

    /// Whether the groups and the meter that instructions name are there.
    fn check_named(&self, deed: &SharedInstructions) -> Result<(), Refusal> {
        let said = deed.facts();
        self.check_groups(said.groups.iter().copied())?;
        self.check_meters(said.meters.iter().copied())
    }

    /// `old` with the instructions of `command`, which are `deed`.
    fn modified(
        &mut self,
        old: &Rule,
        command: &FlowMod,
        deed: &Arc<SharedInstructions>,
        now: Instant,
    ) -> Rule {
        let counters = if command.flags.contains(FlowFlags::RESET_COUNTS) {
            let counters = self.allocator().allocate();
            counters.touch(old.last_used());
            counters
        } else {
            old.counters.clone()
        };
        Rule {
            identity: old.identity.clone(),
            place: old.place,
            cookie: command.new_cookie.unwrap_or(old.cookie),
            instructions: Arc::clone(deed),
            idle_timeout_s: old.idle_timeout_s,
            hard_timeout_s: old.hard_timeout_s,
            importance: old.importance,
            flags: old.flags,
            created: old.created,
            modified: now,
            counters,
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
        if is_loose && self.rules(command.table).all(|rule| filter.takes(rule)) {
            self.take_all(command.table, reason, now, changes);
            return Ok(());
        }
        for rule in self.found(command, &filter) {
            self.take(&rule, reason, now, changes);
        }
        Ok(())
    }

    /// The rules that a modification or deletion is about.
    fn found(&mut self, command: &FlowMod, filter: &RuleFilter<'_>) -> Vec<Arc<Rule>> {
        let strict = matches!(
            command.command,
            FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict
        );
        if strict {
            let tables = self.table_ids(command.table).into_iter();
            let same = tables.filter_map(|table| self.look_in(table, command).cloned());
            same.filter(|rule| filter.takes(rule)).collect()
        } else {
            let rules = self.rules(command.table);
            rules.filter(|rule| filter.takes(rule)).cloned().collect()
        }
    }

    /// Removes rules whose time is over, at most so many that it does not take
    /// long; [`Pipeline::next_expiry`] then still lies in the past.
    pub fn expire(&mut self, now: Instant) -> Changes {
        let mut changes = Changes::default();
        for _ in 0..EXPIRIES_MAX {
            let Some(rule) = self.expiry().over(now) else {
                break;
            };
            let over = |deadline: Option<Instant>| deadline.is_some_and(|at| at <= now);
            if over(rule.hard_deadline()) {
                let reason = FlowRemovedReason::HardTimeout;
                self.take(&rule, Some(reason), now, &mut changes);
            } else if over(rule.idle_deadline()) {
                let reason = FlowRemovedReason::IdleTimeout;
                self.take(&rule, Some(reason), now, &mut changes);
            } else {
                self.rearm(&rule);
            }
        }
        self.delete_orphaned(now, &mut changes);
        changes
    }

    /// When [`Pipeline::expire`] has something to do next.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.expiry().next()
    }
}

impl<'a> RuleFilter<'a> {
    /// Those that a request is about.
    pub(crate) const fn of_request(request: &'a FlowStatsRequest) -> Self {
        Self {
            matching: &request.matching,
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            out_port: request.out_port,
            out_group: request.out_group,
        }
    }

    /// A modification does not ask where a rule sends its frames.
    fn of_modification(command: &'a FlowMod) -> Self {
        Self {
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            ..Self::of_deletion(command)
        }
    }

    fn of_deletion(command: &'a FlowMod) -> Self {
        Self {
            matching: &command.matching,
            cookie: command.cookie,
            cookie_mask: command.cookie_mask,
            out_port: command.out_port,
            out_group: command.out_group,
        }
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
