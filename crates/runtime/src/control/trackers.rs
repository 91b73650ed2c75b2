//! The connection trackers: one for each datapath, as in Open vSwitch. Bridges of a datapath and all
//! workers share it, and it remains when a bridge is removed or created again, so established
//! connections survive that.
//!
//! A tracker has no memory for connections until there are any; its limit is only a number.

mod zones;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use config::{BridgeConfig, Config, DatapathConfig};
use conntrack::{Conntrack, CtCounter, HashSeed};
use pipeline::FragmentStore;

use super::Control;
use super::datapath_ports::DatapathName;
use zones::ZoneSettings;

/// The limit of connections, as in Open vSwitch.
const CONNECTIONS_MAX: u32 = 3_000_000;

/// Timers that one call of [`Conntrack::expire`] handles, and the calls of a turn. A call visits a
/// part of the table; a turn visits all of it, and takes some milliseconds at most.
const EXPIRY_STEPS: usize = 256;
const EXPIRY_CALLS: usize = 64;

/// Time between two turns: well below the shortest timeout. An expired connection is not found any
/// more; a turn frees its memory and its place in the limits.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);
/// The same if more connections have expired than a turn removes: the thread serves its inbox in
/// between.
const EXPIRY_INTERVAL_BUSY: Duration = Duration::from_millis(2);
/// The same without connections.
const EXPIRY_INTERVAL_IDLE: Duration = Duration::from_secs(1);

/// The trackers.
#[derive(Default)]
pub(super) struct ConnectionTrackers {
    trackers: BTreeMap<DatapathName, Arc<Conntrack>>,
    /// The fragments that `ct` holds.
    fragments: BTreeMap<DatapathName, Arc<FragmentStore>>,
    /// The configured zones of each tracker.
    zones: BTreeMap<DatapathName, ZoneSettings>,
    /// The time of the next turn of expiry; none without trackers.
    next_expiry: Option<Instant>,
}

impl ConnectionTrackers {
    /// Returns the tracker of a datapath, which is created at its first use.
    pub(super) fn of_datapath(&mut self, datapath: DatapathName, now: Instant) -> Arc<Conntrack> {
        self.next_expiry.get_or_insert(now + EXPIRY_INTERVAL);
        let new = || Arc::new(Conntrack::new(random_seed(), CONNECTIONS_MAX));
        Arc::clone(self.trackers.entry(datapath).or_insert_with(new))
    }

    /// Returns the tracker of a bridge that is created.
    pub(super) fn of_bridge(&mut self, config: &BridgeConfig, now: Instant) -> Arc<Conntrack> {
        self.of_datapath(datapath_of(config), now)
    }

    /// Returns the store of fragments of a datapath, which is created at its first use.
    pub(super) fn fragments_of_datapath(&mut self, datapath: DatapathName) -> Arc<FragmentStore> {
        Arc::clone(self.fragments.entry(datapath).or_default())
    }

    /// Returns the store of fragments of a bridge that is created.
    pub(super) fn fragments_of_bridge(&mut self, config: &BridgeConfig) -> Arc<FragmentStore> {
        self.fragments_of_datapath(datapath_of(config))
    }

    /// Applies the settings of zones.
    fn configure(&mut self, config: &Config, now: Instant) {
        let mut settings: BTreeMap<DatapathName, DatapathConfig> = BTreeMap::new();
        // The types `system` and `netdev` are one datapath.
        for (datapath_type, datapath) in &config.datapaths {
            let Some(name) = DatapathName::of_type(datapath_type) else {
                continue;
            };
            let all = settings.entry(name).or_default();
            let zones = datapath.zones.iter();
            all.zones
                .extend(zones.map(|(zone, of)| (*zone, of.clone())));
            all.zone_limit = datapath.zone_limit.or(all.zone_limit);
        }
        let former: Vec<_> = self.zones.keys().copied().collect();
        for name in former {
            settings.entry(name).or_default();
        }
        for (name, datapath) in settings {
            let tracker = self.of_datapath(name, now);
            self.zones
                .entry(name)
                .or_default()
                .apply(&datapath, &tracker);
        }
    }

    /// Returns all trackers.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Conntrack>> {
        self.trackers.values()
    }

    /// Returns the counters by name, each the sum of all trackers.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CtCounter::ALL.into_iter().map(move |(counter, name)| {
            let counts = self.all().map(|tracker| tracker.counter(counter));
            (name, counts.sum::<u64>())
        })
    }

    /// Returns the time of the next turn of expiry.
    pub(super) const fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// Removes expired connections, if the next turn is due.
    fn expire(&mut self, now: Instant) {
        if self.next_expiry.is_none_or(|due| now < due) {
            return;
        }
        self.fragments.values().for_each(|store| store.purge(now));
        let mut interval = EXPIRY_INTERVAL_IDLE;
        for tracker in self.trackers.values() {
            let calls = (0..EXPIRY_CALLS).map(|_| tracker.expire(now, EXPIRY_STEPS));
            let most = calls.max().unwrap_or(0);
            let next = if most >= EXPIRY_STEPS {
                EXPIRY_INTERVAL_BUSY
            } else if tracker.is_empty() {
                EXPIRY_INTERVAL_IDLE
            } else {
                EXPIRY_INTERVAL
            };
            interval = interval.min(next);
        }
        self.next_expiry = Some(now + interval);
    }
}

impl Control {
    /// Applies the settings of zones to the trackers.
    pub(super) fn configure_trackers(&mut self, config: &Config) {
        let now = self.now();
        self.trackers.configure(config, now);
    }

    /// Removes expired connections in a bounded number of steps.
    pub(super) fn expire_connections(&mut self, now: Instant) {
        self.trackers.expire(now);
    }
}

/// Returns the datapath of a bridge.
const fn datapath_of(config: &BridgeConfig) -> DatapathName {
    match config.is_dummy {
        true => DatapathName::Dummy,
        false => DatapathName::Netdev,
    }
}

/// Returns a seed that is secret to the process.
fn random_seed() -> HashSeed {
    let source = RandomState::new();
    HashSeed([source.hash_one(0), source.hash_one(1)])
}

#[cfg(test)]
mod tests {
    use conntrack::{
        CtCommit, CtMetadata, CtPacket, CtRequest, CtZone, PacketFacts, PacketTuple, TransportFacts,
    };

    use super::*;

    #[test]
    fn trackers_remain_and_expire_their_connections() {
        let mut trackers = ConnectionTrackers::default();
        assert_eq!(trackers.next_expiry(), None);
        let now = Instant::START;
        let tracker = trackers.of_datapath(DatapathName::Netdev, now);
        assert!(Arc::ptr_eq(
            &tracker,
            &trackers.of_datapath(DatapathName::Netdev, now)
        ));
        assert_eq!(tracker.connections_max(), CONNECTIONS_MAX);
        let packet = CtPacket {
            facts: Some(PacketFacts {
                tuple: PacketTuple::default(),
                transport: TransportFacts::Other,
            }),
            payload: &[],
            metadata: CtMetadata::default(),
        };
        for zone in 0..1000 {
            let request = CtRequest {
                zone: CtZone(zone),
                commit: CtCommit::Commit,
                ..CtRequest::default()
            };
            tracker.track(&packet, &request, now);
        }
        let later = now + Duration::from_secs(59);
        trackers.expire(later);
        assert_eq!(tracker.len(), 1000);
        assert_eq!(trackers.next_expiry(), Some(later + EXPIRY_INTERVAL));
        let later = now + Duration::from_secs(62);
        trackers.expire(later);
        assert!(tracker.is_empty());
        assert_eq!(trackers.next_expiry(), Some(later + EXPIRY_INTERVAL_IDLE));
        let expired = trackers.counters().find(|(name, _)| *name == "ct_expired");
        assert_eq!(expired, Some(("ct_expired", 1000)));
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(random_seed(), random_seed());
    }
}
