//! Multicast snooping: the ports with members of each group and the ports with multicast routers,
//! per VLAN, learned from IGMP and MLD messages (RFC 4541; ovs-vswitchd.conf.db(5), "Multicast
//! Snooping").
//!
//! The control thread owns the table and is its only writer; workers read a view. `normal` forwards
//! the frames.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Instant, PortNo};
use imbl::OrdMap;
use packet::{MembershipChange, MembershipMessage};

use config::{SnoopingConfig, SwitchingConfig};

/// Lifetime of a router port without queries. Open vSwitch uses this value too and has no setting
/// for it.
const ROUTER_AGEING: Duration = Duration::from_secs(180);

/// A group in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MulticastGroup {
    /// The VLAN.
    pub vid: u16,
    /// The address of the group.
    pub address: IpAddr,
}

/// The set of receivers of a multicast frame that is not flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MulticastClass {
    /// Members of this group.
    Members(MulticastGroup),
    /// Ports that receive frames of groups without members.
    Unregistered,
    /// Ports that receive membership reports.
    Reports,
}

/// An immutable view of the table and of the flood settings of ports.
#[derive(Clone, Debug, Default)]
pub struct MulticastView {
    members: OrdMap<MulticastGroup, Arc<[PortNo]>>,
    routers: OrdMap<u16, Arc<[PortNo]>>,
    /// Ports that receive the frames of every group.
    floods: Arc<[PortNo]>,
    /// Ports that receive all reports.
    flood_reports: Arc<[PortNo]>,
    /// Frames of groups without members are flooded.
    flood_unregistered: bool,
}

impl MulticastView {
    /// Returns the receivers of a group's frames; `None` for a flood.
    pub fn classify(&self, group: MulticastGroup) -> Option<MulticastClass> {
        match self.members.contains_key(&group) {
            true => Some(MulticastClass::Members(group)),
            false => (!self.flood_unregistered).then_some(MulticastClass::Unregistered),
        }
    }

    /// Returns the ports of a class in a VLAN, without duplicates.
    pub fn ports(&self, class: MulticastClass, vid: u16) -> impl Iterator<Item = PortNo> {
        let routers = self.routers.get(&vid).map_or(&[][..], AsRef::as_ref);
        let parts: [&[PortNo]; 3] = match class {
            MulticastClass::Members(group) => {
                let members = self.members.get(&group);
                [members.map_or(&[], AsRef::as_ref), &self.floods, routers]
            }
            MulticastClass::Unregistered => [&[], &self.floods, routers],
            MulticastClass::Reports => [&[], &self.flood_reports, routers],
        };
        (0..parts.len()).flat_map(move |index| {
            let is_new =
                move |port: &&PortNo| !parts[..index].iter().any(|part| part.contains(port));
            parts[index].iter().filter(is_new).copied()
        })
    }
}

/// A key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MembershipKey {
    Member(MulticastGroup, PortNo),
    Router(u16, PortNo),
}

/// The multicast group table, bounded: a new group evicts the group of the oldest membership.
#[derive(Debug)]
pub struct MulticastTable {
    limit: usize,
    ageing: Duration,
    /// The time of the last message for each key.
    last_report: BTreeMap<MembershipKey, Instant>,
    /// The same keys by age, members and routers apart, since their lifetimes differ.
    by_age: [BTreeSet<(Instant, MembershipKey)>; 2],
    view: MulticastView,
}

impl MembershipKey {
    const fn kind(self) -> usize {
        match self {
            Self::Member(..) => 0,
            Self::Router(..) => 1,
        }
    }
}

impl MulticastTable {
    /// Returns an empty table with this configuration.
    pub fn new(snooping: &SnoopingConfig, config: &SwitchingConfig) -> Self {
        let mut table = Self {
            limit: 0,
            ageing: Duration::ZERO,
            last_report: BTreeMap::new(),
            by_age: Default::default(),
            view: MulticastView::default(),
        };
        table.configure(snooping, config);
        table
    }

    /// Replaces the configuration.
    pub fn configure(&mut self, snooping: &SnoopingConfig, config: &SwitchingConfig) {
        let ports = |is_selected: fn(&config::LogicalPort) -> bool| -> Arc<[PortNo]> {
            let ports = config.ports.iter().filter(|port| is_selected(port));
            ports
                .filter_map(|port| port.members.first().copied())
                .collect()
        };
        self.view.floods = ports(|port| port.multicast.flood);
        self.view.flood_reports = ports(|port| port.multicast.flood_reports);
        self.view.flood_unregistered = snooping.flood_unregistered;
        (self.limit, self.ageing) = (snooping.groups_max, snooping.ageing);
        while self.view.members.len() > self.limit {
            self.evict();
        }
    }

    /// Returns an immutable view of the current table.
    pub fn view(&self) -> MulticastView {
        self.view.clone()
    }

    /// Returns all memberships: group, port and age.
    pub fn members(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (MulticastGroup, PortNo, Duration)> {
        self.last_report
            .iter()
            .filter_map(move |(key, last_report)| match key {
                MembershipKey::Member(group, port) => Some((*group, *port, now - *last_report)),
                MembershipKey::Router(..) => None,
            })
    }

    /// Returns all router ports: VLAN, port and age.
    pub fn routers(&self, now: Instant) -> impl Iterator<Item = (u16, PortNo, Duration)> {
        self.last_report
            .iter()
            .filter_map(move |(key, last_report)| match key {
                MembershipKey::Router(vid, port) => Some((*vid, *port, now - *last_report)),
                MembershipKey::Member(..) => None,
            })
    }

    /// Processes a received membership message. Returns whether the table changed.
    pub fn handle_message(
        &mut self,
        (port, vid): (PortNo, u16),
        message: &MembershipMessage,
        now: Instant,
    ) -> bool {
        // This port receives all groups in any case.
        if self.view.floods.contains(&port) {
            return false;
        }
        match message {
            MembershipMessage::Query => self.refresh(MembershipKey::Router(vid, port), now),
            MembershipMessage::Report(changes) => changes.iter().fold(false, |news, change| {
                self.handle_change((port, vid), change, now) | news
            }),
        }
    }

    fn handle_change(
        &mut self,
        (port, vid): (PortNo, u16),
        change: &MembershipChange,
        now: Instant,
    ) -> bool {
        let address = change.group;
        let group = MulticastGroup { vid, address };
        if !change.is_joined {
            // A port that receives reports may have further members behind it.
            let may_leave = !self.view.flood_reports.contains(&port);
            return may_leave && self.remove_key(MembershipKey::Member(group, port));
        }
        let has_router = self
            .last_report
            .contains_key(&MembershipKey::Router(vid, port));
        if has_router || !address.is_multicast() {
            return false;
        }
        if !self.view.members.contains_key(&group) && self.view.members.len() >= self.limit {
            self.evict();
        }
        self.refresh(MembershipKey::Member(group, port), now)
    }

    /// Removes all entries of a port. Returns whether there were any.
    pub fn remove_port(&mut self, port: PortNo) -> bool {
        self.remove_matching(|key| match key {
            MembershipKey::Member(_, at) | MembershipKey::Router(_, at) => *at == port,
        })
    }

    /// Removes all entries. Returns whether there were any.
    pub fn flush(&mut self) -> bool {
        self.remove_matching(|_| true)
    }

    /// Removes entries whose lifetime has passed. Returns whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let mut any = false;
        for kind in 0..self.by_age.len() {
            while let Some((last_report, key)) = self.by_age[kind].first().copied()
                && last_report + self.lifetime(kind) <= now
            {
                any |= self.remove_key(key);
            }
        }
        any
    }

    /// Returns the time at which [`MulticastTable::expire`] is due.
    pub fn next_expiry(&self) -> Option<Instant> {
        let first = self.by_age.iter().enumerate();
        let due = first.filter_map(|(kind, keys)| Some(keys.first()?.0 + self.lifetime(kind)));
        due.min()
    }

    const fn lifetime(&self, kind: usize) -> Duration {
        match kind {
            0 => self.ageing,
            _ => ROUTER_AGEING,
        }
    }

    fn refresh(&mut self, key: MembershipKey, now: Instant) -> bool {
        let before = self.last_report.insert(key, now);
        let keys = &mut self.by_age[key.kind()];
        if let Some(before) = before {
            keys.remove(&(before, key));
        }
        keys.insert((now, key));
        if before.is_none() {
            self.update_view(key);
        }
        before.is_none()
    }

    fn remove_key(&mut self, key: MembershipKey) -> bool {
        let Some(last_report) = self.last_report.remove(&key) else {
            return false;
        };
        self.by_age[key.kind()].remove(&(last_report, key));
        self.update_view(key);
        true
    }

    fn remove_matching(&mut self, is_selected: impl Fn(&MembershipKey) -> bool) -> bool {
        let selected = self.last_report.keys().filter(|key| is_selected(key));
        let selected: Vec<_> = selected.copied().collect();
        for key in &selected {
            self.remove_key(*key);
        }
        !selected.is_empty()
    }

    /// Evicts the group of the oldest membership.
    fn evict(&mut self) {
        let oldest = self.by_age[0].first().map(|(_, key)| *key);
        if let Some(MembershipKey::Member(oldest, _)) = oldest {
            self.remove_matching(
                |key| matches!(key, MembershipKey::Member(group, _) if *group == oldest),
            );
        }
    }

    /// Updates the view of the group or VLAN of a key.
    fn update_view(&mut self, key: MembershipKey) {
        let (least, most) = (PortNo(0), PortNo(u32::MAX));
        let ports = |least, most| -> Arc<[PortNo]> {
            let keys = self.last_report.range(least..=most);
            keys.map(|(key, _)| match key {
                MembershipKey::Member(_, port) | MembershipKey::Router(_, port) => *port,
            })
            .collect()
        };
        match key {
            MembershipKey::Member(group, _) => {
                let ports = ports(
                    MembershipKey::Member(group, least),
                    MembershipKey::Member(group, most),
                );
                set_ports(&mut self.view.members, group, ports);
            }
            MembershipKey::Router(vid, _) => {
                let ports = ports(
                    MembershipKey::Router(vid, least),
                    MembershipKey::Router(vid, most),
                );
                set_ports(&mut self.view.routers, vid, ports);
            }
        }
    }
}

fn set_ports<K: Ord + Clone>(map: &mut OrdMap<K, Arc<[PortNo]>>, key: K, ports: Arc<[PortNo]>) {
    match ports.is_empty() {
        true => drop(map.remove(&key)),
        false => drop(map.insert(key, ports)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{LogicalPort, MulticastPort};

    fn table(groups_max: usize) -> MulticastTable {
        let port = |number, flood, flood_reports| LogicalPort {
            members: vec![PortNo(number)],
            multicast: MulticastPort {
                flood,
                flood_reports,
            },
            ..LogicalPort::default()
        };
        let config = SwitchingConfig {
            ports: vec![port(8, true, false), port(9, false, true)],
            ..SwitchingConfig::default()
        };
        let snooping = SnoopingConfig {
            groups_max,
            ..SnoopingConfig::default()
        };
        MulticastTable::new(&snooping, &config)
    }

    fn group(last: u8) -> MulticastGroup {
        MulticastGroup {
            vid: 0,
            address: [239, 0, 0, last].into(),
        }
    }

    fn report(table: &mut MulticastTable, port: u32, last: u8, is_joined: bool, at: u64) -> bool {
        let change = MembershipChange {
            group: group(last).address,
            is_joined,
        };
        let message = MembershipMessage::Report(vec![change]);
        table.handle_message((PortNo(port), 0), &message, Instant::from_secs(at))
    }

    fn query(table: &mut MulticastTable, port: u32, at: u64) -> bool {
        table.handle_message(
            (PortNo(port), 0),
            &MembershipMessage::Query,
            Instant::from_secs(at),
        )
    }

    fn ports(table: &MulticastTable, class: MulticastClass) -> Vec<u32> {
        let view = table.view();
        let ports = view.ports(class, 0).map(|port| port.0);
        ports.collect()
    }

    #[test]
    fn frames_reach_members_flood_ports_and_routers_once() {
        let mut table = table(4);
        assert!(report(&mut table, 2, 1, true, 0) && report(&mut table, 1, 1, true, 0));
        assert!(!report(&mut table, 1, 1, true, 1), "already a member");
        assert!(
            !report(&mut table, 8, 1, true, 1),
            "already receives all groups"
        );
        assert!(query(&mut table, 1, 2) && query(&mut table, 4, 2) && !query(&mut table, 8, 2));
        let members = MulticastClass::Members(group(1));
        assert_eq!(table.view().classify(group(1)), Some(members));
        assert_eq!(table.view().classify(group(2)), None, "flooded");
        assert_eq!(ports(&table, members), [1, 2, 8, 4]);
        assert_eq!(ports(&table, MulticastClass::Unregistered), [8, 1, 4]);
        assert_eq!(ports(&table, MulticastClass::Reports), [9, 1, 4]);
        // A router port already receives all groups.
        assert!(!report(&mut table, 4, 1, true, 3));
    }

    #[test]
    fn members_expire_or_leave() {
        let mut table = table(4);
        report(&mut table, 1, 1, true, 0);
        report(&mut table, 9, 1, true, 100);
        assert!(report(&mut table, 1, 1, false, 100) && !report(&mut table, 1, 1, false, 100));
        assert!(
            !report(&mut table, 9, 1, false, 100),
            "other members may remain"
        );
        query(&mut table, 2, 250);
        assert_eq!(table.next_expiry(), Some(Instant::from_secs(400)));
        assert!(!table.expire(Instant::from_secs(399)) && table.expire(Instant::from_secs(400)));
        assert_eq!(table.view().classify(group(1)), None);
        assert_eq!(table.next_expiry(), Some(Instant::from_secs(430)));
        assert_eq!(table.routers(Instant::from_secs(429)).count(), 1);
        assert!(table.remove_port(PortNo(2)) && !table.flush());
        assert_eq!(table.next_expiry(), None);
    }

    #[test]
    fn new_group_evicts_the_oldest_group() {
        let mut table = table(2);
        for (last, at) in [(1, 0), (2, 1), (1, 2), (3, 3)] {
            report(&mut table, 1, last, true, at);
        }
        let now = Instant::from_secs(3);
        let held: Vec<_> = table.members(now).map(|(group, ..)| group).collect();
        assert_eq!(held, [group(1), group(3)]);
    }
}
