//! Rules in the order of their places, in runs that are full where rules come one
//! after the other: eleven bytes a rule. A clone shares them until one of the two changes,
//! and then all but a run and the way to it.

use std::sync::Arc;

use imbl::OrdMap;

use super::{Rule, RulePosition};

/// Rules of a run. More would make a change beside a snapshot dearer, fewer would take
/// more memory.
const LENGTH_MAX: usize = 32;

/// Rules of a short run. Two of them are joined.
const SHORT: usize = LENGTH_MAX / 4;

/// Rules side by side, at least one.
#[derive(Debug, Default)]
struct RuleChunk(Vec<Arc<Rule>>);

/// A clone has room for as many as a run can have: it is made to be written to.
impl Clone for RuleChunk {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl RuleChunk {
    fn of(rules: &[Arc<Rule>]) -> Self {
        let mut run = Vec::with_capacity(LENGTH_MAX);
        run.extend_from_slice(rules);
        Self(run)
    }

    /// Where the rule of this place is, or would be.
    fn find(&self, place: RulePosition) -> Result<usize, usize> {
        match self.0.last() {
            // Rules mostly come behind all others.
            Some(last) if last.place < place => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&place, |rule| rule.place),
        }
    }

    /// Puts a rule in, if there is room; else leaves what must become a run of its own,
    /// behind this one.
    fn insert(&mut self, at: usize, rule: Arc<Rule>) -> Option<Self> {
        if self.0.len() < LENGTH_MAX {
            self.0.insert(at, rule);
            return None;
        }
        if at == LENGTH_MAX {
            return Some(Self::of(&[rule]));
        }
        let mut behind = Self::of(&self.0[LENGTH_MAX / 2..]);
        self.0.truncate(LENGTH_MAX / 2);
        match at.checked_sub(LENGTH_MAX / 2) {
            Some(at) => behind.0.insert(at, rule),
            None => self.0.insert(at, rule),
        }
        Some(behind)
    }

    fn first(&self) -> RulePosition {
        self.0[0].place
    }
}

/// Rules, each in a place of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleList {
    /// All but the last. Each by a place that none of its rules is before, and behind
    /// which all before it are.
    runs: OrdMap<RulePosition, Arc<RuleChunk>>,
    /// The run behind all others, for rules mostly come behind all others and then need
    /// no search. It is empty only if there are no rules.
    last: Arc<RuleChunk>,
    rules: usize,
}

impl RuleList {
    /// How many rules there are.
    pub(crate) const fn len(&self) -> usize {
        self.rules
    }

    /// All rules, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.runs
            .values()
            .flat_map(|run| &run.0)
            .chain(&self.last.0)
    }

    /// The rules from a place on.
    pub(crate) fn from(&self, place: RulePosition) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let run = self.runs.get_prev(&place);
        let key = run.map_or(place, |(key, _)| *key);
        let rules = self.runs.range(key..).flat_map(|(_, run)| &run.0);
        rules
            .chain(&self.last.0)
            .skip_while(move |rule| rule.place < place)
    }

    /// Whether a rule of this place would be in the last run.
    fn is_in_last(&self, place: RulePosition) -> bool {
        let first = self.last.0.first();
        self.runs.is_empty() || first.is_none_or(|first| first.place <= place)
    }

    /// Puts a rule in. Answers the one that was in its place.
    pub(crate) fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        let place = rule.place;
        let is_in_last = self.is_in_last(place);
        let run = match is_in_last {
            true => &mut self.last,
            false => match self.runs.get_prev_mut(&place) {
                Some((_, run)) => run,
                None => {
                    self.insert_before_all(rule);
                    return None;
                }
            },
        };
        let behind = match run.find(place) {
            Ok(at) => return Some(std::mem::replace(&mut Arc::make_mut(run).0[at], rule)),
            Err(at) => Arc::make_mut(run).insert(at, rule),
        };
        self.rules += 1;
        if let Some(behind) = behind.map(Arc::new) {
            let run = match is_in_last {
                true => std::mem::replace(&mut self.last, behind),
                false => behind,
            };
            self.keep(run);
        }
        None
    }

    fn insert_before_all(&mut self, rule: Arc<Rule>) {
        let place = rule.place;
        let first = self.runs.get_min().map(|(key, _)| *key);
        let mut run = first
            .and_then(|first| self.runs.remove(&first))
            .unwrap_or_default();
        let behind = Arc::make_mut(&mut run).insert(0, rule);
        self.runs.insert(place, run);
        self.rules += 1;
        if let Some(behind) = behind {
            self.keep(Arc::new(behind));
        }
    }

    /// Takes in a run that is not the last.
    fn keep(&mut self, run: Arc<RuleChunk>) {
        self.runs.insert(run.first(), run);
    }

    /// Takes the rule in this place out.
    pub(crate) fn remove(&mut self, place: RulePosition) -> Option<Arc<Rule>> {
        if self.is_in_last(place) {
            return self.remove_from_last(place);
        }
        let (key, run) = self.runs.get_prev_mut(&place)?;
        let (key, at) = (*key, run.find(place).ok()?);
        let run = Arc::make_mut(run);
        let gone = run.0.remove(at);
        self.rules -= 1;
        match run.0.len() {
            0 => drop(self.runs.remove(&key)),
            1..=SHORT => self.shorten(key),
            _ => {}
        }
        Some(gone)
    }

    fn remove_from_last(&mut self, place: RulePosition) -> Option<Arc<Rule>> {
        let at = self.last.find(place).ok()?;
        let last = Arc::make_mut(&mut self.last);
        let gone = last.0.remove(at);
        self.rules -= 1;
        if last.0.is_empty()
            && let Some(key) = self.runs.get_max().map(|(key, _)| *key)
        {
            self.last = self.runs.remove(&key).unwrap_or_default();
        }
        Some(gone)
    }

    /// Joins a run that has become short with its neighbours, if they are short too.
    fn shorten(&mut self, key: RulePosition) {
        self.join(key);
        let before = self.runs.range(..key).next_back();
        if let Some(before) = before.map(|(key, _)| *key) {
            self.join(before);
        }
    }

    /// Joins a run with the one behind it, if the two are short.
    fn join(&mut self, key: RulePosition) {
        let mut two = self.runs.range(key..);
        let (Some((_, short)), Some((next, behind))) = (two.next(), two.next()) else {
            return;
        };
        if short.0.len() + behind.0.len() > 2 * SHORT {
            return;
        }
        let (next, behind) = (*next, Arc::clone(behind));
        if let Some(run) = self.runs.get_mut(&key) {
            Arc::make_mut(run).0.extend_from_slice(&behind.0);
            self.runs.remove(&next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base::TableId;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::pipeline;

    fn rule(place: u64) -> Arc<Rule> {
        let pipeline = pipeline(&["in_port=1,actions=drop"]);
        let mut rule = pipeline
            .rules(TableId::FIRST)
            .next()
            .expect("a rule")
            .copy();
        rule.place = RulePosition::new(0, place);
        Arc::new(rule)
    }

    fn same(runs: &RuleList, list: &BTreeMap<RulePosition, Arc<Rule>>) {
        assert_eq!(runs.len(), list.len());
        let both = runs.iter().zip(list.values());
        assert!(runs.iter().count() == list.len() && both.into_iter().all(is_same));
    }

    fn is_same((one, other): (&Arc<Rule>, &Arc<Rule>)) -> bool {
        Arc::ptr_eq(one, other)
    }

    proptest! {
        #[test]
        fn runs_hold_what_a_map_would(
            steps in prop::collection::vec((0..6_u8, 0..150_usize), 1..600),
        ) {
            let (mut runs, mut list) = (RuleList::default(), BTreeMap::new());
            let mut kept = Vec::new();
            let rules: Vec<_> = (0..150).map(rule).collect();
            for (what, number) in steps {
                let place = RulePosition::new(0, number as u64);
                match what {
                    0..=2 => {
                        let rule = Arc::new(rules[number].copy());
                        let replaced = runs.insert(Arc::clone(&rule));
                        let wanted = list.insert(place, rule);
                        assert!(replaced.iter().zip(&wanted).all(is_same));
                        assert_eq!(replaced.is_some(), wanted.is_some());
                    }
                    3..=4 => {
                        let (gone, wanted) = (runs.remove(place), list.remove(&place));
                        assert!(gone.iter().zip(&wanted).all(is_same));
                        assert_eq!(gone.is_some(), wanted.is_some());
                    }
                    _ => kept.push((runs.clone(), list.clone())),
                }
                let behind = runs.from(place).zip(list.range(place..).map(|(_, rule)| rule));
                assert_eq!(runs.from(place).count(), list.range(place..).count());
                assert!(behind.into_iter().all(is_same));
            }
            same(&runs, &list);
            kept.iter().for_each(|(runs, list)| same(runs, list));
        }
    }

    #[test]
    fn runs_are_full_where_rules_come_one_after_the_other() {
        let mut runs = RuleList::default();
        for number in 0..1000 {
            runs.insert(rule(number));
        }
        assert_eq!(runs.runs.len() + 1, 1000_usize.div_ceil(LENGTH_MAX));
        // Seven of eight go, and the rest comes together.
        for number in (0..1000).filter(|number| number % 8 != 0) {
            runs.remove(RulePosition::new(0, number));
        }
        assert!(runs.runs.len() <= 125_usize.div_ceil(SHORT));
    }
}
