//! Size of a lookup batch, and the set of packets of one batch as a bit mask (DPDK
//! `pkts_mask`, Open vSwitch `keys_map`).

/// Packets of one lookup batch. Their packed keys take half of a first-level cache of 32 kB at
/// most, and more than some ten are of no use: a core has no more loads in flight.
pub(crate) const LOOKUP_BATCH: usize = 32;

/// A set of packets of one lookup batch: one bit for each index. Iterates over the indices in
/// ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchMask(u32);

const _: () = assert!(
    LOOKUP_BATCH == u32::BITS as usize,
    "the mask has a bit for each packet"
);

impl BatchMask {
    /// The empty set.
    pub(crate) const EMPTY: Self = Self(0);

    /// All packets of the batch.
    pub(crate) const ALL: Self = Self(u32::MAX);

    /// The set of one packet.
    #[inline]
    pub(crate) const fn single(index: usize) -> Self {
        Self(1 << (index % LOOKUP_BATCH))
    }

    /// The set of the first `count` packets, at most all.
    #[inline]
    pub(crate) const fn first(count: usize) -> Self {
        match count {
            LOOKUP_BATCH.. => Self::ALL,
            _ => Self((1 << count) - 1),
        }
    }

    /// The set of one packet if `condition`, else the empty set. Without a branch.
    #[inline]
    pub(crate) const fn single_if(index: usize, condition: bool) -> Self {
        Self((condition as u32) << (index % LOOKUP_BATCH))
    }

    /// The set with these bits; bit 0 is the first packet.
    #[inline]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Bits of the set; bit 0 is the first packet.
    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Adds the packets of another set.
    #[inline]
    pub(crate) const fn insert(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Packets of either set.
    #[inline]
    pub(crate) const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Packets of both sets.
    #[inline]
    pub(crate) const fn intersection(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Packets of this set that are not in the other.
    #[inline]
    pub(crate) const fn difference(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// True if the packet at `index` is in the set.
    #[inline]
    pub(crate) const fn contains(self, index: usize) -> bool {
        self.0 >> (index % LOOKUP_BATCH) & 1 == 1
    }

    /// Index after the last packet of the set; 0 if it is empty.
    #[inline]
    pub(crate) const fn end(self) -> usize {
        LOOKUP_BATCH - self.0.leading_zeros() as usize
    }

    /// Returns the number of packets if they are the first of the batch without a gap, or `None`.
    #[inline]
    pub(crate) const fn len_if_contiguous(self) -> Option<usize> {
        match self.0 & self.0.wrapping_add(1) {
            0 => Some(self.0.trailing_ones() as usize),
            _ => None,
        }
    }

    /// Number of packets.
    #[inline]
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// True if the set has no packet.
    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Iterator for BatchMask {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(index)
    }
}
