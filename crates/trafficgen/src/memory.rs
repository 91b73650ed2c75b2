//! Cables and devices in memory, on simulated time, that treat frames as they are told and say exactly what they
//! did: what a measurement reports must be that.
//!
//! For tests of whatever is built on the instrument: nothing here takes real time, and the same seeds give
//! the same frames.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::SplitMix64;

use super::{Arrivals, End, Receive, Stamps, Time, Transmit, wire};

/// A clock that goes on by the same step each time that it is read.
#[derive(Debug)]
pub struct SimulatedTime {
    now_ns: AtomicU64,
    step_ns: AtomicU64,
}

impl SimulatedTime {
    /// A clock at a second, so that nothing lies before its beginning.
    #[must_use]
    pub fn new(step_ns: u64) -> Arc<Self> {
        Arc::new(Self {
            now_ns: AtomicU64::new(1_000_000_000),
            step_ns: AtomicU64::new(step_ns),
        })
    }

    /// From now on it goes on by so much.
    pub fn set_step(&self, ns: u64) {
        self.step_ns.store(ns, Ordering::Relaxed);
    }

    /// The time, without going on.
    #[must_use]
    pub fn look_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Lets time pass.
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

/// How frames are treated that go one way. By default they come out at once and unharmed.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// Each is under way for so long.
    pub delay_ns: u64,
    /// And up to so much longer, by lot.
    pub jitter_ns: u64,
    /// Every how manieth is lost.
    pub lose_every: Option<u64>,
    /// The share that is lost by lot.
    pub lose_share: f64,
    /// Every how manieth comes twice.
    pub repeat_every: Option<u64>,
    /// Every how manieth is held back, and for how long.
    pub hold_every: Option<(u64, u64)>,
    /// A device that takes so long for each frame, and keeps so many that wait.
    pub service: Option<Service>,
    /// What is done to each frame's bytes: the frame, and its number from one.
    pub rewrite: Option<fn(&mut Vec<u8>, u64)>,
    /// The sender takes a frame no sooner than so long after the one before.
    pub sender_gap_ns: u64,
    /// Every how manieth comes, and is lost by the tester.
    pub drop_every: Option<u64>,
    /// Nothing comes through within these times.
    pub dark_ns: Range<u64>,
    /// Whether the sender sees that, and counts what it could not send.
    pub without_carrier: bool,
    /// Determines the lots.
    pub seed: u64,
}

/// A device of limited capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// How long it takes for a frame.
    pub frame_ns: u64,
    /// How many may wait; others are lost.
    pub queue: u64,
}

/// What was done to frames on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many were sent.
    pub sent: u64,
    /// How many of them were lost on the path.
    pub lost: u64,
    /// How many came twice.
    pub repeated: u64,
    /// How many were held back.
    pub held: u64,
    /// How many the tester lost.
    pub dropped: u64,
}

/// A frame at a port, by the port's number, and when it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The port.
    pub port: usize,
    /// When.
    pub ns: u64,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What becomes of a frame that is through with the path of the port by which it came in: where each copy of it
/// leaves, and when.
pub type Forward = Box<dyn FnMut(At) -> Vec<At> + Send>;

/// A port of a device: frames are sent into it, and come out of it.
#[derive(Clone)]
pub struct Way {
    port: usize,
    device: Arc<Mutex<Device>>,
    time: Arc<SimulatedTime>,
}

struct Device {
    ports: Vec<State>,
    forward: Forward,
    order: u64,
}

/// A port, and the path of frames that come in there.
struct State {
    path: Path,
    random: SplitMix64,
    done: Done,
    busy_until_ns: u64,
    sender_free_ns: u64,
    /// Frames that are to leave here: when each comes, in which order it was sent, what it is.
    under_way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    drops: u64,
    /// Frames that were taken and not sent.
    unsent: u64,
}

/// A cable with these two ways, and what was done on each of them.
#[must_use]
pub fn cable(time: &Arc<SimulatedTime>, forth: Path, back: Path) -> ([End; 2], [Way; 2]) {
    let across = |at: At| {
        let port = 1 - at.port;
        vec![At { port, ..at }]
    };
    let ways = device(time, vec![forth, back], Box::new(across));
    let ways: [Way; 2] = ways.try_into().unwrap_or_else(|_| panic!("there are two"));
    (ways.each_ref().map(Way::end), ways)
}

/// A device with a port for each of `paths`, which is the way of what comes in there.
#[must_use]
pub fn device(time: &Arc<SimulatedTime>, paths: Vec<Path>, forward: Forward) -> Vec<Way> {
    let count = paths.len();
    let device = Device {
        ports: paths.into_iter().map(State::new).collect(),
        forward,
        order: 0,
    };
    let device = Arc::new(Mutex::new(device));
    let way = |port| Way {
        port,
        device: Arc::clone(&device),
        time: Arc::clone(time),
    };
    (0..count).map(way).collect()
}

impl Way {
    /// An instrument's end at this port.
    #[must_use]
    pub fn end(&self) -> End {
        End {
            transmit: Box::new(self.clone()),
            receive: Box::new(self.clone()),
        }
    }

    /// What was done so far to frames that came in here.
    #[must_use]
    pub fn done(&self) -> Done {
        self.device().ports[self.port].done
    }

    /// The next frame that has come out here, and when; none if there is none yet.
    #[must_use]
    pub fn take(&self) -> Option<(u64, Vec<u8>)> {
        let now = self.time.look_ns();
        self.device().ports[self.port].come_out(now)
    }

    /// When the next frame comes out here; none if none is under way.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let device = self.device();
        let next = device.ports[self.port].under_way.peek();
        next.map(|Reverse((at, ..))| *at)
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transmit for Way {
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

    fn way(&self) -> wire::Way {
        wire::Way::Memory
    }
}

impl Receive for Way {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let mut device = self.device();
        while arrivals.room() > 0 {
            let Some((at, frame)) = device.ports[self.port].come_out(now) else {
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

/// What became of a frame on a port's path.
enum Fate {
    Lost,
    /// It is through, then, so many times.
    Through(u64, usize),
    /// It is through, and lost by the tester.
    Dropped(u64),
}

impl Device {
    fn take(&mut self, port: usize, now: u64, frame: &[u8]) {
        let mut bytes = frame.to_vec();
        let (at, copies) = match self.ports[port].treat(now, &mut bytes) {
            Fate::Lost => return,
            Fate::Through(at, copies) => (at, copies),
            Fate::Dropped(at) => (at, 0),
        };
        let through = At {
            port,
            ns: at,
            frame: bytes,
        };
        for At { port, ns, frame } in (self.forward)(through) {
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

impl State {
    fn new(path: Path) -> Self {
        Self {
            random: SplitMix64::new(path.seed),
            path,
            done: Done::default(),
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

    /// When the device is done with a frame that comes now; none if it has no room for it.
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

    /// The next frame to leave here, if it has come by now.
    fn come_out(&mut self, now: u64) -> Option<(u64, Vec<u8>)> {
        let has_come = matches!(self.under_way.peek(), Some(Reverse((at, ..))) if *at <= now);
        let next = if has_come { self.under_way.pop() } else { None };
        next.map(|Reverse((at, _, bytes))| (at, bytes))
    }
}
