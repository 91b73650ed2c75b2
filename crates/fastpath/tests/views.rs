//! Views under change: for any sequence of additions, modifications and removals between batches,
//! and any order in which views are used, each frame matches the rule that a scan of the rules of
//! that moment finds, and is counted by it once.

use std::collections::BTreeMap;

use base::{Instant, PortNo, TableId};
use fastpath::{BatchContext, Classifier, FrameOutcome, Runner, View};
use flow::text::parse_flow;
use flow::{Action, FlowKey, FlowModCommand, PipelineFields};
use packet::build::Stack;
use packet::{Depth, Frame, Headers, Pool};
use pipeline::{Limits, Pipeline, Rule};
use proptest::collection::vec;
use proptest::prelude::*;

/// Frames of a batch, and values that they have.
const VALUES: u32 = 80;

/// Fields that the rules of a table match: in one to four words, in more words than a hot entry
/// stores, and prefixes of several lengths.
#[derive(Clone, Copy, Debug)]
enum MatchKind {
    Station,
    Source,
    Service,
    Connection,
    AllFields,
    Network,
}

impl MatchKind {
    const ALL: [Self; 6] = [
        Self::Station,
        Self::Source,
        Self::Service,
        Self::Connection,
        Self::AllFields,
        Self::Network,
    ];

    fn matching(self, n: u32) -> String {
        match self {
            Self::Station => format!("dl_dst=02:00:00:00:00:{n:02x}"),
            Self::Source => format!("ip,nw_src=10.0.0.{n}"),
            Self::Service => format!("udp,tp_dst={n}"),
            Self::Connection => format!("udp,nw_src=10.0.0.{n},tp_dst={n}"),
            Self::AllFields => format!(
                "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:{n:02x},udp,nw_src=10.0.0.{n},tp_dst={n},nw_tos=0"
            ),
            Self::Network => {
                let bits = 20 + n % 13;
                let network = 0x0a00_0000 | n & u32::MAX << (32 - bits);
                format!(
                    "ip,nw_src={}/{bits}",
                    std::net::Ipv4Addr::from_bits(network)
                )
            }
        }
    }
}

fn frame(n: u32) -> Vec<u8> {
    let text = format!(
        "eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:{n:02x}) / ipv4(src=10.0.0.{n}) / udp(dst={n})"
    );
    text.parse::<Stack>()
        .expect("a stack")
        .build()
        .bytes()
        .to_vec()
}

#[derive(Clone, Debug)]
struct RuleEdit {
    command: FlowModCommand,
    value: u32,
    priority: u16,
    port: u32,
}

fn edit() -> impl Strategy<Value = RuleEdit> {
    let command = prop_oneof![
        6 => Just(FlowModCommand::Add),
        2 => Just(FlowModCommand::ModifyStrict),
        4 => Just(FlowModCommand::DeleteStrict),
    ];
    // More values than frames have, so that tables grow and segments are replaced.
    let all = (command, 0..3 * VALUES, 1..3_u16, 2..6_u32);
    all.prop_map(|(command, value, priority, port)| RuleEdit {
        command,
        value: value.min(255),
        priority,
        port,
    })
}

/// The tables at one moment.
struct TableMoment {
    pipeline: Pipeline,
    view: View,
}

struct ViewBench {
    pipeline: Pipeline,
    classifier: Classifier,
    moments: Vec<TableMoment>,
    runner: Runner,
    pool: Pool,
    frames: Vec<Frame>,
    keys: Vec<FlowKey>,
    /// Expected counts by counter cell. A rule that replaces another shares its counters.
    expected: BTreeMap<usize, u64>,
    now: Instant,
}

impl ViewBench {
    fn new() -> Self {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        for number in 1..6 {
            pipeline.set_port(&flow::PortDesc::new(PortNo(number)));
        }
        let frames: Vec<_> = (0..VALUES).map(|n| Frame::from_bytes(&frame(n))).collect();
        let registers = PipelineFields::new(PortNo(1));
        let key = |frame| {
            let mut key = FlowKey::new();
            let headers = Headers::parse(frame, Depth::Transport).expect("well formed");
            key.fill(&headers, &registers);
            key
        };
        Self {
            keys: frames.iter().map(key).collect(),
            frames,
            pipeline,
            classifier: Classifier::new(),
            moments: Vec::new(),
            runner: Runner::new(0),
            pool: Pool::new(4),
            expected: BTreeMap::new(),
            now: Instant::START,
        }
    }

    fn change(&mut self, kind: MatchKind, change: &RuleEdit) {
        let RuleEdit {
            command,
            value,
            priority,
            port,
        } = change;
        let matching = kind.matching(*value);
        let line = match command {
            FlowModCommand::DeleteStrict => format!("priority={priority},{matching}"),
            _ => format!("priority={priority},{matching},actions=output:{port}"),
        };
        let flow_mod = parse_flow(*command, &line).expect(&line);
        let changes = self.pipeline.flow_mod(&flow_mod, self.now).expect(&line);
        self.classifier.queue_changes(&changes);
    }

    fn publish(&mut self, compacts: bool) {
        if compacts {
            self.classifier.request_compaction();
        }
        let view = self.classifier.publish(&self.pipeline);
        let pipeline = self.pipeline.clone();
        self.moments.push(TableMoment { pipeline, view });
    }

    /// Runs all frames through the tables of a moment.
    fn run(&mut self, moment: usize) {
        let TableMoment { pipeline, view } = &self.moments[moment];
        self.now = Instant::from_nanos(self.now.as_nanos() + 1000);
        let context = BatchContext {
            pipeline,
            view,
            in_port: PortNo(1),
            now: self.now,
        };
        let mut outputs = Vec::new();
        let count = self.frames.len();
        let mut batch = self.runner.begin(context, &mut self.frames);
        if let Some(port) = batch.forward_all() {
            outputs.resize(count, Some(port));
        }
        while let Some(outcome) = batch.next(&mut self.pool) {
            match outcome {
                FrameOutcome::Forward(frames, port) => {
                    outputs.extend(frames.iter().map(|_| Some(port)))
                }
                FrameOutcome::Verdict(verdict) => {
                    assert!(verdict.egress.is_empty(), "{verdict:?}");
                    outputs.push(None);
                }
            }
        }
        drop(batch);
        for (n, (key, output)) in self.keys.iter().zip(outputs).enumerate() {
            let mut rules = pipeline.rules(TableId::FIRST);
            let rule = rules.find(|rule| rule.matching().accepts(key));
            let port = rule.map(|rule| match &*rule.instructions.apply {
                [Action::Output { port, .. }] => *port,
                other => panic!("rules have one output, not {other:?}"),
            });
            assert_eq!(output, port, "frame {n} at moment {moment}");
            let counted = rule.into_iter().map(|rule| cell(rule));
            counted.for_each(|cell| *self.expected.entry(cell).or_default() += 1);
            // A frame without a match was dropped with its buffer.
            if output.is_none() {
                self.frames[n] = Frame::from_bytes(&frame(u32::try_from(n).expect("a few")));
            }
        }
    }

    /// Asserts that the rules of all moments have counted each frame once.
    fn check_counts(&self) {
        for moment in &self.moments {
            for rule in moment.pipeline.rules(TableId::FIRST) {
                let expected = self.expected.get(&cell(rule)).copied().unwrap_or_default();
                let counted = rule.counters.totals().packets;
                assert_eq!(counted, expected, "{:?}", rule.matching());
            }
        }
    }
}

/// Address of a rule's counter cell. All rules stay in memory, so addresses are not reused.
fn cell(rule: &Rule) -> usize {
    let cell = rule
        .counters
        .prefetch_target(0)
        .expect("there is one writer");
    std::ptr::from_ref(cell).addr()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn views_show_same_rules_to_all_batches(
        kind in proptest::sample::select(&MatchKind::ALL[..]),
        steps in vec((vec(edit(), 1..60), prop::bool::weighted(0.2)), 1..8),
        order in vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let mut bench = ViewBench::new();
        for (changes, compacts) in &steps {
            changes.iter().for_each(|change| bench.change(kind, change));
            bench.publish(*compacts);
            bench.run(bench.moments.len() - 1);
        }
        for moment in order {
            bench.run(moment.index(bench.moments.len()));
        }
        bench.check_counts();
    }
}

/// Ages have sixteen bits: after more publications, rules are neither visible too early nor lost.
#[test]
fn rules_are_found_after_more_publications_than_ages_count() {
    let mut bench = ViewBench::new();
    let add = |value, port| RuleEdit {
        command: FlowModCommand::Add,
        value,
        priority: 1,
        port,
    };
    bench.change(MatchKind::Station, &add(1, 2));
    bench.publish(false);
    for _ in 0..66_000 {
        bench.classifier.publish(&bench.pipeline);
    }
    bench.publish(false);
    bench.run(1);
    bench.change(MatchKind::Station, &add(2, 3));
    bench.change(
        MatchKind::Station,
        &RuleEdit {
            command: FlowModCommand::DeleteStrict,
            ..add(1, 2)
        },
    );
    bench.publish(false);
    for moment in [2, 0, 1, 2] {
        bench.run(moment);
    }
    bench.check_counts();
}

/// If the first frames of a batch leave by the same port and later ones do not, the outcome of
/// each is returned once.
#[test]
fn frames_with_common_port_are_forwarded_together() {
    for common in [0, 1, 31, 32, 33, 63, 64, 79, 80] {
        let mut bench = ViewBench::new();
        for value in 0..VALUES {
            let port = if value < common { 2 } else { 3 + value % 2 };
            let change = RuleEdit {
                command: FlowModCommand::Add,
                value,
                priority: 1,
                port,
            };
            bench.change(MatchKind::Station, &change);
        }
        bench.publish(true);
        bench.run(0);
        bench.check_counts();
    }
}

/// A rule that dies in a compiled set is found in older views only.
#[test]
fn deleted_rule_is_found_in_older_views_only() {
    for (kinds, count, form) in [
        (
            &[MatchKind::Network, MatchKind::Service, MatchKind::Station][..],
            12,
            "direct",
        ),
        (&[MatchKind::Network], 200, "prefix"),
        (
            &[MatchKind::Network, MatchKind::Service, MatchKind::Station],
            66,
            "bits",
        ),
        (&[MatchKind::Connection], 200, "exact"),
    ] {
        let mut bench = ViewBench::new();
        let change = |command, n: u32| {
            let kind = kinds[n as usize % kinds.len()];
            let (priority, port) = (u16::from(n.to_le_bytes()[0]), 2 + n % 4);
            let change = RuleEdit {
                command,
                value: n / 2,
                priority,
                port,
            };
            (kind, change)
        };
        for n in 0..count {
            let (kind, change) = change(FlowModCommand::Add, n);
            bench.change(kind, &change);
        }
        bench.publish(true);
        let described = bench.classifier.describe();
        assert_eq!(described[0].form, form);
        for n in (0..count).rev().take(7) {
            let (kind, change) = change(FlowModCommand::DeleteStrict, n);
            bench.change(kind, &change);
            bench.publish(false);
        }
        let last = bench.moments.len() - 1;
        for moment in [last, 0, last / 2, last] {
            bench.run(moment);
        }
        assert_eq!(bench.classifier.describe()[0].form, form);
        bench.check_counts();
    }
}
