//! Links between hosts and a device, and the hosts' addresses.

use std::net::Ipv4Addr;

use super::{Host, READY};
use crate::nic::Nic;
use crate::topology::Topology;
use crate::vlan::AccessPorts;
use crate::{
    Clock, DeviceKind, DeviceOffload, External, Failure, Mode, Namespace, PortKind, Settings, Setup,
};

/// True if the test setup creates links that end in the device's namespace.
pub(super) fn have_device_ends(kind: DeviceKind) -> bool {
    !matches!(kind, DeviceKind::Direct | DeviceKind::External(_)) && !kind.makes_taps()
}

/// The links to create, and their namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostLinks<'a> {
    pub(super) kind: DeviceKind,
    pub(super) inside: &'a Namespace,
    pub(super) setup: &'a Setup,
}

impl HostLinks<'_> {
    fn topology(&self) -> &Topology {
        &self.setup.topology
    }

    fn external(&self) -> Option<&External> {
        match &self.setup.settings {
            Settings::External(external) => Some(external),
            Settings::None | Settings::Impairments(_) => None,
        }
    }

    /// True if hosts may send frames with pending checksums and segmentation.
    fn supports_offloads(&self) -> bool {
        if let Some(external) = self.external() {
            return external.offloads;
        }
        // A bridge passes frames to AF_XDP without their offload metadata.
        let passes_metadata =
            self.kind != DeviceKind::ComportaXdp || self.setup.topology.ports() != PortKind::Vlan;
        passes_metadata && self.kind.supports_offloads()
    }

    /// Creates the hosts, with empty namespaces.
    pub(super) fn hosts(&self) -> Result<Vec<Host>, Failure> {
        let count = self.topology().hosts();
        let names: Vec<&'static str> = match self.external() {
            Some(external) if external.ports.len() < count => {
                let known = external.ports.len();
                return Err(Failure::Unfit(format!(
                    "{} has {known} network cards, and {count} are needed",
                    self.kind
                )));
            }
            // The leak is bounded by the number of cards in description files.
            Some(external) => external.ports[..count]
                .iter()
                .map(|port| &*Box::leak(port.interface.clone().into_boxed_str()))
                .collect(),
            None if self.kind.makes_taps() => self.topology().cable_ends().to_vec(),
            None => vec!["eth0"; count],
        };
        names
            .into_iter()
            .zip(1..)
            .map(|(interface, number)| {
                Ok(Host {
                    namespace: Namespace::new()?,
                    interface,
                    mac: [0x02, 0, 0, 0, 0, number],
                    address: Ipv4Addr::new(10, 98, 0, number),
                })
            })
            .collect()
    }

    /// Creates the links, or borrows the cards that are connected to an external switch.
    pub(super) fn create(&self, hosts: &mut [Host]) -> Result<Vec<Nic>, Failure> {
        if let Some(external) = self.external() {
            return take_nics(external, hosts);
        }
        if self.kind == DeviceKind::Direct {
            for pair in hosts.chunks(2) {
                let [near, far] = pair else {
                    unreachable!("a cable's topology has pairs of hosts");
                };
                near.namespace
                    .join(near.interface, &far.namespace, far.interface)?;
            }
            return Ok(Vec::new());
        }
        for (host, port) in hosts.iter().zip(self.topology().cable_ends()) {
            host.namespace.join(host.interface, self.inside, port)?;
            self.make_ready(port)?;
        }
        for (near, far) in self.topology().links() {
            self.inside.join(&near, self.inside, &far)?;
            self.make_ready(&near)?;
            self.make_ready(&far)?;
        }
        if self.topology().ports() == PortKind::Vlan {
            self.add_front_bridge()?;
        }
        Ok(Vec::new())
    }

    /// Configures the device's end of a link and sets it up.
    fn make_ready(&self, port: &str) -> Result<(), Failure> {
        self.inside.set_mtu(port, self.topology().mtu())?;
        self.inside.set_up(port)?;
        if !self.supports_offloads() {
            self.inside
                .set_offload(port, DeviceOffload::TxChecksum, false)?;
        }
        Ok(())
    }

    /// Gives each port a separate VLAN, and the device its VLAN interface. In legacy mode the
    /// device consists only of the bridge in front, and hosts that reach each other share a VLAN.
    fn add_front_bridge(&self) -> Result<(), Failure> {
        let ports = self.topology().cable_ends();
        let is_alone = self.setup.mode == Some(Mode::Legacy)
            && matches!(
                self.kind,
                DeviceKind::VlanBridge | DeviceKind::OvsVlanBridge
            );
        let attachments = self.topology().attachments();
        let vlans: Vec<u16> = match is_alone {
            true => attachments
                .iter()
                .map(|at| Topology::vlan(at.bridge))
                .collect(),
            false => (0..ports.len()).map(Topology::vlan).collect(),
        };
        let members: Vec<_> = ports.iter().copied().zip(vlans.iter().copied()).collect();
        self.inside.access_ports(AccessPorts {
            members: &members,
            interfaces: !is_alone,
            mtu: self.topology().mtu(),
        })
    }

    /// Waits for the TAP interfaces that the device creates, and moves each to its host.
    pub(super) fn hand_out_taps(&self, hosts: &[Host], clock: &Clock) -> Result<(), Failure> {
        for host in hosts {
            let port = host.interface;
            clock.wait_for("the device to create its ports", READY, || {
                Ok(self.inside.counters(port).is_ok().then_some(()))
            })?;
            self.inside.hand_over(port, &host.namespace)?;
        }
        Ok(())
    }

    /// Adds the addresses of each host, and its neighbour entries for the others.
    pub(super) fn add_addresses(&self, hosts: &[Host]) -> Result<(), Failure> {
        for host in hosts {
            let (namespace, interface) = (&host.namespace, host.interface);
            if self.external().is_none() {
                namespace.set_mac(interface, host.mac)?;
            }
            namespace.set_mtu(interface, self.topology().mtu())?;
            namespace.set_up(interface)?;
            namespace.add_address(interface, host.address, 24)?;
            for other in hosts.iter().filter(|other| other.mac != host.mac) {
                namespace.add_neighbour(interface, other.address, other.mac)?;
            }
            if !self.supports_offloads() {
                namespace.set_offload(interface, DeviceOffload::TxChecksum, false)?;
            }
        }
        Ok(())
    }
}

/// Moves each card to its host, which adopts the card's MAC address.
fn take_nics(external: &External, hosts: &mut [Host]) -> Result<Vec<Nic>, Failure> {
    let ports = external.ports.iter();
    ports
        .zip(hosts)
        .map(|(port, host)| {
            let nic = Nic::lend(port, &host.namespace)?;
            host.mac = nic.state().mac;
            Ok(nic)
        })
        .collect()
}
