//! Lookups for a person who asks what they cost: in one table of a view, of frames that its
//! rules want, by the form and in the groups by which workers look frames up.
//!
//! No clock here: whoever runs a trial reads one.

use base::TableId;
use pipeline::Rule;

use crate::ahead::AHEAD;
use crate::classifier::{Sole, Uncompiled, View};
use crate::lanes::{Conditions, Lanes};
use crate::places::Places;
use crate::runner::{Seen, look_up};
use crate::tuple::{TupleView, words_of};

/// See the top of this file.
#[derive(Debug)]
pub struct LookupProbe {
    view: View,
    table: TableId,
    groups: Vec<[Lanes; AHEAD]>,
}

impl LookupProbe {
    /// Frames of a group: what the counts are of.
    pub const BATCH: usize = AHEAD;

    /// Lookups of so many groups of frames in a table that has these rules, in no order: of each
    /// rule one frame, or of some, evenly spread, where there are more, or several where there
    /// are fewer. None if nothing is looked up there by a form: the table has no rules, or
    /// the interpreter goes along them.
    #[must_use]
    pub fn new<'a>(
        view: &View,
        table: TableId,
        rules: impl ExactSizeIterator<Item = &'a Rule>,
        groups: usize,
    ) -> Option<Self> {
        let is_walked = view.table(table)?.uncompiled == Some(Uncompiled::Outside);
        let wanted = groups * AHEAD;
        let step = rules.len().div_ceil(wanted.max(1)).max(1);
        let lanes = rules
            .step_by(step)
            .map(|rule| Conditions::of(rule.matching()).values);
        let lanes: Vec<Lanes> = lanes.collect();
        if is_walked || lanes.is_empty() {
            return None;
        }
        let mut order = (0..wanted).map(|place| lanes[scattered(place, lanes.len())].clone());
        let group = |_| std::array::from_fn(|_| order.next().expect("there are as many"));
        let groups = (0..groups).map(group).collect();
        let view = view.clone();
        Some(Self {
            view,
            table,
            groups,
        })
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Looks up the frames of these groups. Returns how many have found a rule.
    #[must_use]
    pub fn run(&self, groups: std::ops::Range<usize>) -> usize {
        let groups = self.groups.get(groups).unwrap_or_default();
        groups.iter().map(|group| self.look_up(group)).sum()
    }

    fn look_up(&self, lanes: &[Lanes; AHEAD]) -> usize {
        let view = &self.view;
        let Some(table) = view.table(self.table) else {
            return 0;
        };
        match table.sole() {
            Sole::Direct(base, direct) => {
                let (mut left, mut columns) = (Places::ALL, None);
                for (number, _) in base.seen(view.epoch()) {
                    let fitting = direct.fitting(number, lanes, left, &mut columns);
                    left = left.without(fitting);
                    if left.is_none() {
                        break;
                    }
                }
                AHEAD - left.count()
            }
            Sole::Tuple(tuple) => match *tuple.asked() {
                [a] => told_by_lines(view, tuple, lanes, [a]),
                [a, b] => told_by_lines(view, tuple, lanes, [a, b]),
                [a, b, c] => told_by_lines(view, tuple, lanes, [a, b, c]),
                [a, b, c, d] => told_by_lines(view, tuple, lanes, [a, b, c, d]),
                _ => {
                    let found = view.look_up_each_in(tuple, lanes, Places::ALL);
                    found.into_iter().flatten().count()
                }
            },
            Sole::Base(base) => {
                let each = base.likely_each(lanes, Places::ALL, view.epoch());
                let finds = |(place, lanes): (&u32, &Lanes)| {
                    base.outcome(*place, view.epoch()).is_some()
                        || base.rule(*place).is_some()
                            && base.find(lanes, view.epoch(), |_| true).is_some()
                };
                each.iter().zip(lanes).filter(|both| finds(*both)).count()
            }
            Sole::None => {
                let found = lanes.iter().map(|lanes| look_up(view, Some(table), lanes));
                let is_rule = |seen: &Seen<'_>| !matches!(seen, Seen::Found(None));
                found.filter(is_rule).count()
            }
        }
    }
}

/// How many frames find a rule where entries have lines.
fn told_by_lines<const N: usize>(
    view: &View,
    tuple: &TupleView,
    lanes: &[Lanes; AHEAD],
    asked: [(u8, u64); N],
) -> usize {
    let lookups = tuple.begin_by_lines(view.hasher, lanes, Places::ALL, asked);
    let finds = |place: &usize| {
        let ((segment, _), lanes) = (lookups.steps[*place], &lanes[*place]);
        let line = lookups.lines[*place];
        let is_told =
            line.is_some_and(|line| segment.is_told(line, words_of(lanes, asked), view.epoch()));
        is_told || view.look_up_in(tuple, lanes).is_some()
    };
    (0..AHEAD).filter(finds).count()
}

/// The place in no order that is the `place`th of `len`, each once before any twice.
fn scattered(place: usize, len: usize) -> usize {
    // A prime larger than any number of frames that is asked for: no `len` has it as a factor.
    const STEP: u64 = 2_654_435_761;
    let place = (place as u64).wrapping_mul(STEP) % len as u64;
    usize::try_from(place).expect("less than a length")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base::Instant;
    use flow::text::parse_flow_line;
    use pipeline::{Limits, Pipeline};

    use super::*;
    use crate::Classifier;

    /// How many of the frames of a trial in these rules find one.
    fn found(lines: &[String]) -> Option<usize> {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        let mut classifier = Classifier::new();
        for line in lines {
            let flow_mod = parse_flow_line(line).expect(line);
            let changes = pipeline.flow_mod(&flow_mod, Instant::START);
            classifier.queue_changes(&changes.expect(line));
        }
        let view = classifier.publish(&pipeline);
        let rules: Vec<_> = pipeline.rules(TableId(0)).map(AsRef::as_ref).collect();
        let trial = LookupProbe::new(&view, TableId(0), rules.into_iter(), 10)?;
        assert_eq!(trial.groups(), 10);
        Some(trial.run(0..10))
    }

    #[test]
    fn frames_of_a_trial_find_rules_in_every_form() {
        let of_each = |count: usize, rule: fn(usize) -> String| -> Vec<String> {
            (0..count).map(rule).collect()
        };
        let all = Some(10 * LookupProbe::BATCH);
        let direct = |n| format!("priority={n},udp,tp_dst={n},actions=drop");
        assert_eq!(found(&of_each(3, direct)), all);
        assert_eq!(
            found(&of_each(1000, |n| format!("udp,tp_dst={n},actions=drop"))),
            all
        );
        let prefix = |n| {
            format!(
                "priority={0},ip,nw_dst=10.{n}.0.0/{0},actions=drop",
                16 + n % 9
            )
        };
        assert_eq!(found(&of_each(200, prefix)), all);
        let mixed = |n: usize| match n % 4 {
            0 => format!("udp,tp_dst={n},actions=drop"),
            1 => format!("tcp,tp_src={n},nw_src=10.0.0.0/{},actions=drop", 8 + n % 20),
            2 => format!("ip,nw_dst=10.0.{}.0/{},actions=drop", n % 250, 8 + n % 16),
            _ => format!("priority=7,arp,arp_spa=10.0.{}.1,actions=drop", n % 250),
        };
        assert_eq!(found(&of_each(300, mixed)), all);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn every_rule_has_its_turn_before_any_has_two() {
        for len in [1, 2, 3, 97, 256, 1000] {
            let places: BTreeSet<_> = (0..len).map(|place| scattered(place, len)).collect();
            assert_eq!(places.len(), len);
            assert!(places.last().is_some_and(|last| *last < len));
        }
    }
}
