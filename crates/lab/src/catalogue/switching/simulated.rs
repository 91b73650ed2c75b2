//! Simulated switch on simulated time, with a configured learning rate, capacity and copy time: the
//! results of an experiment must equal these settings.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trafficgen::memory::SimulatedTime;
use trafficgen::{Arrivals, Receive, SendMethod, Stamps, TestPort, Transmit};

use super::station;
use crate::catalogue::lines::memory::{STEP_NS, SimulatedLines};

/// Least time between two frames at a port: a million frames per second.
const FRAME_NS: u64 = 1_000;

/// Capabilities of a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    /// Capacity in addresses; a new address replaces the oldest.
    pub(super) stations: usize,
    /// Time to learn an address, and length of the queue for it; addresses beyond that are not
    /// learned.
    pub(super) learn_ns: u64,
    pub(super) learn_queue: u64,
    /// Time to send a frame, and length of the queue for it; frames beyond that are lost.
    pub(super) copy_ns: u64,
    pub(super) queue: u64,
    /// Delay of a frame in addition to that, and further delay for each preceding copy.
    pub(super) delay_ns: u64,
    pub(super) port_ns: u64,
    /// Loss of every n-th received frame, among the first `lose_until` frames.
    pub(super) lose_every: Option<u64>,
    pub(super) lose_until: u64,
}

impl Default for Faults {
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
pub(super) fn switch(ports: usize, known: Range<usize>, faults: Faults) -> SimulatedLines {
    let time = SimulatedTime::new(STEP_NS);
    let state = State {
        faults,
        stations: BTreeMap::new(),
        learned_ns: 0,
        busy_ns: 0,
        received: 0,
        out: (0..ports).map(|_| VecDeque::new()).collect(),
    };
    let state = Arc::new(Mutex::new(state));
    let port = |number: usize| Port {
        number,
        state: Arc::clone(&state),
        time: Arc::clone(&time),
        free_ns: 0,
    };
    for host in known {
        let mut state = lock(&state);
        let age = state.stations.len() as u64;
        state.stations.insert(station(host).mac, (host, age));
    }
    let end = |number| TestPort {
        transmit: Box::new(port(number)),
        receive: Box::new(port(number)),
    };
    SimulatedLines {
        ends: (0..ports).map(end).collect(),
        time,
    }
}

struct Port {
    number: usize,
    state: Arc<Mutex<State>>,
    time: Arc<SimulatedTime>,
    /// Time from which it accepts the next frame.
    free_ns: u64,
}

struct State {
    faults: Faults,
    /// Port of each address, and a number that increases with the time of learning.
    stations: BTreeMap<[u8; 6], (usize, u64)>,
    /// Time at which the learning queue is empty.
    learned_ns: u64,
    /// Time at which the send queue is empty.
    busy_ns: u64,
    received: u64,
    /// Frames of each port, in the order of time.
    out: Vec<VecDeque<(u64, Vec<u8>)>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transmit for Port {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let now = self.time.look_ns();
        let mut state = lock(&self.state);
        for (taken, frame) in frames.iter().enumerate() {
            if now < self.free_ns {
                return Ok(taken);
            }
            self.free_ns = now + FRAME_NS;
            state.take(now, self.number, frame);
        }
        Ok(frames.len())
    }

    fn send_method(&self) -> SendMethod {
        SendMethod::Memory
    }
}

impl Receive for Port {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let mut state = lock(&self.state);
        let out = &mut state.out[self.number];
        while arrivals.room() > 0 && out.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((at, frame)) = out.pop_front() {
                arrivals.push(at, &[&frame]);
            }
        }
        Ok(())
    }

    fn stamps(&self) -> Stamps {
        Stamps::Simulated
    }
}

impl State {
    fn take(&mut self, now: u64, from: usize, frame: &[u8]) {
        self.received += 1;
        let Faults {
            lose_every,
            lose_until,
            ..
        } = self.faults;
        let is_lost = lose_every.is_some_and(|every| self.received.is_multiple_of(every));
        if is_lost && self.received <= lose_until {
            return;
        }
        let [to, source]: [[u8; 6]; 2] =
            [0, 6].map(|at| frame[at..at + 6].try_into().expect("it is a frame"));
        self.learn(now, source, from);
        let ports: Vec<usize> = match self.stations.get(&to) {
            Some((port, _)) => vec![*port],
            None => (0..self.out.len()).filter(|port| *port != from).collect(),
        };
        for (copies, port) in (0..).zip(ports) {
            self.forward(now, port, copies, frame);
        }
    }

    fn learn(&mut self, now: u64, source: [u8; 6], from: usize) {
        if self.stations.contains_key(&source) {
            return;
        }
        let Faults {
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

    fn forward(&mut self, now: u64, port: usize, copies: u64, frame: &[u8]) {
        let Faults {
            copy_ns,
            queue,
            delay_ns,
            port_ns,
            ..
        } = self.faults;
        if copy_ns > 0 && self.busy_ns.saturating_sub(now) > copy_ns * queue {
            return;
        }
        self.busy_ns = self.busy_ns.max(now) + copy_ns;
        let at = self.busy_ns + delay_ns + copies * port_ns;
        self.out[port].push_back((at, frame.to_vec()));
    }
}
