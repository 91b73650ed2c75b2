//! A view goes on showing what it showed, to those who run batches through it: whatever is
//! added, changed and taken out between batches, and in whichever order views are used, each
//! frame finds what a walk along the rules of that moment finds, and is counted there, once.

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

/// Frames of a batch, and values that rules ask for.
const VALUES: u32 = 80;

/// What rules of a table ask for: of one to four words, of more than are kept beside an entry,
/// and prefixes of several lengths.
#[derive(Clone, Copy, Debug)]
enum Asks {
    Station,
    Source,
    Service,
    Connection,
    Everything,
    Network,
}

impl Asks {
    const ALL: [Self; 6] = [
        Self::Station,
        Self::Source,
        Self::Service,
        Self::Connection,
        Self::Everything,
        Self::Network,
    ];

    fn matching(self, n: u32) -> String {
        match self {
            Self::Station => format!("dl_dst=02:00:00:00:00:{n:02x}"),
            Self::Source => format!("ip,nw_src=10.0.0.{n}"),
            Self::Service => format!("udp,tp_dst={n}"),
            Self::Connection => format!("udp,nw_src=10.0.0.{n},tp_dst={n}"),
            Self::Everything => format!(
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
struct Change {
    command: FlowModCommand,
    value: u32,
    priority: u16,
    port: u32,
}

fn change() -> impl Strategy<Value = Change> {
    let command = prop_oneof![
        6 => Just(FlowModCommand::Add),
        2 => Just(FlowModCommand::ModifyStrict),
        4 => Just(FlowModCommand::DeleteStrict),
    ];
    // More values than frames have: the tables grow, and are remade.
    let all = (command, 0..3 * VALUES, 1..3_u16, 2..6_u32);
    all.prop_map(|(command, value, priority, port)| Change {
        command,
        value: value.min(255),
        priority,
        port,
    })
}

/// The tables at a moment.
struct Moment {
    pipeline: Pipeline,
    view: View,
}

struct Bench {
    pipeline: Pipeline,
    classifier: Classifier,
    moments: Vec<Moment>,
    runner: Runner,
    pool: Pool,
    frames: Vec<Frame>,
    keys: Vec<FlowKey>,
    /// By where they are counted: how many frames have found rules. A rule that takes the place
    /// of another goes on counting where that one did.
    wanted: BTreeMap<usize, u64>,
    now: Instant,
}

impl Bench {
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
            wanted: BTreeMap::new(),
            now: Instant::START,
        }
    }

    fn change(&mut self, asks: Asks, change: &Change) {
        let Change {
            command,
            value,
            priority,
            port,
        } = change;
        let matching = asks.matching(*value);
        let line = match command {
            FlowModCommand::DeleteStrict => format!("priority={priority},{matching}"),
            _ => format!("priority={priority},{matching},actions=output:{port}"),
        };
        let flow_mod = parse_flow(*command, &line).expect(&line);
        let changes = self.pipeline.flow_mod(&flow_mod, self.now).expect(&line);
        self.classifier.queue_changes(&changes);
    }

    fn publish(&mut self, tidied: bool) {
        if tidied {
            self.classifier.request_compaction();
        }
        let view = self.classifier.publish(&self.pipeline);
        let pipeline = self.pipeline.clone();
        self.moments.push(Moment { pipeline, view });
    }

    /// Runs all frames by the tables of a moment.
    fn run(&mut self, moment: usize) {
        let Moment { pipeline, view } = &self.moments[moment];
        self.now = Instant::from_nanos(self.now.as_nanos() + 1000);
        let ground = BatchContext {
            pipeline,
            view,
            in_port: PortNo(1),
            now: self.now,
        };
        let mut left = Vec::new();
        let count = self.frames.len();
        let mut batch = self.runner.begin(ground, &mut self.frames);
        if let Some(port) = batch.forward_all() {
            left.resize(count, Some(port));
        }
        while let Some(fate) = batch.next(&mut self.pool) {
            match fate {
                FrameOutcome::Forward(frames, port) => {
                    left.extend(frames.iter().map(|_| Some(port)))
                }
                FrameOutcome::Verdict(verdict) => {
                    assert!(verdict.egress.is_empty(), "{verdict:?}");
                    left.push(None);
                }
            }
        }
        drop(batch);
        for (n, (key, left)) in self.keys.iter().zip(left).enumerate() {
            let mut rules = pipeline.rules(TableId::FIRST);
            let rule = rules.find(|rule| rule.matching().accepts(key));
            let port = rule.map(|rule| match &*rule.instructions.apply {
                [Action::Output { port, .. }] => *port,
                other => panic!("no rule does {other:?}"),
            });
            assert_eq!(left, port, "frame {n} at moment {moment}");
            let counted = rule.into_iter().map(|rule| cell(rule));
            counted.for_each(|cell| *self.wanted.entry(cell).or_default() += 1);
            // Those that found none were dropped, and their buffers with them.
            if left.is_none() {
                self.frames[n] = Frame::from_bytes(&frame(u32::try_from(n).expect("a few")));
            }
        }
    }

    /// Of whatever moment a rule is, it has counted each frame that found it once.
    fn check_counts(&self) {
        for moment in &self.moments {
            for rule in moment.pipeline.rules(TableId::FIRST) {
                let wanted = self.wanted.get(&cell(rule)).copied().unwrap_or_default();
                let counted = rule.counters.totals().packets;
                assert_eq!(counted, wanted, "{:?}", rule.matching());
            }
        }
    }
}

/// Where a rule's frames are counted. All rules there were stay, so no two have had the same.
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
    fn each_view_shows_to_batches_what_it_showed(
        asks in proptest::sample::select(&Asks::ALL[..]),
        steps in vec((vec(change(), 1..60), prop::bool::weighted(0.2)), 1..8),
        order in vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let mut bench = Bench::new();
        for (changes, tidied) in &steps {
            changes.iter().for_each(|change| bench.change(asks, change));
            bench.publish(*tidied);
            bench.run(bench.moments.len() - 1);
        }
        for moment in order {
            bench.run(moment.index(bench.moments.len()));
        }
        bench.check_counts();
    }
}

/// Ages have sixteen bits: beyond them nothing is seen too early, nor lost.
#[test]
fn rules_are_found_after_more_publications_than_ages_tell() {
    let mut bench = Bench::new();
    let add = |value, port| Change {
        command: FlowModCommand::Add,
        value,
        priority: 1,
        port,
    };
    bench.change(Asks::Station, &add(1, 2));
    bench.publish(false);
    for _ in 0..66_000 {
        bench.classifier.publish(&bench.pipeline);
    }
    bench.publish(false);
    bench.run(1);
    bench.change(Asks::Station, &add(2, 3));
    bench.change(
        Asks::Station,
        &Change {
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

/// Of frames that leave together as far as some have been looked at, and then do not, each is
/// told of once.
#[test]
fn frames_leave_together_as_far_as_they_do() {
    for apart in [0, 1, 31, 32, 33, 63, 64, 79, 80] {
        let mut bench = Bench::new();
        for value in 0..VALUES {
            let port = if value < apart { 2 } else { 3 + value % 2 };
            let change = Change {
                command: FlowModCommand::Add,
                value,
                priority: 1,
                port,
            };
            bench.change(Asks::Station, &change);
        }
        bench.publish(true);
        bench.run(0);
        bench.check_counts();
    }
}

/// What dies in tables that were compiled together is not found any more, but by those who
/// look at them as they were before.
#[test]
fn a_rule_that_is_deleted_is_found_in_older_views_only() {
    for (asks, count, form) in [
        (
            &[Asks::Network, Asks::Service, Asks::Station][..],
            12,
            "direct",
        ),
        (&[Asks::Network], 200, "prefix"),
        (&[Asks::Network, Asks::Service, Asks::Station], 66, "bits"),
        (&[Asks::Connection], 200, "exact"),
    ] {
        let mut bench = Bench::new();
        let change = |command, n: u32| {
            let asks = asks[n as usize % asks.len()];
            let (priority, port) = (u16::from(n.to_le_bytes()[0]), 2 + n % 4);
            let change = Change {
                command,
                value: n / 2,
                priority,
                port,
            };
            (asks, change)
        };
        for n in 0..count {
            let (asks, change) = change(FlowModCommand::Add, n);
            bench.change(asks, &change);
        }
        bench.publish(true);
        let described = bench.classifier.describe();
        assert_eq!(described[0].form, form);
        for n in (0..count).rev().take(7) {
            let (asks, change) = change(FlowModCommand::DeleteStrict, n);
            bench.change(asks, &change);
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
