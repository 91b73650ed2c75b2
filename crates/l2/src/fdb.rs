//! The forwarding database of `NORMAL`: the port of each learned address, per VLAN (IEEE 802.1D,
//! 7.9).
//!
//! The control thread owns the table and is its only writer. Workers read a view, which is free to
//! take, and mark a station as seen through an atomic, so that a refresh of an age publishes
//! nothing.
//!
//! Static entries (`fdb/add` of ovs-vswitchd(8)) do not age, do not move with their frames and are
//! not evicted; they are removed with their port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Instant, PortNo};
use imbl::OrdMap;
use packet::MacAddr;

use usage_heap::UsageHeap;

mod usage_heap;

/// Minimum interval between two marks of a station. An age of five minutes needs no finer
/// resolution, and a cache line that every frame writes costs every worker.
const MARK_INTERVAL_NS: u64 = 1_000_000_000;

/// Number of oldest stations that an eviction examines for one that was not seen since; after that
/// it evicts the oldest.
const EVICTION_TRIES: usize = 8;

/// An address in its VLAN; untagged frames are in VLAN 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdbKey {
    /// The VLAN.
    pub vid: u16,
    /// The Ethernet address.
    pub mac: MacAddr,
}

/// The port and the last activity of a station.
#[derive(Debug)]
pub struct FdbEntry {
    port: PortNo,
    is_static: bool,
    /// The position of the entry in the order of additions.
    serial: u64,
    last_seen_ns: AtomicU64,
}

impl FdbEntry {
    /// Returns the port of the station.
    #[must_use]
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Returns whether the entry is static.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// Returns the time of the last frame, with a resolution of one second.
    #[must_use]
    pub fn last_seen(&self) -> Instant {
        Instant::from_nanos(self.last_seen_ns.load(Ordering::Relaxed))
    }

    /// Records a frame from the station. Several workers may do so at once: whichever time remains
    /// is accurate to within `MARK_INTERVAL_NS`.
    pub fn mark_seen(&self, now: Instant) {
        let now = now.as_nanos();
        if now.saturating_sub(self.last_seen_ns.load(Ordering::Relaxed)) >= MARK_INTERVAL_NS {
            self.last_seen_ns.store(now, Ordering::Relaxed);
        }
    }
}

/// An immutable view of the table.
#[derive(Clone, Debug, Default)]
pub struct FdbView {
    stations: OrdMap<FdbKey, Arc<FdbEntry>>,
    /// Number of frames with a static address from another port.
    static_moves: Arc<AtomicU64>,
}

impl FdbView {
    /// Returns the station with this address.
    #[must_use]
    pub fn find(&self, address: FdbKey) -> Option<&FdbEntry> {
        self.stations.get(&address).map(AsRef::as_ref)
    }

    /// Returns all stations, by VLAN and address.
    pub fn iter(&self) -> impl Iterator<Item = (FdbKey, &FdbEntry)> {
        self.stations
            .iter()
            .map(|(address, station)| (*address, station.as_ref()))
    }

    /// Returns all stations, the least recently active first.
    #[must_use]
    pub fn by_activity(&self) -> Vec<(FdbKey, &FdbEntry)> {
        let stations = self.iter();
        let mut ordered: Vec<_> = stations
            .map(|(address, station)| ((station.last_seen(), station.serial), address, station))
            .collect();
        ordered.sort_by_key(|(position, _, _)| *position);
        let stations = ordered.into_iter();
        stations
            .map(|(_, address, station)| (address, station))
            .collect()
    }

    /// Counts a frame with the address of a static entry that was received on another port.
    pub fn count_static_move(&self) {
        self.static_moves.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of frames that had the address of a static entry and were received on
    /// another port.
    #[must_use]
    pub fn static_moves(&self) -> u64 {
        self.static_moves.load(Ordering::Relaxed)
    }
}

/// Counters since the last [`ForwardingDatabase::clear_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdbCounts {
    /// Stations learned.
    pub learned: u64,
    /// Stations removed after the ageing time.
    pub expired: u64,
    /// Stations removed because the table was full.
    pub evicted: u64,
    /// Stations that moved to another port.
    pub moved: u64,
}

/// The forwarding database is full, and all its entries are static.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdbFull;

/// The forwarding database, bounded. A flood of new addresses evicts the oldest stations of the
/// port with the most stations, which is normally the port that sends the flood.
#[derive(Debug)]
pub struct ForwardingDatabase {
    limit: usize,
    ageing: Duration,
    view: FdbView,
    /// Number of static entries.
    static_entries: usize,
    /// The last known activity of each learned station. It lags behind [`FdbEntry::last_seen`] and
    /// is corrected when the station is examined.
    last_activity: BTreeMap<FdbKey, Instant>,
    /// Learned stations by port and age: the order of expiry and eviction.
    by_age: BTreeMap<PortNo, BTreeSet<(Instant, FdbKey)>>,
    /// The ports by their number of learned stations.
    usage: UsageHeap,
    /// The position of the next entry in the order of additions.
    next_serial: u64,
    counts: FdbCounts,
}

impl ForwardingDatabase {
    /// Returns an empty table for at most `limit` stations that expire after `ageing` without
    /// frames.
    #[must_use]
    pub fn new(limit: usize, ageing: Duration) -> Self {
        let (view, last_activity, by_age) = Default::default();
        Self {
            limit,
            ageing,
            view,
            static_entries: 0,
            last_activity,
            by_age,
            usage: UsageHeap::default(),
            next_serial: 0,
            counts: FdbCounts::default(),
        }
    }

    /// Sets the limit and the ageing time. Returns whether stations were evicted.
    pub fn set_limits(&mut self, limit: usize, ageing: Duration) -> bool {
        let before = self.len();
        (self.limit, self.ageing) = (limit, ageing);
        while self.len() > self.limit && self.evict() {}
        self.len() < before
    }

    /// Returns the maximum number of stations.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns an immutable view of the current table.
    #[must_use]
    pub fn view(&self) -> FdbView {
        self.view.clone()
    }

    /// Returns the number of stations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.last_activity.len() + self.static_entries
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of static entries.
    #[must_use]
    pub fn static_count(&self) -> usize {
        self.static_entries
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> FdbCounts {
        self.counts
    }

    /// Resets the counters.
    pub fn clear_counts(&mut self) {
        self.counts = FdbCounts::default();
    }

    /// Learns `address` on `port`. Returns whether the table changed.
    pub fn learn(&mut self, address: FdbKey, port: PortNo, now: Instant) -> bool {
        match self.view.stations.get(&address).cloned() {
            Some(station) if station.is_static => return false,
            Some(station) if station.port == port => {
                station.mark_seen(now);
                return false;
            }
            Some(_) => {
                self.remove_entry(address);
                self.counts.moved += 1;
            }
            None if !self.make_room() => return false,
            None => self.counts.learned += 1,
        }
        self.insert_entry(address, port, false, now);
        self.record_age(port, address, now);
        true
    }

    /// Adds a static entry on `port`. Returns the entry that it replaces, or `None` if there was
    /// none or if the same static entry exists.
    ///
    /// # Errors
    /// The table is full of static entries.
    pub fn add_static(
        &mut self,
        address: FdbKey,
        port: PortNo,
        now: Instant,
    ) -> Result<Option<Arc<FdbEntry>>, FdbFull> {
        let before = self.view.stations.get(&address).cloned();
        match &before {
            Some(station) if station.is_static && station.port == port => return Ok(None),
            Some(_) => self.remove_entry(address),
            None if !self.make_room() => return Err(FdbFull),
            None => {}
        }
        self.insert_entry(address, port, true, now);
        self.static_entries += 1;
        Ok(before)
    }

    /// Removes a static entry. Returns whether it existed.
    pub fn remove_static(&mut self, address: FdbKey) -> bool {
        let station = self.view.find(address);
        let exists = station.is_some_and(FdbEntry::is_static);
        if exists {
            self.remove_entry(address);
        }
        exists
    }

    /// Removes the learned stations of `port`. Returns whether there were any.
    pub fn flush_port(&mut self, port: PortNo) -> bool {
        let Some(entries) = self.by_age.remove(&port) else {
            return false;
        };
        self.usage.set(port, 0);
        for (_, address) in &entries {
            self.view.stations.remove(address);
            self.last_activity.remove(address);
        }
        true
    }

    /// Removes all stations of `port`. Returns whether there were any.
    pub fn remove_port(&mut self, port: PortNo) -> bool {
        let learned = self.flush_port(port);
        let static_keys = self.addresses(|station| station.is_static && station.port == port);
        static_keys
            .iter()
            .for_each(|address| self.remove_entry(*address));
        learned || !static_keys.is_empty()
    }

    /// Removes the learned stations with these addresses. Returns whether there were any.
    pub fn forget(&mut self, addresses: &[FdbKey]) -> bool {
        let before = self.len();
        for address in addresses {
            if self.last_activity.contains_key(address) {
                self.remove_entry(*address);
            }
        }
        self.len() < before
    }

    /// Removes all learned stations. Returns whether there were any.
    pub fn flush(&mut self) -> bool {
        let learned = self.addresses(|station| !station.is_static);
        learned
            .iter()
            .for_each(|address| self.remove_entry(*address));
        !learned.is_empty()
    }

    /// Returns the addresses of the selected stations.
    fn addresses(&self, is_selected: impl Fn(&FdbEntry) -> bool) -> Vec<FdbKey> {
        let all = self.view.iter();
        let selected = all.filter(|(_, station)| is_selected(station));
        selected.map(|(address, _)| address).collect()
    }

    fn insert_entry(&mut self, address: FdbKey, port: PortNo, is_static: bool, now: Instant) {
        let station = FdbEntry {
            port,
            is_static,
            serial: self.next_serial,
            last_seen_ns: AtomicU64::new(now.as_nanos()),
        };
        self.next_serial += 1;
        self.view.stations.insert(address, Arc::new(station));
    }

    /// Removes the stations whose ageing time has passed. Returns whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.len();
        for port in self.by_age.keys().copied().collect::<Vec<_>>() {
            while let Some((last_activity, address)) = self.oldest(port)
                && last_activity + self.ageing <= now
            {
                let seen = self.last_seen(address);
                if seen + self.ageing <= now {
                    self.remove_entry(address);
                    self.counts.expired += 1;
                } else {
                    self.record_age(port, address, seen);
                }
            }
        }
        self.len() < before
    }

    /// Returns the time at which [`ForwardingDatabase::expire`] is due.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        let oldest = self.by_age.values().filter_map(BTreeSet::first);
        oldest
            .map(|(last_activity, _)| *last_activity + self.ageing)
            .min()
    }

    fn oldest(&self, port: PortNo) -> Option<(Instant, FdbKey)> {
        self.by_age.get(&port).and_then(BTreeSet::first).copied()
    }

    fn last_seen(&self, address: FdbKey) -> Instant {
        self.view
            .find(address)
            .expect("every aged entry is in the table")
            .last_seen()
    }

    fn record_age(&mut self, port: PortNo, address: FdbKey, seen: Instant) {
        let entries = self.by_age.entry(port).or_default();
        if let Some(last_activity) = self.last_activity.insert(address, seen) {
            entries.remove(&(last_activity, address));
        }
        entries.insert((seen, address));
        self.usage.set(port, entries.len());
    }

    /// Evicts a station if the table is full. Returns whether there is room for a new one.
    fn make_room(&mut self) -> bool {
        self.len() < self.limit || self.evict()
    }

    /// Evicts an old station of the port with the most learned stations. Returns `false` if there
    /// is none: static entries are not evicted.
    fn evict(&mut self) -> bool {
        let Some(port) = self.usage.largest() else {
            return false;
        };
        for _ in 0..EVICTION_TRIES {
            let Some((last_activity, address)) = self.oldest(port) else {
                return false;
            };
            let seen = self.last_seen(address);
            if seen <= last_activity {
                break;
            }
            self.record_age(port, address, seen);
        }
        let oldest = self.oldest(port);
        if let Some((_, address)) = oldest {
            self.remove_entry(address);
            self.counts.evicted += 1;
        }
        oldest.is_some()
    }

    fn remove_entry(&mut self, address: FdbKey) {
        let Some(station) = self.view.stations.remove(&address) else {
            return;
        };
        let Some(last_activity) = self.last_activity.remove(&address) else {
            self.static_entries -= 1;
            return;
        };
        if let Some(entries) = self.by_age.get_mut(&station.port) {
            entries.remove(&(last_activity, address));
            self.usage.set(station.port, entries.len());
            if entries.is_empty() {
                self.by_age.remove(&station.port);
            }
        }
    }
}
#[cfg(test)]
mod tests;
