//! The configuration of `NORMAL`.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Instant, PortNo};

use super::Bridge;
use config::{LogicalPort, SwitchingConfig};
use dataplane::switching::SwitchingView;

impl Bridge {
    /// Configures `NORMAL`. Forwarding database entries of changed ports are removed, because their
    /// hosts may be in another VLAN.
    pub fn set_switching(&mut self, config: &SwitchingConfig, now: Instant) {
        let view = SwitchingView::compile(config);
        for port in changed(self.switching.as_deref(), view.as_deref()) {
            self.fdb.remove_port(port);
            self.forget_multicast(port);
        }
        self.fdb.set_limits(config.fdb_size, config.ageing);
        self.set_snooping(config);
        self.switching = view;
        self.update_protected();
        self.set_bonds(&config.ports, now);
    }

    /// Applies port protection: no frame passes between protected ports, not even a packet-out.
    pub(super) fn update_protected(&mut self) {
        let switching = self.switching.as_deref();
        for number in self.ports.keys() {
            let logical = switching.and_then(|switching| switching.port(*number));
            let is_protected = logical.is_some_and(|logical| logical.is_protected);
            self.pipeline.set_protected(*number, is_protected);
        }
        self.publication.request();
    }

    /// Returns the settings of `NORMAL` for the ports; none if all have defaults.
    pub const fn switching(&self) -> Option<&Arc<SwitchingView>> {
        self.switching.as_ref()
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
