//! The stations that `NORMAL` has learned: which address was last seen behind
//! which port, by VLAN (IEEE 802.1D, 7.9).
//!
//! The control thread owns the table and is its only writer. Workers read a
//! view, which costs nothing to take, and mark a station as seen through an
//! atomic, so that refreshing an age publishes nothing.

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
pub(crate) struct Address {
    /// The VLAN.
    pub(crate) vid: u16,
    /// The Ethernet address.
    pub(crate) mac: MacAddr,
}

/// Where a station is, and when it was last heard.
#[derive(Debug)]
pub(crate) struct Station {
    port: PortNo,
    last_seen_ns: AtomicU64,
}

impl Station {
    /// The port it is behind.
    #[must_use]
    pub(crate) fn port(&self) -> PortNo {
        self.port
    }

    /// When it last sent a frame, to within a second.
    #[must_use]
    pub(crate) fn last_seen(&self) -> Instant {
        Instant::from_nanos(self.last_seen_ns.load(Ordering::Relaxed))
    }

    /// Notes that it sent a frame. Several workers may do so at once: whichever
    /// time stays is right to within [`MARK_INTERVAL_NS`].
    pub(crate) fn mark_seen(&self, now: Instant) {
        let now = now.as_nanos();
        if now.saturating_sub(self.last_seen_ns.load(Ordering::Relaxed)) >= MARK_INTERVAL_NS {
            self.last_seen_ns.store(now, Ordering::Relaxed);
        }
    }
}

/// The table at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct MacView {
    stations: OrdMap<Address, Arc<Station>>,
}

impl MacView {
    /// The station with this address.
    #[must_use]
    pub(crate) fn find(&self, address: Address) -> Option<&Station> {
        self.stations.get(&address).map(AsRef::as_ref)
    }

    /// All stations, by VLAN and address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Address, &Station)> {
        self.stations
            .iter()
            .map(|(address, station)| (*address, station.as_ref()))
    }
}

/// The table itself, bounded; a flood of new addresses costs the port that
/// sends them its own oldest stations first.
#[derive(Debug)]
pub(crate) struct MacTable {
    limit: usize,
    ageing: Duration,
    view: MacView,
    /// When each station was last known to be heard. It lags behind
    /// [`Station::last_seen`] and is put right when the station's turn comes.
    known: BTreeMap<Address, Instant>,
    /// The same by port and age: the order of expiry and eviction.
    by_age: BTreeMap<PortNo, BTreeSet<(Instant, Address)>>,
    evicted: u64,
}

impl MacTable {
    /// An empty table for at most `limit` stations, each forgotten after `ageing` in silence.
    #[must_use]
    pub(crate) fn new(limit: usize, ageing: Duration) -> Self {
        let (view, known, by_age) = Default::default();
        Self {
            limit,
            ageing,
            view,
            known,
            by_age,
            evicted: 0,
        }
    }

    /// Holds at most `limit` stations from now on, each for `ageing`. Tells whether any was
    /// given up for that.
    pub(crate) fn set_limits(&mut self, limit: usize, ageing: Duration) -> bool {
        let before = self.len();
        (self.limit, self.ageing) = (limit, ageing);
        while self.len() > self.limit {
            self.evict();
        }
        self.len() < before
    }

    /// The table as it is now.
    #[must_use]
    pub(crate) fn view(&self) -> MacView {
        self.view.clone()
    }

    /// How many stations there are.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// How many stations were given up for want of room.
    #[must_use]
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Learns that `address` is behind `port`. Tells whether that was news.
    pub(crate) fn learn(&mut self, address: Address, port: PortNo, now: Instant) -> bool {
        match self.view.find(address) {
            Some(station) if station.port == port => {
                station.mark_seen(now);
                return false;
            }
            Some(_) => self.forget(address),
            None if self.len() >= self.limit => self.evict(),
            None => {}
        }
        let station = Arc::new(Station {
            port,
            last_seen_ns: AtomicU64::new(now.as_nanos()),
        });
        self.view.stations.insert(address, station);
        self.note_age(port, address, now);
        true
    }

    /// Forgets all stations behind `port`. Tells whether there were any.
    pub(crate) fn forget_port(&mut self, port: PortNo) -> bool {
        let Some(aged) = self.by_age.remove(&port) else {
            return false;
        };
        for (_, address) in &aged {
            self.view.stations.remove(address);
            self.known.remove(address);
        }
        true
    }

    /// Forgets every station. Tells whether there were any.
    pub(crate) fn flush(&mut self) -> bool {
        let any = !self.is_empty();
        (self.view, self.known, self.by_age) = Default::default();
        any
    }

    /// Forgets the stations that have been silent for too long. Tells whether
    /// there were any.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let before = self.len();
        for port in self.by_age.keys().copied().collect::<Vec<_>>() {
            while let Some((known, address)) = self.oldest(port)
                && known + self.ageing <= now
            {
                let seen = self.last_seen(address);
                if seen + self.ageing <= now {
                    self.forget(address);
                } else {
                    self.note_age(port, address, seen);
                }
            }
        }
        self.len() < before
    }

    /// When [`MacTable::expire`] may have something to do.
    #[must_use]
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let oldest = self.by_age.values().filter_map(BTreeSet::first);
        oldest.map(|(known, _)| *known + self.ageing).min()
    }

    fn oldest(&self, port: PortNo) -> Option<(Instant, Address)> {
        self.by_age.get(&port).and_then(BTreeSet::first).copied()
    }

    fn last_seen(&self, address: Address) -> Instant {
        self.view
            .find(address)
            .expect("what has an age is in the table")
            .last_seen()
    }

    fn note_age(&mut self, port: PortNo, address: Address, seen: Instant) {
        let aged = self.by_age.entry(port).or_default();
        if let Some(known) = self.known.insert(address, seen) {
            aged.remove(&(known, address));
        }
        aged.insert((seen, address));
    }

    /// Makes room at the cost of the port with most stations, oldest first.
    fn evict(&mut self) {
        let crowded = self
            .by_age
            .iter()
            .max_by_key(|(_, aged)| aged.len())
            .map(|(port, _)| *port);
        let Some(port) = crowded else { return };
        for _ in 0..EVICTION_TRIES {
            let Some((known, address)) = self.oldest(port) else {
                return;
            };
            let seen = self.last_seen(address);
            if seen <= known {
                break;
            }
            self.note_age(port, address, seen);
        }
        if let Some((_, address)) = self.oldest(port) {
            self.forget(address);
            self.evicted += 1;
        }
    }

    fn forget(&mut self, address: Address) {
        let (Some(station), Some(known)) = (
            self.view.stations.remove(&address),
            self.known.remove(&address),
        ) else {
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
mod tests {
    use super::*;
    use crate::config::AGEING;

    fn address(number: u64) -> Address {
        Address {
            vid: 0,
            mac: MacAddr::from_u64(number),
        }
    }

    fn ports_of(table: &MacTable) -> Vec<(u64, u32)> {
        let view = table.view();
        view.iter()
            .map(|(address, station)| (address.mac.to_u64(), station.port().0))
            .collect()
    }

    #[test]
    fn a_station_moves_with_its_frames_and_only_news_is_news() {
        let mut table = MacTable::new(4, AGEING);
        assert!(table.learn(address(1), PortNo(1), Instant::START));
        assert!(!table.learn(address(1), PortNo(1), Instant::from_secs(5)));
        assert!(table.learn(address(1), PortNo(2), Instant::from_secs(6)));
        assert_eq!(ports_of(&table), [(1, 2)]);
        assert!(!table.forget_port(PortNo(1)) && table.forget_port(PortNo(2)) && table.is_empty());
    }

    #[test]
    fn the_same_address_in_two_vlans_is_two_stations() {
        let mut table = MacTable::new(4, AGEING);
        table.learn(address(1), PortNo(1), Instant::START);
        table.learn(
            Address {
                vid: 10,
                ..address(1)
            },
            PortNo(2),
            Instant::START,
        );
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn silence_ages_and_a_mark_from_a_worker_keeps() {
        let mut table = MacTable::new(4, AGEING);
        table.learn(address(1), PortNo(1), Instant::START);
        table.learn(address(2), PortNo(1), Instant::START);
        table
            .view()
            .find(address(2))
            .expect("learned")
            .mark_seen(Instant::from_secs(200));
        assert_eq!(table.next_expiry(), Some(Instant::from_secs(300)));
        assert!(!table.expire(Instant::from_secs(299)));
        assert!(table.expire(Instant::from_secs(300)));
        assert_eq!(ports_of(&table), [(2, 1)]);
        assert_eq!(table.next_expiry(), Some(Instant::from_secs(500)));
        assert!(table.expire(Instant::from_secs(500)) && table.next_expiry().is_none());
    }

    #[test]
    fn a_flood_of_addresses_costs_the_port_that_sends_it() {
        let mut table = MacTable::new(4, AGEING);
        table.learn(address(100), PortNo(1), Instant::START);
        for number in 1..=50 {
            table.learn(address(number), PortNo(2), Instant::from_secs(number));
        }
        assert_eq!(ports_of(&table), [(48, 2), (49, 2), (50, 2), (100, 1)]);
        assert_eq!((table.len(), table.evicted()), (4, 47));
    }

    #[test]
    fn the_view_of_a_worker_does_not_change_under_it() {
        let mut table = MacTable::new(4, AGEING);
        table.learn(address(1), PortNo(1), Instant::START);
        let view = table.view();
        assert!(table.flush() && !table.flush());
        assert!(view.find(address(1)).is_some() && table.view().find(address(1)).is_none());
    }
}
