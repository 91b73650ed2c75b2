//! What a queue counts. One table of counters; the owner writes them by plain
//! loads and stores, anybody reads.

use std::fmt;
use std::ops::{Add, Index, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use packet::Frame;

/// One number that a queue keeps. Frames and bytes are counted as on the wire: a
/// frame that stands for several segments counts them all, no frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Frames received and handed over.
    RxPackets,
    /// Their bytes.
    RxBytes,
    /// The kernel had no room left in the receive ring.
    RxOverrun,
    /// Longer than a slot of the ring, and the kernel had no room to keep it whole.
    RxTruncated,
    /// Longer than [`Frame::LEN_MAX`].
    RxTooLong,
    /// Shorter than an Ethernet header.
    RxRunt,
    /// What it says of its checksum or its segments cannot be.
    RxBadOffload,
    /// The pool was empty while frames waited. Calls, not frames: they were not dropped.
    RxStarved,
    /// The kernel had jammed the ring; it was laid anew, and frames may be lost.
    RxMended,
    /// They came damaged, as the device says.
    RxErrors,
    /// Frames that were copied out of the device's memory, since nothing there was free to
    /// take their place. They were handed over.
    RxCopied,
    /// Frames sent.
    TxPackets,
    /// Their bytes.
    TxBytes,
    /// The interface was down.
    TxDown,
    /// Longer than the interface's MTU allows.
    TxTooLong,
    /// The interface's queue was full, or it had no carrier.
    TxNoRoom,
    /// The kernel refused the frame for another reason.
    TxErrors,
    /// Frames whose checksum was finished here, since the device does not. They were sent.
    TxFinished,
    /// Frames that were cut into segments here, since the device does not. They were sent.
    TxSegmented,
    /// Frames that the device sends out of the memory in which they came to another.
    TxMoved,
    /// Frames that were copied into the device's memory to be sent.
    TxCopied,
}

/// How many counters there are.
const COUNTERS: usize = Counter::ALL.len();

impl Counter {
    /// Every counter with its name, in the order of the enum.
    #[rustfmt::skip]
    pub const ALL: [(Self, &'static str); 21] = [
        (Self::RxPackets,    "rx_packets"),
        (Self::RxBytes,      "rx_bytes"),
        (Self::RxOverrun,    "rx_overrun"),
        (Self::RxTruncated,  "rx_truncated"),
        (Self::RxTooLong,    "rx_too_long"),
        (Self::RxRunt,       "rx_runt"),
        (Self::RxBadOffload, "rx_bad_offload"),
        (Self::RxStarved,    "rx_starved"),
        (Self::RxMended,     "rx_mended"),
        (Self::RxErrors,     "rx_errors"),
        (Self::RxCopied,     "rx_copied"),
        (Self::TxPackets,    "tx_packets"),
        (Self::TxBytes,      "tx_bytes"),
        (Self::TxDown,       "tx_down"),
        (Self::TxTooLong,    "tx_too_long"),
        (Self::TxNoRoom,     "tx_no_room"),
        (Self::TxErrors,     "tx_errors"),
        (Self::TxFinished,   "tx_finished"),
        (Self::TxSegmented,  "tx_segmented"),
        (Self::TxMoved,      "tx_moved"),
        (Self::TxCopied,     "tx_copied"),
    ];
}

/// The counters of one queue.
// Two cache lines apart: the neighbour's line is prefetched along with ours.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct QueueCounters {
    values: [AtomicU64; COUNTERS],
}

impl QueueCounters {
    /// All numbers as they are. A counter may be some frames ahead of another.
    #[must_use]
    pub fn read(&self) -> Counts {
        Counts {
            values: std::array::from_fn(|i| self.values[i].load(Ordering::Relaxed)),
        }
    }

    /// Adds to one counter. For the owner only: two writers lose counts.
    pub fn add(&self, counter: Counter, count: u64) {
        let value = &self.values[counter as usize];
        value.store(value.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Counts frames that were received.
    pub fn received(&self, frames: &[Frame]) {
        self.add_frames(frames, Counter::RxPackets, Counter::RxBytes);
    }

    /// Counts frames that were sent.
    pub fn sent(&self, frames: &[Frame]) {
        self.add_frames(frames, Counter::TxPackets, Counter::TxBytes);
    }

    fn add_frames(&self, frames: &[Frame], packets: Counter, bytes: Counter) {
        if frames.is_empty() {
            return;
        }
        let both = frames.iter().map(on_the_wire);
        let (frames, lens) = both.fold((0, 0), |sum, frame| (sum.0 + frame.0, sum.1 + frame.1));
        self.add(packets, frames);
        self.add(bytes, lens);
    }
}

/// How many frames, and how many bytes, a frame is on the wire.
#[must_use]
pub fn on_the_wire(frame: &Frame) -> (u64, u64) {
    (frame.wire_frames(), frame.wire_bytes())
}

/// The numbers of a queue, or of several summed, at one moment.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    values: [u64; COUNTERS],
}

impl Counts {
    /// Received frames that were dropped, whatever the reason.
    #[must_use]
    pub fn rx_dropped(&self) -> u64 {
        use Counter::{RxBadOffload, RxErrors, RxOverrun, RxRunt, RxTooLong, RxTruncated};
        self.sum(&[
            RxOverrun,
            RxTruncated,
            RxTooLong,
            RxRunt,
            RxBadOffload,
            RxErrors,
        ])
    }

    /// Frames to be sent that were dropped, whatever the reason, errors included.
    #[must_use]
    pub fn tx_dropped(&self) -> u64 {
        use Counter::{TxDown, TxErrors, TxNoRoom, TxTooLong};
        self.sum(&[TxDown, TxTooLong, TxNoRoom, TxErrors])
    }

    fn sum(&self, counters: &[Counter]) -> u64 {
        counters.iter().map(|counter| self[*counter]).sum()
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            values: std::array::from_fn(|i| f(self.values[i], other.values[i])),
        }
    }
}

impl Index<Counter> for Counts {
    type Output = u64;

    fn index(&self, counter: Counter) -> &u64 {
        &self.values[counter as usize]
    }
}

impl FromIterator<(Counter, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (Counter, u64)>>(numbers: I) -> Self {
        let mut counts = Self::default();
        for (counter, number) in numbers {
            counts.values[counter as usize] += number;
        }
        counts
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.zip(earlier, u64::wrapping_sub)
    }
}

impl fmt::Debug for Counts {
    /// Names what is not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Counter::ALL
            .iter()
            .map(|(counter, name)| (name, self[*counter]));
        f.debug_map()
            .entries(named.filter(|(_, number)| *number != 0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_counter_in_its_place() {
        for (place, (counter, name)) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, place, "{name}");
        }
    }

    #[test]
    fn deltas_name_what_moved() {
        let counters = QueueCounters::default();
        let before = counters.read();
        counters.received(&[Frame::from_bytes(&[0; 60]), Frame::from_bytes(&[0; 40])]);
        counters.add(Counter::RxOverrun, 3);
        let delta = counters.read() - before;
        assert_eq!(
            format!("{delta:?}"),
            r#"{"rx_packets": 2, "rx_bytes": 100, "rx_overrun": 3}"#
        );
        assert_eq!((delta.rx_dropped(), delta.tx_dropped()), (3, 0));
    }
}
