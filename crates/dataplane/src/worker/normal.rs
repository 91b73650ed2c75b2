//! `NORMAL` in a worker: looks up the outputs, reports addresses to learn, and counts drops.

use base::{Instant, Priority};
use packet::{Frame, Link};

use super::forwarder::BatchForwarder;
use super::outputs::PortOutput;
use crate::bonds::EgressFrame;
use crate::counters::WorkerDrop;
use crate::normal::{self, NormalTarget};
use crate::program::BridgeProgram;
use crate::slots::PortKey;

impl BatchForwarder {
    pub(super) fn normal(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        (index, priority): (usize, Priority),
        frame: &Frame,
        now: Instant,
    ) {
        let Ok(link) = Link::parse(frame.bytes()) else {
            self.reporter.count(WorkerDrop::NormalUnreadable);
            return;
        };
        let normal_context = bridge.normal_context();
        let decision = normal_context.decide((&link, frame.bytes()), from.port, now);
        if let Some(address) = decision.learn {
            self.report_address(from, address);
        }
        if decision.is_membership {
            self.report_membership(from, decision.within.vid, frame);
        }
        let leaving = EgressFrame {
            frame,
            link: &link,
            within: decision.within,
            writer: Some(self.writer),
        };
        let exit = |port| PortOutput {
            frame: index,
            port,
            retag: normal_context.retag(port, &leaving.within),
            priority,
        };
        match decision.forward {
            NormalTarget::Port(port)
                if !normal_context.may_pass(from.port, port, &leaving.within) =>
            {
                self.reporter.count(WorkerDrop::NormalFiltered);
            }
            NormalTarget::Port(port) => match normal_context.exit(port, &leaving) {
                Some(port) if normal::forwards(&bridge.pipeline, port) => {
                    self.outputs.exits.push(exit(port));
                }
                _ => self.reporter.count(WorkerDrop::NormalPortDown),
            },
            NormalTarget::Flood => {
                self.sampling.flow_meters.flood();
                let ports = normal_context.flood(&bridge.pipeline, from.port, leaving);
                self.outputs.exits.extend(ports.map(exit));
            }
            NormalTarget::Group(class) => {
                let ports = normal_context.among(&bridge.pipeline, from.port, class, leaving);
                self.outputs.exits.extend(ports.map(exit));
            }
            NormalTarget::Nowhere => self.reporter.count(WorkerDrop::NormalFiltered),
            NormalTarget::Refused => self.reporter.count(WorkerDrop::NormalVlan),
            NormalTarget::Surplus | NormalTarget::Looped => {
                self.reporter.count(WorkerDrop::NormalBond)
            }
        }
    }
}
