//! The interpreter as oracle: for any tables, any events between batches and any frames, the outcome
//! of the runner is that of the interpreter, and afterwards all counters are equal.
//!
//! Property tests of `fastpath` and a fuzz target drive it.

pub mod lists;
mod received_frame;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use base::{GroupId, Instant, MeterId, PortNo, TableId};
use conntrack::{Conntrack, HashSeed};
use fastpath::{BatchContext, Classifier, FrameOutcome, Runner};
use flow::text::{parse_flow, parse_group_line, parse_meter_line};
use flow::{FlowMod, FlowModCommand, FragmentHandling, PortConfig, PortDesc};
use packet::{Frame, Pool};
use pipeline::{
    Changes, Destination, Egress, InputFrame, Interpreter, LearnRequest, Limits, MissPolicy,
    Pipeline, Rule, TableMiss, Verdict,
};

use lists::{GROUPS, METERS};
pub use received_frame::ReceivedFrame;

/// Number of ports, numbered from 1.
pub const PORTS: u32 = 4;

/// Connections of a run: few, so that the table is full at times.
const CONNECTIONS_MAX: u32 = 50;

/// Buffers of runs that track connections: enough for all copies.
const BUFFERS_TRACKING: usize = 16_384;

/// Buffers: so few that some frames cannot be copied.
const BUFFERS: usize = 3;

/// An event between two batches.
#[derive(Clone, Debug)]
pub enum OracleEvent {
    /// A command with this line of `ovs-ofctl`.
    Flow(FlowModCommand, String),
    /// The configuration of a port.
    Port(u32, PortConfig),
    /// A port is blocked by the spanning tree, or not.
    StpBlocked(u32, bool),
    /// A port is protected, or not.
    Protected(u32, bool),
    /// The handling of fragments.
    Fragments(FragmentHandling),
    /// The treatment of packets without a rule.
    Miss(MissPolicy),
    /// The same in one table.
    TableMiss(u8, TableMiss),
    /// The bridge forwards as a standalone switch, or not.
    Standalone(bool),
}

/// Tables, and the engine that runs frames through them.
struct OracleSide<R> {
    pipeline: Pipeline,
    pool: Pool,
    engine: R,
    /// Removed rules.
    removed: Vec<Arc<Rule>>,
}

/// The interpreter and the runner with the same tables.
pub struct OracleBench {
    expected: OracleSide<Interpreter>,
    tested: OracleSide<Runner>,
    classifier: Classifier,
    now: Instant,
}

fn tables() -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    for number in 1..=PORTS {
        pipeline.set_port(&PortDesc::new(PortNo(number)));
    }
    for line in GROUPS {
        let command = parse_group_line(line).expect(line);
        pipeline.group_mod(&command, Instant::START).expect(line);
    }
    for line in METERS {
        let command = parse_meter_line(line).expect(line);
        pipeline.meter_mod(&command, Instant::START).expect(line);
    }
    pipeline
}

impl<R> OracleSide<R> {
    fn new(engine: R) -> Self {
        Self {
            pipeline: tables(),
            pool: Pool::new(BUFFERS),
            engine,
            removed: Vec::new(),
        }
    }

    /// Tracks connections. The interpreter copies a tracked packet, so that both sides get buffers
    /// for all copies.
    fn with_tracker(mut self) -> Self {
        let tracker = Conntrack::new(HashSeed([1, 2]), CONNECTIONS_MAX);
        self.pipeline.set_tracker(Arc::new(tracker));
        self.pipeline.set_fragment_store(Arc::default());
        self.pool = Pool::new(BUFFERS_TRACKING);
        self
    }

    /// Applies an event. A flow that is refused changes nothing.
    fn change(&mut self, event: &OracleEvent, flow: Option<&FlowMod>, now: Instant) -> Changes {
        match event {
            OracleEvent::Flow(..) => {
                let flow = flow.expect("the flow was parsed");
                let changes = self.pipeline.flow_mod(flow, now).unwrap_or_default();
                let removed = changes.removed.iter();
                self.removed
                    .extend(removed.map(|removal| Arc::clone(&removal.rule)));
                return changes;
            }
            OracleEvent::Port(port, config) => self.pipeline.set_port(&PortDesc {
                config: *config,
                ..PortDesc::new(PortNo(*port))
            }),
            OracleEvent::StpBlocked(port, on) => self.pipeline.set_stp_blocked(PortNo(*port), *on),
            OracleEvent::Protected(port, on) => self.pipeline.set_protected(PortNo(*port), *on),
            OracleEvent::Fragments(how) => self
                .pipeline
                .set_fragments(*how)
                .expect("fragment handling is supported"),
            OracleEvent::TableMiss(table, miss) => self
                .pipeline
                .set_table_miss(TableId(*table), *miss)
                .expect("the table exists"),
            OracleEvent::Miss(miss) => self.pipeline.set_miss_policy(*miss),
            OracleEvent::Standalone(on) => self.pipeline.set_standalone(*on),
        }
        Changes::default()
    }

    /// Asserts that all counters are equal, those of removed rules included.
    fn assert_same_counts<O>(&self, other: &OracleSide<O>, now: Instant) {
        let rules = self.pipeline.rules(TableId::ALL).chain(&self.removed);
        let others = other.pipeline.rules(TableId::ALL);
        let others = others.chain(&other.removed);
        let counted = |rule: &Arc<Rule>| rule.statistics(now);
        assert_eq!(
            rules.map(counted).collect::<Vec<_>>(),
            others.map(counted).collect::<Vec<_>>()
        );
        let (own, other) = (&self.pipeline, &other.pipeline);
        for (own, other) in own.table_stats().zip(other.table_stats()) {
            assert_eq!(own, other);
        }
        let groups = |of: &Pipeline| of.group_stats(GroupId::ALL, now).collect::<Vec<_>>();
        assert_eq!(groups(own), groups(other));
        let meters = |of: &Pipeline| of.meter_stats(MeterId::ALL, now);
        assert_eq!(meters(own), meters(other));
    }

    fn put_back(&mut self, verdict: &mut Verdict) {
        let frames = verdict.frames.drain(..);
        frames.for_each(|frame| self.pool.put(frame));
    }
}

impl OracleSide<Interpreter> {
    /// Runs the frame and compares the verdict. Returns the requests to learn of this side: they
    /// name rules of its pipeline.
    fn compare(
        &mut self,
        received: &ReceivedFrame,
        (from, now): (PortNo, Instant),
        actual: &Verdict,
    ) -> Vec<LearnRequest> {
        let mut expected = Verdict::new();
        let arrival = InputFrame {
            frame: received.frame(),
            in_port: from,
            now,
        };
        let (tables, pool) = (&self.pipeline, &mut self.pool);
        self.engine
            .run(tables, arrival, pool, &mut (), &mut expected);
        assert!(
            has_same_outputs(actual, &expected)
                && actual.drops == expected.drops
                && has_same_requests(&actual.learn_requests, &expected.learn_requests),
            "the runner returns {actual:?}, the interpreter {expected:?}, for '{}' as {received:?}",
            received.stack
        );
        COMPARED.set(COMPARED.get() + 1);
        self.put_back(&mut expected);
        expected.learn_requests
    }
}

/// True if the same frames leave by the same ports in the same order. An engine that knows that
/// nothing is done to a frame afterwards makes no copy of it, so the frames may have other numbers.
fn has_same_outputs(actual: &Verdict, expected: &Verdict) -> bool {
    let outputs = |of: &Verdict| -> Vec<_> {
        let output = |egress: &Egress| {
            let unnumbered = Egress {
                frame: 0,
                ..egress.clone()
            };
            (of.frames[egress.frame].clone(), unnumbered)
        };
        of.egress.iter().map(output).collect()
    };
    actual.frames == expected.frames && actual.egress == expected.egress
        || outputs(actual) == outputs(expected)
}

/// True if both have the same requests to learn; mostly there are none.
fn has_same_requests(actual: &[LearnRequest], expected: &[LearnRequest]) -> bool {
    let pairs = || actual.iter().zip(expected);
    actual.len() == expected.len() && pairs().all(|(one, other)| content(one) == content(other))
}

/// The content of a request, without the counters of its rule: an engine may count after the
/// actions of a rule, and its caller compares rules and counters.
fn content(request: &LearnRequest) -> String {
    match request {
        LearnRequest::Rule { .. } => format!("{request:?}"),
        LearnRequest::Timeouts {
            rule,
            idle_s,
            hard_s,
        } => format!(
            "{:?} {} '{}': {idle_s} {hard_s}",
            rule.table(),
            rule.priority(),
            rule.matching(),
        ),
    }
}

impl OracleBench {
    /// A bench without rules.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "tests name the kind of bench")]
    pub fn new() -> Self {
        Self {
            expected: OracleSide::new(Interpreter::new(0)),
            tested: OracleSide::new(Runner::new(0)),
            classifier: Classifier::new(),
            now: Instant::START,
        }
    }

    /// A bench whose runner uses its flow cache from the first batch on.
    #[must_use]
    pub fn with_flow_cache() -> Self {
        Self {
            tested: OracleSide::new(Runner::with_flow_cache(0)),
            ..Self::new()
        }
    }

    /// A bench whose runner uses its walk cache from the first batch on, and that tracks connections.
    #[must_use]
    pub fn with_walk_cache() -> Self {
        let bench = Self {
            tested: OracleSide::new(Runner::with_walk_cache(0)),
            ..Self::new()
        };
        Self {
            expected: bench.expected.with_tracker(),
            tested: bench.tested.with_tracker(),
            ..Self::new()
        }
    }

    /// A bench that tracks connections.
    #[must_use]
    pub fn with_tracker() -> Self {
        let bench = Self::new();
        Self {
            expected: bench.expected.with_tracker(),
            tested: bench.tested.with_tracker(),
            ..Self::new()
        }
    }

    /// Applies an event to both sides. A flow that is refused changes nothing.
    ///
    /// # Panics
    /// If the text of a flow is malformed.
    pub fn change(&mut self, event: &OracleEvent) {
        let flow = match event {
            OracleEvent::Flow(command, line) => Some(parse_flow(*command, line).expect(line)),
            _ => None,
        };
        self.expected.change(event, flow.as_ref(), self.now);
        let changes = self.tested.change(event, flow.as_ref(), self.now);
        self.classifier.queue_changes(&changes);
    }

    /// Returns the runner.
    pub fn runner_mut(&mut self) -> &mut Runner {
        &mut self.tested.engine
    }

    /// Requests that the compiled sets are compacted.
    pub fn request_compaction(&mut self) {
        self.classifier.request_compaction();
    }

    /// Lets both sides learn, each by its own requests.
    fn learn(&mut self, expected: &[LearnRequest], tested: &[LearnRequest]) {
        let now = self.now;
        for learned in expected {
            let _ = self.expected.pipeline.learn(learned, now);
        }
        for learned in tested {
            if let Ok(changes) = self.tested.pipeline.learn(learned, now) {
                self.classifier.queue_changes(&changes);
            }
        }
    }

    /// Runs the frames through both sides, and compares verdicts and counters.
    ///
    /// # Panics
    /// If they differ.
    pub fn run(&mut self, from: PortNo, frames: &[ReceivedFrame]) {
        self.run_after(Duration::from_millis(30), from, frames);
        self.flush_and_compare();
    }

    /// Flushes the statistics of the runner, and compares counters.
    ///
    /// # Panics
    /// If they differ.
    pub fn flush_and_compare(&mut self) {
        self.tested.engine.flush_stats();
        self.compare_counts();
    }

    /// Compares counters.
    ///
    /// # Panics
    /// If they differ.
    pub fn compare_counts(&self) {
        self.tested.assert_same_counts(&self.expected, self.now);
    }

    /// Runs the frames through both sides after a pause. Statistics may stay pending.
    ///
    /// # Panics
    /// If the verdicts differ, or a buffer is lost.
    pub fn run_after(&mut self, pause: Duration, from: PortNo, frames: &[ReceivedFrame]) {
        self.now += pause;
        let classifier = &mut self.classifier;
        let view = classifier.current();
        let view = view.unwrap_or_else(|| classifier.publish(&self.tested.pipeline));
        let OracleSide {
            pipeline,
            pool,
            engine,
            ..
        } = &mut self.tested;
        let context = BatchContext {
            pipeline,
            view: &view,
            in_port: from,
            now: self.now,
        };
        let (mut learned, mut expected) = (Vec::new(), Vec::new());
        let mut built: Vec<_> = frames.iter().map(ReceivedFrame::frame).collect();
        let mut batch = engine.begin(context, &mut built);
        // Every other batch uses `forward_all`.
        let tries_all = frames.len().is_multiple_of(2);
        let common_port = tries_all.then(|| batch.forward_all()).flatten();
        let mut waiting = frames.iter();
        let mut compare = |verdict: &Verdict| {
            let received = waiting.next().expect("each outcome has a frame");
            let requests = self.expected.compare(received, (from, self.now), verdict);
            expected.extend(requests);
        };
        while let Some(outcome) = batch.next(pool) {
            match outcome {
                FrameOutcome::Verdict(verdict) => {
                    compare(verdict);
                    verdict.frames.drain(..).for_each(|frame| pool.put(frame));
                    learned.append(&mut verdict.learn_requests);
                }
                FrameOutcome::Forward(frames, port) => {
                    for frame in frames {
                        let verdict = forwarded(std::mem::take(frame), port);
                        compare(&verdict);
                        verdict.frames.into_iter().for_each(|frame| pool.put(frame));
                    }
                }
            }
        }
        drop(batch);
        if let Some(port) = common_port {
            for frame in built {
                let verdict = forwarded(frame, port);
                compare(&verdict);
                verdict.frames.into_iter().for_each(|frame| pool.put(frame));
            }
        }
        assert!(waiting.next().is_none());
        self.learn(&expected, &learned);
        assert_eq!(
            (
                self.tested.pool.outstanding(),
                self.expected.pool.outstanding()
            ),
            (0, 0)
        );
    }
}

fn forwarded(frame: Frame, port: PortNo) -> Verdict {
    let to = Destination::Port(port);
    Verdict {
        frames: vec![frame],
        egress: vec![Egress::new(0, to)],
        ..Verdict::new()
    }
}

thread_local! {
    /// Number of frames that this thread has compared.
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of frames that this thread has compared.
#[must_use]
pub fn compared_frames() -> u64 {
    COMPARED.get()
}
