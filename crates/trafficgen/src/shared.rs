//! What the sender of a stream tells its receiver, on the same thread or another.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::sequence::WINDOW;

/// A stream, as far as both ends must know it. A frame is on its way only after what is to be known of it
/// is written here; the device, or the kernel, stands between.
#[derive(Debug)]
pub(super) struct Shared {
    /// Behind the last number that was sent.
    next: AtomicU64,
    /// The first number behind the warm-up.
    first: AtomicU64,
    /// By how many nanoseconds each frame was sent later than it was due, by its number.
    lateness: Box<[AtomicU32]>,
}

/// There is no first number yet.
const NOT_YET: u64 = u64::MAX;

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            next: AtomicU64::new(0),
            first: AtomicU64::new(NOT_YET),
            lateness: (0..WINDOW).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// From this number on frames count.
    pub(super) fn begin(&self, number: u64) {
        self.first.store(number, Ordering::Release);
    }

    /// The number from which on frames count, if that has been reached.
    pub(super) fn first(&self) -> Option<u64> {
        let first = self.first.load(Ordering::Acquire);
        (first != NOT_YET).then_some(first)
    }

    /// Notes how late a frame is, which is about to be sent.
    #[inline]
    pub(super) fn note(&self, number: u64, lateness_ns: u64) {
        let lateness = u32::try_from(lateness_ns).unwrap_or(u32::MAX);
        self.lateness[place(number)].store(lateness, Ordering::Relaxed);
    }

    /// How late a frame was sent; of one that is older than the window, another was.
    #[inline]
    pub(super) fn lateness_ns(&self, number: u64) -> u64 {
        u64::from(self.lateness[place(number)].load(Ordering::Relaxed))
    }

    /// All numbers below `next` may be on their way.
    pub(super) fn publish(&self, next: u64) {
        self.next.store(next, Ordering::Release);
    }

    /// The number of a frame, of which the lower 32 bits are known; none if no such frame was sent.
    #[inline]
    pub(super) fn number(&self, sequence: u32) -> Option<u64> {
        let last = self.next.load(Ordering::Acquire).checked_sub(1)?;
        let [.., a, b, c, d] = last.to_be_bytes();
        let behind = u32::from_be_bytes([a, b, c, d]).wrapping_sub(sequence);
        last.checked_sub(u64::from(behind))
    }
}

const fn place(number: u64) -> usize {
    (number % WINDOW) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let shared = Shared::new();
        assert_eq!(shared.number(0), None);
        shared.publish((1 << 32) + 10);
        assert_eq!(shared.number(9), Some((1 << 32) + 9));
        assert_eq!(shared.number(10), Some(10));
        assert_eq!(shared.number(u32::MAX), Some((1 << 32) - 1));
        shared.publish(5);
        assert_eq!(shared.number(5), None);
    }
}
