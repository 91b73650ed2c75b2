//! `ofproto/trace`: the path of a frame through the tables, without side effects. No port sends, no
//! counter changes, and learned rules and addresses are returned to the caller. The text is that of
//! the reference interpreter, in the format of Open vSwitch, and follows patch ports from bridge to
//! bridge.
//!
//! A trace runs on snapshots, so it can run beside an active switch.

mod megaflow;
mod mirroring;
mod normal;
mod sampling;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo, Priority};
use flow::{Action, FlowKey, Match, PacketOut, PipelineFields};
use packet::wire::vlan::VlanTag;
use packet::{Frame, Link, Pool};
use pipeline::{Destination, InputFrame, Interpreter, LearnRequest, Pipeline, Verdict};

use crate::odp;
use dataplane::mirrors::{MirrorDirection, MirrorSet, Mirrors};
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use dataplane::stp_filter::{BlockedPort, StpFilter};
use dataplane::switching::SwitchingView;
use dataplane::virtual_links::{VirtualLink, VirtualLinks};
use dataplane::vlans::TagRewrite;
use l2::fdb::{FdbKey, FdbView};
use l2::multicast_snooping::MulticastView;
use megaflow::MegaflowTrace;

/// Buffers for the frame and its copies: one for every port of a large bridge.
const BUFFERS: usize = 1024;

/// The maximum number of bridges that a frame passes, as in Open vSwitch.
const BRIDGES_MAX: usize = 64;

/// The interpreter's line for `NORMAL`, which the details of `NORMAL` replace.
const NORMAL_LINE: &str = "     >> normal forwarding\n";

/// The frame to trace.
pub struct TraceRequest {
    /// The frame.
    pub frame: Frame,
    /// The ingress port.
    pub from: PortNo,
    /// The actions of a packet-out; none for a received frame.
    pub actions: Option<Vec<Action>>,
    /// True if the caller installs the learned rules and addresses.
    pub learns: bool,
}

/// A side effect of a frame on the bridge.
pub enum TraceSideEffect {
    /// An address learned on a port.
    Address(FdbKey, PortNo),
    /// A learned rule.
    Rule(LearnRequest),
}

impl TraceRequest {
    /// Returns `frame`, or a frame that `matching` accepts; with `frame`, only the port of the
    /// match counts.
    ///
    /// # Errors
    /// There is no such frame; the error is a message for a person.
    pub fn new(matching: &Match, frame: Option<Frame>) -> Result<Self, String> {
        let composed = flow::compose(matching);
        let (composed, registers) = composed.ok_or_else(|| {
            format!("cannot compose a frame that matches \"{matching}\": give its bytes")
        })?;
        let from = registers.in_port;
        if registers != PipelineFields::new(from) {
            return Err(
                "a received frame has no metadata, tunnel, mark or registers: omit them".to_owned(),
            );
        }
        Ok(Self {
            frame: frame.unwrap_or(composed),
            from,
            actions: None,
            learns: false,
        })
    }
}

impl TraceRequest {
    /// Returns the frame as a packet-out.
    fn message(&self) -> PacketOut {
        PacketOut {
            buffer: None,
            registers: PipelineFields::new(self.from),
            actions: self.actions.clone().unwrap_or_default(),
            data: self.frame.bytes().to_vec(),
        }
    }
}

/// A snapshot of a bridge.
pub struct TracedBridge {
    /// The name.
    pub name: String,
    /// The tables.
    pub pipeline: Pipeline,
    /// The forwarding database.
    pub fdb: FdbView,
    /// The members of multicast groups, if the bridge snoops.
    pub multicast: Option<MulticastView>,
    /// Settings of `NORMAL` for the ports.
    pub switching: Option<Arc<SwitchingView>>,
    /// The mirrors.
    pub mirrors: Option<Arc<Mirrors>>,
    /// The name of the spanning tree protocol, if it is enabled.
    pub tree: Option<&'static str>,
    /// True if `sample` actions have collectors.
    pub samples: bool,
    /// Ports that the spanning tree blocks.
    pub stp_filter: Option<Arc<StpFilter>>,
    /// The ports: their datapath numbers and their names.
    pub ports: BTreeMap<PortNo, (String, String)>,
}

/// A snapshot of all bridges.
pub struct Tracer {
    /// The bridges.
    pub bridges: BTreeMap<BridgeId, TracedBridge>,
    /// The peers of virtual ports.
    pub virtual_links: VirtualLinks,
    /// The time of the snapshot.
    pub now: Instant,
}

/// A frame on egress.
struct TraceEgress {
    port: PortNo,
    frame: Frame,
    /// The maximum number of bytes sent, if the frame is truncated.
    snaplen: Option<u16>,
}

/// The output of a trace under construction.
#[derive(Default)]
struct TraceOutput {
    text: String,
    /// The datapath actions.
    actions: Vec<String>,
    /// The headers of the frame after the actions in `done`.
    headers: Option<(FlowKey, Vec<VlanTag>)>,
    /// The egress queue after the actions in `done`.
    queue: Priority,
    /// The megaflow of the first bridge.
    megaflow: String,
    side_effects: Vec<(BridgeId, TraceSideEffect)>,
    bridges: usize,
}

impl Tracer {
    /// Checks the actions of a packet-out.
    ///
    /// # Errors
    /// The bridge refuses the actions.
    pub fn check(&self, bridge: BridgeId, request: &TraceRequest) -> Result<(), String> {
        let Some(bridge) = self.bridges.get(&bridge) else {
            return Ok(());
        };
        let checked = bridge.pipeline.check_packet_out(&request.message());
        checked.map_err(|refusal| format!("invalid actions: {refusal:?}"))
    }

    /// Traces a frame. Returns the text and the side effects for each bridge.
    pub fn trace(
        &self,
        bridge: BridgeId,
        request: TraceRequest,
    ) -> (String, Vec<(BridgeId, TraceSideEffect)>) {
        let mut output = TraceOutput::default();
        self.follow(bridge, request, &mut output);
        let done = match output.actions.is_empty() {
            true => "drop".to_owned(),
            false => output.actions.join(","),
        };
        let (trace_text, megaflow) = (output.text, output.megaflow);
        let text = format!("{trace_text}Megaflow: {megaflow}\nDatapath actions: {done}\n");
        (text, output.side_effects)
    }

    fn follow(&self, id: BridgeId, request: TraceRequest, output: &mut TraceOutput) {
        let Some(bridge) = self.bridges.get(&id) else {
            return;
        };
        output.bridges += 1;
        if output.bridges > BRIDGES_MAX {
            output.text += "     >> dropped: too many bridges\n";
            return;
        }
        let (from, learns) = (request.from, request.learns);
        let stp_filter = bridge
            .stp_filter
            .as_ref()
            .filter(|_| request.actions.is_none());
        let blocked = stp_filter.and_then(|stp_filter| stp_filter.of(from));
        let arrived = request.frame.clone();
        let mut verdict = Verdict::new();
        let mut recorder = MegaflowTrace::new(&bridge.name, bridge.tree);
        self.run(bridge, request, &mut recorder, &mut verdict);
        if output.bridges == 1 {
            output.megaflow = recorder.megaflow(&bridge.pipeline);
            output.headers = recorder
                .first()
                .cloned()
                .map(|key| (key, megaflow::tags_of(&arrived)));
        }
        if let Some(text) = bridge.mirror_output_text(recorder.text(), from) {
            output.text += &text;
            return;
        }
        if blocked == Some(BlockedPort::DropAll) {
            // The spanning tree blocks the port: Open vSwitch prints no reason.
            output.text += &mirroring::first_table(recorder.text());
            output.text += "\nFinal flow: unchanged\n";
            return;
        }
        let mut side_effects = Vec::new();
        if learns {
            side_effects.extend(verdict.learn_requests.drain(..).map(TraceSideEffect::Rule));
            side_effects.extend(bridge.address_to_learn(&verdict, from));
        }
        let (text, last) = bridge.with_normal(recorder.text(), &verdict, from, &side_effects);
        output.side_effects.extend(
            side_effects
                .into_iter()
                .map(|side_effect| (id, side_effect)),
        );
        output.text += &text;
        if blocked == Some(BlockedPort::LearnOnly) {
            output.text += &last;
            return;
        }
        let mut copied = MirrorSet::default();
        for copy in bridge.copies(&arrived, (from, (from, MirrorDirection::In)), &mut copied) {
            self.depart(id, copy, learns, output);
        }
        self.leave(id, &verdict, (from, learns, copied), output);
        output.text += &last;
    }

    /// Runs a frame through the interpreter.
    fn run(
        &self,
        bridge: &TracedBridge,
        request: TraceRequest,
        recorder: &mut MegaflowTrace,
        verdict: &mut Verdict,
    ) {
        let mut pool = Pool::new(BUFFERS);
        let mut interpreter = Interpreter::observer();
        let from = request.from;
        match &request.actions {
            None => {
                let arrival = InputFrame {
                    frame: request.frame,
                    in_port: from,
                    now: self.now,
                };
                interpreter.run(&bridge.pipeline, arrival, &mut pool, recorder, verdict);
            }
            Some(_) => {
                let (message, now) = (request.message(), self.now);
                interpreter.packet_out(
                    &bridge.pipeline,
                    &message,
                    now,
                    &mut pool,
                    recorder,
                    verdict,
                );
            }
        }
    }

    /// Adds the outputs of a verdict, and follows those to another bridge.
    fn leave(
        &self,
        id: BridgeId,
        verdict: &Verdict,
        (from, learns, mut copied): (PortNo, bool, MirrorSet),
        output: &mut TraceOutput,
    ) {
        let Some(bridge) = self.bridges.get(&id) else {
            return;
        };
        for egress in &verdict.egress {
            let Some(frame) = verdict.frames.get(egress.frame) else {
                continue;
            };
            let ports = match &egress.to {
                Destination::Port(port) => vec![(*port, TagRewrite::KEEP)],
                Destination::Normal => bridge.normal_exits(frame, from),
                Destination::Collectors(sample) => {
                    output.actions.extend(bridge.sampled(sample, from));
                    continue;
                }
                Destination::Controller(_) => {
                    output.actions.push("userspace(controller)".to_owned());
                    continue;
                }
            };
            for (port, retag) in ports {
                let mut frame = frame.clone();
                frame.priority = egress.priority;
                retag.change(&mut frame);
                let copies =
                    bridge.copies(&frame, (from, (port, MirrorDirection::Out)), &mut copied);
                let itself = TraceEgress {
                    port,
                    frame,
                    snaplen: None,
                };
                for leaving in std::iter::once(itself).chain(copies) {
                    self.depart(id, leaving, learns, output);
                }
            }
        }
    }

    /// Adds one output, or follows it into another bridge.
    fn depart(&self, id: BridgeId, leaving: TraceEgress, learns: bool, output: &mut TraceOutput) {
        let TraceEgress {
            port,
            frame,
            snaplen,
        } = leaving;
        let key = PortKey { bridge: id, port };
        if let Some(VirtualLink::Patch(peer)) = self.virtual_links.find(key) {
            let request = TraceRequest {
                frame,
                from: peer.port,
                actions: None,
                learns,
            };
            output.text += "\n";
            return self.follow(peer.bridge, request, output);
        }
        output.change_to(&frame);
        let called = self
            .bridges
            .get(&id)
            .and_then(|bridge| bridge.ports.get(&port));
        let called = called.map_or_else(|| port.to_string(), |(number, _)| number.clone());
        output
            .actions
            .extend(snaplen.map(|len| format!("trunc({len})")));
        output.actions.push(called);
    }
}

impl TraceOutput {
    /// Adds the actions that change the present headers to those of `frame`.
    fn change_to(&mut self, frame: &Frame) {
        let Some(after) = megaflow::key_of(frame, &PipelineFields::new(PortNo::ANY)) else {
            return;
        };
        let tags = megaflow::tags_of(frame);
        if let Some((before, tags_before)) = &self.headers {
            self.actions.extend(odp::tag_changes(tags_before, &tags));
            self.actions.extend(odp::changes(before, &after));
        }
        self.headers = Some((after, tags));
        if frame.priority != self.queue {
            self.queue = frame.priority;
            // The queue number, as in Open vSwitch's userspace datapath.
            let queue = self.queue.queue().map_or(0, |queue| queue.0);
            self.actions.push(match queue {
                0 => "set(skb_priority(0))".to_owned(),
                queue => format!("set(skb_priority({queue:#x}))"),
            });
        }
    }
}

impl TracedBridge {
    /// Inserts the details of `NORMAL` into the text. Returns the last line separately, because the
    /// text of other bridges precedes it.
    fn with_normal(
        &self,
        trace_text: &str,
        verdict: &Verdict,
        from: PortNo,
        side_effects: &[TraceSideEffect],
    ) -> (String, String) {
        let mut normals = verdict
            .egress
            .iter()
            .filter(|egress| egress.to == Destination::Normal);
        let mut text = String::new();
        let mut parts = trace_text.split(NORMAL_LINE);
        text += parts.next().unwrap_or_default();
        for part in parts {
            let frame = normals
                .next()
                .and_then(|egress| verdict.frames.get(egress.frame));
            text += &frame.map_or_else(String::new, |frame| {
                self.normal_lines(frame, from, side_effects)
            });
            text += part;
        }
        let end = text.rfind("\nFinal flow: ").unwrap_or(text.len());
        let last = text.split_off(end);
        if !text.starts_with("Flow: ") {
            // A frame that is dropped on arrival has a trace all the same.
            let flow = last.trim_start_matches("\nFinal flow: ").trim_end();
            let title = format!("bridge(\"{}\")", self.name);
            let line = "-".repeat(title.len());
            text = format!("Flow: {flow}\n\n{title}\n{line}\n{text}");
            return (text, "\nFinal flow: unchanged\n".to_owned());
        }
        (text, last)
    }

    /// Returns the address that `NORMAL` learns, if the frame reaches it.
    fn address_to_learn(&self, verdict: &Verdict, from: PortNo) -> Option<TraceSideEffect> {
        let mut normals = verdict.egress.iter();
        let normal = normals.find(|egress| egress.to == Destination::Normal)?;
        let bytes = verdict.frames.get(normal.frame)?.bytes();
        let link = Link::parse(bytes).ok()?;
        let address = self
            .normal_context()
            .address_to_learn((&link, bytes), from, None)?;
        Some(TraceSideEffect::Address(address, from))
    }
}
