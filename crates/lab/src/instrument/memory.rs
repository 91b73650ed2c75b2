//! A cable in memory, on simulated time, that treats frames as it is told and says exactly what it did: what a
//! measurement reports must be that.
//!
//! For tests of whatever is built on the instrument: nothing here takes real time, and the same seeds give
//! the same frames.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Arrivals, End, Receive, Stamps, Time, Transmit, wire};
use crate::random::Random;

/// A clock that goes on by the same step each time that it is read.
#[derive(Debug)]
pub struct SimulatedTime {
    now_ns: AtomicU64,
    step_ns: u64,
}

impl SimulatedTime {
    /// A clock at a second, so that nothing lies before its beginning.
    #[must_use]
    pub fn new(step_ns: u64) -> Arc<Self> {
        Arc::new(Self {
            now_ns: AtomicU64::new(1_000_000_000),
            step_ns,
        })
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
        self.now_ns.fetch_add(self.step_ns, Ordering::Relaxed) + self.step_ns
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

/// One way of a cable.
#[derive(Clone)]
pub struct Way {
    state: Arc<Mutex<State>>,
    time: Arc<SimulatedTime>,
}

struct State {
    path: Path,
    random: Random,
    done: Done,
    /// When it comes, in which order it was sent, what it is.
    under_way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    order: u64,
    busy_until_ns: u64,
    sender_free_ns: u64,
    drops: u64,
}

/// A cable with these two ways, and what was done on each of them.
#[must_use]
pub fn cable(time: &Arc<SimulatedTime>, forth: Path, back: Path) -> ([End; 2], [Way; 2]) {
    let ways = [forth, back].map(|path| Way::new(time, path));
    let [forth, back] = &ways;
    let end = |out: &Way, into: &Way| End {
        transmit: Box::new(out.clone()),
        receive: Box::new(into.clone()),
    };
    ([end(forth, back), end(back, forth)], ways)
}

impl Way {
    /// A way from one end to another.
    #[must_use]
    pub fn new(time: &Arc<SimulatedTime>, path: Path) -> Self {
        let state = State {
            random: Random::new(path.seed),
            path,
            done: Done::default(),
            under_way: BinaryHeap::new(),
            order: 0,
            busy_until_ns: 0,
            sender_free_ns: 0,
            drops: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            time: Arc::clone(time),
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn done(&self) -> Done {
        self.state().done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transmit for Way {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let now = self.time.look_ns();
        let mut state = self.state();
        for (taken, frame) in frames.iter().enumerate() {
            if now < state.sender_free_ns {
                return Ok(taken);
            }
            state.sender_free_ns = now + state.path.sender_gap_ns;
            state.take(now, frame);
        }
        Ok(frames.len())
    }

    fn way(&self) -> wire::Way {
        wire::Way::Memory
    }
}

impl Receive for Way {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let mut state = self.state();
        while arrivals.room() > 0 {
            match state.under_way.peek() {
                Some(Reverse((at, ..))) if *at <= now => {}
                _ => break,
            }
            if let Some(Reverse((at, _, frame))) = state.under_way.pop() {
                arrivals.push(at, &[&frame]);
            }
        }
        Ok(())
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        Ok(std::mem::take(&mut self.state().drops))
    }

    fn stamps(&self) -> Stamps {
        Stamps::Simulated
    }
}

impl State {
    fn take(&mut self, now: u64, frame: &[u8]) {
        self.done.sent += 1;
        let nth = self.done.sent;
        let is = |every: Option<u64>| every.is_some_and(|every| nth.is_multiple_of(every));
        let share = (self.random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        if is(self.path.drop_every) {
            self.done.dropped += 1;
            self.drops += 1;
            return;
        }
        if is(self.path.lose_every) || share < self.path.lose_share {
            self.done.lost += 1;
            return;
        }
        let Some(mut at) = self.served(now) else {
            self.done.lost += 1;
            return;
        };
        at += self.path.delay_ns;
        if self.path.jitter_ns > 0 {
            at += self.random.next() % (self.path.jitter_ns + 1);
        }
        if let Some((every, ns)) = self.path.hold_every
            && nth.is_multiple_of(every)
        {
            self.done.held += 1;
            at += ns;
        }
        let mut bytes = frame.to_vec();
        if let Some(rewrite) = self.path.rewrite {
            rewrite(&mut bytes, nth);
        }
        if is(self.path.repeat_every) {
            self.done.repeated += 1;
            self.put(at, bytes.clone());
        }
        self.put(at, bytes);
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

    fn put(&mut self, at: u64, bytes: Vec<u8>) {
        self.under_way.push(Reverse((at, self.order, bytes)));
        self.order += 1;
    }
}
