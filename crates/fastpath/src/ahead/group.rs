//! Frames that are on their way together, and what has come of them in a table.

use base::TableId;
use pipeline::{Rule, Totals};

use super::{AHEAD, Ahead};
use crate::places::Places;

/// Frames that come to a table together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) places: Places,
    /// What they count for.
    pub(super) totals: Totals,
    pub(super) table: TableId,
    /// How many lookups each has had beyond those that are noted of it.
    pub(super) lookups: u16,
}

/// Frames that a table leads on. Where each of them is led to is noted only if they are not
/// all led to the same table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Led {
    pub(super) places: Places,
    /// What they count for, when all are told.
    pub(super) totals: Totals,
    /// The first table that one of them is led to, and the last.
    pub(super) first: TableId,
    pub(super) last: TableId,
}

impl Led {
    pub(super) const NONE: Self = Self {
        places: Places::NONE,
        totals: Totals {
            packets: 0,
            bytes: 0,
        },
        first: TableId(u8::MAX),
        last: TableId::FIRST,
    };

    /// Whether all are led to one table, if any is.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        self.first >= self.last
    }

    /// These frames are led to this table too. What they count for is told by another.
    #[inline]
    pub(super) fn add(&mut self, places: Places, to: TableId, ahead: &mut [Ahead<'_>; AHEAD]) {
        if (self.first, self.last) != (to, to) {
            self.turn(places, to, ahead);
        }
        self.places.add(places);
    }

    /// Those are led to this table too, where others may be led elsewhere.
    #[inline(never)]
    fn turn(&mut self, places: Places, to: TableId, ahead: &mut [Ahead<'_>; AHEAD]) {
        let (before, was_one) = (*self, self.is_one());
        self.first = before.first.min(to);
        self.last = before.last.max(to);
        if !self.is_one() {
            if was_one {
                before
                    .places
                    .for_each(|place| ahead[place].table = before.first);
            }
            places.for_each(|place| ahead[place].table = to);
        }
    }
}

/// Frames of a group that find the same rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streak<'a> {
    pub(super) rule: &'a Rule,
    pub(super) places: Places,
}

/// What has come of a group in its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) group: Group,
    pub(super) led: Led,
    /// Those that leave.
    pub(super) left: Places,
    /// Whether none of the group is followed, nor has anything in its action set.
    pub(super) is_plain: bool,
}
