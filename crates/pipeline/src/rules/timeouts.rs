//! Expiry of rules: an ordered set of deadlines, one for each rule with a timeout.
//!
//! A packet does not touch the set: a worker only stores the time in the rule's counters. When an
//! idle deadline is reached, the rule is examined, and gets a later deadline if a packet has matched
//! it since. Arming, disarming and the next deadline cost O(log n).

use std::sync::Arc;

use base::Instant;
use imbl::{OrdMap, OrdSet};

use super::{Rule, RuleByIdentity};

/// The deadlines of all rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiry {
    due: OrdSet<(Instant, RuleByIdentity)>,
    armed: OrdMap<RuleByIdentity, Instant>,
}

impl Expiry {
    /// Stores the rule's deadline, if it has one, and removes the previous one of its identity.
    pub(crate) fn arm(&mut self, rule: &Arc<Rule>) {
        self.disarm(rule);
        if let Some(deadline) = rule.deadline() {
            let rule = RuleByIdentity(Arc::clone(rule));
            self.due.insert((deadline, rule.clone()));
            self.armed.insert(rule, deadline);
        }
    }

    /// Removes the rule's deadline.
    pub(crate) fn disarm(&mut self, rule: &Rule) {
        if self.armed.is_empty() {
            return;
        }
        if let Some((rule, deadline)) = self.armed.remove_with_key(&rule.identity) {
            self.due.remove(&(deadline, rule));
        }
    }

    /// Returns the next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.get_min().map(|(deadline, _)| *deadline)
    }

    /// Returns a rule whose deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Option<Arc<Rule>> {
        self.due
            .get_min()
            .filter(|(deadline, _)| *deadline <= now)
            .map(|(_, RuleByIdentity(rule))| Arc::clone(rule))
    }
}
