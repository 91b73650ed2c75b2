//! When rules go by themselves: an ordered set of deadlines, one for each rule
//! that has a timeout.
//!
//! A frame does not touch the set: a worker only writes the time into the rule's
//! counters. When an idle deadline comes, the rule is asked, and given a later
//! deadline if a frame has come since.

use std::sync::Arc;

use base::{Instant, TableId};
use imbl::{OrdMap, OrdSet};

use crate::rule::{Identity, Rule};

/// A rule's place: its table, and what makes it the one it is there.
pub(crate) type Place = (TableId, Arc<Identity>);

/// The deadlines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiry {
    due: OrdSet<(Instant, Place)>,
    armed: OrdMap<Place, Instant>,
}

impl Expiry {
    /// Takes note of the rule's deadline, if it has one, in place of any that was
    /// noted for its place.
    pub(crate) fn arm(&mut self, rule: &Rule) {
        self.disarm(rule);
        if let Some(deadline) = rule.deadline() {
            let place = place(rule);
            self.due.insert((deadline, place.clone()));
            self.armed.insert(place, deadline);
        }
    }

    /// Forgets the rule's deadline.
    pub(crate) fn disarm(&mut self, rule: &Rule) {
        let place = place(rule);
        if let Some(deadline) = self.armed.remove(&place) {
            self.due.remove(&(deadline, place));
        }
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.get_min().map(|(deadline, _)| *deadline)
    }

    /// The place of a rule whose deadline is over.
    pub(crate) fn over(&self, now: Instant) -> Option<Place> {
        self.due
            .get_min()
            .filter(|(deadline, _)| *deadline <= now)
            .map(|(_, place)| place.clone())
    }
}

/// Where the rule is.
pub(crate) fn place(rule: &Rule) -> Place {
    (rule.table, Arc::clone(&rule.identity))
}
