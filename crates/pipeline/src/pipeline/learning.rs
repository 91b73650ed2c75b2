//! Rules that `learn` actions add: their limits, and their deletion with the rule that added them
//! (`ovs-actions(7)`, learn: limit, delete_learned).
//!
//! Both concern all rules of one table with one cookie. These are counted while some rule has such an
//! action, and not otherwise.

use std::sync::Arc;

use base::{Cookie, Instant, TableId};
use flow::{FlowFlags, FlowMod, FlowModCommand, FlowRemovedReason, Refusal};
use imbl::OrdMap;

use super::Pipeline;
use super::rule_store::RuleStore;
use crate::instructions::action_facts::{owns_rules, restricted_learns};
use crate::rules::{Changes, Rule};
use crate::verdict::LearnRequest;

/// A table, and a cookie in it.
type LearnKey = (TableId, Cookie);

/// Counts for one key.
#[derive(Clone, Copy, Debug, Default)]
struct LearnCount {
    /// Actions with this key that have a limit or own their rules.
    learners: usize,
    /// Those that own their rules.
    owners: usize,
    /// Rules with this key.
    rules: usize,
}

/// The counts for all keys of `learn` actions that have a limit or own their rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnLimits {
    counts: OrdMap<LearnKey, LearnCount>,
    /// Keys whose last owner was removed.
    orphaned: Vec<LearnKey>,
}

impl LearnLimits {
    /// Returns the number of rules with this key, if it is counted.
    fn count(&self, table: TableId, cookie: Cookie) -> Option<usize> {
        self.counts.get(&(table, cookie)).map(|count| count.rules)
    }

    /// Counts a rule that was inserted into `store`.
    pub(crate) fn rule_added(&mut self, rule: &Rule, store: &RuleStore) {
        if let Some(count) = self.counts.get_mut(&(rule.table(), rule.cookie)) {
            count.rules += 1;
        }
        if !rule.instructions.facts().has_restricted_learn {
            return;
        }
        for learn in restricted_learns(rule.instructions.actions()) {
            let (table, cookie) = (learn.table, learn.cookie);
            let count = self
                .counts
                .entry((table, cookie))
                .or_insert_with(|| LearnCount {
                    rules: store.count_cookie(table, cookie),
                    ..LearnCount::default()
                });
            count.learners += 1;
            count.owners += usize::from(owns_rules(learn));
        }
    }

    /// Uncounts a rule that was removed.
    pub(crate) fn rule_removed(&mut self, rule: &Rule) {
        if let Some(count) = self.counts.get_mut(&(rule.table(), rule.cookie)) {
            count.rules -= 1;
        }
        if !rule.instructions.facts().has_restricted_learn {
            return;
        }
        for learn in restricted_learns(rule.instructions.actions()) {
            let key = (learn.table, learn.cookie);
            let Some(count) = self.counts.get_mut(&key) else {
                continue;
            };
            count.learners -= 1;
            if owns_rules(learn) {
                count.owners -= 1;
                if count.owners == 0 {
                    self.orphaned.push(key);
                }
            }
            if count.learners == 0 {
                self.counts.remove(&key);
            }
        }
    }

    /// Returns a key whose last owner was removed and that has no new one.
    fn next_orphaned(&mut self) -> Option<LearnKey> {
        while let Some(key) = self.orphaned.pop() {
            let count = self.counts.get(&key);
            if count.is_none_or(|count| count.owners == 0) {
                return Some(key);
            }
        }
        None
    }
}

impl Pipeline {
    /// Applies a learn request of a packet, if it is still valid.
    ///
    /// # Errors
    /// The rule is refused, or its table or limit is full.
    pub fn learn(&mut self, request: &LearnRequest, now: Instant) -> Result<Changes, Refusal> {
        match request {
            LearnRequest::Rule { command, limit } => {
                if self.learned_rule(command).is_some() {
                    return self.renew(command, now);
                }
                if *limit != 0 && self.is_at_learn_limit(command, *limit) {
                    return Err(Refusal::FlowModTableFull);
                }
                self.flow_mod(command, now)
            }
            LearnRequest::Timeouts {
                rule,
                idle_s,
                hard_s,
            } => Ok(self.shorten_timeouts(rule, *idle_s, *hard_s, now)),
        }
    }

    /// Modifies a learned rule and restarts its hard timeout. Its counters and its duration go on,
    /// and its timeouts stay, as in Open vSwitch.
    fn renew(&mut self, command: &FlowMod, now: Instant) -> Result<Changes, Refusal> {
        let modification = FlowMod {
            command: FlowModCommand::ModifyStrict,
            new_cookie: Some(command.cookie),
            cookie: Cookie::default(),
            cookie_mask: 0,
            flags: FlowFlags::default(),
            ..command.clone()
        };
        self.flow_mod(&modification, now)
    }

    /// Returns the rule that `command` would replace.
    pub(crate) fn learned_rule(&self, command: &FlowMod) -> Option<&Arc<Rule>> {
        self.rules.replaced_by(command)
    }

    /// True if the command's table has `limit` rules with its cookie.
    pub(crate) fn is_at_learn_limit(&self, command: &FlowMod, limit: u32) -> bool {
        let (table, cookie) = (command.table, command.cookie);
        let count = self.learn_limits.count(table, cookie);
        let count = count.unwrap_or_else(|| self.rules.count_cookie(table, cookie));
        count >= usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// Shortens the timeouts of a rule, if it still exists.
    fn shorten_timeouts(&mut self, rule: &Rule, idle_s: u16, hard_s: u16, now: Instant) -> Changes {
        let mut changes = Changes::default();
        let present = self.rules.find(&rule.identity);
        let present = present.filter(|present| present.counters.is_same_as(&rule.counters));
        if let Some(present) = present.cloned() {
            let (idle_timeout_s, hard_timeout_s) = present.shortened_timeouts(idle_s, hard_s);
            let shorter = Rule {
                idle_timeout_s,
                hard_timeout_s,
                ..present.copy()
            };
            self.insert(Arc::new(shorter), now, &mut changes);
        }
        changes
    }

    /// Deletes the rules whose owners were removed.
    pub(crate) fn delete_orphaned(&mut self, now: Instant, changes: &mut Changes) {
        while let Some((table, cookie)) = self.learn_limits.next_orphaned() {
            let rules = self.rules.rules(table).filter(|rule| rule.cookie == cookie);
            let rules: Vec<_> = rules.cloned().collect();
            for rule in rules {
                self.remove(&rule, Some(FlowRemovedReason::Delete), now, changes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flow::FlowStatsRequest;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn learned_rule_is_renewed_and_not_added_again() {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let learn = |pipeline: &mut Pipeline, line: &str, now| {
            let command = flow::text::parse_flow(FlowModCommand::Add, line).expect(line);
            let request = LearnRequest::Rule { command, limit: 0 };
            pipeline.learn(&request, now).expect("legal")
        };
        let line = "table=1,hard_timeout=10,cookie=3,in_port=1,actions=output:2";
        let start = Instant::from_secs(100);
        learn(&mut pipeline, line, start);
        let later = start + Duration::from_secs(8);
        let other = "table=1,hard_timeout=10,cookie=4,in_port=1,actions=output:3";
        let changes = learn(&mut pipeline, other, later);
        assert!(changes.is_modification);
        let all = FlowStatsRequest::all();
        let stats = pipeline.flow_stats(&all, later);
        let stats: Vec<_> = stats.expect("all tables exist").collect();
        assert_eq!(stats.len(), 1);
        let ages = (stats[0].duration.as_secs(), stats[0].hard_age.as_secs());
        assert_eq!(ages, (8, 0));
        assert_eq!((stats[0].cookie, stats[0].flags.0), (Cookie(4), 0));
        // The hard timeout counts from the renewal.
        assert!(
            pipeline
                .expire(start + Duration::from_secs(12))
                .removed
                .is_empty()
        );
        assert_eq!(
            pipeline
                .expire(start + Duration::from_secs(18))
                .removed
                .len(),
            1
        );
    }
}
