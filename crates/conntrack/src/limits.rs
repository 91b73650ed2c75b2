//! Limits of connections: in total, and by zone (`CT_Zone`, `ovs-appctl dpctl/ct-set-limits`).
//!
//! A new connection reserves its place in both counts before it is inserted, and returns it when it
//! is removed, so the counts never exceed the limits, whichever workers insert. Counts and limits of
//! all 65,536 zones are two arrays of atomic numbers: 512 KiB, of which only pages of used zones are
//! touched. A count exists for each zone, also for those that share the default limit.

use base::sync::atomic::{AtomicU32, Ordering};

use crate::counters::OwnLine;
use crate::key::CtZone;

/// No limit of its own: the default limit applies.
const DEFAULT: u32 = u32::MAX;
/// Number of zones. Models have few.
const ZONES: usize = if cfg!(feature = "model") { 16 } else { 1 << 16 };

/// A limit that a new connection has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    Table,
    Zone,
}

/// Counts of connections and their limits.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    held: OwnLine<AtomicU32>,
    held_max: AtomicU32,
    zone_default: AtomicU32,
    zone_max: Box<[AtomicU32]>,
    zone_held: Box<[AtomicU32]>,
}

impl ConnectionLimits {
    pub(crate) fn new(held_max: u32) -> Self {
        let zones = |value| (0..ZONES).map(|_| AtomicU32::new(value)).collect();
        Self {
            held: OwnLine(AtomicU32::new(0)),
            held_max: AtomicU32::new(held_max),
            zone_default: AtomicU32::new(u32::MAX),
            zone_max: zones(DEFAULT),
            zone_held: zones(0),
        }
    }

    pub(crate) fn held(&self) -> u32 {
        self.held.0.load(Ordering::Relaxed)
    }

    /// True if the table is full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.held() >= self.held_max()
    }

    pub(crate) fn held_max(&self) -> u32 {
        self.held_max.load(Ordering::Relaxed)
    }

    pub(crate) fn set_held_max(&self, limit: u32) {
        self.held_max.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn zone_held(&self, zone: CtZone) -> u32 {
        self.zone_held[usize::from(zone.0)].load(Ordering::Relaxed)
    }

    /// Returns the limit of a zone, if it has one of its own.
    pub(crate) fn zone_limit(&self, zone: CtZone) -> Option<u32> {
        let limit = self.zone_max[usize::from(zone.0)].load(Ordering::Relaxed);
        (limit != DEFAULT).then_some(limit)
    }

    /// Sets or removes the limit of a zone.
    pub(crate) fn set_zone_limit(&self, zone: CtZone, limit: Option<u32>) {
        let limit = limit.unwrap_or(DEFAULT);
        self.zone_max[usize::from(zone.0)].store(limit, Ordering::Relaxed);
    }

    /// Returns the limit of zones without one of their own.
    pub(crate) fn default_limit(&self) -> Option<u32> {
        let limit = self.zone_default.load(Ordering::Relaxed);
        (limit != u32::MAX).then_some(limit)
    }

    pub(crate) fn set_default_limit(&self, limit: Option<u32>) {
        let limit = limit.unwrap_or(u32::MAX);
        self.zone_default.store(limit, Ordering::Relaxed);
    }

    /// Counts a new connection of a zone, unless a limit is reached.
    pub(crate) fn reserve(&self, zone: CtZone) -> Result<(), LimitReached> {
        let limit = self.zone_limit(zone).or_else(|| self.default_limit());
        let limit = limit.unwrap_or(u32::MAX);
        let zone_held = &self.zone_held[usize::from(zone.0)];
        // In a flood neither count is written.
        if zone_held.load(Ordering::Relaxed) >= limit {
            return Err(LimitReached::Zone);
        }
        if self.is_full() {
            return Err(LimitReached::Table);
        }
        if !increment(zone_held, limit) {
            return Err(LimitReached::Zone);
        }
        if !increment(&self.held.0, self.held_max()) {
            zone_held.fetch_sub(1, Ordering::Relaxed);
            return Err(LimitReached::Table);
        }
        Ok(())
    }

    /// Returns the place of a connection.
    pub(crate) fn release(&self, zone: CtZone) {
        self.zone_held[usize::from(zone.0)].fetch_sub(1, Ordering::Relaxed);
        self.held.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds one to a count below its limit; returns false if it has reached it.
fn increment(count: &AtomicU32, limit: u32) -> bool {
    if count.fetch_add(1, Ordering::Relaxed) < limit {
        return true;
    }
    count.fetch_sub(1, Ordering::Relaxed);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_apply_to_table_and_zones() {
        let limits = ConnectionLimits::new(3);
        let (first, second) = (CtZone(1), CtZone(2));
        limits.set_zone_limit(first, Some(1));
        assert_eq!(limits.reserve(first), Ok(()));
        assert_eq!(limits.reserve(first), Err(LimitReached::Zone));
        assert_eq!(limits.reserve(second), Ok(()));
        limits.set_default_limit(Some(1));
        assert_eq!(limits.reserve(second), Err(LimitReached::Zone));
        limits.set_default_limit(None);
        assert_eq!(limits.reserve(second), Ok(()));
        assert_eq!(limits.reserve(second), Err(LimitReached::Table));
        assert_eq!((limits.zone_held(first), limits.zone_held(second)), (1, 2));
        limits.release(first);
        assert_eq!((limits.held(), limits.zone_held(first)), (2, 0));
        limits.set_zone_limit(first, None);
        assert_eq!(limits.zone_limit(first), None);
    }
}
