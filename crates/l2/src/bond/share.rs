//! Who of a bond's members carries frames of which hash, and how they are shared anew.

use std::collections::BTreeMap;

use base::PortNo;

use super::BUCKETS;

/// A difference between two members below which nothing is moved, in bytes of an interval:
/// a bucket that moves may have its frames overtake each other.
const DIFFERENCE_MIN: u64 = 100_000;

/// Who carries what.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) carriers: [Option<PortNo>; BUCKETS],
    /// Bytes of each bucket, those of longer ago for less.
    pub(super) loads: [u64; BUCKETS],
}

impl Share {
    pub(super) const fn new() -> Self {
        Self {
            carriers: [None; BUCKETS],
            loads: [0; BUCKETS],
        }
    }

    /// Takes buckets from those that are not in `enabled`, and gives who has none too little:
    /// each has a fair part of the buckets, if not of the load. The least loaded are moved.
    pub(super) fn settle(&mut self, enabled: &[PortNo]) {
        for carrier in &mut self.carriers {
            *carrier = carrier.filter(|port| enabled.contains(port));
        }
        if enabled.is_empty() {
            return;
        }
        let fair = BUCKETS / enabled.len();
        let mut counts: BTreeMap<_, _> = enabled.iter().map(|port| (*port, 0)).collect();
        for carrier in self.carriers.iter().flatten() {
            *counts.entry(*carrier).or_insert(0) += 1;
        }
        let mut places: Vec<_> = (0..BUCKETS).collect();
        places.sort_by_key(|place| (self.carriers[*place].is_some(), self.loads[*place]));
        for place in places {
            let fewest = counts.iter().min_by_key(|(port, count)| (**count, **port));
            let Some((poor, count)) = fewest.map(|(port, count)| (*port, *count)) else {
                return;
            };
            match self.carriers[place] {
                Some(_) if count >= fair => return,
                Some(rich) if counts.get(&rich).is_some_and(|count| *count <= fair) => continue,
                Some(rich) => *counts.entry(rich).or_insert(1) -= 1,
                None => {}
            }
            self.carriers[place] = Some(poor);
            *counts.entry(poor).or_insert(0) += 1;
        }
    }

    /// Moves buckets from the most to the least loaded, as long as that makes them more alike.
    /// Tells whether any was moved.
    pub(super) fn rebalance(&mut self, enabled: &[PortNo]) -> bool {
        let mut moved = false;
        // Each move makes the difference smaller, so this ends; and it never takes longer.
        for _ in 0..BUCKETS {
            if !self.move_one(enabled) {
                break;
            }
            moved = true;
        }
        for load in &mut self.loads {
            *load /= 2;
        }
        moved
    }

    fn move_one(&mut self, enabled: &[PortNo]) -> bool {
        let load = |port: &PortNo| (self.load_of(*port), *port);
        let (Some((most, rich)), Some((least, poor))) = (
            enabled.iter().map(load).max(),
            enabled.iter().map(load).min(),
        ) else {
            return false;
        };
        let difference = most - least;
        // A thirty-second is what nobody would notice.
        if difference < DIFFERENCE_MIN || difference < most / 32 {
            return false;
        }
        let of_rich = (0..BUCKETS).filter(|place| self.carriers[*place] == Some(rich));
        let best = of_rich
            .filter(|place| (1..difference).contains(&self.loads[*place]))
            .min_by_key(|place| (difference / 2).abs_diff(self.loads[*place]));
        // What is moved must be enough to be worth it: else it would go back and forth.
        let best = best.filter(|place| {
            let after = difference.abs_diff(2 * self.loads[*place]);
            after < difference - difference / 10
        });
        if let Some(place) = best {
            self.carriers[place] = Some(poor);
        }
        best.is_some()
    }

    /// Bytes that a member carries.
    pub(super) fn load_of(&self, port: PortNo) -> u64 {
        let both = self.carriers.iter().zip(&self.loads);
        let own = both.filter(|(carrier, _)| **carrier == Some(port));
        own.map(|(_, load)| load).sum()
    }
}
