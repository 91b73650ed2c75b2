//! A worker's part of `NORMAL`: it asks where a frame goes, tells whom it teaches, and counts
//! what goes nowhere.

use base::Instant;
use packet::{Frame, Link};

use super::{Exit, Worker};
use crate::dataplane::counters::Drop;
use crate::dataplane::messages::Event;
use crate::dataplane::normal::{self, Forward, Knowledge};
use crate::dataplane::program::BridgeProgram;
use crate::dataplane::slots::PortKey;

impl Worker {
    pub(super) fn normal(
        &mut self,
        bridge: &BridgeProgram,
        from: PortKey,
        index: usize,
        frame: &Frame,
        now: Instant,
    ) {
        let Ok(link) = Link::parse(frame.bytes()) else {
            self.shared.counters.count(Drop::NormalUnreadable);
            return;
        };
        let knowledge = Knowledge {
            stations: &bridge.stations,
            switching: bridge.switching.as_deref(),
        };
        let decision = knowledge.decide(&link, from.port, now);
        if let Some(address) = decision.learn {
            self.tell(Event::Learn(from, address), Drop::LearnNoRoom);
        }
        let vid = decision.vid;
        let exit = |port| Exit {
            frame: index,
            port,
            retag: knowledge.retag(&link, port, vid),
        };
        match decision.forward {
            Forward::To(port) if !knowledge.joins(from.port, port, vid) => {
                self.shared.counters.count(Drop::NormalFiltered);
            }
            Forward::To(port) if normal::forwards(&bridge.pipeline, port) => {
                self.exits.push(exit(port));
            }
            Forward::To(_) => self.shared.counters.count(Drop::NormalPortDown),
            Forward::Flood => {
                let ports = knowledge.flood(&bridge.pipeline, from.port, vid);
                self.exits.extend(ports.map(exit));
            }
            Forward::Nowhere => self.shared.counters.count(Drop::NormalFiltered),
            Forward::Refused => self.shared.counters.count(Drop::NormalVlan),
        }
    }
}
