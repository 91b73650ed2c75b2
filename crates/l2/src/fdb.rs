//! The stations that `NORMAL` has learned: which address was last seen behind
//! which port, by VLAN (IEEE 802.1D, 7.9).
//!
//! The control thread owns the table and is its only writer. Workers read a
//! view, which costs nothing to take, and mark a station as seen through an
//! atomic, so that refreshing an age publishes nothing.
//!
//! Who was put in by hand (`fdb/add` of ovs-vswitchd(8)) does not age, does not move with its
//! frames and makes no room for others, but goes with its port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Instant, PortNo};
use imbl::OrdMap;
use packet::MacAddr;

/// A station is marked as seen at most this often: an age of five minutes needs
/// no more, and a cache line that every frame writes costs every worker.
const MARK_INTERVAL_NS: u64 = 1_000_000_000;

/// How many stations are looked at, oldest first, before one that was seen
/// since is given up for a new one.
const EVICTION_TRIES: usize = 8;

/// An address in its VLAN; frames without a tag are in VLAN 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdbKey {
    /// The VLAN.
    pub vid: u16,
    /// The Ethernet address.
    pub mac: MacAddr,
}

/// Where a station is, and when it was last heard.
#[derive(Debug)]
pub struct FdbEntry {
    port: PortNo,
    is_static: bool,
    last_seen_ns: AtomicU64,
}

impl FdbEntry {
    /// The port it is behind.
    #[must_use]
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Whether it was put in by hand.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// When it last sent a frame, to within a second.
    #[must_use]
    pub fn last_seen(&self) -> Instant {
        Instant::from_nanos(self.last_seen_ns.load(Ordering::Relaxed))
    }

    /// Notes that it sent a frame. Several workers may do so at once: whichever
    /// time stays is right to within [`MARK_INTERVAL_NS`].
    pub fn mark_seen(&self, now: Instant) {
        let now = now.as_nanos();
        if now.saturating_sub(self.last_seen_ns.load(Ordering::Relaxed)) >= MARK_INTERVAL_NS {
            self.last_seen_ns.store(now, Ordering::Relaxed);
        }
    }
}

/// The table at one moment.
#[derive(Clone, Debug, Default)]
pub struct FdbView {
    stations: OrdMap<FdbKey, Arc<FdbEntry>>,
}

impl FdbView {
    /// The station with this address.
    #[must_use]
    pub fn find(&self, address: FdbKey) -> Option<&FdbEntry> {
        self.stations.get(&address).map(AsRef::as_ref)
    }

    /// All stations, by VLAN and address.
    pub fn iter(&self) -> impl Iterator<Item = (FdbKey, &FdbEntry)> {
        self.stations
            .iter()
            .map(|(address, station)| (*address, station.as_ref()))
    }
}

/// What has happened to a table since it was asked to forget that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdbCounts {
    /// Stations that were not known.
    pub learned: u64,
    /// Stations that were silent for too long.
    pub expired: u64,
    /// Stations that were given up for want of room.
    pub evicted: u64,
    /// Stations that were seen behind another port.
    pub moved: u64,
}

/// The forwarding database is full, and all its entries are static.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdbFull;

/// The table itself, bounded; a flood of new addresses costs the port that
/// sends them its own oldest stations first.
#[derive(Debug)]
pub struct ForwardingDatabase {
    limit: usize,
    ageing: Duration,
    view: FdbView,
    /// How many were put in by hand.
    statics: usize,
    /// When each station that may go was last known to be heard. It lags behind
    /// [`FdbEntry::last_seen`] and is put right when the station's turn comes.
    known: BTreeMap<FdbKey, Instant>,
    /// The same by port and age: the order of expiry and eviction.
    by_age: BTreeMap<PortNo, BTreeSet<(Instant, FdbKey)>>,
    counts: FdbCounts,
}

impl ForwardingDatabase {
    /// An empty table for at most `limit` stations, each forgotten after `ageing` in silence.
    #[must_use]
    pub fn new(limit: usize, ageing: Duration) -> Self {
        let (view, known, by_age) = Default::default();
        Self {
            limit,
            ageing,
            view,
            statics: 0,
            known,
            by_age,
            counts: FdbCounts::default(),
        }
    }

    /// Holds at most `limit` stations from now on, each for `ageing`. Tells whether any was
    /// given up for that.
    pub fn set_limits(&mut self, limit: usize, ageing: Duration) -> bool {
        let before = self.len();
        (self.limit, self.ageing) = (limit, ageing);
        while self.len() > self.limit && self.evict() {}
        self.len() < before
    }

    /// How many stations it holds at most.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The table as it is now.
    #[must_use]
    pub fn view(&self) -> FdbView {
        self.view.clone()
    }

    /// How many stations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len() + self.statics
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many stations were put in by hand.
    #[must_use]
    pub fn static_count(&self) -> usize {
        self.statics
    }

    /// What has happened to stations.
    #[must_use]
    pub fn counts(&self) -> FdbCounts {
        self.counts
    }

    /// Counts from zero again.
    pub fn clear_counts(&mut self) {
        self.counts = FdbCounts::default();
    }

    /// Learns that `address` is behind `port`. Tells whether that was news.
    pub fn learn(&mut self, address: FdbKey, port: PortNo, now: Instant) -> bool {
        match self.view.stations.get(&address).cloned() {
            Some(station) if station.is_static => return false,
            Some(station) if station.port == port => {
                station.mark_seen(now);
                return false;
            }
            Some(_) => {
                self.forget(address);
                self.counts.moved += 1;
            }
            None if !self.make_room() => return false,
            None => self.counts.learned += 1,
        }
        self.put(address, port, false, now);
        self.note_age(port, address, now);
        true
    }

    /// Puts a station behind `port`, for good. Returns which it takes the place of, unless it
    /// is there already.
    ///
    /// # Errors
    /// There is no room.
    pub fn add_static(
        &mut self,
        address: FdbKey,
        port: PortNo,
        now: Instant,
    ) -> Result<Option<Arc<FdbEntry>>, FdbFull> {
        let before = self.view.stations.get(&address).cloned();
        match &before {
            Some(station) if station.is_static && station.port == port => return Ok(None),
            Some(_) => self.forget(address),
            None if !self.make_room() => return Err(FdbFull),
            None => {}
        }
        self.put(address, port, true, now);
        self.statics += 1;
        Ok(before)
    }

    /// Takes out a station that was put in by hand. Tells whether there was one.
    pub fn remove_static(&mut self, address: FdbKey) -> bool {
        let station = self.view.find(address);
        let is_there = station.is_some_and(FdbEntry::is_static);
        if is_there {
            self.forget(address);
        }
        is_there
    }

    /// Forgets the stations behind `port` that were learned. Tells whether there were any.
    pub fn flush_port(&mut self, port: PortNo) -> bool {
        let Some(aged) = self.by_age.remove(&port) else {
            return false;
        };
        for (_, address) in &aged {
            self.view.stations.remove(address);
            self.known.remove(address);
        }
        true
    }

    /// Forgets all stations behind `port`. Tells whether there were any.
    pub fn remove_port(&mut self, port: PortNo) -> bool {
        let learned = self.flush_port(port);
        let by_hand = self.addresses(|station| station.is_static && station.port == port);
        by_hand.iter().for_each(|address| self.forget(*address));
        learned || !by_hand.is_empty()
    }

    /// Forgets every station that was learned. Tells whether there were any.
    pub fn flush(&mut self) -> bool {
        let learned = self.addresses(|station| !station.is_static);
        learned.iter().for_each(|address| self.forget(*address));
        !learned.is_empty()
    }

    /// The addresses of these stations.
    fn addresses(&self, are_meant: impl Fn(&FdbEntry) -> bool) -> Vec<FdbKey> {
        let all = self.view.iter();
        let meant = all.filter(|(_, station)| are_meant(station));
        meant.map(|(address, _)| address).collect()
    }

    fn put(&mut self, address: FdbKey, port: PortNo, is_static: bool, now: Instant) {
        let station = FdbEntry {
            port,
            is_static,
            last_seen_ns: AtomicU64::new(now.as_nanos()),
        };
        self.view.stations.insert(address, Arc::new(station));
    }

    /// Forgets the stations that have been silent for too long. Tells whether
    /// there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.len();
        for port in self.by_age.keys().copied().collect::<Vec<_>>() {
            while let Some((known, address)) = self.oldest(port)
                && known + self.ageing <= now
            {
                let seen = self.last_seen(address);
                if seen + self.ageing <= now {
                    self.forget(address);
                    self.counts.expired += 1;
                } else {
                    self.note_age(port, address, seen);
                }
            }
        }
        self.len() < before
    }

    /// When [`ForwardingDatabase::expire`] may have something to do.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        let oldest = self.by_age.values().filter_map(BTreeSet::first);
        oldest.map(|(known, _)| *known + self.ageing).min()
    }

    fn oldest(&self, port: PortNo) -> Option<(Instant, FdbKey)> {
        self.by_age.get(&port).and_then(BTreeSet::first).copied()
    }

    fn last_seen(&self, address: FdbKey) -> Instant {
        self.view
            .find(address)
            .expect("what has an age is in the table")
            .last_seen()
    }

    fn note_age(&mut self, port: PortNo, address: FdbKey, seen: Instant) {
        let aged = self.by_age.entry(port).or_default();
        if let Some(known) = self.known.insert(address, seen) {
            aged.remove(&(known, address));
        }
        aged.insert((seen, address));
    }

    /// Tells whether there is room for one more, now at the latest.
    fn make_room(&mut self) -> bool {
        self.len() < self.limit || self.evict()
    }

    /// Makes room at the cost of the port with most stations, oldest first. Tells whether it
    /// could: those that were put in by hand stay.
    fn evict(&mut self) -> bool {
        let crowded = self
            .by_age
            .iter()
            .max_by_key(|(_, aged)| aged.len())
            .map(|(port, _)| *port);
        let Some(port) = crowded else { return false };
        for _ in 0..EVICTION_TRIES {
            let Some((known, address)) = self.oldest(port) else {
                return false;
            };
            let seen = self.last_seen(address);
            if seen <= known {
                break;
            }
            self.note_age(port, address, seen);
        }
        let oldest = self.oldest(port);
        if let Some((_, address)) = oldest {
            self.forget(address);
            self.counts.evicted += 1;
        }
        oldest.is_some()
    }

    fn forget(&mut self, address: FdbKey) {
        let Some(station) = self.view.stations.remove(&address) else {
            return;
        };
        let Some(known) = self.known.remove(&address) else {
            self.statics -= 1;
            return;
        };
        if let Some(aged) = self.by_age.get_mut(&station.port) {
            aged.remove(&(known, address));
            if aged.is_empty() {
                self.by_age.remove(&station.port);
            }
        }
    }
}
#[cfg(test)]
mod tests;
