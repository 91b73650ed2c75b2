//! Removal of ports in bulk: the commands for all ports are sent to the workers before any answer
//! is awaited, and slow system calls run on several threads.

use std::collections::{BTreeMap, BTreeSet};

use base::PortNo;
use base::sync::mpsc::channel;

use super::Control;
use super::bridge_runtime::ClosedPort;
use super::steps::LOCAL_V10;
use crate::parallel;
use crate::worker_thread::WorkerThread;
use config::PortKind;
use config::reconcile::ConfigStep;
use dataplane::messages::WorkerCommand;
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use l2::fdb::{FdbKey, FdbView};

impl Control {
    /// Closes the device of a port that remains configured.
    pub(super) fn close_port(&mut self, id: BridgeId, number: PortNo) {
        self.close_ports(&[PortKey {
            bridge: id,
            port: number,
        }]);
    }

    /// Closes the devices of ports that remain configured.
    pub(super) fn close_ports(&mut self, ports: &[PortKey]) {
        let (found, returned_found) = channel();
        let (own, returned_own) = channel();
        let (mut found_ports, mut own_ports) = (Vec::new(), Vec::new());
        for key in ports {
            let Some(site) = self.sites.get_mut(&key.bridge) else {
                continue;
            };
            self.dummies.remove(*key);
            let mut effects = Vec::new();
            site.bridge.handle_port_removed(key.port, &mut effects);
            let port = site.ports.get_mut(&key.port);
            let is_interface = port
                .as_ref()
                .is_some_and(|port| port.spec.kind == PortKind::Interface);
            let closed = port.map_or_else(ClosedPort::default, |port| port.close());
            let back = if is_interface {
                found_ports.push(closed);
                &found
            } else {
                own_ports.push(closed);
                &own
            };
            for worker in &mut self.tools.workers {
                let command = WorkerCommand::RemovePort(*key, back.clone());
                worker.handle.send_reliably(command);
            }
            self.apply_effects(key.bridge, effects, &mut None);
        }
        drop((found, own));
        found_ports.extend(returned_found.iter().map(ClosedPort::of));
        own_ports.extend(returned_own.iter().map(ClosedPort::of));
        // Closed here and not by the reaper: the next step may create a device that the switch
        // makes itself, or that allows one owner, again.
        parallel::map(own_ports, drop);
        for closed in found_ports {
            self.tools.reaper.free(Box::new(closed));
        }
    }

    /// Removes the ports and bridges that `steps` remove.
    pub(super) fn apply_removals(&mut self, steps: &[ConfigStep]) {
        let (mut bridges, mut ports) = (BTreeSet::new(), Vec::new());
        for step in steps {
            match step {
                ConfigStep::RemoveBridge(name) => {
                    bridges.extend(self.site_named(name).map(|(id, _)| id));
                }
                ConfigStep::RemovePort(name, port) => {
                    ports.extend(self.site_named(name).map(|(bridge, _)| PortKey {
                        bridge,
                        port: port.number,
                    }));
                }
                _ => {}
            }
        }
        let whole = self.ports_of(|id| bridges.contains(&id));
        let all: Vec<_> = whole.into_iter().chain(ports.iter().copied()).collect();
        self.unshape(&all);
        self.log_removals(&all);
        let views = self.fdb_views(&ports);
        self.close_ports(&all);
        self.forget_lost_addresses(&views);
        self.end_exports(|id| bridges.contains(&id));
        let now = self.now();
        for key in ports {
            if let Some(site) = self.sites.get_mut(&key.bridge) {
                site.remove_port(key.port, now);
            }
        }
        self.peers.remove_bridges(&bridges);
        self.sites.retain(|id, _| !bridges.contains(id));
    }

    /// Returns the forwarding databases of the bridges of these ports.
    fn fdb_views(&self, ports: &[PortKey]) -> BTreeMap<BridgeId, FdbView> {
        let view = |key: &PortKey| {
            let site = self.sites.get(&key.bridge)?;
            Some((key.bridge, site.bridge.fdb().view()))
        };
        ports.iter().filter_map(view).collect()
    }

    /// Removes the addresses that bridges lost with their ports, since `views`, from all other
    /// bridges: a host that moves to another bridge is not known behind its old one any more, as in
    /// Open vSwitch.
    fn forget_lost_addresses(&mut self, views: &BTreeMap<BridgeId, FdbView>) {
        for (id, before) in views {
            let Some(site) = self.sites.get(id) else {
                continue;
            };
            let after = site.bridge.fdb().view();
            let addresses = before.iter().map(|(address, _)| address);
            let lost: Vec<FdbKey> = addresses
                .filter(|address| after.find(*address).is_none())
                .collect();
            let others = self.sites.iter_mut().filter(|(other, _)| *other != id);
            others.for_each(|(_, site)| site.bridge.forget_addresses(&lost));
        }
    }

    /// Logs the removal of open ports, in the words of `ovs-vswitchd`.
    fn log_removals(&self, ports: &[PortKey]) {
        for key in ports {
            let Some(site) = self.sites.get(&key.bridge) else {
                continue;
            };
            let port = site.ports.get(&key.port);
            if let Some(port) = port.filter(|port| port.device.is_some()) {
                let (bridge, name) = (site.bridge.name(), &port.spec.name);
                let number = match key.port {
                    PortNo::LOCAL => LOCAL_V10,
                    PortNo(number) => number,
                };
                tracing::info!("bridge {bridge}: deleted interface {name} on port {number}");
            }
        }
    }

    /// Shuts down ports first, then workers, then the reaper.
    pub(crate) fn shut_down(mut self) {
        self.checkpoints.close();
        let all = self.ports_of(|_| true);
        if self.commands.cleans_up {
            self.unshape(&all);
        }
        self.close_ports(&all);
        self.end_exports(|_| true);
        self.sites.clear();
        self.tools.workers.drain(..).for_each(WorkerThread::stop);
        self.tools.reaper.finish();
    }

    fn ports_of(&self, is_selected: impl Fn(BridgeId) -> bool) -> Vec<PortKey> {
        let sites = self.sites.iter().filter(|(id, _)| is_selected(**id));
        let ports = sites.flat_map(|(id, site)| site.ports.keys().map(|port| (*id, *port)));
        let key = |(bridge, port)| PortKey { bridge, port };
        ports.map(key).collect()
    }
}
