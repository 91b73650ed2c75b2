//! Counters of a queue. One table defines them; the owner writes with plain loads and stores, any
//! thread reads.

use std::fmt;
use std::ops::{Add, Index, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use packet::Frame;

/// A counter of a queue. Frames and bytes are counted as on the wire: a frame with segmentation
/// pending counts as all of its segments; the frame check sequence is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Frames received and returned to the caller.
    RxPackets,
    /// Bytes of these frames.
    RxBytes,
    /// Frames dropped because the receive ring was full.
    RxOverrun,
    /// Frames longer than a ring slot that the kernel could not queue complete.
    RxTruncated,
    /// Frames longer than [`Frame::LEN_MAX`].
    RxTooLong,
    /// Frames shorter than an Ethernet header.
    RxRunt,
    /// Frames with inconsistent offload metadata.
    RxBadOffload,
    /// Calls (not frames) that stopped because the pool was empty while frames were available; the
    /// frames were not dropped.
    RxNoBuffer,
    /// Resets of a ring that the kernel had jammed; frames may have been lost.
    RxRingReset,
    /// Frames that the device received with errors.
    RxErrors,
    /// Frames received by copying, because the device's memory had no free chunk to replace theirs.
    RxCopied,
    /// Frames sent.
    TxPackets,
    /// Bytes of these frames.
    TxBytes,
    /// Frames dropped because the interface was down.
    TxDown,
    /// Frames longer than the interface's MTU permits.
    TxTooLong,
    /// Frames dropped because the interface's queue was full or it had no carrier.
    TxFull,
    /// Frames that the kernel refused for another reason.
    TxErrors,
    /// Sent frames whose checksum was completed in software.
    TxChecksummed,
    /// Sent frames that were segmented in software.
    TxSegmented,
    /// Sent frames that the device read from the memory in which another device received them.
    TxZeroCopy,
    /// Sent frames that were copied into the device's memory.
    TxCopied,
}

/// Number of counters.
const COUNTERS: usize = Counter::ALL.len();

impl Counter {
    /// All counters and their names, in the order of the enum.
    #[rustfmt::skip]
    pub const ALL: [(Self, &'static str); 21] = [
        (Self::RxPackets,    "rx_packets"),
        (Self::RxBytes,      "rx_bytes"),
        (Self::RxOverrun,    "rx_overrun"),
        (Self::RxTruncated,  "rx_truncated"),
        (Self::RxTooLong,    "rx_too_long"),
        (Self::RxRunt,       "rx_runt"),
        (Self::RxBadOffload, "rx_bad_offload"),
        (Self::RxNoBuffer,    "rx_no_buffer"),
        (Self::RxRingReset,     "rx_ring_reset"),
        (Self::RxErrors,     "rx_errors"),
        (Self::RxCopied,     "rx_copied"),
        (Self::TxPackets,    "tx_packets"),
        (Self::TxBytes,      "tx_bytes"),
        (Self::TxDown,       "tx_down"),
        (Self::TxTooLong,    "tx_too_long"),
        (Self::TxFull,     "tx_full"),
        (Self::TxErrors,     "tx_errors"),
        (Self::TxChecksummed,   "tx_checksummed"),
        (Self::TxSegmented,  "tx_segmented"),
        (Self::TxZeroCopy,      "tx_zero_copy"),
        (Self::TxCopied,     "tx_copied"),
    ];
}

/// The counters of one queue.
// Two cache lines, because the processor prefetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct QueueCounters {
    values: [AtomicU64; COUNTERS],
}

impl QueueCounters {
    /// Returns all values. They are not read atomically: one counter may be some frames ahead of
    /// another.
    #[must_use]
    pub fn read(&self) -> QueueCounts {
        QueueCounts {
            values: std::array::from_fn(|i| self.values[i].load(Ordering::Relaxed)),
        }
    }

    /// Adds to one counter. Only for the owner: concurrent writers lose counts.
    pub fn add(&self, counter: Counter, count: u64) {
        let value = &self.values[counter as usize];
        value.store(value.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// Counts received frames.
    pub fn count_received(&self, frames: &[Frame]) {
        self.add_frames(frames, Counter::RxPackets, Counter::RxBytes);
    }

    /// Counts sent frames.
    pub fn count_sent(&self, frames: &[Frame]) {
        self.add_frames(frames, Counter::TxPackets, Counter::TxBytes);
    }

    fn add_frames(&self, frames: &[Frame], packets: Counter, bytes: Counter) {
        if frames.is_empty() {
            return;
        }
        let sizes = frames.iter().map(wire_size);
        let (frames, lens) = sizes.fold((0, 0), |sum, frame| (sum.0 + frame.0, sum.1 + frame.1));
        self.add(packets, frames);
        self.add(bytes, lens);
    }
}

/// Returns the number of frames and of bytes of a frame on the wire.
#[must_use]
pub fn wire_size(frame: &Frame) -> (u64, u64) {
    (frame.wire_frames(), frame.wire_bytes())
}

/// Values of the counters of one or several queues at one time.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCounts {
    values: [u64; COUNTERS],
}

impl QueueCounts {
    /// Received frames that were dropped, for any reason.
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

    /// Frames that were dropped instead of sent, for any reason, including errors.
    #[must_use]
    pub fn tx_dropped(&self) -> u64 {
        use Counter::{TxDown, TxErrors, TxFull, TxTooLong};
        self.sum(&[TxDown, TxTooLong, TxFull, TxErrors])
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

impl Index<Counter> for QueueCounts {
    type Output = u64;

    fn index(&self, counter: Counter) -> &u64 {
        &self.values[counter as usize]
    }
}

impl FromIterator<(Counter, u64)> for QueueCounts {
    fn from_iter<I: IntoIterator<Item = (Counter, u64)>>(numbers: I) -> Self {
        let mut counts = Self::default();
        for (counter, number) in numbers {
            counts.values[counter as usize] += number;
        }
        counts
    }
}

impl Add for QueueCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }
}

impl Sub for QueueCounts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.zip(earlier, u64::wrapping_sub)
    }
}

impl fmt::Debug for QueueCounts {
    /// Lists the counters that are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = Counter::ALL
            .iter()
            .map(|(counter, name)| (name, self[*counter]));
        f.debug_map()
            .entries(rows.filter(|(_, number)| *number != 0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_table_follows_enum_order() {
        for (index, (counter, name)) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, index, "{name}");
        }
    }

    #[test]
    fn debug_output_names_nonzero_counters() {
        let counters = QueueCounters::default();
        let before = counters.read();
        counters.count_received(&[Frame::from_bytes(&[0; 60]), Frame::from_bytes(&[0; 40])]);
        counters.add(Counter::RxOverrun, 3);
        let delta = counters.read() - before;
        assert_eq!(
            format!("{delta:?}"),
            r#"{"rx_packets": 2, "rx_bytes": 100, "rx_overrun": 3}"#
        );
        assert_eq!((delta.rx_dropped(), delta.tx_dropped()), (3, 0));
    }
}
