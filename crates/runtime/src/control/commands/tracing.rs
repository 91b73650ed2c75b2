//! Traces: `ofproto/trace` of ovs-vswitchd(8). The arguments are a bridge and a flow in the syntax
//! of ovs-ofctl(8), or a datapath flow whose `in_port` determines the bridge.
//!
//! A trace sends and counts nothing. As in Open vSwitch, MAC addresses and rules are learned if a
//! frame is given or composed (`-generate`), but not for a flow alone.

use std::collections::{BTreeMap, BTreeSet};

use base::{MeterId, PortNo};
use flow::text::NameMap;
use flow::{ConnectionFields, FlowStatsRequest, HeaderFields, Match};
use packet::Frame;

use super::Answer::Deferred;
use super::bonds::lb_output_ids;
use super::{Command, DeferredAnswer, MANY, dpctl};
use crate::control::Control;
use crate::inbox::Input;
use config::{PacketTypeMode, PortKind};
use dataplane::program::BridgeId;
use switch::megaflow::TableClassifiers;
use switch::odp::{OdpFlow, OdpTunnel};
use switch::trace::{TraceRequest, TraceSideEffect, TracedBridge, Tracer};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "ofproto/trace", usage: "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]", least: 1, most: MANY, answer: Deferred(trace) },
    Command { name: "ofproto/trace-packet-out", usage: "[-consistent] {[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet] actions", least: 2, most: MANY, answer: Deferred(trace_packet_out) },
];

/// The length of an Ethernet header, in bytes: the minimum for a frame.
const HEADER_LEN: usize = 14;

/// The length of the payload of a composed frame, as in Open vSwitch.
const PAYLOAD_LEN: usize = 64;

/// The limit of `--l7-len`.
const PAYLOAD_MAX: usize = 64000;

/// The payload of a composed frame.
enum TracePayload {
    /// A number of bytes that count up from zero.
    Counting(usize),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// The arguments of a trace without a packet-out's actions.
struct TraceOptions<'a> {
    words: Vec<&'a str>,
    payload: TracePayload,
    generates: bool,
    names: bool,
    /// The states of `--ct-next`, the last one first.
    connection_states: Vec<u8>,
}

/// The flow of a trace.
enum TracedFlow {
    /// In the syntax of a datapath, with the port.
    Datapath(Box<OdpFlow>, PortNo),
    /// In the syntax of ovs-ofctl(8), with its queue.
    Bridge(Match, u32),
}

fn trace(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    let (bridge, request) = parse_request(control, arguments)?;
    Ok(answer(control, bridge, request))
}

fn parse_request(
    control: &mut Control,
    arguments: &[String],
) -> Result<(BridgeId, TraceRequest), String> {
    let options = TraceOptions::parse(arguments)?;
    let (words, packet) = options.packet()?;
    let (bridge, flow) = read(control, words)?;
    let packet = match options.generates {
        true => Some(options.payload.compose(&flow.frame_fields())),
        false => packet,
    };
    let learns = packet.is_some();
    let mut request = match flow {
        TracedFlow::Datapath(flow, port) => {
            let mut request = TraceRequest::of_datapath(&flow, port, packet);
            request.frozen = control.commands.frozen.find(flow.recirc_id).cloned();
            request
        }
        TracedFlow::Bridge(matching, priority) => {
            let mut request = TraceRequest::of_match(&matching, packet);
            request.skb_priority = priority;
            request
        }
    };
    (request.learns, request.names) = (learns, options.names);
    request.recirculates = true;
    request
        .connection_states
        .clone_from(&options.connection_states);
    Ok((bridge, request))
}

impl TracedFlow {
    fn frame_fields(&self) -> HeaderFields {
        match self {
            Self::Datapath(flow, _) => flow.frame_fields(),
            Self::Bridge(matching, _) => HeaderFields::of_match(matching),
        }
    }
}

impl TracePayload {
    fn compose(&self, fields: &HeaderFields) -> Frame {
        match self {
            Self::Counting(len) => fields.frame(*len),
            Self::Bytes(bytes) => fields.frame_with(bytes),
        }
    }
}

impl<'a> TraceOptions<'a> {
    /// Parses the options. Actions are always checked, so that `-consistent` is redundant.
    fn parse(arguments: &'a [String]) -> Result<Self, String> {
        let mut options = Self {
            words: Vec::new(),
            payload: TracePayload::Counting(PAYLOAD_LEN),
            generates: false,
            names: false,
            connection_states: Vec::new(),
        };
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(word) = arguments.next() {
            let missing = || format!("Missing argument for option {word}");
            match word {
                "-generate" | "--generate" => options.generates = true,
                "-consistent" | "--consistent" => {}
                "-names" | "--names" => options.names = true,
                "--l7" => {
                    let digits = arguments.next().ok_or_else(missing)?;
                    let bytes = hex(digits).ok_or("Trailing garbage in packet data")?;
                    options.payload = TracePayload::Bytes(bytes);
                }
                "--l7-len" => {
                    let text = arguments.next().ok_or_else(missing)?;
                    let len = text.parse().unwrap_or(0);
                    if len > PAYLOAD_MAX {
                        return Err(format!("{text}: too much L7 data"));
                    }
                    options.payload = TracePayload::Counting(len);
                }
                "--ct-next" => {
                    let states = parse_states(arguments.next().ok_or_else(missing)?)?;
                    options.connection_states.insert(0, states);
                }
                option if option.starts_with('-') => {
                    return Err(format!("{option}: unknown option"));
                }
                word => options.words.push(word),
            }
        }
        match options.words.len() {
            0..=3 => Ok(options),
            _ => Err("too many arguments".to_owned()),
        }
    }

    /// Splits off the packet at the end, if there is one.
    fn packet(&self) -> Result<(&[&'a str], Option<Frame>), String> {
        let (last, rest) = match self.words.as_slice() {
            [rest @ .., last] if !self.generates && !rest.is_empty() => (last, rest),
            words => return Ok((words, None)),
        };
        match frame(last) {
            Ok(packet) => Ok((rest, Some(packet))),
            // With three words, the last must be a packet.
            Err(error) if rest.len() > 1 => Err(error),
            Err(_) => Ok((&self.words, None)),
        }
    }
}

/// Parses flags of `ct_state`, from bit 0 in the order of [`ConnectionFields::STATES`].
fn parse_states(text: &str) -> Result<u8, String> {
    let mut states = text.split([',', ' ']).filter(|state| !state.is_empty());
    states.try_fold(0, |flags, state| {
        let bit = ConnectionFields::STATES
            .iter()
            .position(|name| *name == state);
        bit.map(|bit| flags | 1 << bit)
            .ok_or_else(|| format!("{state}: unknown connection tracking state flag"))
    })
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
            TraceSideEffect::Frozen(packet) => self.commands.frozen.insert(packet.clone()),
            TraceSideEffect::Address(address, port) => {
                site.bridge.handle_address(*address, *port, now)
            }
            TraceSideEffect::StaticMove => site.bridge.fdb().view().count_static_move(),
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

fn read(control: &mut Control, words: &[&str]) -> Result<(BridgeId, TracedFlow), String> {
    let (path, flow) = match words {
        [flow] => (None, *flow),
        [path, flow] => (Some(*path), *flow),
        _ => return Err("Syntax error".to_owned()),
    };
    let ports = control.datapath_ports();
    let number = |name: &str| {
        let all = ports.all().into_iter();
        let mut named = all.filter(|(_, known, _)| *known == name);
        named.next().map(|(number, ..)| number)
    };
    match (OdpFlow::parse(flow, number), path) {
        (Ok(flow), path) => {
            let known = match path {
                Some(path) => dpctl::is_datapath(control, &full_name(path)),
                None => control.datapaths().len() == 1,
            };
            if !known {
                return Err("Cannot find the datapath".to_owned());
            }
            datapath_flow(control, flow)
        }
        (Err(error), None) => Err(format!("{error} (or the bridge name was omitted)")),
        (Err(_), Some(bridge)) => bridge_flow(control, bridge, flow),
    }
}

/// Returns the datapath's name for a type alone.
fn full_name(path: &str) -> String {
    match path {
        "dummy" | "netdev" | "system" => format!("ovs-{path}"),
        path => path.to_owned(),
    }
}

/// Returns the bridge of a datapath flow: that of its port, or of the tunnel port that its packets
/// reach.
fn datapath_flow(control: &mut Control, flow: OdpFlow) -> Result<(BridgeId, TracedFlow), String> {
    if flow.recirc_id != 0 {
        let id = flow.recirc_id;
        let missing = || format!("no recirculation data for recirc_id {id:#x}");
        let packet = control.commands.frozen.find(id).ok_or_else(missing)?;
        let (bridge, port) = packet.ingress();
        return Ok((bridge, TracedFlow::Datapath(Box::new(flow), port)));
    }
    if flow.is_tracked() {
        return Err("connection tracking is not supported".to_owned());
    }
    let number = flow
        .in_port
        .map_or_else(|| u32::MAX.into(), |port| port.value);
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    control.datapath_ports();
    let found = match flow.tunnel.as_ref().filter(|tunnel| tunnel.is_set()) {
        Some(tunnel) => tunnel_port(control, number, (tunnel, flow.is_bare()))
            .ok_or_else(|| "no OpenFlow tunnel port for this packet".to_owned()),
        None => find_port(control, number)
            .ok_or_else(|| format!("no OpenFlow port for datapath port {number}")),
    };
    let (bridge, port) = found?;
    Ok((bridge, TracedFlow::Datapath(Box::new(flow), port)))
}

/// Returns the port with this datapath number, if it is no tunnel.
fn find_port(control: &Control, number: u32) -> Option<(BridgeId, PortNo)> {
    let ports = control.devices.datapath_ports.all().into_iter();
    let mut ports = ports
        .filter(|(of, ..)| *of == number)
        .map(|(_, _, port)| port);
    ports.find(|(bridge, port)| {
        let runtime = control
            .sites
            .get(bridge)
            .and_then(|site| site.ports.get(port));
        !runtime.is_some_and(|port| matches!(port.spec.kind, PortKind::Tunnel(_)))
    })
}

/// Returns the tunnel port that packets with these headers reach: the one with the most specific
/// configuration (ovs-vswitchd.conf.db(5), "Tunnel Options").
fn tunnel_port(
    control: &Control,
    number: u32,
    (packet, is_bare): (&OdpTunnel, bool),
) -> Option<(BridgeId, PortNo)> {
    let ports = control.devices.datapath_ports.all().into_iter();
    let ports = ports
        .filter(|(of, ..)| *of == number)
        .map(|(_, _, port)| port);
    let ranked = ports.filter_map(|(bridge, port)| {
        let runtime = control.sites.get(&bridge)?.ports.get(&port)?;
        match &runtime.spec.kind {
            PortKind::Tunnel(tunnel) => {
                let is_aware = match (tunnel.packet_type, is_bare) {
                    (PacketTypeMode::LegacyL2, false) | (PacketTypeMode::LegacyL3, true) => false,
                    (PacketTypeMode::Aware, _) => true,
                    _ => return None,
                };
                Some(((packet.rank(tunnel)?, is_aware), (bridge, port)))
            }
            _ => None,
        }
    });
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, port)| port)
}

fn bridge_flow(
    control: &mut Control,
    name: &str,
    flow: &str,
) -> Result<(BridgeId, TracedFlow), String> {
    let (flow, priority) = split_priority(flow)?;
    let (id, read) = flow_of_bridge(control, name, &flow)?;
    Ok((id, TracedFlow::Bridge(read.matching, priority)))
}

/// Removes `skb_priority=N`, which only traces have.
fn split_priority(flow: &str) -> Result<(String, u32), String> {
    let (mut rest, mut priority) = (Vec::new(), 0);
    for term in flow.split(',') {
        match term.trim().strip_prefix("skb_priority=") {
            Some(number) => {
                let hex = number.strip_prefix("0x");
                let read = match hex {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => number.parse(),
                };
                let wrong = |_| format!("Bad openflow flow syntax: {term}: invalid number");
                priority = read.map_err(wrong)?;
            }
            None => rest.push(term),
        }
    }
    Ok((rest.join(","), priority))
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

/// Parses bytes in hexadecimal, with blanks between them.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|letter| !letter.is_ascii_whitespace());
    let values = digits.map(|digit| digit.to_digit(16));
    let values: Vec<_> = values.collect::<Option<_>>()?;
    let pairs = values.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high << 4 | low).ok(),
        _ => None,
    });
    pairs.collect()
}

/// Parses a frame in hexadecimal.
pub(super) fn frame(digits: &str) -> Result<Frame, String> {
    let bytes = hex(digits).filter(|bytes| bytes.len() <= Frame::LEN_MAX);
    let bytes = bytes.ok_or("Trailing garbage in packet data")?;
    if bytes.len() < HEADER_LEN {
        return Err("Packet data too short for Ethernet".to_owned());
    }
    Ok(Frame::from_bytes(&bytes))
}

/// Returns a snapshot of all bridges.
pub(in crate::control) fn tracer(control: &mut Control) -> Tracer {
    control.datapath_ports();
    let meters = meters(control);
    let lb_outputs = lb_output_ids(control);
    let bridges = control.sites.iter().map(|(id, site)| {
        let ports = site.ports.iter().map(|(number, port)| {
            let of_path = control.devices.datapath_ports.number((*id, *number));
            let of_path = of_path.map_or_else(|| number.to_string(), |number| number.to_string());
            (*number, (of_path, port.spec.name.clone()))
        });
        let datapath_names = site.ports.keys().filter_map(|number| {
            let name = control.devices.datapath_ports.name((*id, *number))?;
            Some((*number, name.to_owned()))
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
            punts: site.bridge.punts().cloned(),
            policers: site
                .ports
                .iter()
                .map(|(number, port)| (*number, port.policer.clone()))
                .collect(),
            meters: meters.get(id).cloned().unwrap_or_default(),
            lb_outputs: lb_outputs.get(id).cloned().unwrap_or_default(),
            ports: ports.collect(),
            datapath_names: datapath_names.collect(),
            classifiers: TableClassifiers::new(site.bridge.prefixes().clone()),
        };
        (*id, traced)
    });
    let without_push = control.sites.iter().filter(|(_, site)| {
        let features = control.commands.features.get(&site.datapath());
        features.is_some_and(|features| !features.has("tnl_push_pop"))
    });
    let without_push: BTreeSet<_> = without_push.map(|(id, _)| *id).collect();
    Tracer {
        bridges: bridges.collect(),
        virtual_links: control.publications.virtual_links().clone(),
        underlay: control.publications.underlay().clone(),
        without_push,
        next_recirculation: control.commands.frozen.next_id(),
        now: control.now(),
    }
}

/// Returns the numbers of the meters in the datapath, from zero: by bridge, and by their ids there.
fn meters(control: &Control) -> BTreeMap<BridgeId, BTreeMap<MeterId, u32>> {
    let mut next = 0..;
    let bridges = control.sites.iter().map(|(id, site)| {
        let pipeline = site.bridge.rules();
        let ids: BTreeSet<_> = pipeline.meter_ids().collect();
        (*id, ids.into_iter().zip(next.by_ref()).collect())
    });
    bridges.collect()
}
