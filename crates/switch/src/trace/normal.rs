//! `NORMAL` in a trace.

use std::fmt::Write;

use base::PortNo;
use packet::{Frame, Link};
use pipeline::TracePrinter;

use super::{TraceSideEffect, TracedBridge};
use config::{LogicalPort, VlanMode};
use dataplane::bonds::EgressFrame;
use dataplane::normal::{NormalContext, NormalTarget};
use dataplane::vlans::{FrameVlans, TagRewrite};
use l2::fdb::FdbKey;
use l2::multicast_snooping::MulticastClass;

impl TracedBridge {
    /// Returns the lines about learning and forwarding, in Open vSwitch's words.
    pub(super) fn normal_lines(
        &self,
        frame: &Frame,
        from: PortNo,
        side_effects: &[TraceSideEffect],
    ) -> String {
        let Ok(link) = Link::parse(frame.bytes()) else {
            return "     >> dropped: normal_unreadable\n".to_owned();
        };
        let mut text = String::new();
        for side_effect in side_effects {
            if let TraceSideEffect::Address(FdbKey { vid, mac }, port) = side_effect {
                let name = self.name_of(*port);
                let line = "     -> learned that";
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{line} {mac} is on port {name} in VLAN {vid}");
            }
        }
        let (forward, within) = self.normal_context().forward((&link, frame.bytes()), from);
        if forward == NormalTarget::Refused {
            text += &self.refusal(link.tag.map_or(0, |tag| tag.vid), from);
        }
        text += match forward {
            NormalTarget::Port(_) => "     -> forwarding to learned port\n",
            NormalTarget::Group(MulticastClass::Members(_)) => {
                "     -> forwarding to mcast group port\n"
            }
            NormalTarget::Group(_) => "     -> forwarding to mcast router port\n",
            NormalTarget::Flood => "     -> no learned MAC for destination, flooding\n",
            NormalTarget::Nowhere if link.dst.is_bridge_reserved() => {
                "     >> dropped: reserved destination address\n"
            }
            NormalTarget::Nowhere => "     >> destination port is input port, dropping\n",
            NormalTarget::Surplus => "     -> bonding refused admissibility, dropping\n",
            NormalTarget::Looped => "     -> SLB bond thinks this packet looped back, dropping\n",
            NormalTarget::Refused => "     >> disallowed VLAN VID for this input port, dropping\n",
        };
        text += &self.left_out(forward, from, &within);
        text
    }

    /// Returns the reason why a port does not accept frames of a VLAN.
    fn refusal(&self, vid: u16, from: PortNo) -> String {
        let logical = self.switching.as_ref().and_then(|view| view.port(from));
        let Some(LogicalPort { name, vlans, .. }) = logical else {
            return String::new();
        };
        let why = match vlans.mode {
            VlanMode::Access { tag } => {
                format!(
                    "tagged packet received on port {name} configured as VLAN {tag} access port"
                )
            }
            VlanMode::Trunk { .. } | VlanMode::Native { .. } => {
                format!("packet received on port {name} not configured for trunking VLAN {vid}")
            }
            VlanMode::Tunnel { .. } => {
                format!("packet received on dot1q-tunnel port {name} that excludes this VLAN")
            }
        };
        format!("     >>>> dropping VLAN {vid} {why} <<<<\n")
    }

    /// Returns a line for each port that an egress check excludes.
    fn left_out(&self, forward: NormalTarget, from: PortNo, within: &FrameVlans) -> String {
        let normal_context = self.normal_context();
        let fdb_port = normal_context.fdb_port(from);
        let floods = |port: &PortNo| {
            let view = self.pipeline.port(*port);
            view.is_some_and(|view| view.without_stp_block().floods())
        };
        let ports: Vec<PortNo> = match forward {
            NormalTarget::Port(port) => vec![port],
            NormalTarget::Flood => {
                let ports = self.pipeline.ports().map(|(port, _)| port);
                ports.filter(floods).collect()
            }
            NormalTarget::Group(class) => {
                let views = self.multicast.iter();
                views
                    .flat_map(|view| view.ports(class, within.vid))
                    .collect()
            }
            NormalTarget::Nowhere
            | NormalTarget::Refused
            | NormalTarget::Surplus
            | NormalTarget::Looped => Vec::new(),
        };
        let one_per_bond =
            |port: &PortNo| *port != fdb_port && normal_context.fdb_port(*port) == *port;
        let wanted = ports
            .into_iter()
            .filter(one_per_bond)
            .filter(|port| normal_context.may_leave(*port, within));
        let reasons = wanted.filter_map(|port| self.pipeline.check_egress(from, port).err());
        let words = reasons.filter_map(|reason| TracePrinter::skip_text(reason, self.tree));
        words.map(|words| format!("     >> {words}\n")).collect()
    }

    /// Returns the egress ports of `NORMAL` and the change of the tag for each.
    pub(super) fn normal_exits(&self, frame: &Frame, from: PortNo) -> Vec<(PortNo, TagRewrite)> {
        let Ok(link) = Link::parse(frame.bytes()) else {
            return Vec::new();
        };
        let normal_context = self.normal_context();
        let (forward, within) = normal_context.forward((&link, frame.bytes()), from);
        let leaving = EgressFrame {
            frame,
            link: &link,
            within,
            writer: None,
        };
        normal_context.exits(&self.pipeline, leaving, from, forward)
    }

    /// Returns the name of the port that learns addresses: the bond, or the port itself.
    fn name_of(&self, port: PortNo) -> String {
        let logical = self.switching.as_ref().and_then(|view| view.port(port));
        let bond = logical.filter(|logical| logical.bond.is_some());
        match (bond, self.ports.get(&port)) {
            (Some(bond), _) => bond.name.clone(),
            (None, Some((_, name))) => name.clone(),
            (None, None) => port.to_string(),
        }
    }

    pub(super) fn normal_context(&self) -> NormalContext<'_> {
        NormalContext {
            fdb: &self.fdb,
            multicast: self.multicast.as_ref(),
            switching: self.switching.as_deref(),
            mirrors: self.mirrors.as_deref(),
        }
    }
}
