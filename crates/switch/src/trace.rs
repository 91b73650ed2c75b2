//! `ofproto/trace`: the path of a frame through the tables, without side effects. No port sends, no
//! counter changes, and learned rules and addresses are returned to the caller. The text is that of
//! the reference interpreter, in the format of Open vSwitch, and follows patch ports from bridge to
//! bridge.
//!
//! A trace runs on snapshots, so it can run beside an active switch.

mod actions;
mod compose;
mod conntrack;
mod megaflow;
mod mirroring;
mod normal;
mod output;
mod push;
mod recirculation;
mod request;
mod sampling;
mod slow_path;
mod translation;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use base::{Instant, MeterId, PortNo};
use flow::PipelineFields;
use packet::{Frame, Link, Pool};
use pipeline::{Destination, InputFrame, Interpreter, LearnRequest, Pipeline, Verdict};

use crate::megaflow::{MegaflowBuilder, TableClassifiers};
use crate::odp::OdpHeaders;
use actions::ActionRecorder;
use config::PacketTypeMode;
use dataplane::mirrors::{MirrorDirection, MirrorSet, Mirrors};
use dataplane::policer::Policer;
use dataplane::program::BridgeId;
use dataplane::punt::PuntTable;
use dataplane::slots::PortKey;
use dataplane::stp_filter::{BlockedPort, StpFilter};
use dataplane::switching::SwitchingView;
use dataplane::underlay::Underlay;
use dataplane::virtual_links::{VirtualLink, VirtualLinks};
use l2::fdb::{FdbKey, FdbView};
use l2::multicast_snooping::MulticastView;
use output::{TraceOutput, without_flow};

pub use recirculation::FrozenPacket;
pub use request::{ArrivalTunnel, TraceRequest};
pub use slow_path::SlowFlowReason;
pub use translation::TraceTranslation;

/// Buffers for the frame and its copies: one for every port of a large bridge.
const BUFFERS: usize = 1024;

/// The maximum number of recirculations of a trace.
const RECIRCULATIONS_MAX: usize = 64;

/// The maximum number of bridges that a frame passes, as in Open vSwitch.
const BRIDGES_MAX: usize = 64;

/// The interpreter's line for `NORMAL`, which the details of `NORMAL` replace.
const NORMAL_LINE: &str = "     >> normal forwarding\n";

/// A side effect of a frame on the bridge.
pub enum TraceSideEffect {
    /// An address learned on a port.
    Address(FdbKey, PortNo),
    /// A static address from another port, which is counted.
    StaticMove,
    /// A learned rule.
    Rule(LearnRequest),
    /// A packet that was recirculated.
    Frozen(Arc<FrozenPacket>),
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
    /// The DSCP marks of ports.
    pub policers: BTreeMap<PortNo, Arc<Policer>>,
    /// The numbers of meters in the datapath.
    pub meters: BTreeMap<MeterId, u32>,
    /// The ids of bonds whose outputs are printed as `lb_output`, by member.
    pub lb_outputs: BTreeMap<PortNo, u32>,
    /// Ports that the spanning tree blocks.
    pub stp_filter: Option<Arc<StpFilter>>,
    /// Control protocols that ports punt.
    pub punts: Option<Arc<PuntTable>>,
    /// The ports: their datapath numbers and their names.
    pub ports: BTreeMap<PortNo, (String, String)>,
    /// The names of ports in the datapath. Tunnels of one protocol share one.
    pub datapath_names: BTreeMap<PortNo, String>,
    /// The classifiers of the tables.
    pub classifiers: TableClassifiers,
}

/// A snapshot of all bridges.
pub struct Tracer {
    /// The bridges.
    pub bridges: BTreeMap<BridgeId, TracedBridge>,
    /// The peers of virtual ports.
    pub virtual_links: VirtualLinks,
    /// The underlay of tunnels.
    pub underlay: Underlay,
    /// Bridges whose datapath adds no tunnel headers: their tunnels have `set(tunnel(...))`.
    pub without_push: BTreeSet<BridgeId>,
    /// The id of the next recirculation.
    pub next_recirculation: u32,
    /// The time of the snapshot.
    pub now: Instant,
}

/// A frame on egress.
struct TraceEgress {
    port: PortNo,
    frame: Frame,
    /// The pipeline fields of the frame.
    registers: Option<Box<PipelineFields>>,
    /// The length to which the action truncates.
    truncated: Option<u32>,
    /// The maximum number of bytes sent, if a mirror truncates the frame.
    snaplen: Option<u16>,
    /// The id of the bond that selected the port, if its outputs are printed as `lb_output`.
    bond: Option<u32>,
}

/// The state of a frame in a bridge.
struct TraceVisit {
    bridge: BridgeId,
    from: PortNo,
    learns: bool,
    copied: MirrorSet,
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
        let checked = bridge.pipeline.check_packet_out(&request.message(bridge));
        checked.map_err(|refusal| format!("invalid actions: {refusal:?}"))
    }

    /// Traces a frame. Returns the text and the side effects for each bridge.
    pub fn trace(
        &self,
        bridge: BridgeId,
        request: TraceRequest,
    ) -> (String, Vec<(BridgeId, TraceSideEffect)>) {
        let (names, learns) = (request.names, request.learns);
        let mut states = request.connection_states.clone();
        let mut waiting = VecDeque::from([(bridge, request)]);
        let (mut text, mut side_effects) = (String::new(), Vec::new());
        let (mut packets, mut recirculations) = (0, 0);
        while let Some((bridge, mut request)) = waiting.pop_front() {
            packets += 1;
            if packets > RECIRCULATIONS_MAX {
                text += "\nToo many recirculations\n";
                break;
            }
            text += &request
                .frozen
                .as_ref()
                .map_or_else(String::new, |frozen| frozen.heading());
            request.recirculations = recirculations;
            request.connection_states = states;
            let translation = self.translate(bridge, request);
            text += &translation.report();
            states = translation.connection_states;
            for (bridge, effect) in translation.side_effects {
                recirculations += u32::from(matches!(effect, TraceSideEffect::Frozen(_)));
                if let TraceSideEffect::Frozen(frozen) = &effect
                    && let Some(frame) = frozen.tracked_frame()
                {
                    let mut next =
                        TraceRequest::received(frame.clone(), frozen.ingress().1, learns);
                    (next.names, next.recirculates) = (names, true);
                    next.frozen = Some(Arc::clone(frozen));
                    waiting.push_back((bridge, next));
                }
                side_effects.push((bridge, effect));
            }
        }
        (text, side_effects)
    }

    /// Traces a frame. Returns the text, the megaflow and the datapath actions.
    pub fn translate(&self, bridge: BridgeId, mut request: TraceRequest) -> TraceTranslation {
        let mut output = TraceOutput {
            names: request.names,
            recirculates: request.recirculates,
            recirculations: request.recirculations,
            connection_states: std::mem::take(&mut request.connection_states),
            ..TraceOutput::default()
        };
        let recirculation = request.frozen.as_ref().map_or(0, |frozen| frozen.id());
        let tunnel = request.tunnel().cloned();
        self.follow(bridge, request, &mut output);
        let mut megaflow = output.megaflow.as_ref().map(MegaflowBuilder::megaflow);
        if let (Some(tunnel), Some(bridge)) = (&tunnel, self.bridges.get(&bridge)) {
            megaflow = megaflow.map(|megaflow| bridge.with_tunnel(megaflow, tunnel));
        }
        let remark = match output.error {
            Some(error) => format!("Translation failed ({error}), packet is dropped.\n"),
            None => output
                .slow_path
                .map_or_else(String::new, SlowFlowReason::remark),
        };
        TraceTranslation {
            text: output.text,
            megaflow,
            actions: actions::text_of(&output.actions),
            remark,
            recirculation,
            error: output.error,
            logged_errors: output.logged_errors,
            slow_path: output.slow_path,
            side_effects: output.side_effects,
            connection_states: output.connection_states,
        }
    }

    /// Records the headers of a frame in the datapath. A packet of a layer 3 tunnel has no Ethernet
    /// header there, and gets one in the bridge.
    fn arrive(
        &self,
        (id, bridge): (BridgeId, &TracedBridge),
        request: &mut TraceRequest,
        output: &mut TraceOutput,
    ) {
        let registers = request.registers(bridge);
        output.headers = OdpHeaders::read(&request.frame, &registers);
        output.megaflow = request.examined(&registers);
        let key = PortKey {
            bridge: id,
            port: request.from,
        };
        if let Some(VirtualLink::Tunnel(tunnel)) = self.virtual_links.find(key)
            && tunnel.packet_type == PacketTypeMode::LegacyL3
        {
            request.enter_as_frame();
        }
    }

    fn follow(&self, id: BridgeId, mut request: TraceRequest, output: &mut TraceOutput) {
        let Some(bridge) = self.bridges.get(&id) else {
            return;
        };
        output.bridges += 1;
        if output.bridges > BRIDGES_MAX {
            output.text += "     >> dropped: too many bridges\n";
            return;
        }
        let (from, learns) = (request.from, request.learns);
        if output.bridges == 1 {
            self.arrive((id, bridge), &mut request, output);
        }
        let (blocked, punted) = (bridge.blocked(&request), bridge.punt_reason(&request));
        let passes = request.copy_congestion_mark();
        let arrived = request.frame.clone();
        let (mut verdict, priority) = (Verdict::new(), request.skb_priority);
        let (frozen, registers) = (request.frozen.clone(), request.registers(bridge));
        let mut recorder = output.recorder(bridge);
        let registers = FrozenPacket::registers_of(frozen.as_deref(), registers, &mut recorder);
        self.run(bridge, request, &mut recorder, &mut verdict);
        output.megaflow = bridge.examine(&arrived, &verdict, &registers, recorder.examined());
        if output.bridges == 1 {
            output.error = actions::error_of(&verdict);
        }
        output.merge(&mut recorder, bridge);
        let trace_text = FrozenPacket::text_of(frozen.as_deref(), recorder.text());
        let trace_text = TraceRequest::with_priority(priority, &trace_text);
        let trace_text = bridge.with_names(&trace_text, output);
        output.slow_path = output.slow_path.or(punted);
        let reserved = bridge.mirror_output_text(&trace_text, from);
        if let Some(text) = reserved.filter(|_| punted.is_none()) {
            output.text += &text;
            return;
        }
        if punted.is_some() || blocked == Some(BlockedPort::DropAll) || !passes {
            return output.add_drop(&trace_text);
        }
        let side_effects = bridge.side_effects(&mut verdict, from, learns);
        let (text, last) = bridge.with_normal(&trace_text, &verdict, from, &side_effects);
        output.add_side_effects(id, side_effects);
        // The flow is printed once, in the first bridge.
        let (text, last) = match output.bridges {
            1 => (text, last),
            _ => (without_flow(&text).to_owned(), String::new()),
        };
        output.text += &text;
        if blocked == Some(BlockedPort::LearnOnly) {
            output.text += &last;
            return;
        }
        let mut visit = TraceVisit {
            bridge: id,
            from,
            learns,
            copied: frozen.map(|frozen| frozen.copied()).unwrap_or_default(),
        };
        self.mirror_arrival(bridge, &arrived, &mut visit, output);
        self.compose(bridge, (recorder.events(), &verdict), &mut visit, output);
        output.text += &last;
    }

    /// Adds the copies of a frame for mirrors of its ingress port.
    fn mirror_arrival(
        &self,
        bridge: &TracedBridge,
        arrived: &Frame,
        visit: &mut TraceVisit,
        output: &mut TraceOutput,
    ) {
        let from = visit.from;
        // A flow without a port of the bridge enters by none that a mirror could select.
        if bridge.ports.contains_key(&from) {
            let arrival = (from, (from, MirrorDirection::In));
            for copy in bridge.copies(arrived, arrival, &mut visit.copied) {
                self.depart(visit, copy, output);
            }
        }
    }

    /// Runs a frame through the interpreter.
    fn run(
        &self,
        bridge: &TracedBridge,
        request: TraceRequest,
        recorder: &mut ActionRecorder<'_>,
        verdict: &mut Verdict,
    ) {
        let mut pool = Pool::new(BUFFERS);
        let mut interpreter = Interpreter::observer();
        let (tables, now) = (&bridge.pipeline, self.now);
        if request.actions.is_some() {
            let message = request.message(bridge);
            interpreter.packet_out(tables, &message, now, &mut pool, recorder, verdict);
            return;
        }
        let registers = request.registers(bridge);
        if let Some(frozen) = &request.frozen {
            let packet = frozen.packet(&request.frame, now);
            return interpreter.resume_paused(tables, packet, &mut pool, recorder, verdict);
        }
        let arrival = InputFrame {
            frame: request.frame,
            in_port: request.from,
            now,
        };
        interpreter.run_with_registers(
            tables.into(),
            arrival,
            registers,
            &mut pool,
            recorder,
            verdict,
        );
    }
}

impl TracedBridge {
    /// Returns the block of the ingress port by the spanning tree; packet-outs pass.
    fn blocked(&self, request: &TraceRequest) -> Option<BlockedPort> {
        let stp_filter = self.stp_filter.as_ref();
        let stp_filter = stp_filter.filter(|_| request.actions.is_none());
        stp_filter.and_then(|stp_filter| stp_filter.of(request.from))
    }

    /// Returns the learned rules, and the address that `NORMAL` learns, if the trace learns.
    fn side_effects(
        &self,
        verdict: &mut Verdict,
        from: PortNo,
        learns: bool,
    ) -> Vec<TraceSideEffect> {
        if !learns {
            return Vec::new();
        }
        let rules = verdict.learn_requests.drain(..);
        let mut side_effects: Vec<_> = rules.map(TraceSideEffect::Rule).collect();
        let address = self.address_to_learn(verdict, from);
        side_effects.extend(address.filter(|_| from != PortNo::ANY));
        side_effects
    }

    /// Returns the number or the name of a port in the datapath.
    fn datapath_port(&self, port: PortNo, named: bool) -> String {
        match self.ports.get(&port) {
            Some((_, name)) if named => self.datapath_names.get(&port).unwrap_or(name).clone(),
            Some((number, _)) => number.clone(),
            None => port.to_string(),
        }
    }

    /// Returns the number of a meter in the datapath.
    fn meter_number(&self, meter: MeterId) -> u32 {
        self.meters.get(&meter).copied().unwrap_or(meter.0)
    }

    /// Returns the text with names of ports instead of numbers, if names are wanted.
    fn with_names(&self, text: &str, output: &TraceOutput) -> String {
        if !output.names {
            return text.to_owned();
        }
        let mut named = String::new();
        for line in text.split_inclusive('\n') {
            let Some((head, tail)) = line.split_once("in_port=") else {
                named += line;
                continue;
            };
            let end = tail.find([',', '\n', ' ']).unwrap_or(tail.len());
            let number = tail[..end].parse().ok().map(PortNo);
            let name = number.and_then(|number| self.ports.get(&number));
            named += head;
            named += "in_port=";
            named += name.map_or(&tail[..end], |(_, name)| name);
            named += &tail[end..];
        }
        named
    }

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
        if self
            .normal_context()
            .is_static_elsewhere((&link, bytes), from)
        {
            return Some(TraceSideEffect::StaticMove);
        }
        let address = self
            .normal_context()
            .address_to_learn((&link, bytes), from, None)?;
        Some(TraceSideEffect::Address(address, from))
    }
}
