//! The datapath actions of a trace: the outputs of each bridge in order, with the changes of headers
//! before them.

use base::PortNo;
use flow::PipelineFields;
use packet::Frame;
use pipeline::{Destination, Egress, Verdict};

use super::actions::{self, ActionEvent, ActionRecorder, OdpAction};
use super::{
    SlowFlowReason, TraceEgress, TraceOutput, TraceRequest, TraceVisit, TracedBridge, Tracer,
};
use crate::odp::OdpHeaders;
use config::OuterField;
use dataplane::mirrors::MirrorDirection;
use dataplane::slots::PortKey;
use dataplane::virtual_links::VirtualLink;
use dataplane::vlans::TagRewrite;

impl Tracer {
    /// Adds the datapath actions of a run, and follows outputs to other bridges.
    pub(super) fn compose(
        &self,
        bridge: &TracedBridge,
        (events, verdict): (&[ActionEvent], &Verdict),
        visit: &mut TraceVisit,
        output: &mut TraceOutput,
    ) {
        let mut outer = Vec::new();
        for event in events {
            match event {
                ActionEvent::Output { index, truncated } => {
                    if let Some(egress) = verdict.egress.get(*index) {
                        let frame = verdict.frames.get(egress.frame);
                        let leaving = frame.map(|frame| (frame, egress));
                        self.leave(bridge, leaving, *truncated, visit, output);
                    }
                }
                ActionEvent::Recirculate { index } => self.freeze(verdict, *index, visit, output),
                ActionEvent::Track(text) => output.add(text.clone()),
                ActionEvent::Meter(meter) => {
                    let number = bridge.meter_number(*meter);
                    output.add(format!("meter({number})"));
                }
                ActionEvent::Copy => {
                    let before = std::mem::take(&mut output.actions);
                    outer.push((before, output.headers.clone(), output.tunnel.clone()));
                }
                ActionEvent::CopyEnd => {
                    if let Some((before, headers, tunnel)) = outer.pop() {
                        output.close_clone(before);
                        (output.headers, output.tunnel) = (headers, tunnel);
                    }
                }
            }
        }
    }

    /// Adds one output of a verdict, and follows it to another bridge.
    fn leave(
        &self,
        bridge: &TracedBridge,
        leaving: Option<(&Frame, &Egress)>,
        truncated: Option<u32>,
        visit: &mut TraceVisit,
        output: &mut TraceOutput,
    ) {
        let Some((frame, egress)) = leaving else {
            return;
        };
        let from = visit.from;
        let ports = match &egress.to {
            Destination::Port(port) => vec![(*port, TagRewrite::KEEP)],
            Destination::Normal => local_first(bridge.normal_exits(frame, from)),
            Destination::Collectors(sample) => {
                output
                    .actions
                    .extend(bridge.sampled(sample, from).map(OdpAction::Plain));
                return;
            }
            Destination::Controller(meta) => {
                output.commit(frame, Some(&meta.registers));
                output.packet_ins += 1;
                let text = actions::controller_text(meta, output.packet_ins, visit.learns);
                output.add(text);
                return;
            }
        };
        for (port, retag) in ports {
            let mut frame = frame.clone();
            frame.priority = egress.priority;
            retag.change(&mut frame);
            let passing = (port, MirrorDirection::Out);
            let copies = bridge.copies(&frame, (from, passing), &mut visit.copied);
            let bond = bridge.lb_outputs.get(&port).copied();
            let itself = TraceEgress {
                port,
                frame,
                registers: egress.registers.clone(),
                truncated,
                snaplen: None,
                bond: bond.filter(|_| egress.to == Destination::Normal),
            };
            for leaving in std::iter::once(itself).chain(copies) {
                self.depart(visit, leaving, output);
            }
        }
    }

    /// Adds one output, or follows it into another bridge.
    pub(super) fn depart(
        &self,
        visit: &TraceVisit,
        mut leaving: TraceEgress,
        output: &mut TraceOutput,
    ) {
        let key = PortKey {
            bridge: visit.bridge,
            port: leaving.port,
        };
        output.actions.extend(
            leaving
                .truncated
                .map(|len| OdpAction::Plain(format!("trunc({len})"))),
        );
        let mut egress = None;
        match self.virtual_links.find(key) {
            Some(VirtualLink::Patch(peer)) => return self.enter(*peer, visit, leaving, output),
            Some(VirtualLink::Tunnel(tunnel)) => {
                let inherits = |field| matches!(field, OuterField::Inherit(_));
                if let Some(megaflow) = &mut output.megaflow {
                    megaflow.enter_tunnel(inherits(tunnel.tos), inherits(tunnel.ttl));
                }
                let Some(bridge) = self.bridges.get(&visit.bridge) else {
                    return;
                };
                if !self.without_push.contains(&visit.bridge) {
                    return self.push_tunnel(visit, (bridge, tunnel), &leaving, output);
                }
                egress = output.set_tunnel(bridge, tunnel, &leaving);
                if egress.is_none() {
                    return;
                }
            }
            None => {
                let bridge = self.bridges.get(&visit.bridge);
                let policer = bridge.and_then(|bridge| bridge.policers.get(&leaving.port));
                if let Some(policer) = policer {
                    policer.mark_out(&mut leaving.frame);
                }
            }
        }
        let registers = egress.as_ref().or(leaving.registers.as_deref());
        output.commit(&leaving.frame, registers);
        if let Some(number) = self.popping_port(key, &leaving.frame, output.names) {
            return output.add(format!("tnl_pop({number})"));
        }
        output.actions.extend(
            leaving
                .snaplen
                .map(|len| OdpAction::Plain(format!("trunc({len})"))),
        );
        let bridge = self.bridges.get(&visit.bridge);
        let bond = leaving.bond.map(|id| format!("lb_output({id})"));
        let called =
            bond.or_else(|| bridge.map(|bridge| bridge.datapath_port(leaving.port, output.names)));
        output.add(called.unwrap_or_else(|| leaving.port.to_string()));
    }

    /// Follows an output by a patch port. Its actions are a clone if they cannot be undone, unless
    /// they are the last.
    fn enter(
        &self,
        peer: PortKey,
        visit: &TraceVisit,
        leaving: TraceEgress,
        output: &mut TraceOutput,
    ) {
        let request = TraceRequest::received(leaving.frame.clone(), peer.port, visit.learns);
        output.text += "\n";
        let undoable = self.bridges.get(&peer.bridge).is_none_or(|bridge| {
            let mut verdict = Verdict::new();
            let mut recorder = ActionRecorder::new(bridge, None);
            self.run(bridge, request.clone(), &mut recorder, &mut verdict);
            recorder.is_undoable()
        });
        if undoable {
            return self.follow(peer.bridge, request, output);
        }
        output.commit(&leaving.frame, leaving.registers.as_deref());
        let before = std::mem::take(&mut output.actions);
        let state = (output.headers.clone(), output.tunnel.clone());
        self.follow(peer.bridge, request, output);
        output.close_clone(before);
        (output.headers, output.tunnel) = state;
    }
}

/// Sorts the ports of a flood as Open vSwitch does: the local port is the oldest one.
fn local_first(mut ports: Vec<(PortNo, TagRewrite)>) -> Vec<(PortNo, TagRewrite)> {
    ports.sort_by_key(|(port, _)| *port != PortNo::LOCAL);
    ports
}

impl TraceOutput {
    pub(super) fn add(&mut self, action: String) {
        self.actions.push(OdpAction::Plain(action));
    }

    /// Replaces the actions by `before` and a clone of them, if there are any.
    pub(super) fn close_clone(&mut self, before: Vec<OdpAction>) {
        let inner = std::mem::replace(&mut self.actions, before);
        if !inner.is_empty() {
            self.actions.push(OdpAction::Clone(inner));
        }
    }

    /// Adds the actions that change the present headers to those of `frame`.
    pub(super) fn commit(&mut self, frame: &Frame, registers: Option<&PipelineFields>) {
        let none = PipelineFields::new(PortNo::ANY);
        let mark = registers.map(|registers| registers.mark);
        let Some(mut after) = OdpHeaders::read(frame, registers.unwrap_or(&none)) else {
            return;
        };
        if let Some(before) = &self.headers {
            if mark.is_none() {
                after.keep_mark(before);
            }
            let mut changes = Vec::new();
            if before.commit(&after, &self.examined, &mut changes) {
                self.slow_path.get_or_insert(SlowFlowReason::Action);
            }
            self.actions
                .extend(changes.into_iter().map(OdpAction::Plain));
        }
        self.headers = Some(after);
    }
}
