//! Forwarding of a simulated device: by rules, by learned addresses, or by flooding.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::{Instant, PortNo};
use flow::{Action, FlowModCommand};
use openflow::{Message, Version};
use trafficgen::memory::{PortFrame, SimulatedTime};

use super::{Faults, nanos};
use crate::catalogue::control::rig::{ControlRig, SwitchMessage};
use crate::catalogue::simulated::actions::execute;
use crate::catalogue::simulated::switch::SimulatedSwitch;

/// Forwarding state of the device.
pub(super) struct SimulatedForwarding {
    faults: Faults,
    switch: SimulatedSwitch,
    /// Time from which the table's rules are in force. Before it, and before the first
    /// installation, the switch forwards between the two hosts of each pair, as with the initial
    /// rules of a test setup.
    in_force_from: Option<Instant>,
    learned: BTreeMap<[u8; 6], usize>,
    flows: BTreeSet<Vec<u8>>,
    /// Frames that matched a rule, from the client and from the server.
    pub(super) counts: [u64; 2],
    pub(super) packet_ins: u64,
}

impl SimulatedForwarding {
    pub(super) fn new(faults: &Faults, time: Arc<SimulatedTime>) -> Self {
        Self {
            faults: faults.clone(),
            switch: SimulatedSwitch::with_time(Version::V10, faults.switch.clone(), time),
            in_force_from: None,
            learned: BTreeMap::new(),
            flows: BTreeSet::new(),
            counts: [0; 2],
            packet_ins: 0,
        }
    }

    /// Sends a message to the switch, and returns its reply.
    pub(super) fn request(&mut self, message: &Message) -> Option<SwitchMessage> {
        self.switch.process(message);
        self.switch.work_off();
        if let Message::FlowMod(rule) = message {
            let apply = self.switch.faults().apply;
            let in_force_from = self.switch.now() + apply;
            self.in_force_from.get_or_insert(in_force_from);
            if rule.command == FlowModCommand::Delete {
                self.counts = [0; 2];
                self.packet_ins = 0;
            }
        }
        self.switch.take_reply()
    }

    /// Returns the copies of a frame that leave a device with this number of ports.
    pub(super) fn forward(&mut self, at: PortFrame, ports: usize) -> Vec<PortFrame> {
        let others = |at: &PortFrame| -> Vec<PortFrame> {
            let others = (0..ports).filter(|port| *port != at.port);
            let copy = |port| PortFrame { port, ..at.clone() };
            others.map(copy).collect()
        };
        if self.faults.floods {
            return others(&at);
        }
        if self.faults.learns {
            let address = |from: usize| at.frame[from..from + 6].try_into().unwrap();
            self.learned.insert(address(6), at.port);
            return match self.learned.get(&address(0)) {
                Some(&port) => vec![PortFrame { port, ..at }],
                None => others(&at),
            };
        }
        // The addresses and ports of UDP over IPv4.
        if self.faults.flows < usize::MAX {
            let flow = at.frame[26..38].to_vec();
            if self.flows.len() >= self.faults.flows && !self.flows.contains(&flow) {
                return Vec::new();
            }
            self.flows.insert(flow);
        }
        self.by_rules(at)
    }

    fn by_rules(&mut self, at: PortFrame) -> Vec<PortFrame> {
        let now = Instant::from_nanos(at.ns);
        if self.in_force_from.is_none_or(|from| now < from) {
            self.counts[at.port % 2] += 1;
            let port = at.port ^ 1;
            return vec![PortFrame { port, ..at }];
        }
        let searched = self.faults.rule * u32::try_from(self.switch.rule_count()).unwrap();
        let port = PortNo(u32::try_from(at.port).unwrap() + 1);
        let Some(mut actions) = self.switch.actions(&at.frame, port, now) else {
            self.packet_ins += 1;
            return Vec::new();
        };
        self.counts[at.port % 2] += 1;
        if self.faults.ignores_sets {
            actions.retain(|action| matches!(action, Action::Output { .. }));
        }
        let outputs = execute(&at.frame, &actions).into_iter();
        let sent = outputs.map(|(port, frame)| {
            let (port, more) = match port {
                PortNo::NORMAL => (at.port ^ 1, self.faults.normal),
                port => (port.0 as usize - 1, Duration::ZERO),
            };
            let ns = at.ns + nanos(searched + more);
            PortFrame { port, ns, frame }
        });
        sent.collect()
    }
}
