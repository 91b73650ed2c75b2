//! Lookup probe: lookups in one table of a view, with the packets that its rules match, by the
//! form and in the batches that workers use. It measures nothing itself: the caller reads a clock.

use base::TableId;
use pipeline::Rule;

use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::classifier::{LookupFallback, SingleForm, View};
use crate::mask::masked_words;
use crate::match_result::{MatchResult, look_up};
use crate::packed_key::{PackedKey, PackedMatch};
use crate::tuple::TupleView;

/// Batches of packets to look up in one table.
#[derive(Debug)]
pub struct LookupProbe {
    view: View,
    table: TableId,
    batches: Vec<[PackedKey; LOOKUP_BATCH]>,
}

impl LookupProbe {
    /// Packets of a batch.
    pub const BATCH: usize = LOOKUP_BATCH;

    /// Prepares `batches` batches for a table with these rules, in scattered order: one packet for
    /// each rule, or for evenly distributed rules if they are more, or several for each if they
    /// are fewer. Returns `None` if no compiled form is used: the table has no rules, or the
    /// interpreter scans them.
    #[must_use]
    pub fn new<'a>(
        view: &View,
        table: TableId,
        rules: impl ExactSizeIterator<Item = &'a Rule>,
        batches: usize,
    ) -> Option<Self> {
        let is_scanned = view.table(table)?.fallback == Some(LookupFallback::Interpreter);
        let count = batches * LOOKUP_BATCH;
        let step = rules.len().div_ceil(count.max(1)).max(1);
        let keys = rules
            .step_by(step)
            .map(|rule| PackedMatch::of(rule.matching()).values);
        let keys: Vec<PackedKey> = keys.collect();
        if is_scanned || keys.is_empty() {
            return None;
        }
        let mut order = (0..count).map(|index| keys[scattered(index, keys.len())].clone());
        let batch = |_| std::array::from_fn(|_| order.next().expect("the iterator has BATCH each"));
        let batches = (0..batches).map(batch).collect();
        let view = view.clone();
        Some(Self {
            view,
            table,
            batches,
        })
    }

    /// Number of batches.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Looks up the packets of these batches. Returns the number of those that match a rule.
    #[must_use]
    pub fn run(&self, batches: std::ops::Range<usize>) -> usize {
        let batches = self.batches.get(batches).unwrap_or_default();
        batches.iter().map(|batch| self.look_up(batch)).sum()
    }

    fn look_up(&self, keys: &[PackedKey; LOOKUP_BATCH]) -> usize {
        let view = &self.view;
        let Some(table) = view.table(self.table) else {
            return 0;
        };
        match table.single_form() {
            SingleForm::Linear(compiled, linear) => {
                let (mut remaining, mut columns) = (BatchMask::ALL, None);
                for (rank, _) in compiled.visible_rules(view.epoch()) {
                    let matching = linear.matching_packets(rank, keys, remaining, &mut columns);
                    remaining = remaining.difference(matching);
                    if remaining.is_empty() {
                        break;
                    }
                }
                LOOKUP_BATCH - remaining.count()
            }
            SingleForm::Tuple(tuple) => match *tuple.mask() {
                [a] => hits_in_tuple(view, tuple, keys, [a]),
                [a, b] => hits_in_tuple(view, tuple, keys, [a, b]),
                [a, b, c] => hits_in_tuple(view, tuple, keys, [a, b, c]),
                [a, b, c, d] => hits_in_tuple(view, tuple, keys, [a, b, c, d]),
                _ => {
                    let found = view.look_up_batch_in(tuple, keys, BatchMask::ALL);
                    found.into_iter().flatten().count()
                }
            },
            SingleForm::CompiledSet(compiled) => {
                let ranks = compiled.likely_ranks(keys, BatchMask::ALL, view.epoch());
                let is_hit = |(rank, key): (&u32, &PackedKey)| {
                    compiled.hot_rule(*rank, view.epoch()).is_some()
                        || compiled.rule(*rank).is_some()
                            && compiled.find(key, view.epoch(), |_| true).is_some()
                };
                ranks.iter().zip(keys).filter(|both| is_hit(*both)).count()
            }
            SingleForm::None => {
                let results = keys.iter().map(|key| look_up(view, Some(table), key, true));
                let is_hit = |result: &MatchResult<'_>| !matches!(result, MatchResult::Rule(None));
                results.filter(is_hit).count()
            }
        }
    }
}

/// Number of packets that match a rule of a tuple with hot entries.
fn hits_in_tuple<const N: usize>(
    view: &View,
    tuple: &TupleView,
    keys: &[PackedKey; LOOKUP_BATCH],
    mask: [(u8, u64); N],
) -> usize {
    let lookups = tuple.begin_hot_lookups(view.hasher, keys, BatchMask::ALL, mask);
    let is_hit = |index: &usize| {
        let ((segment, _), key) = (lookups.segments[*index], &keys[*index]);
        let hot = lookups.hot[*index];
        let is_hot_hit =
            hot.is_some_and(|hot| segment.is_hot_hit(hot, masked_words(key, mask), view.epoch()));
        is_hot_hit || view.look_up_in(tuple, key).is_some()
    };
    (0..LOOKUP_BATCH).filter(is_hit).count()
}

/// Index of the packet at a position of the scattered order of `len`. Each index occurs once
/// before any occurs twice.
fn scattered(position: usize, len: usize) -> usize {
    // A prime larger than any number of packets: no `len` has it as a factor.
    const STEP: u64 = 2_654_435_761;
    let index = (position as u64).wrapping_mul(STEP) % len as u64;
    usize::try_from(index).expect("the index is less than a length")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::Instant;
    use flow::text::parse_flow_line;
    use pipeline::{Limits, Pipeline};

    use super::*;
    use crate::Classifier;

    /// Number of packets of a probe in these rules that match one.
    fn hits(lines: &[String]) -> Option<usize> {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let mut classifier = Classifier::new();
        for line in lines {
            let flow_mod = parse_flow_line(line).expect(line);
            let changes = pipeline.flow_mod(&flow_mod, Instant::START);
            classifier.queue_changes(&changes.expect(line));
        }
        let view = classifier.publish(&pipeline);
        let rules: Vec<_> = pipeline.rules(TableId(0)).map(AsRef::as_ref).collect();
        let probe = LookupProbe::new(&view, TableId(0), rules.into_iter(), 10)?;
        assert_eq!(probe.batches(), 10);
        Some(probe.run(0..10))
    }

    #[test]
    fn packets_of_probe_match_in_all_forms() {
        let lines = |count: usize, rule: fn(usize) -> String| -> Vec<String> {
            (0..count).map(rule).collect()
        };
        let all = Some(10 * LookupProbe::BATCH);
        let linear = |n| format!("priority={n},udp,tp_dst={n},actions=drop");
        assert_eq!(hits(&lines(3, linear)), all);
        assert_eq!(
            hits(&lines(1000, |n| format!("udp,tp_dst={n},actions=drop"))),
            all
        );
        let prefix = |n| {
            format!(
                "priority={0},ip,nw_dst=10.{n}.0.0/{0},actions=drop",
                16 + n % 9
            )
        };
        assert_eq!(hits(&lines(200, prefix)), all);
        let mixed = |n: usize| match n % 4 {
            0 => format!("udp,tp_dst={n},actions=drop"),
            1 => format!("tcp,tp_src={n},nw_src=10.0.0.0/{},actions=drop", 8 + n % 20),
            2 => format!("ip,nw_dst=10.0.{}.0/{},actions=drop", n % 250, 8 + n % 16),
            _ => format!("priority=7,arp,arp_spa=10.0.{}.1,actions=drop", n % 250),
        };
        assert_eq!(hits(&lines(300, mixed)), all);
        assert_eq!(hits(&[]), None);
    }

    #[test]
    fn scattered_order_visits_indices_before_repetition() {
        for len in [1, 2, 3, 97, 256, 1000] {
            let indices: BTreeSet<_> = (0..len).map(|position| scattered(position, len)).collect();
            assert_eq!(indices.len(), len);
            assert!(indices.last().is_some_and(|last| *last < len));
        }
    }
}
