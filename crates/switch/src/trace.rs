//! `ofproto/trace`: the path of a frame through the tables, without side effects. No port sends, no
//! counter changes, and learned rules and addresses are returned to the caller. The text is that of
//! the reference interpreter, in the format of Open vSwitch, and follows patch ports from bridge to
//! bridge.
//!
//! A trace runs on snapshots, so it can run beside an active switch.

mod looks;
mod mirroring;
mod normally;
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
use looks::Looks;

/// Buffers for the frame and its copies: one for every port of a large bridge.
const BUFFERS: usize = 1024;

/// The maximum number of bridges that a frame passes, as in Open vSwitch.
const BRIDGES_MAX: usize = 64;

/// The interpreter's line for `NORMAL`, which the details of `NORMAL` replace.
const NORMAL_LINE: &str = "     >> normal forwarding\n";

/// The frame to trace.
pub struct Asked {
    /// The frame.
    pub frame: Frame,
    /// The ingress port.
    pub from: PortNo,
    /// The actions of a packet-out; none for a received frame.
    pub actions: Option<Vec<Action>>,
    /// True if the caller installs the learned rules and addresses.
    pub teaches: bool,
}

/// A side effect of a frame on the bridge.
pub enum Lesson {
    /// An address learned on a port.
    Station(FdbKey, PortNo),
    /// A learned rule.
    Rule(LearnRequest),
}

impl Asked {
    /// Returns `frame`, or a frame that `matching` accepts; with `frame`, only the port of the
    /// match counts.
    ///
    /// # Errors
    /// There is no such frame; the error is a message for a person.
    pub fn new(matching: &Match, frame: Option<Frame>) -> Result<Self, String> {
        let composed = flow::compose(matching);
        let (composed, registers) = composed.ok_or_else(|| {
            format!("no frame can be put together that has all of \"{matching}\": give its bytes")
        })?;
        let from = registers.in_port;
        if registers != PipelineFields::new(from) {
            return Err(
                "a frame arrives without metadata, tunnel, mark and registers: leave them out"
                    .to_owned(),
            );
        }
        Ok(Self {
            frame: frame.unwrap_or(composed),
            from,
            actions: None,
            teaches: false,
        })
    }
}

impl Asked {
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
pub struct Traced {
    /// The name.
    pub name: String,
    /// The tables.
    pub pipeline: Pipeline,
    /// The forwarding database.
    pub stations: FdbView,
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
    pub bridges: BTreeMap<BridgeId, Traced>,
    /// The peers of virtual ports.
    pub virtual_links: VirtualLinks,
    /// The time of the snapshot.
    pub now: Instant,
}

/// A frame on egress.
struct Departure {
    port: PortNo,
    frame: Frame,
    /// The maximum number of bytes sent, if the frame is truncated.
    snaplen: Option<u16>,
}

/// The output of a trace under construction.
#[derive(Default)]
struct Told {
    text: String,
    /// The datapath actions.
    done: Vec<String>,
    /// The headers of the frame after the actions in `done`.
    left_as: Option<(FlowKey, Vec<VlanTag>)>,
    /// The egress queue after the actions in `done`.
    queue: Priority,
    /// The megaflow of the first bridge.
    megaflow: String,
    lessons: Vec<(BridgeId, Lesson)>,
    bridges: usize,
}

impl Tracer {
    /// Checks the actions of a packet-out.
    ///
    /// # Errors
    /// The bridge refuses the actions.
    pub fn check(&self, bridge: BridgeId, asked: &Asked) -> Result<(), String> {
        let Some(bridge) = self.bridges.get(&bridge) else {
            return Ok(());
        };
        let checked = bridge.pipeline.check_packet_out(&asked.message());
        checked.map_err(|refusal| format!("the actions cannot be done: {refusal:?}"))
    }

    /// Traces a frame. Returns the text and the side effects for each bridge.
    pub fn tell(&self, bridge: BridgeId, asked: Asked) -> (String, Vec<(BridgeId, Lesson)>) {
        let mut told = Told::default();
        self.follow(bridge, asked, &mut told);
        let done = match told.done.is_empty() {
            true => "drop".to_owned(),
            false => told.done.join(","),
        };
        let (story, megaflow) = (told.text, told.megaflow);
        let text = format!("{story}Megaflow: {megaflow}\nDatapath actions: {done}\n");
        (text, told.lessons)
    }

    fn follow(&self, id: BridgeId, asked: Asked, told: &mut Told) {
        let Some(bridge) = self.bridges.get(&id) else {
            return;
        };
        told.bridges += 1;
        if told.bridges > BRIDGES_MAX {
            told.text += "     >> dropped: the frame has been in too many bridges\n";
            return;
        }
        let (from, teaches) = (asked.from, asked.teaches);
        let stp_filter = bridge
            .stp_filter
            .as_ref()
            .filter(|_| asked.actions.is_none());
        let passage = stp_filter.and_then(|stp_filter| stp_filter.of(from));
        let came = asked.frame.clone();
        let mut verdict = Verdict::new();
        let mut looks = Looks::new(&bridge.name, bridge.tree);
        self.run(bridge, asked, &mut looks, &mut verdict);
        if told.bridges == 1 {
            told.megaflow = looks.megaflow(&bridge.pipeline);
            told.left_as = looks
                .first()
                .cloned()
                .map(|key| (key, looks::tags_of(&came)));
        }
        if let Some(text) = bridge.barred(looks.text(), from) {
            told.text += &text;
            return;
        }
        if passage == Some(BlockedPort::DropAll) {
            // The spanning tree blocks the port: Open vSwitch prints no reason.
            told.text += &mirroring::first_table(looks.text());
            told.text += "\nFinal flow: unchanged\n";
            return;
        }
        let mut lessons = Vec::new();
        if teaches {
            lessons.extend(verdict.learn_requests.drain(..).map(Lesson::Rule));
            lessons.extend(bridge.news(&verdict, from));
        }
        let (text, last) = bridge.with_normal(looks.text(), &verdict, from, &lessons);
        told.lessons
            .extend(lessons.into_iter().map(|lesson| (id, lesson)));
        told.text += &text;
        if passage == Some(BlockedPort::LearnOnly) {
            told.text += &last;
            return;
        }
        let mut had = MirrorSet::default();
        for copy in bridge.copies(&came, (from, (from, MirrorDirection::In)), &mut had) {
            self.depart(id, copy, teaches, told);
        }
        self.leave(id, &verdict, (from, teaches, had), told);
        told.text += &last;
    }

    /// Runs a frame through the interpreter.
    fn run(&self, bridge: &Traced, asked: Asked, looks: &mut Looks, verdict: &mut Verdict) {
        let mut pool = Pool::new(BUFFERS);
        let mut interpreter = Interpreter::observer();
        let from = asked.from;
        match &asked.actions {
            None => {
                let arrival = InputFrame {
                    frame: asked.frame,
                    in_port: from,
                    now: self.now,
                };
                interpreter.run(&bridge.pipeline, arrival, &mut pool, looks, verdict);
            }
            Some(_) => {
                let (message, now) = (asked.message(), self.now);
                interpreter.packet_out(&bridge.pipeline, &message, now, &mut pool, looks, verdict);
            }
        }
    }

    /// Adds the outputs of a verdict, and follows those to another bridge.
    fn leave(
        &self,
        id: BridgeId,
        verdict: &Verdict,
        (from, teaches, mut had): (PortNo, bool, MirrorSet),
        told: &mut Told,
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
                    told.done.extend(bridge.sampled(sample, from));
                    continue;
                }
                Destination::Controller(_) => {
                    told.done.push("userspace(controller)".to_owned());
                    continue;
                }
            };
            for (port, retag) in ports {
                let mut frame = frame.clone();
                frame.priority = egress.priority;
                retag.change(&mut frame);
                let copies = bridge.copies(&frame, (from, (port, MirrorDirection::Out)), &mut had);
                let itself = Departure {
                    port,
                    frame,
                    snaplen: None,
                };
                for leaving in std::iter::once(itself).chain(copies) {
                    self.depart(id, leaving, teaches, told);
                }
            }
        }
    }

    /// Adds one output, or follows it into another bridge.
    fn depart(&self, id: BridgeId, leaving: Departure, teaches: bool, told: &mut Told) {
        let Departure {
            port,
            frame,
            snaplen,
        } = leaving;
        let key = PortKey { bridge: id, port };
        if let Some(VirtualLink::Patch(peer)) = self.virtual_links.find(key) {
            let asked = Asked {
                frame,
                from: peer.port,
                actions: None,
                teaches,
            };
            told.text += "\n";
            return self.follow(peer.bridge, asked, told);
        }
        told.change_to(&frame);
        let called = self
            .bridges
            .get(&id)
            .and_then(|bridge| bridge.ports.get(&port));
        let called = called.map_or_else(|| port.to_string(), |(number, _)| number.clone());
        told.done.extend(snaplen.map(|len| format!("trunc({len})")));
        told.done.push(called);
    }
}

impl Told {
    /// Adds the actions that change the present headers to those of `frame`.
    fn change_to(&mut self, frame: &Frame) {
        let Some(after) = looks::key_of(frame, &PipelineFields::new(PortNo::ANY)) else {
            return;
        };
        let tags = looks::tags_of(frame);
        if let Some((before, tags_before)) = &self.left_as {
            self.done.extend(odp::tag_changes(tags_before, &tags));
            self.done.extend(odp::changes(before, &after));
        }
        self.left_as = Some((after, tags));
        if frame.priority != self.queue {
            self.queue = frame.priority;
            // The queue number, as in Open vSwitch's userspace datapath.
            let queue = self.queue.queue().map_or(0, |queue| queue.0);
            self.done.push(match queue {
                0 => "set(skb_priority(0))".to_owned(),
                queue => format!("set(skb_priority({queue:#x}))"),
            });
        }
    }
}

impl Traced {
    /// Inserts the details of `NORMAL` into the text. Returns the last line separately, because the
    /// text of other bridges precedes it.
    fn with_normal(
        &self,
        story: &str,
        verdict: &Verdict,
        from: PortNo,
        lessons: &[Lesson],
    ) -> (String, String) {
        let mut normals = verdict
            .egress
            .iter()
            .filter(|egress| egress.to == Destination::Normal);
        let mut text = String::new();
        let mut parts = story.split(NORMAL_LINE);
        text += parts.next().unwrap_or_default();
        for part in parts {
            let frame = normals
                .next()
                .and_then(|egress| verdict.frames.get(egress.frame));
            text +=
                &frame.map_or_else(String::new, |frame| self.normal_lines(frame, from, lessons));
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
    fn news(&self, verdict: &Verdict, from: PortNo) -> Option<Lesson> {
        let mut normals = verdict.egress.iter();
        let normal = normals.find(|egress| egress.to == Destination::Normal)?;
        let bytes = verdict.frames.get(normal.frame)?.bytes();
        let link = Link::parse(bytes).ok()?;
        let address = self.knowledge().news((&link, bytes), from, None)?;
        Some(Lesson::Station(address, from))
    }
}
