//! Cables and devices in memory, on simulated time. They apply configured impairments to frames and
//! count each one, so that tests can compare a measurement with the exact truth.
//!
//! For tests of code that uses the tester: nothing here takes real time, and equal seeds give equal
//! frames.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::SplitMix64;

use super::{Arrivals, Receive, Stamps, TestPort, Time, Transmit, wire};

/// A clock that advances by a fixed step with each reading.
#[derive(Debug)]
pub struct SimulatedTime {
    now_ns: AtomicU64,
    step_ns: AtomicU64,
}

impl SimulatedTime {
    /// A clock that starts at one second, so that earlier times can be represented.
    #[must_use]
    pub fn new(step_ns: u64) -> Arc<Self> {
        Arc::new(Self {
            now_ns: AtomicU64::new(1_000_000_000),
            step_ns: AtomicU64::new(step_ns),
        })
    }

    /// Sets the step of later readings.
    pub fn set_step(&self, ns: u64) {
        self.step_ns.store(ns, Ordering::Relaxed);
    }

    /// The time, without a step.
    #[must_use]
    pub fn look_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Advances the clock.
    pub fn pass(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Time for SimulatedTime {
    fn now_ns(&self) -> u64 {
        let step_ns = self.step_ns.load(Ordering::Relaxed);
        self.now_ns.fetch_add(step_ns, Ordering::Relaxed) + step_ns
    }
}

/// The impairments of one direction. The default forwards frames immediately and unmodified.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The delay of each frame.
    pub delay_ns: u64,
    /// The upper bound of a random additional delay.
    pub jitter_ns: u64,
    /// Every nth frame is lost.
    pub lose_every: Option<u64>,
    /// The share of randomly lost frames.
    pub lose_share: f64,
    /// Every nth frame is duplicated.
    pub repeat_every: Option<u64>,
    /// Every nth frame is delayed by an additional time.
    pub hold_every: Option<(u64, u64)>,
    /// The capacity of a device with a queue.
    pub service: Option<Service>,
    /// A function that modifies the bytes of each frame, given the frame and its number, from 1.
    pub rewrite: Option<fn(&mut Vec<u8>, u64)>,
    /// The shortest time between two frames that the sender accepts.
    pub sender_gap_ns: u64,
    /// Every nth frame arrives and is dropped by the tester.
    pub drop_every: Option<u64>,
    /// A time range in which all frames are lost.
    pub dark_ns: Range<u64>,
    /// True if the sender detects the loss of carrier, and counts the frames that it could not
    /// send.
    pub without_carrier: bool,
    /// The seed of the random decisions.
    pub seed: u64,
}

/// A device of limited capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The service time of a frame.
    pub frame_ns: u64,
    /// The queue length in frames; further frames are lost.
    pub queue: u64,
}

/// Counters of the impairments on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Frames sent.
    pub sent: u64,
    /// Frames lost on the path.
    pub lost: u64,
    /// Frames duplicated.
    pub repeated: u64,
    /// Frames delayed by [`Path::hold_every`].
    pub held: u64,
    /// Frames dropped by the tester.
    pub dropped: u64,
}

/// A frame at a port, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFrame {
    /// The port's number.
    pub port: usize,
    /// The time in nanoseconds.
    pub ns: u64,
    /// The bytes.
    pub frame: Vec<u8>,
}

/// The forwarding function of a device: takes a frame after the path of its ingress port, and
/// returns its copies with egress port and time.
pub type Forward = Box<dyn FnMut(PortFrame) -> Vec<PortFrame> + Send>;

/// A port of a device.
#[derive(Clone)]
pub struct SimulatedPort {
    port: usize,
    device: Arc<Mutex<SimulatedDevice>>,
    time: Arc<SimulatedTime>,
}

struct SimulatedDevice {
    ports: Vec<DevicePort>,
    forward: Forward,
    order: u64,
}

/// A port, and the path of its ingress frames.
struct DevicePort {
    path: Path,
    random: SplitMix64,
    done: PathCounts,
    busy_until_ns: u64,
    sender_free_ns: u64,
    /// Frames in transit to this port: time of arrival, order of transmission, bytes.
    under_way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    drops: u64,
    /// Frames accepted but not sent.
    unsent: u64,
}

/// A cable with an impairment for each direction, and handles for its counters.
#[must_use]
pub fn cable(
    time: &Arc<SimulatedTime>,
    forth: Path,
    back: Path,
) -> ([TestPort; 2], [SimulatedPort; 2]) {
    let across = |at: PortFrame| {
        let port = 1 - at.port;
        vec![PortFrame { port, ..at }]
    };
    let ways = device(time, vec![forth, back], Box::new(across));
    let ways: [SimulatedPort; 2] = ways.try_into().unwrap_or_else(|_| panic!("there are two"));
    (ways.each_ref().map(SimulatedPort::end), ways)
}

/// A device with one port for each of `paths`, the impairment of its ingress frames.
#[must_use]
pub fn device(time: &Arc<SimulatedTime>, paths: Vec<Path>, forward: Forward) -> Vec<SimulatedPort> {
    let count = paths.len();
    let device = SimulatedDevice {
        ports: paths.into_iter().map(DevicePort::new).collect(),
        forward,
        order: 0,
    };
    let device = Arc::new(Mutex::new(device));
    let way = |port| SimulatedPort {
        port,
        device: Arc::clone(&device),
        time: Arc::clone(time),
    };
    (0..count).map(way).collect()
}

impl SimulatedPort {
    /// The test port that is connected here.
    #[must_use]
    pub fn end(&self) -> TestPort {
        TestPort {
            transmit: Box::new(self.clone()),
            receive: Box::new(self.clone()),
        }
    }

    /// The counters of ingress frames so far.
    #[must_use]
    pub fn done(&self) -> PathCounts {
        self.device().ports[self.port].done
    }

    /// The next frame that has arrived here, and its time of arrival.
    #[must_use]
    pub fn take(&self) -> Option<(u64, Vec<u8>)> {
        let now = self.time.look_ns();
        self.device().ports[self.port].pop_arrived(now)
    }

    /// The arrival time of the next frame in transit.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let device = self.device();
        let next = device.ports[self.port].under_way.peek();
        next.map(|Reverse((at, ..))| *at)
    }

    fn device(&self) -> MutexGuard<'_, SimulatedDevice> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transmit for SimulatedPort {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let now = self.time.look_ns();
        let mut device = self.device();
        for (taken, frame) in frames.iter().enumerate() {
            let port = &mut device.ports[self.port];
            if now < port.sender_free_ns {
                return Ok(taken);
            }
            port.sender_free_ns = now + port.path.sender_gap_ns;
            device.take(self.port, now, frame);
        }
        Ok(frames.len())
    }

    fn take_drops(&mut self) -> u64 {
        std::mem::take(&mut self.device().ports[self.port].unsent)
    }

    fn send_method(&self) -> wire::SendMethod {
        wire::SendMethod::Memory
    }
}

impl Receive for SimulatedPort {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let mut device = self.device();
        while arrivals.room() > 0 {
            let Some((at, frame)) = device.ports[self.port].pop_arrived(now) else {
                break;
            };
            arrivals.push(at, &[&frame]);
        }
        Ok(())
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        Ok(std::mem::take(&mut self.device().ports[self.port].drops))
    }

    fn stamps(&self) -> Stamps {
        Stamps::Simulated
    }
}

/// The result of a port's path for one frame.
enum Fate {
    Lost,
    /// Passed at this time, in this many copies.
    Through(u64, usize),
    /// Passed at this time, and dropped by the tester.
    Dropped(u64),
}

impl SimulatedDevice {
    fn take(&mut self, port: usize, now: u64, frame: &[u8]) {
        let mut bytes = frame.to_vec();
        let (at, copies) = match self.ports[port].treat(now, &mut bytes) {
            Fate::Lost => return,
            Fate::Through(at, copies) => (at, copies),
            Fate::Dropped(at) => (at, 0),
        };
        let through = PortFrame {
            port,
            ns: at,
            frame: bytes,
        };
        for PortFrame { port, ns, frame } in (self.forward)(through) {
            let Some(out) = self.ports.get_mut(port) else {
                continue;
            };
            if copies == 0 {
                out.drops += 1;
            }
            for _ in 0..copies {
                out.under_way.push(Reverse((ns, self.order, frame.clone())));
                self.order += 1;
            }
        }
    }
}

impl DevicePort {
    fn new(path: Path) -> Self {
        Self {
            random: SplitMix64::new(path.seed),
            path,
            done: PathCounts::default(),
            busy_until_ns: 0,
            sender_free_ns: 0,
            under_way: BinaryHeap::new(),
            drops: 0,
            unsent: 0,
        }
    }

    fn treat(&mut self, now: u64, bytes: &mut Vec<u8>) -> Fate {
        self.done.sent += 1;
        let nth = self.done.sent;
        let is = |every: Option<u64>| every.is_some_and(|every| nth.is_multiple_of(every));
        let share = self.random.unit();
        if is(self.path.drop_every) {
            self.done.dropped += 1;
            return Fate::Dropped(now);
        }
        let lost = is(self.path.lose_every) || share < self.path.lose_share;
        let is_dark = self.path.dark_ns.contains(&now);
        self.unsent += u64::from(is_dark && self.path.without_carrier);
        let served = if lost || is_dark {
            None
        } else {
            self.served(now)
        };
        let Some(mut at) = served else {
            self.done.lost += 1;
            return Fate::Lost;
        };
        at += self.path.delay_ns;
        if self.path.jitter_ns > 0 {
            at += self.random.next_u64() % (self.path.jitter_ns + 1);
        }
        if let Some((every, ns)) = self.path.hold_every
            && nth.is_multiple_of(every)
        {
            self.done.held += 1;
            at += ns;
        }
        if let Some(rewrite) = self.path.rewrite {
            rewrite(bytes, nth);
        }
        if is(self.path.repeat_every) {
            self.done.repeated += 1;
            return Fate::Through(at, 2);
        }
        Fate::Through(at, 1)
    }

    /// The end of service for a frame that arrives now; `None` if the queue is full.
    fn served(&mut self, now: u64) -> Option<u64> {
        let Some(Service { frame_ns, queue }) = self.path.service else {
            return Some(now);
        };
        let waiting = self
            .busy_until_ns
            .saturating_sub(now)
            .div_ceil(frame_ns.max(1));
        if waiting > queue {
            return None;
        }
        self.busy_until_ns = self.busy_until_ns.max(now) + frame_ns;
        Some(self.busy_until_ns)
    }

    /// The next frame to leave here, if its time has been reached.
    fn pop_arrived(&mut self, now: u64) -> Option<(u64, Vec<u8>)> {
        let has_arrived = matches!(self.under_way.peek(), Some(Reverse((at, ..))) if *at <= now);
        let next = if has_arrived {
            self.under_way.pop()
        } else {
            None
        };
        next.map(|Reverse((at, _, bytes))| (at, bytes))
    }
}
