//! State that the sender of a stream shares with its receiver, in the same thread or another.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::sequence::WINDOW;

/// The shared state of a stream. The sender writes it before it sends the frame. The path through
/// the kernel and the device orders the write before the receiver's read.
#[derive(Debug)]
pub(super) struct StreamState {
    /// The number after the last sent one.
    next: AtomicU64,
    /// The first number after the warm-up.
    first: AtomicU64,
    /// The lateness of each frame's transmission in nanoseconds, by its number.
    lateness: Box<[AtomicU32]>,
}

/// The value of `first` during the warm-up.
const NOT_YET: u64 = u64::MAX;

impl StreamState {
    pub(super) fn new() -> Self {
        Self {
            next: AtomicU64::new(0),
            first: AtomicU64::new(NOT_YET),
            lateness: (0..WINDOW).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Sets the first counted number.
    pub(super) fn begin(&self, number: u64) {
        self.first.store(number, Ordering::Release);
    }

    /// The first counted number, if the warm-up has ended.
    pub(super) fn first(&self) -> Option<u64> {
        let first = self.first.load(Ordering::Acquire);
        (first != NOT_YET).then_some(first)
    }

    /// Stores the lateness of a frame before it is sent.
    #[inline]
    pub(super) fn note(&self, number: u64, lateness_ns: u64) {
        let lateness = u32::try_from(lateness_ns).unwrap_or(u32::MAX);
        self.lateness[slot(number)].store(lateness, Ordering::Relaxed);
    }

    /// The lateness of a frame. For a number before the window, the result belongs to another
    /// frame.
    #[inline]
    pub(super) fn lateness_ns(&self, number: u64) -> u64 {
        u64::from(self.lateness[slot(number)].load(Ordering::Relaxed))
    }

    /// Publishes that all numbers below `next` may have been sent.
    pub(super) fn publish(&self, next: u64) {
        self.next.store(next, Ordering::Release);
    }

    /// Extends the lower 32 bits of a number; `None` if no such frame was sent.
    #[inline]
    pub(super) fn number(&self, sequence: u32) -> Option<u64> {
        let last = self.next.load(Ordering::Acquire).checked_sub(1)?;
        let [.., a, b, c, d] = last.to_be_bytes();
        let behind = u32::from_be_bytes([a, b, c, d]).wrapping_sub(sequence);
        last.checked_sub(u64::from(behind))
    }
}

const fn slot(number: u64) -> usize {
    (number % WINDOW) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_beyond_32_bits() {
        let shared = StreamState::new();
        assert_eq!(shared.number(0), None);
        shared.publish((1 << 32) + 10);
        assert_eq!(shared.number(9), Some((1 << 32) + 9));
        assert_eq!(shared.number(10), Some(10));
        assert_eq!(shared.number(u32::MAX), Some((1 << 32) - 1));
        shared.publish(5);
        assert_eq!(shared.number(5), None);
    }
}
