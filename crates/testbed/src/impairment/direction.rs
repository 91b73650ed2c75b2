//! One direction of the forwarder with faults: the fate of each frame, and its departure time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::time::Duration;

use base::{Instant, SplitMix64};

use super::Faults;
use super::sampler::FaultSampler;

/// The largest amount of delayed data: 0.25 s at 1 Gbit/s, or 4 s of 10,000 small frames a second
/// with their overhead.
const HELD_BYTES_MAX: usize = 32 << 20;

/// The overhead of a delayed frame.
const HELD_FRAME_BYTES: usize = 128;

/// The most buffers of sent frames that are kept for reuse.
const SPARE_MAX: usize = 256;

/// The length of the FCS, which the forwarder does not see.
const FCS_BYTES: u64 = 4;

/// Counters of the faults of one direction. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Frames received.
    pub received: u64,
    /// Frames deliberately lost.
    pub lost: u64,
    /// Frames modified.
    pub changed: u64,
    /// Frames duplicated.
    pub duplicated: u64,
    /// Frames delayed for reordering.
    pub held_back: u64,
    /// Frames that left after a frame that arrived later (RFC 4737, 3.3).
    pub reordered: u64,
    /// Frames dropped because the queue of the rate limit was full.
    pub queue_dropped: u64,
    /// Frames dropped because too much data was delayed.
    pub no_room: u64,
    /// Frames sent, including duplicates.
    pub sent: u64,
    /// Frames refused by the interface.
    pub refused: u64,
    /// The sum of the residence times of sent frames.
    pub held_ns_sum: u64,
    /// The longest residence time.
    pub held_ns_max: u64,
    /// The sum of the lateness of sent frames.
    pub late_ns_sum: u64,
    /// The largest lateness.
    pub late_ns_max: u64,
}

impl FaultCounts {
    /// Frames that were received and will never leave.
    #[must_use]
    pub const fn discarded(&self) -> u64 {
        self.lost + self.queue_dropped + self.no_room + self.refused
    }

    /// The mean residence time in nanoseconds; 0 if no frame left.
    #[must_use]
    pub fn held_ns_mean(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.held_ns_sum as f64 / self.sent as f64)
    }
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("received", self.received),
            ("lost", self.lost),
            ("changed", self.changed),
            ("duplicated", self.duplicated),
            ("held back", self.held_back),
            ("reordered", self.reordered),
            ("dropped by the queue", self.queue_dropped),
            ("dropped for want of memory", self.no_room),
            ("sent", self.sent),
            ("refused by the interface", self.refused),
        ];
        for (name, count) in counts {
            write!(f, "{name} {count}, ")?;
        }
        let mean = |sum: u64| sum as f64 / self.sent.max(1) as f64;
        let (held, late) = (mean(self.held_ns_sum), mean(self.late_ns_sum));
        write!(
            f,
            "held {held:.0} ns on average and {} at most",
            self.held_ns_max
        )?;
        write!(
            f,
            ", late by {late:.0} ns on average and {} at most",
            self.late_ns_max
        )
    }
}

/// A delayed frame.
#[derive(Debug)]
struct DelayedFrame {
    due: Instant,
    /// The order of frames with the same departure time.
    place: u64,
    number: u64,
    received_at: Instant,
    bytes: Vec<u8>,
}

/// The state of one direction.
#[derive(Debug)]
pub(super) struct ImpairedDirection {
    faults: Faults,
    loss: FaultSampler,
    duplication: FaultSampler,
    change: FaultSampler,
    reordering: FaultSampler,
    jitter: SplitMix64,
    /// The time at which the rate limit will have sent the last accepted frame.
    free_at: Instant,
    /// The end of transmission of each frame in the queue of the rate limit.
    queue: VecDeque<Instant>,
    /// The departure time of the last frame in order; later ones do not leave before it.
    latest: Instant,
    held: BinaryHeap<Reverse<DelayedFrame>>,
    held_bytes: usize,
    placed: u64,
    /// The highest number that has left.
    left: u64,
    spare: Vec<Vec<u8>>,
    counts: FaultCounts,
}

impl ImpairedDirection {
    pub(super) fn new(faults: Faults, seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        Self {
            loss: FaultSampler::new(faults.loss, seeds.next_u64()),
            duplication: FaultSampler::new(faults.duplication, seeds.next_u64()),
            change: FaultSampler::new(faults.change, seeds.next_u64()),
            reordering: FaultSampler::new(faults.reordering, seeds.next_u64()),
            jitter: SplitMix64::new(seeds.next_u64()),
            faults,
            free_at: Instant::START,
            queue: VecDeque::new(),
            latest: Instant::START,
            held: BinaryHeap::new(),
            held_bytes: 0,
            placed: 0,
            left: 0,
            spare: Vec::new(),
            counts: FaultCounts::default(),
        }
    }

    /// Returns the counters.
    pub(super) const fn counts(&self) -> &FaultCounts {
        &self.counts
    }

    /// Accepts a frame that arrives at `now`.
    pub(super) fn handle_frame(&mut self, frame: &[u8], now: Instant) {
        self.counts.received += 1;
        let number = self.counts.received;
        let is_lost = self.loss.sample();
        let is_changed = self.change.sample();
        let is_duplicated = self.duplication.sample();
        let is_delayed = self.reordering.sample();
        if is_lost {
            self.counts.lost += 1;
            return;
        }
        self.counts.changed += u64::from(is_changed);
        self.counts.duplicated += u64::from(is_duplicated);
        self.counts.held_back += u64::from(is_delayed);
        for _ in 0..=u8::from(is_duplicated) {
            let Some(passed) = self.pass(frame.len(), now) else {
                self.counts.queue_dropped += 1;
                continue;
            };
            let due = self.due(passed, is_delayed);
            self.hold(frame, is_changed, (number, now, due));
        }
    }

    /// Returns a frame that is due by `now`; the caller returns its buffer to
    /// [`ImpairedDirection::handle_sent`].
    pub(super) fn poll_frame(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.held.peek()?.0.due > now {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        let counts = &mut self.counts;
        let (whole, late) = (
            nanos(now.since(held.received_at)),
            nanos(now.since(held.due)),
        );
        counts.held_ns_sum += whole;
        counts.held_ns_max = counts.held_ns_max.max(whole);
        counts.late_ns_sum += late;
        counts.late_ns_max = counts.late_ns_max.max(late);
        counts.reordered += u64::from(held.number < self.left);
        self.left = self.left.max(held.number);
        self.held_bytes -= held.bytes.len() + HELD_FRAME_BYTES;
        Some(held.bytes)
    }

    /// Takes the buffer of a frame that was sent, or refused by the interface.
    pub(super) fn handle_sent(&mut self, frame: Vec<u8>, refused: bool) {
        match refused {
            true => self.counts.refused += 1,
            false => self.counts.sent += 1,
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(frame);
        }
    }

    /// The time at which a frame of `length` bytes has passed the rate limit; `None` if the queue
    /// is full.
    fn pass(&mut self, length: usize, now: Instant) -> Option<Instant> {
        let Some(rate) = self.faults.rate_bits else {
            return Some(now);
        };
        while self.queue.front().is_some_and(|passed| *passed <= now) {
            self.queue.pop_front();
        }
        if self.queue.len() > self.faults.queue_frames {
            // The first frame of the queue is in transmission and does not count.
            return None;
        }
        let bits = (length as u64 + FCS_BYTES) * 8;
        let takes = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / rate);
        self.free_at = self.free_at.max(now) + takes;
        self.queue.push_back(self.free_at);
        Some(self.free_at)
    }

    /// The departure time of a frame that passed the rate limit at `passed`.
    fn due(&mut self, passed: Instant, is_delayed: bool) -> Instant {
        let jitter = self.faults.jitter.mul_f64(self.jitter.unit());
        let due = (passed + self.faults.delay + jitter).max(self.latest);
        if is_delayed {
            return due + self.faults.reordering_by;
        }
        self.latest = due;
        due
    }

    fn hold(&mut self, frame: &[u8], is_changed: bool, times: (u64, Instant, Instant)) {
        let (number, received_at, due) = times;
        let size = frame.len() + HELD_FRAME_BYTES;
        if self.held_bytes + size > HELD_BYTES_MAX {
            self.counts.no_room += 1;
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        if let Some(last) = bytes.last_mut().filter(|_| is_changed) {
            *last ^= 0xff;
        }
        self.held_bytes += size;
        self.placed += 1;
        self.held.push(Reverse(DelayedFrame {
            due,
            place: self.placed,
            number,
            received_at,
            bytes,
        }));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl DelayedFrame {
    const fn key(&self) -> (Instant, u64) {
        (self.due, self.place)
    }
}

impl Ord for DelayedFrame {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for DelayedFrame {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DelayedFrame {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DelayedFrame {}

#[cfg(test)]
mod tests;
