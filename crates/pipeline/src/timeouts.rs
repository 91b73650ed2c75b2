//! When rules go by themselves: an ordered set of deadlines, one for each rule
//! that has a timeout.
//!
//! A frame does not touch the set: a worker only writes the time into the rule's
//! counters. When an idle deadline comes, the rule is asked, and given a later
//! deadline if a frame has come since.

use std::sync::Arc;

use base::Instant;
use imbl::{OrdMap, OrdSet};

use crate::rule::{Rule, RuleByIdentity};

/// The deadlines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiry {
    due: OrdSet<(Instant, RuleByIdentity)>,
    armed: OrdMap<RuleByIdentity, Instant>,
}

impl Expiry {
    /// Takes note of the rule's deadline, if it has one, in place of any that was
    /// noted for its identity.
    pub(crate) fn arm(&mut self, rule: &Arc<Rule>) {
        self.disarm(rule);
        if let Some(deadline) = rule.deadline() {
            let rule = RuleByIdentity(Arc::clone(rule));
            self.due.insert((deadline, rule.clone()));
            self.armed.insert(rule, deadline);
        }
    }

    /// Forgets the rule's deadline.
    pub(crate) fn disarm(&mut self, rule: &Rule) {
        if self.armed.is_empty() {
            return;
        }
        if let Some((rule, deadline)) = self.armed.remove_with_key(&rule.identity) {
            self.due.remove(&(deadline, rule));
        }
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.get_min().map(|(deadline, _)| *deadline)
    }

    /// A rule whose deadline is over.
    pub(crate) fn over(&self, now: Instant) -> Option<Arc<Rule>> {
        self.due
            .get_min()
            .filter(|(deadline, _)| *deadline <= now)
            .map(|(_, RuleByIdentity(rule))| Arc::clone(rule))
    }
}
