//! Sources that sent on other ports within the last second. The control thread learns an address
//! with a delay. A frame that balance-slb floods may return by another member before that, and
//! would look like a frame of a host behind the bond. So the worker that reports an address records
//! it here first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Instant;

use l2::bond;
use l2::fdb::FdbKey;

/// The lifetime of an entry. The forwarding database has the address long before its end.
const LIFETIME: Duration = Duration::from_secs(1);

/// The lifetime of an announcement, as in Open vSwitch (`MAC_GRAT_ARP_LOCK_TIME`).
const ANNOUNCEMENT_LIFETIME: Duration = Duration::from_secs(5);

/// The number of hash buckets.
const BUCKET_COUNT: usize = 1024;

/// The number of entries of a bucket; a new entry replaces the oldest.
const BUCKET_ENTRIES: usize = 4;

/// A hash table of recent sources.
#[derive(Debug)]
pub struct RecentSources {
    buckets: Box<[SourceBucket]>,
    lifetime: Duration,
}

type SourceBucket = [SourceEntry; BUCKET_ENTRIES];

/// A source and the end of its lifetime. If two workers write at once, an entry may have the time
/// of the other: both times are about the same.
#[derive(Debug, Default)]
struct SourceEntry {
    station: AtomicU64,
    until_ns: AtomicU64,
}

impl Default for RecentSources {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKET_COUNT).map(|_| SourceBucket::default()).collect(),
            lifetime: LIFETIME,
        }
    }
}

impl RecentSources {
    /// Returns a table of announcements, whose entries live longer: the same announcement from a
    /// bond is an echo.
    pub fn announced() -> Self {
        Self {
            lifetime: ANNOUNCEMENT_LIFETIME,
            ..Self::default()
        }
    }

    /// Records a source.
    pub(super) fn note(&self, station: FdbKey, now: Instant) {
        let bucket = self.bucket(station);
        let same = bucket.iter().find(|place| place.holds(station));
        let oldest = || {
            let until = |place: &&SourceEntry| place.until_ns.load(Ordering::Relaxed);
            bucket.iter().min_by_key(until)
        };
        if let Some(place) = same.or_else(oldest) {
            let until = (now + self.lifetime).as_nanos();
            place.until_ns.store(until, Ordering::Relaxed);
            place.station.store(word(station), Ordering::Release);
        }
    }

    /// Returns whether the table has a live entry of a source.
    pub(super) fn has(&self, station: FdbKey, now: Instant) -> bool {
        let mut places = self.bucket(station).iter();
        let place = places.find(|place| place.holds(station));
        place.is_some_and(|place| now.as_nanos() < place.until_ns.load(Ordering::Relaxed))
    }

    fn bucket(&self, station: FdbKey) -> &SourceBucket {
        let hash = bond::hash_source(station.mac, station.vid, 0);
        &self.buckets[hash as usize % BUCKET_COUNT]
    }
}

impl SourceEntry {
    fn holds(&self, station: FdbKey) -> bool {
        self.station.load(Ordering::Acquire) == word(station)
    }
}

/// Returns a source as one word: its VLAN above its address.
fn word(station: FdbKey) -> u64 {
    u64::from(station.vid) << 48 | station.mac.to_u64()
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;

    use super::*;

    #[test]
    fn recent_source_expires_and_is_per_vlan() {
        let sources = RecentSources::default();
        let station = |vid| FdbKey {
            vid,
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
        };
        let start = Instant::from_secs(5);
        assert!(!sources.has(station(0), start));
        sources.note(station(0), start);
        assert!(sources.has(station(0), start));
        assert!(!sources.has(station(1), start));
        assert!(!sources.has(station(0), start + LIFETIME));
    }

    #[test]
    fn recent_sources_hold_a_burst() {
        let sources = RecentSources::default();
        let station = |number| FdbKey {
            vid: 0,
            mac: MacAddr::from_u64(number),
        };
        let now = Instant::from_secs(5);
        (0..512).for_each(|number| sources.note(station(number), now));
        assert!((0..512).all(|number| sources.has(station(number), now)));
    }
}
