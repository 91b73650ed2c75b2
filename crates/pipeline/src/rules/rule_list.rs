//! The rules of a table in lookup order: a persistent sequence of chunks, in a persistent map by
//! the position of their first rule.
//!
//! ```text
//!   chunks: OrdMap    pos 0 --> | r r r ... r |    pos 40 --> | r r ... r |      last --> | r r r |
//!                             up to 32 rules                                        appended here
//! ```
//!
//! A clone shares all chunks; a change copies one chunk and the path to it (path copying: Driscoll,
//! Sarnak, Sleator, Tarjan, "Making data structures persistent", 1989). Chunks are full where rules
//! are added in sequence: 11 bytes per rule. An insertion or removal costs O(log n).

use std::sync::Arc;

use imbl::OrdMap;

use super::{Rule, RulePosition};

/// Maximum rules of a chunk. More would make a change after a snapshot more expensive, fewer would
/// take more memory.
const LENGTH_MAX: usize = 32;

/// Rules of a short chunk. Two adjacent short chunks are joined.
const SHORT: usize = LENGTH_MAX / 4;

/// Adjacent rules, at least one.
#[derive(Debug, Default)]
struct RuleChunk(Vec<Arc<Rule>>);

/// A clone has full capacity, since it is made to be written to.
impl Clone for RuleChunk {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl RuleChunk {
    fn of(rules: &[Arc<Rule>]) -> Self {
        let mut chunk = Vec::with_capacity(LENGTH_MAX);
        chunk.extend_from_slice(rules);
        Self(chunk)
    }

    /// Returns the index of the rule with this position, or the index to insert it.
    fn find(&self, position: RulePosition) -> Result<usize, usize> {
        match self.0.last() {
            // Most rules are appended.
            Some(last) if last.position < position => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&position, |rule| rule.position),
        }
    }

    /// Inserts a rule. If the chunk is full, returns the chunk that must follow it.
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
        self.0[0].position
    }
}

/// The rules, by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleList {
    /// All chunks but the last, each by a position that is not after its rules and after all rules
    /// before it.
    chunks: OrdMap<RulePosition, Arc<RuleChunk>>,
    /// The last chunk, which needs no search: most rules are appended. It is empty only if there
    /// are no rules.
    last: Arc<RuleChunk>,
    rules: usize,
}

impl RuleList {
    /// Returns the number of rules.
    pub(crate) const fn len(&self) -> usize {
        self.rules
    }

    /// Returns all rules, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.chunks
            .values()
            .flat_map(|chunk| &chunk.0)
            .chain(&self.last.0)
    }

    /// Returns the rules from a position on.
    pub(crate) fn from(
        &self,
        position: RulePosition,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let chunk = self.chunks.get_prev(&position);
        let key = chunk.map_or(position, |(key, _)| *key);
        let rules = self.chunks.range(key..).flat_map(|(_, chunk)| &chunk.0);
        rules
            .chain(&self.last.0)
            .skip_while(move |rule| rule.position < position)
    }

    /// True if a rule with this position belongs to the last chunk.
    fn is_in_last(&self, position: RulePosition) -> bool {
        let first = self.last.0.first();
        self.chunks.is_empty() || first.is_none_or(|first| first.position <= position)
    }

    /// Inserts a rule. Returns the rule that had its position.
    pub(crate) fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        let position = rule.position;
        let is_in_last = self.is_in_last(position);
        let chunk = match is_in_last {
            true => &mut self.last,
            false => match self.chunks.get_prev_mut(&position) {
                Some((_, chunk)) => chunk,
                None => {
                    self.insert_before_all(rule);
                    return None;
                }
            },
        };
        let behind = match chunk.find(position) {
            Ok(at) => return Some(std::mem::replace(&mut Arc::make_mut(chunk).0[at], rule)),
            Err(at) => Arc::make_mut(chunk).insert(at, rule),
        };
        self.rules += 1;
        if let Some(behind) = behind.map(Arc::new) {
            let chunk = match is_in_last {
                true => std::mem::replace(&mut self.last, behind),
                false => behind,
            };
            self.add_chunk(chunk);
        }
        None
    }

    fn insert_before_all(&mut self, rule: Arc<Rule>) {
        let position = rule.position;
        let first = self.chunks.get_min().map(|(key, _)| *key);
        let mut chunk = first
            .and_then(|first| self.chunks.remove(&first))
            .unwrap_or_default();
        let behind = Arc::make_mut(&mut chunk).insert(0, rule);
        self.chunks.insert(position, chunk);
        self.rules += 1;
        if let Some(behind) = behind {
            self.add_chunk(Arc::new(behind));
        }
    }

    /// Adds a chunk that is not the last.
    fn add_chunk(&mut self, chunk: Arc<RuleChunk>) {
        self.chunks.insert(chunk.first(), chunk);
    }

    /// Removes the rule with this position.
    pub(crate) fn remove(&mut self, position: RulePosition) -> Option<Arc<Rule>> {
        if self.is_in_last(position) {
            return self.remove_from_last(position);
        }
        let (key, chunk) = self.chunks.get_prev_mut(&position)?;
        let (key, at) = (*key, chunk.find(position).ok()?);
        let chunk = Arc::make_mut(chunk);
        let gone = chunk.0.remove(at);
        self.rules -= 1;
        match chunk.0.len() {
            0 => drop(self.chunks.remove(&key)),
            1..=SHORT => self.join_neighbours(key),
            _ => {}
        }
        Some(gone)
    }

    fn remove_from_last(&mut self, position: RulePosition) -> Option<Arc<Rule>> {
        let at = self.last.find(position).ok()?;
        let last = Arc::make_mut(&mut self.last);
        let gone = last.0.remove(at);
        self.rules -= 1;
        if last.0.is_empty()
            && let Some(key) = self.chunks.get_max().map(|(key, _)| *key)
        {
            self.last = self.chunks.remove(&key).unwrap_or_default();
        }
        Some(gone)
    }

    /// Joins a chunk that has become short with its short neighbours.
    fn join_neighbours(&mut self, key: RulePosition) {
        self.join(key);
        let before = self.chunks.range(..key).next_back();
        if let Some(before) = before.map(|(key, _)| *key) {
            self.join(before);
        }
    }

    /// Joins a chunk with the next, if both are short.
    fn join(&mut self, key: RulePosition) {
        let mut two = self.chunks.range(key..);
        let (Some((_, short)), Some((next, behind))) = (two.next(), two.next()) else {
            return;
        };
        if short.0.len() + behind.0.len() > 2 * SHORT {
            return;
        }
        let (next, behind) = (*next, Arc::clone(behind));
        if let Some(chunk) = self.chunks.get_mut(&key) {
            Arc::make_mut(chunk).0.extend_from_slice(&behind.0);
            self.chunks.remove(&next);
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

    fn rule(position: u64) -> Arc<Rule> {
        let pipeline = pipeline(&["in_port=1,actions=drop"]);
        let mut rule = pipeline
            .rules(TableId::FIRST)
            .next()
            .expect("a rule")
            .copy();
        rule.position = RulePosition::new(0, position);
        Arc::new(rule)
    }

    fn same(chunks: &RuleList, list: &BTreeMap<RulePosition, Arc<Rule>>) {
        assert_eq!(chunks.len(), list.len());
        let both = chunks.iter().zip(list.values());
        assert!(chunks.iter().count() == list.len() && both.into_iter().all(is_same));
    }

    fn is_same((one, other): (&Arc<Rule>, &Arc<Rule>)) -> bool {
        Arc::ptr_eq(one, other)
    }

    proptest! {
        #[test]
        fn runs_hold_what_a_map_would(
            steps in prop::collection::vec((0..6_u8, 0..150_usize), 1..600),
        ) {
            let (mut chunks, mut list) = (RuleList::default(), BTreeMap::new());
            let mut kept = Vec::new();
            let rules: Vec<_> = (0..150).map(rule).collect();
            for (what, number) in steps {
                let position = RulePosition::new(0, number as u64);
                match what {
                    0..=2 => {
                        let rule = Arc::new(rules[number].copy());
                        let replaced = chunks.insert(Arc::clone(&rule));
                        let wanted = list.insert(position, rule);
                        assert!(replaced.iter().zip(&wanted).all(is_same));
                        assert_eq!(replaced.is_some(), wanted.is_some());
                    }
                    3..=4 => {
                        let (gone, wanted) = (chunks.remove(position), list.remove(&position));
                        assert!(gone.iter().zip(&wanted).all(is_same));
                        assert_eq!(gone.is_some(), wanted.is_some());
                    }
                    _ => kept.push((chunks.clone(), list.clone())),
                }
                let behind = chunks.from(position).zip(list.range(position..).map(|(_, rule)| rule));
                assert_eq!(chunks.from(position).count(), list.range(position..).count());
                assert!(behind.into_iter().all(is_same));
            }
            same(&chunks, &list);
            kept.iter().for_each(|(chunks, list)| same(chunks, list));
        }
    }

    #[test]
    fn runs_are_full_where_rules_come_one_after_the_other() {
        let mut chunks = RuleList::default();
        for number in 0..1000 {
            chunks.insert(rule(number));
        }
        assert_eq!(chunks.chunks.len() + 1, 1000_usize.div_ceil(LENGTH_MAX));
        // Seven of eight are removed, and the chunks are joined.
        for number in (0..1000).filter(|number| number % 8 != 0) {
            chunks.remove(RulePosition::new(0, number));
        }
        assert!(chunks.chunks.len() <= 125_usize.div_ceil(SHORT));
    }
}
