//! The dummy ports: their addresses, the reconnect timers of their connections, and the MTU of local
//! ports that are dummies.

use std::collections::BTreeMap;

use base::{Instant, PortNo};
use packet::MacAddr;
use ports::dummy::{DummyHandle, DummyType};

use super::Control;
use super::bridge_runtime::BridgeRuntime;
use config::PortKind;
use dataplane::slots::PortKey;

/// The address of the first dummy, as in Open vSwitch; each further one has the next address.
const ADDRESS_FIRST: u64 = 0xaa55_aa55_0000;

/// The MTU of a local port without other ports.
const MTU_DEFAULT: u32 = 1500;

/// The open dummies.
#[derive(Default)]
pub(super) struct Dummies {
    handles: BTreeMap<PortKey, DummyHandle>,
    /// The time of the next connection attempt or check.
    due: Option<Instant>,
    /// The number of addresses given so far.
    addresses: u64,
}

impl Dummies {
    /// Adds an open dummy.
    pub(super) fn insert(&mut self, key: PortKey, dummy: DummyHandle) {
        self.handles.insert(key, dummy);
        self.due = Some(Instant::START);
    }

    /// Removes a dummy that closes, if it is one.
    pub(super) fn remove(&mut self, key: PortKey) {
        self.handles.remove(&key);
    }

    /// Returns the address of the next dummy.
    pub(super) fn next_address(&mut self) -> MacAddr {
        let address = MacAddr::from_u64(ADDRESS_FIRST + self.addresses);
        // The lower 32 bits count.
        self.addresses = (self.addresses + 1) & 0xffff_ffff;
        address
    }

    /// Records that options may have changed.
    pub(super) fn handle_settings(&mut self, now: Instant) {
        if !self.handles.is_empty() {
            self.due = Some(now);
        }
    }

    /// Returns the time of the next connection attempt or check.
    pub(super) const fn next_drive(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the dummies, by port.
    pub(super) const fn handles(&self) -> &BTreeMap<PortKey, DummyHandle> {
        &self.handles
    }
}

impl Control {
    /// Runs the expired reconnect timers of dummies.
    pub(super) fn drive_dummies(&mut self, now: Instant) {
        if self.dummies.due.is_some_and(|due| due <= now) {
            let handles = self.dummies.handles.values();
            let due = handles.filter_map(|dummy| dummy.drive_connection(now));
            self.dummies.due = due.min();
        }
    }

    /// Sets the MTU of each local port that is a dummy to the lowest MTU of the bridge's ports,
    /// unless it is configured (ovs-vswitchd.conf.db(5), `mtu_request`).
    pub(super) fn follow_port_mtus(&mut self) {
        for site in self.sites.values_mut() {
            let mtu = lowest_mtu(site);
            let Some(local) = site.ports.get_mut(&PortNo::LOCAL) else {
                continue;
            };
            let is_dummy = matches!(local.spec.kind, PortKind::Dummy(_));
            let settings = site.interface_settings.get(&local.spec.name);
            let is_configured = settings.is_some_and(|settings| settings.mtu.is_some());
            if let Some(device) = local.device.as_mut().filter(|_| is_dummy && !is_configured)
                && let Err(error) = device.set_link(None, Some(mtu))
            {
                tracing::debug!(port = local.spec.name, %error, "cannot set the MTU");
            }
        }
    }
}

/// Returns the lowest MTU of the ports whose MTU does not follow the others.
fn lowest_mtu(site: &BridgeRuntime) -> u32 {
    let local = site.ports.get(&PortNo::LOCAL);
    if !local.is_some_and(|local| matches!(local.spec.kind, PortKind::Dummy(_))) {
        return MTU_DEFAULT;
    }
    let ports = site.ports.values().filter(|port| match port.spec.kind {
        PortKind::Dummy(DummyType::Internal) | PortKind::Patch(_) | PortKind::Tunnel(_) => false,
        _ => port.spec.number != PortNo::LOCAL,
    });
    let devices = ports.filter_map(|port| port.device.as_ref());
    let mtus = devices.map(|device| device.status().mtu);
    mtus.filter(|mtu| *mtu > 0).min().unwrap_or(MTU_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dummies_have_consecutive_addresses() {
        let mut dummies = Dummies::default();
        let addresses = [(); 2].map(|()| dummies.next_address().to_string());
        assert_eq!(addresses, ["aa:55:aa:55:00:00", "aa:55:aa:55:00:01"]);
    }
}
