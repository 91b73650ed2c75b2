//! The writer of tables and their readers, in many of the orders in which their steps may
//! come. Not in the order in which processors may see them: the model takes atomics for
//! sequentially consistent.
//!
//! What the writer does is done in a few publications; a reader is let loose on each view as
//! soon as it is there, and finds what was there then, while all that follows is written.
//! Each model names faults, in the code that it runs, that make it fail.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Instant;
use base::sync::{explore, thread};
use flow::{FlowModCommand, text};
use packet::build::Stack;
use pipeline::Limits;

use super::*;
use crate::base::Base;
use crate::places::Places;
use crate::testing::{rules, seen_of};
use crate::tuple::{TupleView, words_of};

/// Orders that each scheduler tries.
const ORDERS: usize = 2_000;

/// A rule for a port, of a priority, comes or goes.
type Step = (FlowModCommand, u16, u16);

use FlowModCommand::{Add, DeleteStrict};

/// The writer's end.
struct Writer {
    pipeline: Pipeline,
    classifier: Classifier,
}

impl Writer {
    /// With rules of these ports.
    fn new(ports: Range<u16>) -> (Self, View) {
        let mut writer = Self {
            pipeline: Pipeline::new(Limits::default(), 1),
            // The same table each time: a failing order can be played again.
            classifier: Classifier::with_seed(7),
        };
        let view = writer.publish(&ports.map(|port| (Add, port, 5)).collect::<Vec<_>>());
        (writer, view)
    }

    /// Carries out these changes and shows them.
    fn publish(&mut self, steps: &[Step]) -> View {
        for (command, port, priority) in steps {
            let mut flow = format!("priority={priority},udp,tp_dst={port}");
            if *command == Add {
                flow.push_str(",actions=drop");
            }
            let flow_mod = text::parse_flow(*command, &flow).expect("a flow");
            let changes = self.pipeline.flow_mod(&flow_mod, Instant::START);
            self.classifier
                .queue_changes(&changes.expect("a legal change"));
        }
        self.classifier.publish(&self.pipeline)
    }
}

/// A port, and the priority of the rule that its frames find.
type Wanted = (u16, Option<u16>);

/// How a reader looks for the rule of a frame, whose priority it answers.
type Look = fn(&View, &Lanes) -> Option<u16>;

/// By entries.
fn by_entries(view: &View, lanes: &Lanes) -> Option<u16> {
    let table = view.table(TableId(0)).expect("it has rules");
    view.look_up(table, lanes).map(|rule| rule.priority())
}

/// By the lines of entries, and by entries only where those do not tell.
fn by_lines(view: &View, lanes: &Lanes) -> Option<u16> {
    let table = view.table(TableId(0)).expect("it has rules");
    let tuple = &table.tuples[0];
    match *tuple.asked() {
        [a] => by_line(view, tuple, lanes, [a]),
        [a, b] => by_line(view, tuple, lanes, [a, b]),
        [a, b, c] => by_line(view, tuple, lanes, [a, b, c]),
        ref asked => panic!("{} words have no line here", asked.len()),
    }
}

/// How often a line has told what a frame finds.
static TOLD: AtomicUsize = AtomicUsize::new(0);

/// What [`by_lines`] does, as workers do it (`ahead::exact`), of one frame.
fn by_line<const N: usize>(
    view: &View,
    tuple: &TupleView,
    lanes: &Lanes,
    asked: [(u8, u64); N],
) -> Option<u16> {
    let each = std::array::from_fn(|_| lanes.clone());
    let lookups = tuple.begin_by_lines(view.hasher, &each, Places::of(0), asked);
    let (segment, hash) = lookups.steps[0];
    let line = lookups.lines[0];
    let told = line.filter(|line| segment.is_told(line, words_of(lanes, asked), view.epoch()));
    match told.and_then(|line| Some((line, line.counters()?))) {
        Some((line, counters)) => {
            let number = segment.likely(hash).expect("its entry is there");
            let rule = segment.rule(number).expect("and its rule");
            let by_entries = view.look_up_in(tuple, lanes).expect("entries tell it too");
            assert!(Arc::ptr_eq(by_entries, rule), "and the same");
            assert!(rule.counters.are(counters), "frames count by their rule");
            assert_eq!(rule.instructions.gist(), line.gist());
            TOLD.fetch_add(1, Ordering::Relaxed);
            Some(rule.priority())
        }
        None if lookups.missing.have(0) => None,
        None => {
            let found = view.look_up_in(tuple, lanes);
            found.map(|rule| rule.priority())
        }
    }
}

/// A reader that finds these by a view, in this order.
fn read(view: &View, look: Look, wanted: &'static [Wanted]) -> thread::JoinHandle<()> {
    let view = view.clone();
    thread::spawn(move || {
        for (port, priority) in wanted {
            let found = look(&view, &lanes_of(*port));
            let epoch = view.epoch();
            assert_eq!(found, *priority, "port {port} as epoch {epoch} has it");
        }
    })
}

/// The words of a frame to this port.
fn lanes_of(port: u16) -> Lanes {
    let stack = format!("eth / ipv4 / udp(dst={port})");
    seen_of(&stack.parse::<Stack>().expect("a stack").build()).0
}

fn end(readers: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for reader in readers {
        reader.join().expect("it found what it wanted");
    }
}

/// Rules of one shape, in segments: a rule comes before another that wants the same, or in
/// its place, one goes while others find it, and the segment fills up and another goes on with it.
///
/// Tried, and found: `Entry::is_seen` without `born`, `Segment::remove` with the age before,
/// `Segment::remove` that takes what is behind the entry off its list, `Classifier::publish`
/// that shows the epoch after the one that it has written.
#[test]
fn views_stand_while_segments_are_written() {
    explore(ORDERS, || write_segments(by_entries));
}

/// The same, read as most frames read it: a line ends where its rule goes or another that
/// wants the same comes, and says nothing from then on.
///
/// Tried, and found: `Segment::write` and `Segment::remove` that end no line, `Line::tells`
/// without `born`, `Line::end` an age late.
#[test]
fn lines_stand_while_segments_are_written() {
    explore(ORDERS, || write_segments(by_lines));
    assert!(TOLD.load(Ordering::Relaxed) > ORDERS, "lines tell");
}

/// Writes what readers must not see, while they look.
fn write_segments(look: Look) {
    let (mut writer, first) = Writer::new(0..62);
    let before = read(
        &first,
        look,
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
    let then = read(
        &second,
        look,
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
        (Add, 2, 7),
        (Add, 103, 5),
        (DeleteStrict, 100, 5),
    ]);
    let after = read(
        &third,
        look,
        &[(0, Some(9)), (2, Some(7)), (100, None), (103, Some(5))],
    );
    for view in [&first, &third] {
        let table = view.table(TableId(0)).expect("it has rules");
        assert!(table.bases.is_empty() && table.tuples.len() == 1);
    }
    end([before, then, after]);
}

/// Rules that were compiled together, of which some die.
///
/// Tried, and found: `Base::remove` with the epoch before, `Base::find` that asks who is alive
/// now.
#[test]
fn epochs_stand_while_rules_of_a_base_die() {
    explore(ORDERS, || {
        let flow = |port| format!("priority={port},udp,tp_dst={port},actions=drop");
        let rules = rules(&[1, 2, 3].map(flow));
        let base = Arc::new(Base::of(rules.clone()).expect("they fit"));
        let of_epoch = |epoch, there: &'static [u16]| {
            let base = Arc::clone(&base);
            thread::spawn(move || {
                for port in [1, 2, 3, 1] {
                    let found = base.find(&lanes_of(port), epoch, |_| true);
                    let is_there = there.contains(&port);
                    assert_eq!(found.is_some(), is_there, "port {port} in epoch {epoch}");
                }
            })
        };
        let before = of_epoch(1, &[1, 2, 3]);
        assert!(base.remove(&rules[0], 2));
        let then = of_epoch(2, &[1, 2]);
        assert!(base.remove(&rules[2], 3));
        end([before, then, of_epoch(3, &[2])]);
    });
}
