//! Assignment of hash buckets to members, and its rebalancing.

use std::collections::BTreeMap;

use base::PortNo;

use super::BUCKETS;

/// Minimum difference of load between two members for a move, in bytes per interval. Each move of a
/// bucket may reorder frames.
const DIFFERENCE_MIN: u64 = 100_000;

/// The member and the load of each bucket.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) bucket_members: [Option<PortNo>; BUCKETS],
    /// Bytes of each bucket, halved at each rebalancing.
    pub(super) loads: [u64; BUCKETS],
}

impl Share {
    pub(super) const fn new() -> Self {
        Self {
            bucket_members: [None; BUCKETS],
            loads: [0; BUCKETS],
        }
    }

    /// Removes disabled members and assigns their buckets. Each member of `enabled` gets a fair
    /// number of buckets, not of load; the least loaded buckets are moved.
    pub(super) fn redistribute(&mut self, enabled: &[PortNo]) {
        for member in &mut self.bucket_members {
            *member = member.filter(|port| enabled.contains(port));
        }
        if enabled.is_empty() {
            return;
        }
        let fair = BUCKETS / enabled.len();
        let mut counts: BTreeMap<_, _> = enabled.iter().map(|port| (*port, 0)).collect();
        for member in self.bucket_members.iter().flatten() {
            *counts.entry(*member).or_insert(0) += 1;
        }
        let mut indices: Vec<_> = (0..BUCKETS).collect();
        indices.sort_by_key(|index| (self.bucket_members[*index].is_some(), self.loads[*index]));
        for index in indices {
            let fewest = counts.iter().min_by_key(|(port, count)| (**count, **port));
            let Some((target, count)) = fewest.map(|(port, count)| (*port, *count)) else {
                return;
            };
            match self.bucket_members[index] {
                Some(_) if count >= fair => return,
                Some(source) if counts.get(&source).is_some_and(|count| *count <= fair) => continue,
                Some(source) => *counts.entry(source).or_insert(1) -= 1,
                None => {}
            }
            self.bucket_members[index] = Some(target);
            *counts.entry(target).or_insert(0) += 1;
        }
    }

    /// Moves buckets from the most loaded to the least loaded member while that reduces the
    /// difference. Returns whether a bucket moved.
    pub(super) fn rebalance(&mut self, enabled: &[PortNo]) -> bool {
        let mut moved = false;
        // Each move reduces the difference, so the loop ends; the bound limits its duration.
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
        let (Some((most, source)), Some((least, target))) = (
            enabled.iter().map(load).max(),
            enabled.iter().map(load).min(),
        ) else {
            return false;
        };
        let difference = most - least;
        // A difference below 1/32 is not significant.
        if difference < DIFFERENCE_MIN || difference < most / 32 {
            return false;
        }
        let of_source = (0..BUCKETS).filter(|index| self.bucket_members[*index] == Some(source));
        let best = of_source
            .filter(|index| (1..difference).contains(&self.loads[*index]))
            .min_by_key(|index| (difference / 2).abs_diff(self.loads[*index]));
        // A move must reduce the difference by more than 10 %; otherwise buckets would oscillate.
        let best = best.filter(|index| {
            let after = difference.abs_diff(2 * self.loads[*index]);
            after < difference - difference / 10
        });
        if let Some(index) = best {
            self.bucket_members[index] = Some(target);
        }
        best.is_some()
    }

    /// Returns the bytes that a member carries.
    pub(super) fn load_of(&self, port: PortNo) -> u64 {
        let both = self.bucket_members.iter().zip(&self.loads);
        let own = both.filter(|(member, _)| **member == Some(port));
        own.map(|(_, load)| load).sum()
    }
}
