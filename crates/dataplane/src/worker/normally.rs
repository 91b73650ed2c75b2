//! A worker's part of `NORMAL`: it asks where a frame goes, tells whom it teaches, and counts
//! what goes nowhere.

use base::{Instant, Priority};
use packet::{Frame, Link};

use super::{Exit, Worker};
use crate::bonds::Leaving;
use crate::counters::Drop;
use crate::messages::Event;
use crate::normal::{self, Forward};
use crate::program::BridgeProgram;
use crate::slots::PortKey;

impl Worker {
    pub(super) fn normal(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        (index, priority): (usize, Priority),
        frame: &Frame,
        now: Instant,
    ) {
        let Ok(link) = Link::parse(frame.bytes()) else {
            self.shared.counters.count(Drop::NormalUnreadable);
            return;
        };
        let knowledge = bridge.knowledge();
        let decision = knowledge.decide((&link, frame.bytes()), from.port, now);
        if let Some(address) = decision.learn {
            self.tell(Event::Learn(from, address), Drop::LearnNoRoom);
        }
        if decision.is_membership {
            let told = Event::Membership(from, decision.within.vid, frame.bytes().into());
            self.tell(told, Drop::MembershipNoRoom);
        }
        let leaving = Leaving {
            frame,
            link: &link,
            within: decision.within,
            writer: Some(self.writer),
        };
        let exit = |port| Exit {
            frame: index,
            port,
            retag: knowledge.retag(port, &leaving.within),
            priority,
        };
        match decision.forward {
            Forward::To(port) if !knowledge.joins(from.port, port, &leaving.within) => {
                self.shared.counters.count(Drop::NormalFiltered);
            }
            Forward::To(port) => match knowledge.exit(port, &leaving) {
                Some(port) if normal::forwards(&bridge.pipeline, port) => {
                    self.exits.push(exit(port));
                }
                _ => self.shared.counters.count(Drop::NormalPortDown),
            },
            Forward::Flood => {
                self.accounts.flood();
                let ports = knowledge.flood(&bridge.pipeline, from.port, leaving);
                self.exits.extend(ports.map(exit));
            }
            Forward::Among(audience) => {
                let ports = knowledge.among(&bridge.pipeline, from.port, audience, leaving);
                self.exits.extend(ports.map(exit));
            }
            Forward::Nowhere => self.shared.counters.count(Drop::NormalFiltered),
            Forward::Refused => self.shared.counters.count(Drop::NormalVlan),
            Forward::Surplus | Forward::Looped => self.shared.counters.count(Drop::NormalBond),
        }
    }
}
