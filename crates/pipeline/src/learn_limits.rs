//! Rules that make rules with a limit, or that take the rules which they have made
//! with them when they go (`ovs-actions(7)`, learn: limit, delete_learned).
//!
//! Both are about all rules of one table with one cookie. Those are counted as long as
//! some rule has such an action, and nothing is counted otherwise.

use base::{Cookie, Instant, TableId};
use flow::{Action, Extension, FlowRemovedReason, Learn, LearnFlags};
use imbl::OrdMap;

use crate::flow_mod::Changes;
use crate::pipeline::Pipeline;
use crate::rule::Rule;
use crate::table::Table;

/// A table, and a cookie in it.
type LearnKey = (TableId, Cookie);

/// What is known of the rules of one key.
#[derive(Clone, Copy, Debug, Default)]
struct LearnCount {
    /// Actions that make such rules, and ask for something of them together.
    learners: usize,
    /// Those of them with which such rules go.
    owners: usize,
    /// Such rules.
    rules: usize,
}

/// What is known of all that is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnLimits {
    watched: OrdMap<LearnKey, LearnCount>,
    /// Whose last owner has gone.
    orphaned: Vec<LearnKey>,
}

impl LearnLimits {
    /// How many rules there are of this cookie in this table, if anybody watches.
    pub(crate) fn count(&self, table: TableId, cookie: Cookie) -> Option<usize> {
        self.watched
            .get(&(table, cookie))
            .map(|watched| watched.rules)
    }

    /// Takes note of a rule that stands in its table now.
    pub(crate) fn rule_came(&mut self, rule: &Rule, tables: &OrdMap<TableId, Table>) {
        if let Some(watched) = self.watched.get_mut(&(rule.table(), rule.cookie)) {
            watched.rules += 1;
        }
        for learn in learns_of(rule) {
            let key = (learn.table, learn.cookie);
            let watched = self.watched.entry(key).or_insert_with(|| LearnCount {
                rules: count(tables.get(&key.0), key.1),
                ..LearnCount::default()
            });
            watched.learners += 1;
            watched.owners += usize::from(owns(learn));
        }
    }

    /// Takes note that a rule stands in its table no more.
    pub(crate) fn rule_went(&mut self, rule: &Rule) {
        if let Some(watched) = self.watched.get_mut(&(rule.table(), rule.cookie)) {
            watched.rules -= 1;
        }
        for learn in learns_of(rule) {
            let key = (learn.table, learn.cookie);
            let Some(watched) = self.watched.get_mut(&key) else {
                continue;
            };
            watched.learners -= 1;
            if owns(learn) {
                watched.owners -= 1;
                if watched.owners == 0 {
                    self.orphaned.push(key);
                }
            }
            if watched.learners == 0 {
                self.watched.remove(&key);
            }
        }
    }

    /// A key whose last owner has gone, and to which no other has come since.
    fn next_orphaned(&mut self) -> Option<LearnKey> {
        while let Some(key) = self.orphaned.pop() {
            let owned = self.watched.get(&key);
            if owned.is_none_or(|watched| watched.owners == 0) {
                return Some(key);
            }
        }
        None
    }
}

impl Pipeline {
    /// Deletes what was made by rules that are gone.
    pub(crate) fn delete_orphaned(&mut self, now: Instant, changes: &mut Changes) {
        while let Some((table, cookie)) = self.learners_mut().next_orphaned() {
            let rules = self.rules(table).filter(|rule| rule.cookie == cookie);
            let rules: Vec<_> = rules.cloned().collect();
            for rule in rules {
                self.take(&rule, Some(FlowRemovedReason::Delete), now, changes);
            }
        }
    }

    /// How many rules there are of this cookie in this table.
    pub(crate) fn count_of_cookie(&self, table: TableId, cookie: Cookie) -> usize {
        let watched = self.learners().count(table, cookie);
        watched.unwrap_or_else(|| count(self.table(table), cookie))
    }
}

fn count(table: Option<&Table>, cookie: Cookie) -> usize {
    let rules = table.into_iter().flat_map(Table::rules);
    rules.filter(|rule| rule.cookie == cookie).count()
}

const fn owns(learn: &Learn) -> bool {
    learn.flags.contains(LearnFlags::DELETE_LEARNED)
}

/// The rule's actions that ask for something of all rules which they make.
fn learns_of(rule: &Rule) -> Vec<&Learn> {
    let mut found = Vec::new();
    if rule.instructions.facts().asks_of_learned {
        collect(rule.instructions.actions(), &mut found);
    }
    found
}

/// Whether one of the actions asks for something of all rules which it makes.
pub(crate) fn asks_of_learned<'a>(actions: impl Iterator<Item = &'a Action>) -> bool {
    let mut found = Vec::new();
    collect(actions, &mut found);
    !found.is_empty()
}

fn collect<'a>(actions: impl Iterator<Item = &'a Action>, found: &mut Vec<&'a Learn>) {
    for action in actions {
        match action {
            Action::Extended(Extension::Learn(learn)) if learn.limit != 0 || owns(learn) => {
                found.push(learn);
            }
            Action::Extended(Extension::Clone(inside)) => collect(inside.iter(), found),
            _ => {}
        }
    }
}
