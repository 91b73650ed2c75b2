//! Concurrency models of the writer and its readers: their steps in many of the orders that are
//! possible. Not the orders in which processors may observe them: the model takes atomics for
//! sequentially consistent.
//!
//! The writer makes a few publications. A reader of each view starts when the view exists, and must
//! find the rules of that moment while all that follows is written. Each model lists faults, put
//! into the code that it runs, that it has detected.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Instant;
use base::sync::{explore, thread};
use flow::{FlowModCommand, text};
use packet::build::Stack;
use pipeline::Limits;

use super::*;
use crate::batch_mask::BatchMask;
use crate::compiled_set::CompiledSet;
use crate::mask::masked_words;
use crate::testing::{keys_of, rules};
use crate::tuple::TupleView;

/// Orders that each scheduler explores.
const ORDERS: usize = 2_000;

/// A change: command, UDP port and priority of a rule.
type RuleChange = (FlowModCommand, u16, u16);

use FlowModCommand::{Add, DeleteStrict};

/// The writer of the tables.
struct ModelWriter {
    pipeline: Pipeline,
    classifier: Classifier,
}

impl ModelWriter {
    /// A writer with rules for these ports.
    fn new(ports: Range<u16>) -> (Self, View) {
        let mut writer = Self {
            pipeline: Pipeline::new(Limits::default(), 1),
            // A fixed seed, so that a failing order can be replayed.
            classifier: Classifier::with_seed(7),
        };
        let view = writer.publish(&ports.map(|port| (Add, port, 5)).collect::<Vec<_>>());
        (writer, view)
    }

    /// Applies these changes and publishes a view.
    fn publish(&mut self, changes: &[RuleChange]) -> View {
        for (command, port, priority) in changes {
            let mut flow = format!("priority={priority},udp,tp_dst={port}");
            if *command == Add {
                flow.push_str(",actions=drop");
            }
            let flow_mod = text::parse_flow(*command, &flow).expect("a flow");
            let changes = self.pipeline.flow_mod(&flow_mod, Instant::START);
            self.classifier
                .queue_changes(&changes.expect("the change is legal"));
        }
        self.classifier.publish(&self.pipeline)
    }
}

/// A port, and the priority of the rule that its packets match.
type ExpectedPriority = (u16, Option<u16>);

/// A lookup, which returns the priority of the rule.
type ModelLookup = fn(&View, &PackedKey) -> Option<u16>;

/// Looks up a packet in entries.
fn look_up_entries(view: &View, key: &PackedKey) -> Option<u16> {
    let table = view.table(TableId(0)).expect("the table has rules");
    view.look_up(table, key).map(|rule| rule.priority())
}

/// Looks up a packet in hot entries, and in entries only if no hot entry is valid.
fn look_up_hot_entries(view: &View, key: &PackedKey) -> Option<u16> {
    let table = view.table(TableId(0)).expect("the table has rules");
    let tuple = &table.tuples[0];
    match *tuple.mask() {
        [a] => look_up_hot_entry(view, tuple, key, [a]),
        [a, b] => look_up_hot_entry(view, tuple, key, [a, b]),
        [a, b, c] => look_up_hot_entry(view, tuple, key, [a, b, c]),
        ref mask => panic!("the model has no hot entries of {} words", mask.len()),
    }
}

/// Number of lookups that a hot entry has completed.
static HOT_HITS: AtomicUsize = AtomicUsize::new(0);

/// The lookup of workers (`batch_lookup::in_tuple`), for one packet.
fn look_up_hot_entry<const N: usize>(
    view: &View,
    tuple: &TupleView,
    key: &PackedKey,
    mask: [(u8, u64); N],
) -> Option<u16> {
    let keys = std::array::from_fn(|_| key.clone());
    let lookups = tuple.begin_hot_lookups(view.hasher, &keys, BatchMask::single(0), mask);
    let (segment, hash) = lookups.segments[0];
    let hot = lookups.hot[0];
    let hit = hot.filter(|hot| segment.is_hot_hit(hot, masked_words(key, mask), view.epoch()));
    match hit.and_then(|hot| Some((hot, hot.counters()?))) {
        Some((hot, counters)) => {
            let rule = segment.rule_of_hot_entry(hash, hot);
            let rule = rule.expect("the hot entry has an entry");
            let in_entries = view
                .look_up_in(tuple, key)
                .expect("the entries have the rule");
            assert!(
                Arc::ptr_eq(in_entries, rule),
                "the entries have the same rule"
            );
            assert!(
                rule.counters.is_same_as(counters),
                "the counters are those of the rule"
            );
            assert_eq!(
                rule.instructions.program_slot().inline_program(),
                hot.inline_program()
            );
            HOT_HITS.fetch_add(1, Ordering::Relaxed);
            Some(rule.priority())
        }
        None if lookups.missing.contains(0) => None,
        None => {
            let found = view.look_up_in(tuple, key);
            found.map(|rule| rule.priority())
        }
    }
}

/// A reader that expects these priorities in a view, in this order.
fn start_reader(
    view: &View,
    look_up: ModelLookup,
    expected: &'static [ExpectedPriority],
) -> thread::JoinHandle<()> {
    let view = view.clone();
    thread::spawn(move || {
        for (port, priority) in expected {
            let found = look_up(&view, &key_of(*port));
            let epoch = view.epoch();
            assert_eq!(found, *priority, "port {port} in epoch {epoch}");
        }
    })
}

/// Key of a packet to this port.
fn key_of(port: u16) -> PackedKey {
    let stack = format!("eth / ipv4 / udp(dst={port})");
    keys_of(&stack.parse::<Stack>().expect("a stack").build()).0
}

fn join_all(readers: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for reader in readers {
        reader.join().expect("the reader found the expected rules");
    }
}

/// Rules of one mask, in segments: a rule is added before another with the same match, or between
/// two, or replaces it, a rule is removed while others find it, and the segment is replaced when it
/// is full.
///
/// Detected faults: `SegmentEntry::is_visible` without `born`, `Segment::remove` with the previous
/// age, `Segment::remove` that removes the following entries from the list, `Classifier::publish`
/// that returns the epoch after the one that it has written.
#[test]
fn views_are_unaffected_while_segments_are_written() {
    explore(ORDERS, || write_segments(look_up_entries));
}

/// The same with the lookup of workers: a hot entry is not valid from the epoch in which its rule is
/// removed or another with the same match is added.
///
/// Detected faults: `Segment::write` and `Segment::remove` that do not end the hot entry,
/// `HotEntry::is_hit` without `born`, `HotEntry::end` one age late.
#[test]
fn hot_entries_are_valid_while_segments_are_written() {
    explore(ORDERS, || write_segments(look_up_hot_entries));
    assert!(
        HOT_HITS.load(Ordering::Relaxed) > ORDERS,
        "hot entries are used"
    );
}

/// Writes changes that readers of earlier views must not see.
fn write_segments(look_up: ModelLookup) {
    let (mut writer, first) = ModelWriter::new(0..62);
    let before = start_reader(
        &first,
        look_up,
        &[
            (0, Some(5)),
            (1, Some(5)),
            (2, Some(5)),
            (100, None),
            (0, Some(5)),
        ],
    );
    let second = writer.publish(&[
        (DeleteStrict, 2, 5),
        (Add, 0, 9),
        (Add, 1, 5),
        (Add, 100, 5),
        (Add, 101, 5),
        (Add, 102, 5),
    ]);
    let then = start_reader(
        &second,
        look_up,
        &[
            (2, None),
            (0, Some(9)),
            (1, Some(5)),
            (100, Some(5)),
            (103, None),
        ],
    );
    let third = writer.publish(&[
        (DeleteStrict, 0, 5),
        (Add, 0, 10),
        (Add, 2, 7),
        (Add, 103, 5),
        (DeleteStrict, 100, 5),
    ]);
    let after = start_reader(
        &third,
        look_up,
        &[(0, Some(10)), (2, Some(7)), (100, None), (103, Some(5))],
    );
    for view in [&first, &third] {
        let table = view.table(TableId(0)).expect("the table has rules");
        assert!(table.compiled_sets.is_empty() && table.tuples.len() == 1);
    }
    join_all([before, then, after]);
}

/// Rules of a compiled set, some of which are removed.
///
/// Detected faults: `CompiledSet::remove` with the previous epoch, `CompiledSet::find` that tests
/// whether the rule is live now.
#[test]
fn epochs_are_unaffected_while_rules_of_compiled_set_die() {
    explore(ORDERS, || {
        let flow = |port| format!("priority={port},udp,tp_dst={port},actions=drop");
        let rules = rules(&[1, 2, 3].map(flow));
        let compiled = Arc::new(CompiledSet::of(rules.clone()).expect("the rules are few"));
        let start_reader = |epoch, visible: &'static [u16]| {
            let compiled = Arc::clone(&compiled);
            thread::spawn(move || {
                for port in [1, 2, 3, 1] {
                    let found = compiled.find(&key_of(port), epoch, |_| true);
                    let is_visible = visible.contains(&port);
                    assert_eq!(found.is_some(), is_visible, "port {port} in epoch {epoch}");
                }
            })
        };
        let before = start_reader(1, &[1, 2, 3]);
        assert!(compiled.remove(&rules[0], 2));
        let then = start_reader(2, &[1, 2]);
        assert!(compiled.remove(&rules[2], 3));
        join_all([before, then, start_reader(3, &[2])]);
    });
}
