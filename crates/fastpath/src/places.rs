//! Some of the frames that are read ahead, by their places.

use crate::ahead::AHEAD;

/// A bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(u32);

const _: () = assert!(AHEAD == u32::BITS as usize, "a bit for each");

impl Places {
    /// None.
    pub(crate) const NONE: Self = Self(0);

    /// All.
    pub(crate) const ALL: Self = Self(u32::MAX);

    /// The one in this place.
    #[inline]
    pub(crate) const fn of(place: usize) -> Self {
        Self(1 << (place % AHEAD))
    }

    /// The one in this place, if it is to be.
    #[inline]
    pub(crate) const fn of_if(place: usize, it_is: bool) -> Self {
        Self((it_is as u32) << (place % AHEAD))
    }

    #[inline]
    pub(crate) const fn add(&mut self, others: Self) {
        self.0 |= others.0;
    }

    #[inline]
    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    #[inline]
    pub(crate) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    #[inline]
    pub(crate) const fn have(self, place: usize) -> bool {
        self.0 >> (place % AHEAD) & 1 == 1
    }

    /// Those of these bits, the lowest of which is that of the first place.
    #[inline]
    pub(crate) const fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// A bit for each.
    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) const fn both(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// The place behind the last of them.
    #[inline]
    pub(crate) const fn end(self) -> usize {
        AHEAD - self.0.leading_zeros() as usize
    }

    /// How many they are, if they are the first.
    #[inline]
    pub(crate) const fn len_if_first(self) -> Option<usize> {
        match self.0 & self.0.wrapping_add(1) {
            0 => Some(self.0.trailing_ones() as usize),
            _ => None,
        }
    }

    /// How many they are.
    #[inline]
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let place = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(place)
    }
}
