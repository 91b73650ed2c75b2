//! The configured zones of a tracker: timeout policies and limits from the database.
//!
//! Zones with equal timeouts share a policy of the tracker. Its number is not used for other
//! timeouts as long as there are unused numbers, because connections keep the policy with which
//! they began.

use std::collections::{BTreeMap, BTreeSet};

use config::{DatapathConfig, ZoneConfig};
use conntrack::{Conntrack, CtPolicyId, CtTimeout, CtTimeoutPolicy, CtZone};

/// Timeouts in seconds, by name.
type Timeouts = BTreeMap<String, u32>;

/// The settings of zones that are in effect.
#[derive(Debug)]
pub(super) struct ZoneSettings {
    config: DatapathConfig,
    policies: BTreeMap<Timeouts, CtPolicyId>,
    /// The number of the next policy.
    next: u16,
}

impl Default for ZoneSettings {
    fn default() -> Self {
        Self {
            config: DatapathConfig::default(),
            policies: BTreeMap::new(),
            // Zero is the default policy.
            next: 1,
        }
    }
}

impl ZoneSettings {
    /// Applies the differences of a new configuration. Limits that an operator set on zones without
    /// a configuration stay.
    pub(super) fn apply(&mut self, config: &DatapathConfig, tracker: &Conntrack) {
        if self.config == *config {
            return;
        }
        if self.config.zone_limit != config.zone_limit {
            tracker.set_default_zone_limit(config.zone_limit);
        }
        let used: BTreeSet<&Timeouts> = config.zones.values().map(|zone| &zone.timeouts).collect();
        self.policies.retain(|timeouts, _| used.contains(timeouts));
        let former = std::mem::take(&mut self.config.zones);
        let default = ZoneConfig::default();
        let numbers: BTreeSet<u16> = former.keys().chain(config.zones.keys()).copied().collect();
        for number in numbers {
            let old = former.get(&number).unwrap_or(&default);
            let new = config.zones.get(&number).unwrap_or(&default);
            let zone = CtZone(number);
            if old.limit != new.limit {
                tracker.set_zone_limit(zone, new.limit);
            }
            if old.timeouts != new.timeouts {
                let policy = self.policy(&new.timeouts, tracker);
                tracker.set_zone_policy(zone, policy);
            }
        }
        self.config = config.clone();
    }

    /// Returns the policy with these timeouts; the default one if there are too many.
    fn policy(&mut self, timeouts: &Timeouts, tracker: &Conntrack) -> CtPolicyId {
        if timeouts.is_empty() {
            return CtPolicyId::DEFAULT;
        }
        if let Some(id) = self.policies.get(timeouts) {
            return *id;
        }
        let Some(id) = self.free_number() else {
            tracing::warn!(
                "zones have more than {} timeout policies: further ones have the default timeouts",
                CtPolicyId::COUNT - 1
            );
            return CtPolicyId::DEFAULT;
        };
        tracker.set_policy(id, &policy_of(timeouts));
        self.policies.insert(timeouts.clone(), id);
        id
    }

    /// Returns the next number that no policy has.
    fn free_number(&mut self) -> Option<CtPolicyId> {
        let last = CtPolicyId::COUNT - 1;
        if self.policies.len() >= usize::from(last) {
            return None;
        }
        loop {
            let number = self.next;
            self.next = number % last + 1;
            let id = CtPolicyId::new(number)?;
            if self.policies.values().all(|used| *used != id) {
                return Some(id);
            }
        }
    }
}

/// Returns a policy with these timeouts. Keys that only the kernel's tracker has are ignored, as by
/// Open vSwitch's userspace.
fn policy_of(timeouts: &Timeouts) -> CtTimeoutPolicy {
    let rows = CtTimeout::ALL.into_iter();
    rows.fold(
        CtTimeoutPolicy::default(),
        |policy, (timeout, name, _)| match timeouts.get(name) {
            Some(seconds) => policy.with(timeout, *seconds),
            None => policy,
        },
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::Instant;
    use conntrack::{
        CtCommit, CtMetadata, CtPacket, CtRequest, HashSeed, PacketFacts, PacketTuple,
        TransportFacts,
    };

    use super::*;

    const NOW: Instant = Instant::from_secs(1);

    fn zone(seconds: u32, limit: Option<u32>) -> ZoneConfig {
        ZoneConfig {
            timeouts: [("udp_first".to_owned(), seconds)].into(),
            limit,
        }
    }

    /// Returns the timeout of a connection that begins in a zone now.
    fn timeout(tracker: &Conntrack, number: u16) -> Duration {
        let packet = CtPacket {
            facts: Some(PacketFacts {
                tuple: PacketTuple::default(),
                transport: TransportFacts::Other,
            }),
            payload: &[],
            metadata: CtMetadata::default(),
        };
        let request = CtRequest {
            zone: CtZone(number),
            commit: CtCommit::Commit,
            ..CtRequest::default()
        };
        tracker.flush_zone(CtZone(number));
        tracker.track(&packet, &request, NOW);
        let connections = tracker.connections(NOW);
        let mut connections = connections.iter();
        let connection = connections.find(|connection| connection.original.zone.0 == number);
        connection.expect("it was committed").timeout
    }

    #[test]
    fn zones_have_their_timeouts_and_limits() {
        let tracker = Conntrack::new(HashSeed([1, 2]), 100);
        let mut settings = ZoneSettings::default();
        let mut config = DatapathConfig {
            zones: [
                (1, zone(5, None)),
                (2, zone(5, Some(9))),
                (3, zone(7, None)),
            ]
            .into(),
            zone_limit: Some(20),
        };
        settings.apply(&config, &tracker);
        assert_eq!(settings.policies.len(), 2);
        let seconds = [0, 1, 2, 3].map(|number| timeout(&tracker, number).as_secs());
        assert_eq!(seconds, [60, 5, 5, 7]);
        assert_eq!(tracker.zone_limit(CtZone(2)), Some(9));
        assert_eq!(tracker.default_zone_limit(), Some(20));
        tracker.set_zone_limit(CtZone(4), Some(8));
        config.zones.remove(&2);
        config.zones.insert(3, zone(5, None));
        config.zone_limit = None;
        settings.apply(&config, &tracker);
        assert_eq!(settings.policies.len(), 1);
        let seconds = [0, 1, 2, 3].map(|number| timeout(&tracker, number).as_secs());
        assert_eq!(seconds, [60, 5, 60, 5]);
        assert_eq!(tracker.zone_limit(CtZone(2)), None);
        assert_eq!(tracker.default_zone_limit(), None);
        assert_eq!(
            tracker.zone_limit(CtZone(4)),
            Some(8),
            "an operator's limit"
        );
    }

    #[test]
    fn policy_numbers_are_bounded() {
        let tracker = Conntrack::new(HashSeed([1, 2]), 100);
        let mut settings = ZoneSettings::default();
        let zones = (0..CtPolicyId::COUNT).map(|number| (number, zone(number.into(), None)));
        let config = DatapathConfig {
            zones: zones.collect(),
            zone_limit: None,
        };
        settings.apply(&config, &tracker);
        assert_eq!(settings.policies.len(), usize::from(CtPolicyId::COUNT) - 1);
    }
}
