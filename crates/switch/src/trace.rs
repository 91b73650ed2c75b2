//! What would become of a frame, told and not done: no port sends and nothing is counted. What
//! would be learned is told to who asked. The story of the reference interpreter, in the manner of Open vSwitch's
//! `ofproto/trace`, through patch ports from bridge to bridge.
//!
//! It has a copy of all it asks, so it can be told beside a switch that runs.

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

/// Bridges that a frame is followed through: as deep as Open vSwitch goes.
const BRIDGES_MAX: usize = 64;

/// What the story says where an ordinary switch would forward; what it does is told instead.
const NORMAL_LINE: &str = "     >> normal forwarding\n";

/// A frame that is asked about.
pub struct Asked {
    /// The frame.
    pub frame: Frame,
    /// The port it comes in by.
    pub from: PortNo,
    /// What is to be done with it, if it is one of a controller's (a packet-out).
    pub actions: Option<Vec<Action>>,
    /// Whether what it teaches is to be learned.
    pub teaches: bool,
}

/// What a frame teaches.
pub enum Lesson {
    /// Its sender is behind a port.
    Station(FdbKey, PortNo),
    /// A rule.
    Rule(LearnRequest),
}

impl Asked {
    /// The frame, or one that `matching` accepts; both together if only the port is of the match.
    ///
    /// # Errors
    /// There is no such frame; the reason is for a person.
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
    /// The frame as a controller's.
    fn message(&self) -> PacketOut {
        PacketOut {
            buffer: None,
            registers: PipelineFields::new(self.from),
            actions: self.actions.clone().unwrap_or_default(),
            data: self.frame.bytes().to_vec(),
        }
    }
}

/// A bridge as it is at one moment.
pub struct Traced {
    /// Its name.
    pub name: String,
    /// Its tables.
    pub pipeline: Pipeline,
    /// What it has learned.
    pub stations: FdbView,
    /// Who is in which multicast group, if the bridge listens in.
    pub multicast: Option<MulticastView>,
    /// What its ports are to `NORMAL`.
    pub switching: Option<Arc<SwitchingView>>,
    /// Its mirrors.
    pub mirrors: Option<Arc<Mirrors>>,
    /// What its spanning tree is called, if it has one.
    pub tree: Option<&'static str>,
    /// Whether collectors are told of what rules sample.
    pub samples: bool,
    /// Ports that the tree keeps out.
    pub stp_filter: Option<Arc<StpFilter>>,
    /// Its ports: what the data path calls them, and their names.
    pub ports: BTreeMap<PortNo, (String, String)>,
}

/// All bridges at one moment.
pub struct Tracer {
    /// The bridges.
    pub bridges: BTreeMap<BridgeId, Traced>,
    /// What is behind ports within the process.
    pub virtual_links: VirtualLinks,
    /// When.
    pub now: Instant,
}

/// A frame on its way out.
struct Departure {
    port: PortNo,
    frame: Frame,
    /// How many bytes of it leave at most.
    snaplen: Option<u16>,
}

/// What comes of a frame, while it is told.
#[derive(Default)]
struct Told {
    text: String,
    /// What is done to it and where it goes, in the data path's words.
    done: Vec<String>,
    /// How the frame was left by what is in `done`.
    left_as: Option<(FlowKey, Vec<VlanTag>)>,
    /// For which queue it was left.
    queue: Priority,
    /// What was looked at in the bridge it came to first.
    megaflow: String,
    lessons: Vec<(BridgeId, Lesson)>,
    bridges: usize,
}

impl Tracer {
    /// Whether the actions of a frame of a controller's can be done.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, bridge: BridgeId, asked: &Asked) -> Result<(), String> {
        let Some(bridge) = self.bridges.get(&bridge) else {
            return Ok(());
        };
        let checked = bridge.pipeline.check_packet_out(&asked.message());
        checked.map_err(|refusal| format!("the actions cannot be done: {refusal:?}"))
    }

    /// Tells the way of a frame, and what bridges are to learn of it.
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
            // A spanning tree keeps it out: Open vSwitch has no words for that.
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

    /// Has the tables tell what becomes of a frame.
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

    /// Notes where copies go, and follows those that go to another bridge.
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

    /// Notes where a copy goes, or follows it into another bridge.
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
    /// Notes what must be done for the frame to be so.
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
            // As Open vSwitch's data path in userspace calls it: by the queue's number.
            let queue = self.queue.queue().map_or(0, |queue| queue.0);
            self.done.push(match queue {
                0 => "set(skb_priority(0))".to_owned(),
                queue => format!("set(skb_priority({queue:#x}))"),
            });
        }
    }
}

impl Traced {
    /// The story, with what `NORMAL` does in place of that it is done; and its last line apart,
    /// before which other bridges are told of.
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
            // It was not let in, and is told of all the same.
            let flow = last.trim_start_matches("\nFinal flow: ").trim_end();
            let title = format!("bridge(\"{}\")", self.name);
            let line = "-".repeat(title.len());
            text = format!("Flow: {flow}\n\n{title}\n{line}\n{text}");
            return (text, "\nFinal flow: unchanged\n".to_owned());
        }
        (text, last)
    }

    /// Who `NORMAL` learns of, if it meets the frame.
    fn news(&self, verdict: &Verdict, from: PortNo) -> Option<Lesson> {
        let mut normals = verdict.egress.iter();
        let normal = normals.find(|egress| egress.to == Destination::Normal)?;
        let bytes = verdict.frames.get(normal.frame)?.bytes();
        let link = Link::parse(bytes).ok()?;
        let address = self.knowledge().news((&link, bytes), from, None)?;
        Some(Lesson::Station(address, from))
    }
}
