//! Rules that no compiled structure takes. While they are few, the interpreter searches only these,
//! beside the compiled rules: one rule on a tunnel option does not make a table of a million rules
//! be scanned.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::TunnelOptions;
use pipeline::Rule;

/// Most rules that are listed. With more, the interpreter scans the table: to make the list anew
/// with each change would cost more.
const LISTED_MAX: usize = 64;

/// The uncompiled rules of a table, by their addresses.
#[derive(Debug, Default)]
pub(super) struct UncompiledRules(BTreeMap<usize, Arc<Rule>>);

impl UncompiledRules {
    pub(super) fn insert(&mut self, rule: &Arc<Rule>) {
        self.0.insert(Arc::as_ptr(rule).addr(), Arc::clone(rule));
    }

    pub(super) fn remove(&mut self, rule: &Arc<Rule>) {
        self.0.remove(&Arc::as_ptr(rule).addr());
    }

    /// Number of rules.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The rules in match order; `None` if there are none or too many.
    pub(super) fn in_order(&self) -> Option<Arc<[Arc<Rule>]>> {
        if self.0.is_empty() || self.0.len() > LISTED_MAX {
            return None;
        }
        let mut rules: Vec<_> = self.0.values().cloned().collect();
        rules.sort_by(|one, other| match () {
            () if one.precedes(other) => std::cmp::Ordering::Less,
            () if other.precedes(one) => std::cmp::Ordering::Greater,
            () => std::cmp::Ordering::Equal,
        });
        Some(rules.into())
    }

    /// One of the rules, to show.
    pub(super) fn example(&self) -> Option<&Arc<Rule>> {
        self.0.values().next()
    }

    /// True if the interpreter scans the table because of them.
    pub(super) fn cause_scan(&self) -> bool {
        self.0.len() > LISTED_MAX
    }
}

/// True if a rule may match packets without tunnel options, in which each option is zero.
pub(super) fn may_match_without_options(rule: &Rule) -> bool {
    let none = TunnelOptions::new();
    rule.matching().options().all(|term| term.accepts(&none))
}
