//! Scripts of frames: the same frames in the same order through all three trackers. The frames that
//! leave and the connections are compared after each step.

use testbed::Failure;

use crate::support::context::{TestContext, TestError, TestResult};
use crate::support::frames::{FrameCapture, encode_frames};
use crate::support::network::TestNetwork;
use packet::build::Stack;

use super::trackers::{ListedConnection, Tracker, TrackerKind, TrackerPolicy, is_same_state};

/// Frame that ends a step: a rule floods it, after the frame of the step.
const END_OF_STEP: &str = "eth(dst=02:00:00:00:02:ff,src=02:00:00:00:02:fe,type=0x88b6)/data(50)";

/// Frames between two stations that are no hosts, so that no protocol stack replies.
const STATIONS: [&str; 2] = ["02:00:00:00:01:01", "02:00:00:00:01:02"];

/// A frame of a script.
#[derive(Clone, Copy)]
pub(crate) struct ScriptStep {
    is_reply: bool,
    layers: &'static str,
    passes: bool,
    exception: Option<(TrackerKind, &'static str)>,
}

/// A frame from station 1 to station 2, which passes.
pub(crate) const fn out(layers: &'static str) -> ScriptStep {
    ScriptStep {
        is_reply: false,
        layers,
        passes: true,
        exception: None,
    }
}

/// A frame from station 2 to station 1, which passes.
pub(crate) const fn back(layers: &'static str) -> ScriptStep {
    let mut step = out(layers);
    step.is_reply = true;
    step
}

impl ScriptStep {
    /// The trackers drop the frame.
    pub(crate) const fn dropped(mut self) -> Self {
        self.passes = false;
        self
    }

    /// One tracker differs in the frame or in the connections, for a documented reason.
    pub(crate) const fn except(mut self, kind: TrackerKind, reason: &'static str) -> Self {
        self.exception = Some((kind, reason));
        self
    }
}

/// Frames of one or more connections.
#[derive(Clone, Copy)]
pub(crate) struct Script<'a> {
    /// IP header of each direction, for steps without one.
    pub(crate) headers: [&'static str; 2],
    pub(crate) steps: &'a [ScriptStep],
    /// A tracker whose list differs by design, with the reason; its frames are compared.
    pub(crate) unlisted: Option<(TrackerKind, &'static str)>,
}

/// Headers of IPv4 between the two stations.
pub(crate) const IPV4: [&str; 2] = [
    "ipv4(src=10.2.0.1,dst=10.2.0.2)",
    "ipv4(src=10.2.0.2,dst=10.2.0.1)",
];

/// Headers of IPv6 between the two stations.
pub(crate) const IPV6: [&str; 2] = [
    "ipv6(src=fd00::1,dst=fd00::2)",
    "ipv6(src=fd00::2,dst=fd00::1)",
];

/// Frames that leave after a step, and the connections then.
struct TrackedStep {
    frames: Vec<String>,
    connections: Vec<ListedConnection>,
}

/// Runs a script through all three trackers, and asserts equal frames and equal connections.
pub(crate) fn compare(
    context: &TestContext,
    policy: &TrackerPolicy,
    script: &Script<'_>,
) -> TestResult {
    let mut results = Vec::new();
    for kind in TrackerKind::ALL {
        let network = TestNetwork::new(context, 2)?;
        let tracker = Tracker::start(kind, &network, policy)?;
        results.push((kind, run(&tracker, script)?));
    }
    let differences = differences(script, &results);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(TestError::Fail(differences.join("\n"))),
    }
}

fn run(tracker: &Tracker<'_, '_>, script: &Script<'_>) -> Result<Vec<TrackedStep>, Failure> {
    let hosts = [tracker.network.host(1), tracker.network.host(2)];
    let mut captures = [hosts[0].capture_frames()?, hosts[1].capture_frames()?];
    // The rule of these frames must be known to the data path: it processes unknown flows first.
    for (from, to) in [(0, 1), (1, 0)] {
        hosts[from].send(&[END_OF_STEP])?;
        frames_of_step(&mut captures[to])?;
    }
    let mut results = Vec::new();
    for step in script.steps {
        let from = usize::from(step.is_reply);
        hosts[from].send_bytes(&encode_frames(&[&frame(script, step)]))?;
        hosts[from].send(&[END_OF_STEP])?;
        results.push(TrackedStep {
            frames: frames_of_step(&mut captures[1 - from])?,
            connections: tracker.connections()?,
        });
    }
    Ok(results)
}

/// Text of a step's frame.
fn frame(script: &Script<'_>, step: &ScriptStep) -> String {
    let from = usize::from(step.is_reply);
    let (src, dst) = (STATIONS[from], STATIONS[1 - from]);
    let header = match step.layers.starts_with("ip") {
        true => String::new(),
        false => format!("{} / ", script.headers[from]),
    };
    format!("eth(src={src},dst={dst}) / {header}{}", step.layers)
}

/// Returns the frames between the stations until the end of the step.
fn frames_of_step(capture: &mut FrameCapture<'_>) -> Result<Vec<String>, Failure> {
    let mut frames = Vec::new();
    loop {
        let frame = Stack::dissect(&capture.next_frame()?).to_string();
        if frame.contains("type=0x88b6") {
            return Ok(frames);
        }
        if frame.contains("02:00:00:00:01:0") {
            frames.push(frame);
        }
    }
}

/// Returns a line for each difference without a documented reason, and for each documented one that
/// is not there.
fn differences(script: &Script<'_>, results: &[(TrackerKind, Vec<TrackedStep>)]) -> Vec<String> {
    let (_, comporta) = &results[0];
    let mut lines = Vec::new();
    for (number, step) in script.steps.iter().enumerate() {
        let ours = &comporta[number];
        if ours.frames.is_empty() == step.passes {
            let (layers, frames) = (step.layers, &ours.frames);
            lines.push(format!(
                "step {number}, {layers}: Comporta sends {frames:?}"
            ));
        }
        for (kind, theirs) in &results[1..] {
            let theirs = &theirs[number];
            let is_listed = script.unlisted.is_none_or(|(exempt, _)| exempt != *kind);
            let is_same = ours.frames == theirs.frames
                && (!is_listed || are_same(*kind, &ours.connections, &theirs.connections));
            let reason = step.exception.filter(|(exempt, _)| exempt == kind);
            match (is_same, reason) {
                (true, None) | (false, Some(_)) => {}
                (true, Some((_, reason))) => lines.push(format!(
                    "step {number}, {kind:?}: no difference, but expected: {reason}"
                )),
                (false, None) => lines.push(format!(
                    "step {number}, {}:\n  Comporta  {}\n  {kind:?}  {}",
                    step.layers,
                    describe(ours),
                    describe(theirs)
                )),
            }
        }
    }
    lines
}

fn are_same(kind: TrackerKind, ours: &[ListedConnection], theirs: &[ListedConnection]) -> bool {
    let tuples = |one: &ListedConnection| {
        (
            one.protocol.clone(),
            one.original.clone(),
            one.reply.clone(),
        )
    };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(ours, theirs)| {
            let is_same = match kind {
                TrackerKind::Kernel => is_same_state(&theirs.state, &ours.state),
                _ => ours.state == theirs.state,
            };
            is_same && tuples(ours) == tuples(theirs)
        })
}

fn describe(result: &TrackedStep) -> String {
    let frames = result.frames.join("; ");
    let connections = result.connections.iter().map(ToString::to_string);
    let connections: Vec<_> = connections.collect();
    format!("sends [{frames}], lists [{}]", connections.join("; "))
}
