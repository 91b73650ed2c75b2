//! The state and the configuration of `NORMAL`.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Instant, PortNo};

use super::Bridge;
use config::{AGEING_TIME, FDB_SIZE, LogicalPort, SwitchingConfig};
use dataplane::mirrors::Mirrors;
use dataplane::switching::SwitchingView;
use l2::fdb::ForwardingDatabase;
use l2::multicast_snooping::MulticastTable;

/// The state that `NORMAL` forwards by, and the mirrors.
pub(super) struct NormalState {
    pub(super) fdb: ForwardingDatabase,
    /// The members of multicast groups, if the bridge snoops.
    pub(super) multicast: Option<MulticastTable>,
    /// Settings of `NORMAL` for the ports; none if all have defaults.
    pub(super) switching: Option<Arc<SwitchingView>>,
    /// Mirrors; none if the bridge has none.
    pub(super) mirrors: Option<Arc<Mirrors>>,
}

impl NormalState {
    /// Returns the default state.
    pub(super) fn new() -> Self {
        Self {
            fdb: ForwardingDatabase::new(FDB_SIZE, AGEING_TIME),
            multicast: None,
            switching: None,
            mirrors: None,
        }
    }

    /// Removes expired entries. Returns whether anything changed.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let multicast = self.multicast.as_mut();
        let multicast_changed = multicast.is_some_and(|table| table.expire(now));
        let is_due = self.fdb.next_expiry().is_some_and(|due| due <= now);
        let fdb_changed = is_due && self.fdb.expire(now);
        multicast_changed || fdb_changed
    }

    /// Returns the time of the next expiry.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let multicast = self.multicast.as_ref();
        let multicast = multicast.and_then(MulticastTable::next_expiry);
        let expiries = [self.fdb.next_expiry(), multicast];
        expiries.into_iter().flatten().min()
    }
}

impl Bridge {
    /// Configures `NORMAL`. Forwarding database entries of changed ports are removed, because their
    /// hosts may be in another VLAN.
    pub fn set_switching(&mut self, config: &SwitchingConfig, now: Instant) {
        let view = SwitchingView::compile(config);
        for port in changed(self.normal.switching.as_deref(), view.as_deref()) {
            self.normal.remove_port(port);
        }
        self.normal.fdb.set_limits(config.fdb_size, config.ageing);
        self.normal.set_snooping(config);
        self.normal.switching = view;
        self.update_protected();
        self.set_bonds(&config.ports, now);
    }

    /// Applies port protection: no frame passes between protected ports, not even a packet-out.
    pub(super) fn update_protected(&mut self) {
        let switching = self.normal.switching.as_deref();
        for number in self.ports.keys() {
            let logical = switching.and_then(|switching| switching.port(*number));
            let is_protected = logical.is_some_and(|logical| logical.is_protected);
            self.tables.pipeline.set_protected(*number, is_protected);
        }
        self.publication.request();
    }

    /// Returns the settings of `NORMAL` for the ports; none if all have defaults.
    pub const fn switching(&self) -> Option<&Arc<SwitchingView>> {
        self.normal.switching.as_ref()
    }
}

/// Returns the ports whose settings differ.
fn changed(before: Option<&SwitchingView>, after: Option<&SwitchingView>) -> BTreeSet<PortNo> {
    let ports = |view: Option<&SwitchingView>| -> Vec<LogicalPort> {
        let ports = view.map(|view| view.config().ports.clone());
        let mut ports = ports.unwrap_or_default();
        // The distribution of frames over members has no effect on learned addresses.
        ports.iter_mut().for_each(|port| port.bond = None);
        ports
    };
    let (before, after) = (ports(before), ports(after));
    let lost = before.iter().filter(|port| !after.contains(port));
    let new = after.iter().filter(|port| !before.contains(port));
    lost.chain(new)
        .flat_map(|port| port.members.iter().copied())
        .collect()
}
