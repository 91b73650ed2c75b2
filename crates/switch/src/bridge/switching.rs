//! What a bridge's ordinary switching is told while it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Instant, PortNo};

use super::Bridge;
use config::{LogicalPort, SwitchingConfig};
use dataplane::switching::SwitchingView;

impl Bridge {
    /// Does this in `NORMAL` from now on. Stations behind ports that are another thing now are
    /// forgotten: they may be in another VLAN.
    pub fn set_switching(&mut self, config: &SwitchingConfig, now: Instant) {
        let view = SwitchingView::compile(config);
        for port in changed(self.switching.as_deref(), view.as_deref()) {
            self.stations.remove_port(port);
            self.forget_multicast(port);
        }
        self.stations.set_limits(config.fdb_size, config.ageing);
        self.set_snooping(config);
        self.switching = view;
        self.settle_protected();
        self.set_bonds(&config.ports, now);
    }

    /// Keeps frames from going between ports that are protected, whoever sends them.
    pub(super) fn settle_protected(&mut self) {
        let switching = self.switching.as_deref();
        for number in self.ports.keys() {
            let logical = switching.and_then(|switching| switching.port(*number));
            let is_protected = logical.is_some_and(|logical| logical.is_protected);
            self.pipeline.set_protected(*number, is_protected);
        }
        self.unpublished = true;
    }

    /// What its ports are to `NORMAL`; none if all are plain.
    pub const fn switching(&self) -> Option<&Arc<SwitchingView>> {
        self.switching.as_ref()
    }
}

/// The ports that are not to one what they are to the other.
fn changed(before: Option<&SwitchingView>, after: Option<&SwitchingView>) -> BTreeSet<PortNo> {
    let ports = |view: Option<&SwitchingView>| -> Vec<LogicalPort> {
        let ports = view.map(|view| view.config().ports.clone());
        let mut ports = ports.unwrap_or_default();
        // How members share frames is no matter of where stations are.
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
