//! The Link Layer Discovery Protocol: an agent that announces an interface, and stores the
//! announcements of its neighbours until they expire (IEEE 802.1AB-2009, 9), with the element and
//! the mappings of auto-attach (ovs-vswitchd.conf.db(5), "Auto Attach Configuration").
//!
//! Pure: inputs are frames and the time; outputs are frames and the neighbours.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Instant;
use packet::wire::lldp::{
    AutoAttachElement, AutoAttachMapping, CAPABILITY_BRIDGE, CHASSIS_MAC, ELEMENT_VIRTUAL_SWITCH,
    LldpDataUnit, LldpId, MAPPINGS_MAX, MalformedLldp, PORT_INTERFACE_NAME,
};
use packet::{Frame, MacAddr};

pub use config::LldpConfig;

/// The transmission interval of Open vSwitch.
const INTERVAL: Duration = Duration::from_secs(5);

/// The time for which an announcement is valid, in seconds.
const TIME_TO_LIVE: u16 = 120;

/// The largest number of neighbours; more than one is on a shared medium only.
const NEIGHBORS_MAX: usize = 32;

/// The status of a mapping that the server has not answered.
const PENDING: u8 = 255;

/// The counters of an agent (802.1AB-2009, 9.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LldpCounters {
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// Malformed frames.
    pub discarded: u64,
    /// TLVs that are not recognized.
    pub unrecognized: u64,
    /// Neighbours whose announcement expired.
    pub expired: u64,
    /// Neighbours added.
    pub inserted: u64,
    /// Neighbours removed at their request.
    pub deleted: u64,
    /// Neighbours without room.
    pub dropped: u64,
}

/// The announcement of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Neighbor {
    unit: LldpDataUnit,
    expires: Instant,
}

/// An auto-attach mapping of this interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingStatus {
    /// The service.
    pub isid: u32,
    /// The VLAN.
    pub vlan: u16,
    /// The status that the server announced.
    pub status: u8,
}

/// The agent of an interface.
#[derive(Debug)]
pub struct LldpAgent {
    name: String,
    config: LldpConfig,
    /// The time of the next transmission.
    next_tx: Instant,
    /// The neighbours, by chassis and port.
    neighbors: BTreeMap<(LldpId, LldpId), Neighbor>,
    counters: LldpCounters,
}

impl LldpAgent {
    /// Returns an agent of the interface `name`.
    pub fn new(name: &str, config: LldpConfig, now: Instant) -> Self {
        Self {
            name: name.to_owned(),
            config,
            next_tx: now + INTERVAL,
            neighbors: BTreeMap::new(),
            counters: LldpCounters::default(),
        }
    }

    /// Replaces the configuration.
    pub fn configure(&mut self, config: LldpConfig) {
        self.config = config;
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &LldpConfig {
        &self.config
    }

    /// Returns the counters.
    pub const fn counters(&self) -> LldpCounters {
        self.counters
    }

    /// Returns the announcements of the neighbours.
    pub fn neighbors(&self) -> impl Iterator<Item = &LldpDataUnit> {
        self.neighbors.values().map(|neighbor| &neighbor.unit)
    }

    /// Returns the auto-attach mappings with the status that a neighbour announced last.
    pub fn mappings(&self) -> impl Iterator<Item = MappingStatus> {
        let announced = |isid: u32| {
            let all = self.neighbors().flat_map(|unit| &unit.mappings);
            let same = all.filter(|mapping| mapping.isid == isid).last();
            same.map_or(PENDING, |mapping| mapping.status)
        };
        let own = self.config.mappings.iter();
        own.map(move |(isid, vlan)| MappingStatus {
            isid: *isid,
            vlan: *vlan,
            status: announced(*isid),
        })
    }

    /// Returns the time at which [`LldpAgent::poll_transmit`] or [`LldpAgent::handle_timeout`] is
    /// due.
    pub fn next_timeout(&self) -> Instant {
        let expiries = self.neighbors.values().map(|neighbor| neighbor.expires);
        expiries.fold(self.next_tx, Instant::min)
    }

    /// Removes neighbours whose announcements have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        let before = self.neighbors.len();
        self.neighbors.retain(|_, neighbor| now < neighbor.expires);
        let expired = before - self.neighbors.len();
        self.counters.expired += u64::try_from(expired).unwrap_or_default();
    }

    /// Returns the frame that is due, if any. `own` is the interface's address.
    pub fn poll_transmit(&mut self, own: MacAddr, now: Instant) -> Option<Frame> {
        if now < self.next_tx {
            return None;
        }
        self.next_tx = now + INTERVAL;
        self.counters.sent += 1;
        let mut system_id = [0; 10];
        system_id[..own.0.len()].copy_from_slice(&own.0);
        let mapping = |(isid, vlan): &(u32, u16)| AutoAttachMapping {
            status: 0,
            vlan: *vlan,
            isid: *isid,
        };
        let text = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
        let unit = LldpDataUnit {
            chassis: LldpId {
                subtype: CHASSIS_MAC,
                bytes: own.0.to_vec(),
            },
            port: LldpId {
                subtype: PORT_INTERFACE_NAME,
                bytes: self.name.as_bytes().to_vec(),
            },
            time_to_live: TIME_TO_LIVE,
            port_description: None,
            system_name: self.config.system_name.as_deref().and_then(text),
            system_description: text(&self.config.system_description),
            capabilities: Some([CAPABILITY_BRIDGE; 2]),
            element: Some(AutoAttachElement {
                kind: ELEMENT_VIRTUAL_SWITCH,
                state: 0,
                management_vlan: 0,
                system_id,
            }),
            mappings: self
                .config
                .mappings
                .iter()
                .take(MAPPINGS_MAX)
                .map(mapping)
                .collect(),
            unrecognized: 0,
        };
        Some(Frame::from_bytes(&unit.emit(own)))
    }

    /// Handles a received frame.
    ///
    /// # Errors
    /// The frame is malformed and is discarded.
    pub fn handle_frame(&mut self, frame: &[u8], now: Instant) -> Result<(), MalformedLldp> {
        self.counters.received += 1;
        let unit = LldpDataUnit::parse(frame).inspect_err(|_| self.counters.discarded += 1)?;
        self.counters.unrecognized += u64::from(unit.unrecognized);
        let key = (unit.chassis.clone(), unit.port.clone());
        if unit.time_to_live == 0 {
            let removed = self.neighbors.remove(&key);
            self.counters.deleted += u64::from(removed.is_some());
            return Ok(());
        }
        let is_new = !self.neighbors.contains_key(&key);
        if is_new && self.neighbors.len() >= NEIGHBORS_MAX {
            self.counters.dropped += 1;
            return Ok(());
        }
        self.counters.inserted += u64::from(is_new);
        let expires = now + Duration::from_secs(unit.time_to_live.into());
        self.neighbors.insert(key, Neighbor { unit, expires });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agent(name: &str) -> LldpAgent {
        let config = LldpConfig {
            system_name: Some("sw".to_owned()),
            system_description: "a switch".to_owned(),
            mappings: vec![(100, 7)],
        };
        LldpAgent::new(name, config, Instant::START)
    }

    fn announce(name: &str, own: u64) -> Frame {
        let frame = agent(name).poll_transmit(MacAddr::from_u64(own), Instant::from_secs(5));
        frame.expect("it is due")
    }

    #[test]
    fn lldp_agent_stores_neighbors_until_they_expire() {
        let mut one = agent("p1");
        assert_eq!(one.next_timeout(), Instant::from_secs(5));
        assert!(
            one.poll_transmit(MacAddr::default(), Instant::from_secs(4))
                .is_none()
        );
        let announced = announce("p2", 2);
        for second in [1, 2] {
            let handled = one.handle_frame(announced.bytes(), Instant::from_secs(second));
            assert_eq!(handled, Ok(()));
        }
        let neighbors: Vec<_> = one.neighbors().collect();
        assert_eq!(neighbors.len(), 1);
        assert_eq!(neighbors[0].port.bytes, b"p2");
        assert_eq!(neighbors[0].system_name.as_deref(), Some(&b"sw"[..]));
        // The other end is no server, and its mapping has the status zero.
        let mappings: Vec<_> = one.mappings().collect();
        let expected = MappingStatus {
            isid: 100,
            vlan: 7,
            status: 0,
        };
        assert_eq!(mappings, [expected]);
        one.handle_timeout(Instant::from_secs(121));
        assert_eq!(one.neighbors().count(), 1);
        one.handle_timeout(Instant::from_secs(122));
        assert_eq!(one.neighbors().count(), 0);
        assert_eq!(
            one.mappings().next().map(|mapping| mapping.status),
            Some(PENDING)
        );
        let counters = one.counters();
        assert_eq!(
            (counters.received, counters.inserted, counters.expired),
            (2, 1, 1)
        );
    }

    #[test]
    fn lldp_neighbor_with_time_to_live_zero_is_removed() {
        let mut one = agent("p1");
        let announced = announce("p2", 2);
        one.handle_frame(announced.bytes(), Instant::START)
            .expect("well formed");
        let mut unit = LldpDataUnit::parse(announced.bytes()).expect("well formed");
        unit.time_to_live = 0;
        one.handle_frame(&unit.emit(MacAddr::default()), Instant::START)
            .expect("well formed");
        assert_eq!((one.neighbors().count(), one.counters().deleted), (0, 1));
    }

    #[test]
    fn lldp_neighbors_are_limited() {
        let mut one = agent("p1");
        for own in 0..40 {
            one.handle_frame(announce("p2", own).bytes(), Instant::START)
                .expect("well formed");
        }
        assert_eq!(
            (one.neighbors().count(), one.counters().dropped),
            (NEIGHBORS_MAX, 8)
        );
    }

    proptest! {
        #[test]
        fn lldp_agent_accepts_any_frame(rest in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut one = agent("p1");
            let frame = [&announce("p2", 2).bytes()[..28], &rest].concat();
            let _ = one.handle_frame(&frame, Instant::START);
            prop_assert_eq!(one.counters().received, 1);
        }
    }
}
