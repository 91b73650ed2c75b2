//! The sequence numbers of a stream: received, duplicate, reordered, late, lost.
//!
//! A sliding window of bits records the received numbers, so memory is bounded for any input. Bits
//! that leave the window unset count as lost.

use hdrhistogram::Histogram;

/// The window in numbers: 0.26 s at a million frames a second.
pub(super) const WINDOW: u64 = 1 << 18;
/// The retained advances of the highest number, from which the reordering extent is computed.
const STEPS: usize = 4096;

/// The classification of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceClass {
    /// The first frame of this number.
    First,
    /// A duplicate.
    Duplicate,
    /// A number before the window; it counts as lost.
    TooLate,
}

/// The sequence statistics of one stream, from a first number on.
#[derive(Debug)]
pub(super) struct Sequence {
    bits: Box<[u64]>,
    first: u64,
    /// The start of the window, a multiple of 64; lower numbers are settled.
    base: u64,
    /// The number after the highest received one.
    next: u64,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    pub(super) too_late: u64,
    /// The reordering extent (RFC 4737, 4.2.2): frames received between a late frame and the
    /// earliest one that overtook it.
    pub(super) extent: Histogram<u64>,
    /// The lengths of settled runs of losses (RFC 3357).
    pub(super) runs: Histogram<u64>,
    run: u64,
    /// The highest settled lost number.
    pub(super) last_lost: Option<u64>,
    /// The last advances of the highest number: the number, and the count of frames received
    /// before.
    steps: Box<[(u64, u64)]>,
    taken: usize,
}

impl Sequence {
    /// Statistics that begin with this number.
    pub(super) fn new(first: u64) -> Self {
        let mut bits = vec![0; usize::try_from(WINDOW / 64).expect("it is small")];
        let base = first & !63;
        // Numbers before the first do not count as lost.
        bits[word_index(base)] = (1 << (first - base)) - 1;
        Self {
            bits: bits.into_boxed_slice(),
            first,
            base,
            next: first,
            received: 0,
            duplicates: 0,
            reordered: 0,
            too_late: 0,
            extent: counts(),
            runs: counts(),
            run: 0,
            last_lost: None,
            steps: vec![(0, 0); STEPS].into_boxed_slice(),
            taken: 0,
        }
    }

    /// The first number.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Records a received frame. Its number must not be below the first.
    #[inline]
    pub(super) fn record(&mut self, number: u64) -> SequenceClass {
        if number < self.base {
            self.too_late += 1;
            return SequenceClass::TooLate;
        }
        if number >= self.base + WINDOW {
            self.settle(number + 1 - WINDOW);
        }
        let (word, bit) = (word_index(number), 1 << (number & 63));
        if self.bits[word] & bit != 0 {
            self.duplicates += 1;
            return SequenceClass::Duplicate;
        }
        self.bits[word] |= bit;
        if number >= self.next {
            self.next = number + 1;
            self.steps[self.taken % STEPS] = (number, self.received);
            self.taken += 1;
        } else {
            self.reordered += 1;
            let extent = self.extent_of(number);
            self.extent.saturating_record(extent);
        }
        self.received += 1;
        SequenceClass::First
    }

    /// The number of frames received since the first one with a higher number. If that is older
    /// than the retained advances, the oldest of these counts.
    fn extent_of(&self, number: u64) -> u64 {
        let retained = self.taken.min(STEPS);
        let oldest = self.taken - retained;
        let step = |nth: usize| self.steps[(oldest + nth) % STEPS];
        let (mut low, mut high) = (0, retained);
        while low < high {
            let middle = usize::midpoint(low, high);
            match step(middle).0 > number {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        self.received - step(low.min(retained - 1)).1
    }

    /// Settles at least all numbers below `limit`.
    fn settle(&mut self, limit: u64) {
        while self.base < limit {
            let word = std::mem::take(&mut self.bits[word_index(self.base)]);
            self.settle_word(word, 64);
            self.base += 64;
        }
    }

    /// Settles the lowest `count` numbers of a word.
    fn settle_word(&mut self, mut word: u64, mut count: u32) {
        let end = self.base + u64::from(count);
        while count > 0 {
            let lost = word.trailing_zeros().min(count);
            self.run += u64::from(lost);
            if lost > 0 {
                self.last_lost = Some(end - u64::from(count) + u64::from(lost) - 1);
            }
            word = word.checked_shr(lost).unwrap_or(0);
            count -= lost;
            let received = word.trailing_ones().min(count);
            if received > 0 && self.run > 0 {
                self.runs.saturating_record(self.run);
                self.run = 0;
            }
            word = word.checked_shr(received).unwrap_or(0);
            count -= received;
        }
    }

    /// Settles all numbers below `end`, the first number that was never sent, and returns the
    /// number of losses.
    pub(super) fn finish(&mut self, end: u64) -> u64 {
        self.settle(end & !63);
        let rest = end.saturating_sub(self.base);
        if rest > 0 {
            let word = self.bits[word_index(self.base)];
            self.settle_word(word, u32::try_from(rest).expect("less than a word"));
        }
        if self.run > 0 {
            self.runs.saturating_record(self.run);
            self.run = 0;
        }
        end.saturating_sub(self.first).saturating_sub(self.received)
    }
}

/// The index of a number's word.
const fn word_index(number: u64) -> usize {
    (number / 64 % (WINDOW / 64)) as usize
}

/// A histogram of frame counts.
fn counts() -> Histogram<u64> {
    Histogram::new_with_max(1 << 32, 3).expect("the bounds are good")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(first: u64, numbers: impl IntoIterator<Item = u64>) -> Sequence {
        let mut sequence = Sequence::new(first);
        for number in numbers {
            sequence.record(number);
        }
        sequence
    }

    fn runs(sequence: &Sequence) -> Vec<(u64, u64)> {
        let recorded = sequence.runs.iter_recorded();
        recorded
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
            .collect()
    }

    #[test]
    fn frames_in_order_are_all_received() {
        let mut sequence = recorded(7, 7..1_000_000);
        assert_eq!(sequence.finish(1_000_000), 0);
        assert_eq!(sequence.received, 1_000_000 - 7);
        assert_eq!((sequence.duplicates, sequence.reordered), (0, 0));
        assert!(sequence.runs.is_empty());
    }

    #[test]
    fn losses_are_found_with_the_length_of_their_runs() {
        let is_lost = |n: &u64| n.is_multiple_of(1_000) || (100_000..100_200).contains(n);
        let mut sequence = recorded(1, (1..700_000).filter(|n| !is_lost(n)));
        assert_eq!(sequence.finish(700_010), 699 - 1 + 200 + 10);
        assert_eq!(runs(&sequence), [(1, 698), (10, 1), (200, 1)]);
        assert_eq!(sequence.last_lost, Some(700_009));
    }

    #[test]
    fn last_loss_has_its_number() {
        for lost in [1, 63, 64, 65, 199_999] {
            let mut sequence = recorded(0, (0..200_000).filter(|n| *n != lost && *n != 1));
            sequence.finish(200_000);
            assert_eq!(sequence.last_lost, Some(lost));
        }
        let mut sequence = recorded(70, 70..90);
        sequence.finish(90);
        assert_eq!(sequence.last_lost, None);
    }

    #[test]
    fn loss_longer_than_the_window_is_one_run() {
        let mut sequence = recorded(0, [0, 5_000_000]);
        assert_eq!(sequence.finish(5_000_001), 4_999_999);
        assert_eq!(sequence.runs.len(), 1);
        assert!(sequence.runs.max() >= 4_995_000);
    }

    #[test]
    fn duplicate_frame_is_no_loss() {
        let mut sequence = recorded(0, [0, 1, 1, 2, 0]);
        assert_eq!(sequence.finish(3), 0);
        assert_eq!((sequence.received, sequence.duplicates), (3, 2));
        assert_eq!(sequence.reordered, 0);
    }

    #[test]
    fn late_frames_have_the_reordering_extent_of_the_rfc() {
        // RFC 4737, 7.2: in 1 2 3 4 7 5 6 8, the extent of 5 is 1 and that of 6 is 2.
        let sequence = recorded(1, [1, 2, 3, 4, 7, 5, 6, 8]);
        assert_eq!(sequence.reordered, 2);
        let extents = [sequence.extent.min(), sequence.extent.max()];
        assert_eq!(extents, [1, 2]);
        // The same section: 1 2 3 7 8 9 10 4 5 6 11, with extents of 4, 5 and 6.
        let sequence = recorded(1, [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11]);
        assert_eq!((sequence.extent.min(), sequence.extent.max()), (4, 6));
    }

    #[test]
    fn frame_before_the_window_is_too_late() {
        let mut sequence = recorded(0, (1..=2 * WINDOW).chain([0]));
        assert_eq!(sequence.too_late, 1);
        assert_eq!(sequence.finish(2 * WINDOW + 1), 1);
    }
}
