//! What would become of a frame: `ofproto/trace` of ovs-vswitchd(8). The bridge is named, with a
//! flow as ovs-ofctl(8) writes it; or the flow is one of the data path, whose port says the bridge.
//!
//! Nothing is sent or counted. As with Open vSwitch, what a frame would teach is learned if it is
//! given, or is to be made (`-generate`): who only describes a flow changes nothing.

use std::cell::Cell;

use flow::text::NameMap;
use flow::{FlowStatsRequest, Match};
use packet::Frame;

use super::Answer::Later;
use super::{Command, MANY, Told, dpctl};
use crate::control::Control;
use crate::inbox::Input;
use dataplane::program::BridgeId;
use switch::odp;
use switch::trace::{TraceRequest, TraceSideEffect, TracedBridge, Tracer};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "ofproto/trace", usage: "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]", least: 1, most: MANY, answer: Later(trace) },
    Command { name: "ofproto/trace-packet-out", usage: "[-consistent] {[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet] actions", least: 2, most: MANY, answer: Later(trace_packet_out) },
];

/// Bytes of an Ethernet header: what is shorter is no frame.
const HEADER_LEN: usize = 14;

/// Which frame is asked about, and where.
struct Question {
    bridge: BridgeId,
    matching: Match,
    frame: Option<Frame>,
}

fn trace(control: &mut Control, arguments: &[String]) -> Result<Told, String> {
    let (bridge, asked) = ask(control, arguments)?;
    Ok(answer(control, bridge, asked))
}

fn ask(control: &mut Control, arguments: &[String]) -> Result<(BridgeId, TraceRequest), String> {
    let words = plain(arguments)?;
    let question = read(control, &words)?;
    let learns = words.len() < arguments.len() || question.frame.is_some();
    let mut asked = TraceRequest::new(&question.matching, question.frame)?;
    asked.learns = learns;
    Ok((question.bridge, asked))
}

/// Tells it on another thread, and has bridges learn what they are to.
fn answer(control: &mut Control, bridge: BridgeId, asked: TraceRequest) -> Told {
    let tracer = tracer(control);
    let inbox = control.tools.inbox.clone();
    Box::new(move || {
        let (text, lessons) = tracer.trace(bridge, asked);
        for (bridge, lesson) in lessons {
            inbox.send(Input::Learned(bridge, lesson));
        }
        text
    })
}

impl Control {
    /// Has a bridge learn it.
    pub(in crate::control) fn handle_lesson(&mut self, bridge: BridgeId, lesson: &TraceSideEffect) {
        let now = self.now();
        let Some(site) = self.sites.get_mut(&bridge) else {
            return;
        };
        match lesson {
            TraceSideEffect::Address(address, port) => {
                site.bridge.handle_address(*address, *port, now)
            }
            TraceSideEffect::Rule(learned) => site.bridge.handle_learned(learned, now),
        }
    }
}

fn trace_packet_out(control: &mut Control, arguments: &[String]) -> Result<Told, String> {
    let (actions, arguments) = arguments.split_last().ok_or("Missing actions")?;
    let actions = flow::text::parse_actions(actions);
    let actions = actions.map_err(|error| format!("Failed to parse actions: {error}"))?;
    let (bridge, mut asked) = ask(control, arguments)?;
    asked.actions = Some(actions);
    tracer(control).check(bridge, &asked)?;
    Ok(answer(control, bridge, asked))
}

/// The arguments without options. A frame is made in any case where none is given, and actions are
/// checked in any case.
fn plain(arguments: &[String]) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    for word in arguments {
        match word.as_str() {
            "-generate" | "--generate" | "-consistent" | "--consistent" => {}
            "--ct-next" | "-ct-next" | "--ct" => {
                return Err(format!("{word}: connection tracking is not supported"));
            }
            "--l7" | "--l7-len" => return Err(format!("{word}: give the frame's bytes")),
            option if option.starts_with("--") => {
                return Err(format!("{option}: unknown option"));
            }
            word => words.push(word),
        }
    }
    Ok(words)
}

fn read(control: &mut Control, words: &[&str]) -> Result<Question, String> {
    let (words, frame) = match words {
        [_, _, .., packet] if is_hex(packet) => {
            let (_, rest) = words.split_last().ok_or("Missing flow")?;
            (rest, Some(frame(packet)?))
        }
        [_, _, _] => return Err("Trailing garbage in packet data".to_owned()),
        _ => (words, None),
    };
    let (bridge, matching) = match words {
        [flow] if !is_of_datapath(flow) => {
            return Err(format!(
                "syntax error at {flow} (or the bridge name was omitted)"
            ));
        }
        [flow] => of_datapath(control, flow)?,
        [path, flow] if is_of_datapath(flow) => {
            if !dpctl::is_there(control, path) {
                return Err("Cannot find the datapath".to_owned());
            }
            of_datapath(control, flow)?
        }
        [bridge, flow] => of_bridge(control, bridge, flow)?,
        _ => return Err("give a bridge and a flow, and perhaps a packet".to_owned()),
    };
    Ok(Question {
        bridge,
        matching,
        frame,
    })
}

/// Whether a flow is one of a data path.
fn is_of_datapath(flow: &str) -> bool {
    let end = flow.find(['(', '=', ',']);
    end.is_some_and(|end| flow[end..].starts_with('('))
}

fn of_datapath(control: &mut Control, flow: &str) -> Result<(BridgeId, Match), String> {
    let ports = control.datapath_ports();
    let bridge = Cell::new(None);
    let port_of = |text: &str| {
        let (of, port) = ports.find(text)?;
        bridge.set(Some(of));
        Some(port)
    };
    let matching = odp::parse(flow, port_of)?;
    let bridge = bridge.get();
    let bridge = bridge.ok_or("Invalid datapath flow: it has no in_port of the datapath")?;
    Ok((bridge, matching))
}

fn of_bridge(control: &mut Control, name: &str, flow: &str) -> Result<(BridgeId, Match), String> {
    let (id, read) = flow_of_bridge(control, name, flow)?;
    Ok((id, read.matching))
}

/// The bridge of this name, and what a flow in the words of `ovs-ofctl` asks for, which may call
/// ports by their names.
pub(super) fn flow_of_bridge(
    control: &mut Control,
    name: &str,
    flow: &str,
) -> Result<(BridgeId, FlowStatsRequest), String> {
    let found = control.site_named(name);
    let (id, site) = found.ok_or_else(|| format!("{name}: unknown bridge"))?;
    let mut roster = NameMap::default();
    for (number, port) in &site.ports {
        roster.add_port(*number, &port.wanted.name);
    }
    let read = roster.parse_flow_stats_request(flow);
    let read = read.map_err(|error| format!("Bad openflow flow syntax: {flow}: {error}"))?;
    Ok((id, read))
}

fn is_hex(word: &str) -> bool {
    word.len() >= 2 * HEADER_LEN && word.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The frame that is written in hexadecimal.
pub(super) fn frame(digits: &str) -> Result<Frame, String> {
    let wrong = || "Trailing garbage in packet data".to_owned();
    if !digits.len().is_multiple_of(2) || digits.len() / 2 > Frame::LEN_MAX {
        return Err(wrong());
    }
    let byte = |at: usize| {
        let two = digits.get(at..at + 2)?;
        let plain = two.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(two, 16).ok().filter(|_| plain)
    };
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Ok(Frame::from_bytes(&bytes.ok_or_else(wrong)?))
}

/// All bridges as they are now.
fn tracer(control: &mut Control) -> Tracer {
    control.datapath_ports();
    let bridges = control.sites.iter().map(|(id, site)| {
        let ports = site.ports.iter().map(|(number, port)| {
            let of_path = control.datapath_ports.number((*id, *number));
            let of_path = of_path.map_or_else(|| number.to_string(), |number| number.to_string());
            (*number, (of_path, port.wanted.name.clone()))
        });
        let sampling = site.bridge.sampling();
        let traced = TracedBridge {
            samples: sampling.is_some_and(|view| !view.sets.is_empty()),
            name: site.bridge.name().to_owned(),
            pipeline: site.bridge.rules(),
            fdb: site.bridge.fdb().view(),
            multicast: site.bridge.multicast_view(),
            switching: site.bridge.switching().cloned(),
            mirrors: site.bridge.mirrors().cloned(),
            tree: site.bridge.spanning().map(|spanning| spanning.name()),
            stp_filter: site.bridge.stp_filter().cloned(),
            ports: ports.collect(),
        };
        (*id, traced)
    });
    Tracer {
        bridges: bridges.collect(),
        virtual_links: control.publisher.virtual_links().clone(),
        now: control.now(),
    }
}
