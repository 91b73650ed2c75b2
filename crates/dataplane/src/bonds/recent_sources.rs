//! Stations that spoke at other ports a moment ago. The control thread learns them, and a frame
//! that balance-slb floods may be back by another member before it has: it would be taken for one
//! of a station behind the bond. So the worker that tells of a station notes it here first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Instant;

use l2::bond;
use l2::fdb::FdbKey;

/// For how long a station that spoke is known here. The table has it long before that.
const MOMENT: Duration = Duration::from_secs(1);

/// For how long one that announced itself is, as Open vSwitch has it (`MAC_GRAT_ARP_LOCK_TIME`).
const LOCK: Duration = Duration::from_secs(5);

/// How many shelves there are for stations, by hash.
const SHELVES: usize = 1024;

/// How many stations have room in one; a newer one takes the place of the oldest.
const PLACES: usize = 4;

/// See the top of this file.
#[derive(Debug)]
pub struct RecentSources {
    shelves: Box<[SourceBucket]>,
    lasts: Duration,
}

type SourceBucket = [SourceEntry; PLACES];

/// A station, and until when it is known. Of two workers that write at once, one may have the
/// time of the other: both are of the same moment.
#[derive(Debug, Default)]
struct SourceEntry {
    station: AtomicU64,
    until_ns: AtomicU64,
}

impl Default for RecentSources {
    fn default() -> Self {
        Self {
            shelves: (0..SHELVES).map(|_| SourceBucket::default()).collect(),
            lasts: MOMENT,
        }
    }
}

impl RecentSources {
    /// For stations that announce themselves: what says the same by a bond is an echo for longer.
    pub fn announced() -> Self {
        Self {
            lasts: LOCK,
            ..Self::default()
        }
    }

    /// Notes that a station spoke elsewhere.
    pub(super) fn note(&self, station: FdbKey, now: Instant) {
        let shelf = self.shelf(station);
        let same = shelf.iter().find(|place| place.holds(station));
        let oldest = || {
            let until = |place: &&SourceEntry| place.until_ns.load(Ordering::Relaxed);
            shelf.iter().min_by_key(until)
        };
        if let Some(place) = same.or_else(oldest) {
            let until = (now + self.lasts).as_nanos();
            place.until_ns.store(until, Ordering::Relaxed);
            place.station.store(word(station), Ordering::Release);
        }
    }

    /// Whether a station spoke elsewhere within the last moment.
    pub(super) fn has(&self, station: FdbKey, now: Instant) -> bool {
        let mut places = self.shelf(station).iter();
        let place = places.find(|place| place.holds(station));
        place.is_some_and(|place| now.as_nanos() < place.until_ns.load(Ordering::Relaxed))
    }

    fn shelf(&self, station: FdbKey) -> &SourceBucket {
        let hash = bond::hash_source(station.mac, station.vid, 0);
        &self.shelves[hash as usize % SHELVES]
    }
}

impl SourceEntry {
    fn holds(&self, station: FdbKey) -> bool {
        self.station.load(Ordering::Acquire) == word(station)
    }
}

/// A station in one word: its VLAN before its address.
fn word(station: FdbKey) -> u64 {
    u64::from(station.vid) << 48 | station.mac.to_u64()
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;

    use super::*;

    #[test]
    fn a_station_is_known_for_a_moment_and_in_its_vlan() {
        let heard = RecentSources::default();
        let station = |vid| FdbKey {
            vid,
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
        };
        let start = Instant::from_secs(5);
        assert!(!heard.has(station(0), start));
        heard.note(station(0), start);
        assert!(heard.has(station(0), start));
        assert!(!heard.has(station(1), start));
        assert!(!heard.has(station(0), start + MOMENT));
    }

    #[test]
    fn a_burst_of_stations_has_room() {
        let heard = RecentSources::default();
        let station = |number| FdbKey {
            vid: 0,
            mac: MacAddr::from_u64(number),
        };
        let now = Instant::from_secs(5);
        (0..512).for_each(|number| heard.note(station(number), now));
        assert!((0..512).all(|number| heard.has(station(number), now)));
    }
}
