//! Traces: `ofproto/trace` of ovs-vswitchd(8). The arguments are a bridge and a flow in the syntax
//! of ovs-ofctl(8), or a datapath flow whose `in_port` determines the bridge.
//!
//! A trace sends and counts nothing. As in Open vSwitch, MAC addresses and rules are learned if a
//! frame is given or composed (`-generate`), but not for a flow alone.

use std::cell::Cell;

use flow::text::NameMap;
use flow::{FlowStatsRequest, Match};
use packet::Frame;

use super::Answer::Deferred;
use super::{Command, DeferredAnswer, MANY, dpctl};
use crate::control::Control;
use crate::inbox::Input;
use dataplane::program::BridgeId;
use switch::odp;
use switch::trace::{TraceRequest, TraceSideEffect, TracedBridge, Tracer};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "ofproto/trace", usage: "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]", least: 1, most: MANY, answer: Deferred(trace) },
    Command { name: "ofproto/trace-packet-out", usage: "[-consistent] {[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet] actions", least: 2, most: MANY, answer: Deferred(trace_packet_out) },
];

/// The length of an Ethernet header, in bytes: the minimum for a frame.
const HEADER_LEN: usize = 14;

/// A parsed trace request.
struct TraceArguments {
    bridge: BridgeId,
    matching: Match,
    frame: Option<Frame>,
}

fn trace(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let (bridge, request) = parse_request(control, arguments)?;
    Ok(answer(control, bridge, request))
}

fn parse_request(
    control: &mut Control,
    arguments: &[String],
) -> Result<(BridgeId, TraceRequest), String> {
    let words = without_options(arguments)?;
    let parsed = read(control, &words)?;
    let learns = words.len() < arguments.len() || parsed.frame.is_some();
    let mut request = TraceRequest::new(&parsed.matching, parsed.frame)?;
    request.learns = learns;
    Ok((parsed.bridge, request))
}

/// Runs the trace on another thread, and applies its side effects to the bridges.
fn answer(control: &mut Control, bridge: BridgeId, request: TraceRequest) -> DeferredAnswer {
    let tracer = tracer(control);
    let inbox = control.tools.inbox.clone();
    Box::new(move || {
        let (text, lessons) = tracer.trace(bridge, request);
        for (bridge, lesson) in lessons {
            inbox.send(Input::Learned(bridge, lesson));
        }
        text
    })
}

impl Control {
    /// Applies a trace's side effect to a bridge.
    pub(in crate::control) fn apply_lesson(&mut self, bridge: BridgeId, lesson: &TraceSideEffect) {
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

fn trace_packet_out(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let (actions, arguments) = arguments.split_last().ok_or("Missing actions")?;
    let actions = flow::text::parse_actions(actions);
    let actions = actions.map_err(|error| format!("Failed to parse actions: {error}"))?;
    let (bridge, mut request) = parse_request(control, arguments)?;
    request.actions = Some(actions);
    tracer(control).check(bridge, &request)?;
    Ok(answer(control, bridge, request))
}

/// Returns the arguments without options. Options are redundant here: a frame is always composed if
/// none is given, and actions are always checked.
fn without_options(arguments: &[String]) -> Result<Vec<&str>, String> {
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

fn read(control: &mut Control, words: &[&str]) -> Result<TraceArguments, String> {
    let (words, frame) = match words {
        [_, _, .., packet] if is_hex(packet) => {
            let (_, rest) = words.split_last().ok_or("Missing flow")?;
            (rest, Some(frame(packet)?))
        }
        [_, _, _] => return Err("Trailing garbage in packet data".to_owned()),
        _ => (words, None),
    };
    let (bridge, matching) = match words {
        [flow] if !is_datapath_flow(flow) => {
            return Err(format!(
                "syntax error at {flow} (or the bridge name was omitted)"
            ));
        }
        [flow] => datapath_flow(control, flow)?,
        [path, flow] if is_datapath_flow(flow) => {
            if !dpctl::is_datapath(control, path) {
                return Err("Cannot find the datapath".to_owned());
            }
            datapath_flow(control, flow)?
        }
        [bridge, flow] => bridge_flow(control, bridge, flow)?,
        _ => return Err("give a bridge and a flow, and perhaps a packet".to_owned()),
    };
    Ok(TraceArguments {
        bridge,
        matching,
        frame,
    })
}

/// Returns true if `flow` is a datapath flow.
fn is_datapath_flow(flow: &str) -> bool {
    let end = flow.find(['(', '=', ',']);
    end.is_some_and(|end| flow[end..].starts_with('('))
}

fn datapath_flow(control: &mut Control, flow: &str) -> Result<(BridgeId, Match), String> {
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

fn bridge_flow(control: &mut Control, name: &str, flow: &str) -> Result<(BridgeId, Match), String> {
    let (id, read) = flow_of_bridge(control, name, flow)?;
    Ok((id, read.matching))
}

/// Returns the bridge with this name, and the parsed flow in the syntax of `ovs-ofctl`, in which
/// ports may have names.
pub(super) fn flow_of_bridge(
    control: &mut Control,
    name: &str,
    flow: &str,
) -> Result<(BridgeId, FlowStatsRequest), String> {
    let found = control.site_named(name);
    let (id, site) = found.ok_or_else(|| format!("{name}: unknown bridge"))?;
    let mut roster = NameMap::default();
    for (number, port) in &site.ports {
        roster.add_port(*number, &port.spec.name);
    }
    let read = roster.parse_flow_stats_request(flow);
    let read = read.map_err(|error| format!("Bad openflow flow syntax: {flow}: {error}"))?;
    Ok((id, read))
}

fn is_hex(word: &str) -> bool {
    word.len() >= 2 * HEADER_LEN && word.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Parses a frame in hexadecimal.
pub(super) fn frame(digits: &str) -> Result<Frame, String> {
    let wrong = || "Trailing garbage in packet data".to_owned();
    if !digits.len().is_multiple_of(2) || digits.len() / 2 > Frame::LEN_MAX {
        return Err(wrong());
    }
    let byte = |at: usize| {
        let two = digits.get(at..at + 2)?;
        let without_options = two.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(two, 16).ok().filter(|_| without_options)
    };
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Ok(Frame::from_bytes(&bytes.ok_or_else(wrong)?))
}

/// Returns a snapshot of all bridges.
fn tracer(control: &mut Control) -> Tracer {
    control.datapath_ports();
    let bridges = control.sites.iter().map(|(id, site)| {
        let ports = site.ports.iter().map(|(number, port)| {
            let of_path = control.devices.datapath_ports.number((*id, *number));
            let of_path = of_path.map_or_else(|| number.to_string(), |number| number.to_string());
            (*number, (of_path, port.spec.name.clone()))
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
        virtual_links: control.publications.virtual_links().clone(),
        now: control.now(),
    }
}
