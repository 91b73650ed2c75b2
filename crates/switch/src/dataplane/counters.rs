//! What a worker does, what it drops, and what it leaves to the interpreter, by reason: plain
//! loads and stores in cells of its own, summed by whoever reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastpath::Reason;
use pipeline::DropReason;

/// Why a worker dropped a frame, or an event, beside the reasons that the
/// interpreter gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Drop {
    /// The port's bridge is not in the program yet, or any more.
    NoBridge,
    /// The egress port has no queue yet, or any more.
    NoPort,
    /// The egress queue was full.
    PortFull,
    /// No buffer was left for a copy or a segment.
    NoBuffer,
    /// `NORMAL` could not read the frame's addresses.
    NormalUnreadable,
    /// `NORMAL` keeps frames for bridges, and those whose destination is where they came from.
    NormalFiltered,
    /// The station's port forwards nothing now.
    NormalPortDown,
    /// A station was not learned: the control thread had more to do than it could.
    LearnNoRoom,
    /// A packet-in was not sent: the control thread had more to do than it could.
    PacketInNoRoom,
}

const DROPS: [(Drop, &str); 9] = [
    (Drop::NoBridge, "no_bridge"),
    (Drop::NoPort, "no_port"),
    (Drop::PortFull, "port_full"),
    (Drop::NoBuffer, "no_buffer"),
    (Drop::NormalUnreadable, "normal_unreadable"),
    (Drop::NormalFiltered, "normal_filtered"),
    (Drop::NormalPortDown, "normal_port_down"),
    (Drop::LearnNoRoom, "learn_no_room"),
    (Drop::PacketInNoRoom, "packet_in_no_room"),
];

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Frames that came.
    pub(crate) frames: u64,
    /// Batches in which they came.
    pub(crate) batches: u64,
    /// The time of the turns in which any came.
    pub(crate) busy: Duration,
}

/// The counters of one worker, in cache lines that no other worker writes to.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct WorkerCounters {
    /// Frames that came, batches of them, and the nanoseconds that they took.
    frames: AtomicU64,
    batches: AtomicU64,
    busy_ns: AtomicU64,
    drops: [AtomicU64; DROPS.len()],
    reasons: [AtomicU64; DropReason::COUNT],
    handed: [AtomicU64; Reason::ALL.len()],
}

impl WorkerCounters {
    pub(crate) fn new() -> Arc<Self> {
        let zeros = || AtomicU64::new(0);
        Arc::new(Self {
            frames: zeros(),
            batches: zeros(),
            busy_ns: zeros(),
            drops: std::array::from_fn(|_| zeros()),
            reasons: std::array::from_fn(|_| zeros()),
            handed: std::array::from_fn(|_| zeros()),
        })
    }

    /// The worker: one more of these.
    pub(crate) fn count(&self, drop: Drop) {
        self.add(drop, 1);
    }

    /// The worker: so many more of these.
    pub(crate) fn add(&self, drop: Drop, count: usize) {
        bump(&self.drops[drop as usize], count as u64);
    }

    /// The worker: the interpreter dropped a frame.
    pub(crate) fn count_reason(&self, reason: DropReason) {
        bump(&self.reasons[reason.index()], 1);
    }

    /// The worker: so many frames were handed to the interpreter, for each reason.
    pub(crate) fn add_handed(&self, counts: [u64; Reason::ALL.len()]) {
        for (cell, count) in self.handed.iter().zip(counts) {
            if count > 0 {
                bump(cell, count);
            }
        }
    }

    /// The worker: a batch of so many frames has come.
    pub(crate) fn add_batch(&self, frames: usize) {
        bump(&self.batches, 1);
        bump(&self.frames, frames as u64);
    }

    /// The worker: a turn in which frames came took so long.
    pub(crate) fn add_busy(&self, took: Duration) {
        bump(
            &self.busy_ns,
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        );
    }

    /// What it has done.
    pub(crate) fn work(&self) -> Work {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Work {
            frames: read(&self.frames),
            batches: read(&self.batches),
            busy: Duration::from_nanos(read(&self.busy_ns)),
        }
    }

    /// Every counter of what was dropped or handed on, by name.
    pub(crate) fn read(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.drops().chain(self.handed())
    }

    /// What was handed to the interpreter, by reason.
    pub(crate) fn handed(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rows = Reason::ALL.iter().zip(&self.handed);
        rows.map(|((_, name), cell)| (*name, cell.load(Ordering::Relaxed)))
    }

    /// What was dropped, by reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let drops = DROPS
            .iter()
            .zip(&self.drops)
            .map(|((_, name), cell)| (*name, cell));
        let reasons = DropReason::all()
            .zip(&self.reasons)
            .map(|(reason, cell)| (reason.name(), cell));
        drops
            .chain(reasons)
            .map(|(name, cell)| (name, cell.load(Ordering::Relaxed)))
    }
}

/// Adds without a locked instruction: the worker is the only writer.
fn bump(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}
