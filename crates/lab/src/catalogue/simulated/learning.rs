//! Learning switch with a configured learning rate, capacity and copy time.

use std::collections::BTreeMap;
use std::ops::Range;

use trafficgen::memory::{Path, PortFrame, SimulatedPort, SimulatedTime, device};

use super::lines::{STEP_NS, SimulatedLines};
use crate::catalogue::switching::station;

/// Least time between two frames at a port: a million frames per second.
const FRAME_NS: u64 = 1_000;

/// Capabilities of a learning switch.
#[derive(Clone, Copy, Debug)]
pub(in crate::catalogue) struct LearningFaults {
    /// Capacity in addresses; a new address replaces the oldest.
    pub(in crate::catalogue) stations: usize,
    /// Time to learn an address, and length of the queue for it; addresses beyond that are not
    /// learned.
    pub(in crate::catalogue) learn_ns: u64,
    pub(in crate::catalogue) learn_queue: u64,
    /// Time to send a frame, and length of the queue for it; frames beyond that are lost.
    pub(in crate::catalogue) copy_ns: u64,
    pub(in crate::catalogue) queue: u64,
    /// Delay of a frame in addition to that, and further delay for each preceding copy.
    pub(in crate::catalogue) delay_ns: u64,
    pub(in crate::catalogue) port_ns: u64,
    /// Loss of every n-th received frame, among the first `lose_until` frames.
    pub(in crate::catalogue) lose_every: Option<u64>,
    pub(in crate::catalogue) lose_until: u64,
}

impl Default for LearningFaults {
    fn default() -> Self {
        Self {
            stations: usize::MAX,
            learn_ns: 0,
            learn_queue: 0,
            copy_ns: 0,
            queue: 0,
            delay_ns: 10_000,
            port_ns: 0,
            lose_every: None,
            lose_until: u64::MAX,
        }
    }
}

/// Returns the ends at all ports of a switch that has learned the tester's stations at the hosts
/// `known`.
pub(in crate::catalogue) fn learning_switch(
    ports: usize,
    known: Range<usize>,
    faults: LearningFaults,
) -> SimulatedLines {
    let mut switch = LearningSwitch {
        faults,
        ports,
        stations: (0..)
            .zip(known)
            .map(|(age, host)| (station(host).mac, (host, age)))
            .collect(),
        learned_ns: 0,
        busy_ns: 0,
        received: 0,
    };
    let time = SimulatedTime::new(STEP_NS);
    let path = Path {
        sender_gap_ns: FRAME_NS,
        ..Path::default()
    };
    let paths = vec![path; ports];
    let forward = move |frame| switch.forward(&frame);
    let ports = device(&time, paths, Box::new(forward));
    SimulatedLines {
        ends: ports.iter().map(SimulatedPort::end).collect(),
        time,
    }
}

struct LearningSwitch {
    faults: LearningFaults,
    ports: usize,
    /// Port of each address, and a number that increases with the time of learning.
    stations: BTreeMap<[u8; 6], (usize, u64)>,
    /// Time at which the learning queue is empty.
    learned_ns: u64,
    /// Time at which the send queue is empty.
    busy_ns: u64,
    received: u64,
}

impl LearningSwitch {
    /// Returns the copies of a frame that leave the switch.
    fn forward(&mut self, at: &PortFrame) -> Vec<PortFrame> {
        self.received += 1;
        let LearningFaults {
            lose_every,
            lose_until,
            ..
        } = self.faults;
        let is_lost = lose_every.is_some_and(|every| self.received.is_multiple_of(every));
        if is_lost && self.received <= lose_until {
            return Vec::new();
        }
        let [to, source]: [[u8; 6]; 2] =
            [0, 6].map(|from| at.frame[from..from + 6].try_into().expect("it is a frame"));
        self.learn(at.ns, source, at.port);
        let ports: Vec<usize> = match self.stations.get(&to) {
            Some((port, _)) => vec![*port],
            None => (0..self.ports).filter(|port| *port != at.port).collect(),
        };
        let copies = (0..).zip(ports);
        let sent = copies.filter_map(|(copies, port)| {
            let ns = self.copied(at.ns, copies)?;
            let frame = at.frame.clone();
            Some(PortFrame { port, ns, frame })
        });
        sent.collect()
    }

    fn learn(&mut self, now: u64, source: [u8; 6], from: usize) {
        if self.stations.contains_key(&source) {
            return;
        }
        let LearningFaults {
            learn_ns,
            learn_queue,
            ..
        } = self.faults;
        let waits = self.learned_ns.saturating_sub(now);
        if waits > learn_ns * learn_queue {
            return;
        }
        self.learned_ns = self.learned_ns.max(now) + learn_ns;
        if self.stations.len() >= self.faults.stations {
            // The oldest address of the same port is removed, as switches do.
            let here = self.stations.iter().filter(|(_, (port, _))| *port == from);
            let oldest = here.min_by_key(|(_, (_, age))| *age);
            let Some(oldest) = oldest.map(|(address, _)| *address) else {
                return;
            };
            self.stations.remove(&oldest);
        }
        self.stations.insert(source, (from, self.received));
    }

    /// Returns the time at which a copy leaves after `copies` others; none if the queue is full.
    fn copied(&mut self, now: u64, copies: u64) -> Option<u64> {
        let LearningFaults {
            copy_ns,
            queue,
            delay_ns,
            port_ns,
            ..
        } = self.faults;
        if copy_ns > 0 && self.busy_ns.saturating_sub(now) > copy_ns * queue {
            return None;
        }
        self.busy_ns = self.busy_ns.max(now) + copy_ns;
        Some(self.busy_ns + delay_ns + copies * port_ns)
    }
}
