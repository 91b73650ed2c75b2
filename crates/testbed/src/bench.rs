//! A device under test between hosts, each in a network namespace: with two hosts `client eth0 --
//! p1 device p2 -- eth0 server`; [`Topology`] describes the others. If the device creates TAP
//! interfaces there are no links, and the hosts own `p1` and `p2`. If it is an external switch, the
//! hosts own network cards of the machine.
//!
//! Every test setup has the same addresses, so that traffic differs only in the device that it
//! passes. Several can exist at the same time.

mod cables;

use std::net::Ipv4Addr;
use std::time::Duration;

use base::Instant;

use crate::device::DevicePlan;
use crate::nic::Nic;
use crate::{
    Clock, Device, DeviceKind, DeviceOffload, DeviceOptions, Failure, InterfaceCounters, Namespace,
    NicState, PortKind, Setup, Spawner, StopSignal, Topology,
};
use cables::HostLinks;

/// A host connected to the device.
#[derive(Debug)]
pub struct Host {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its interface.
    pub interface: &'static str,
    /// MAC address of the interface.
    pub mac: [u8; 6],
    /// IPv4 address of the interface, in a /24 network.
    pub address: Ipv4Addr,
}

impl Host {
    /// Returns the counters of its interface.
    ///
    /// # Errors
    /// The interface does not exist any more.
    pub fn counters(&self) -> Result<InterfaceCounters, Failure> {
        self.namespace.counters(self.interface)
    }

    /// Returns the offloads of its interface that are on.
    ///
    /// # Errors
    /// The interface does not exist any more.
    pub fn offloads(&self) -> Result<Vec<DeviceOffload>, Failure> {
        let known = [
            DeviceOffload::RxChecksum,
            DeviceOffload::TxChecksum,
            DeviceOffload::ScatterGather,
            DeviceOffload::TcpSegmentation,
            DeviceOffload::GenericSegmentation,
            DeviceOffload::GenericReceive,
        ];
        let mut on = Vec::new();
        for offload in known {
            if self.namespace.offload(self.interface, offload)? {
                on.push(offload);
            }
        }
        Ok(on)
    }
}

/// Maximum time until links carry frames. The kernel checks them at least once a second, and
/// network cards that negotiate a speed take longer.
const READY: Duration = Duration::from_secs(10);

/// A running device between its hosts.
#[derive(Debug)]
pub struct Bench {
    // Dropped first, so that the device stops before its links disappear.
    device: Device,
    nics: Vec<Nic>,
    inside: Namespace,
    hosts: Vec<Host>,
    options: DeviceOptions,
    setup: Setup,
}

/// The times of a device's end.
#[derive(Clone, Copy, Debug)]
pub struct StopTimes {
    /// Time of the signal.
    pub signalled: Instant,
    /// Time at which the device had ended.
    pub ended: Instant,
}

impl Bench {
    /// Connects two hosts and starts the device in its default mode. It may not forward yet:
    /// OpenFlow devices wait for rules, which their controller must send.
    ///
    /// # Errors
    /// A step failed; the error names it.
    pub fn build(
        spawner: &Spawner,
        clock: &Clock,
        options: &DeviceOptions,
    ) -> Result<Self, Failure> {
        Self::build_as(spawner, clock, options, &Setup::default())
    }

    /// Connects the hosts and starts the device as `setup` describes.
    ///
    /// # Errors
    /// The device does not support the setup, or a step failed; the error names it.
    pub fn build_as(
        spawner: &Spawner,
        clock: &Clock,
        options: &DeviceOptions,
        setup: &Setup,
    ) -> Result<Self, Failure> {
        let kind = options.kind;
        let setup = &fit(kind, setup)?;
        let inside = Namespace::new()?;
        let cables = HostLinks {
            kind,
            inside: &inside,
            setup,
        };
        let mut hosts = cables.hosts()?;
        let mut nics = Vec::new();
        let device = if kind.makes_taps() {
            let device = Device::start(spawner, clock, &inside, options, setup)?;
            cables.hand_out_taps(&hosts, clock)?;
            cables.add_addresses(&hosts)?;
            device
        } else {
            nics = cables.create(&mut hosts)?;
            cables.add_addresses(&hosts)?;
            Device::start(spawner, clock, &inside, options, setup)?
        };
        let bench = Self {
            device,
            nics,
            inside,
            hosts,
            options: options.clone(),
            setup: setup.clone(),
        };
        clock.wait_for("the cables to carry frames", READY, || {
            Ok(bench.carries()?.then_some(()))
        })?;
        Ok(bench)
    }

    /// True if the links carry frames at both ends.
    fn carries(&self) -> Result<bool, Failure> {
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|host| (&host.namespace, host.interface));
        let ports = self.cable_ends().iter().map(|port| (&self.inside, *port));
        for (namespace, interface) in hosts.chain(ports) {
            if !namespace.carries(interface)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the device's ends of its links.
    fn cable_ends(&self) -> &'static [&'static str] {
        match cables::have_device_ends(self.device.kind()) {
            true => self.setup.topology.cable_ends(),
            false => &[],
        }
    }

    /// Returns the host at port 1.
    #[must_use]
    pub fn client(&self) -> &Host {
        &self.hosts[0]
    }

    /// Returns the host at port 2, or at the other end of a chain.
    #[must_use]
    pub fn server(&self) -> &Host {
        &self.hosts[1]
    }

    /// Returns all hosts, in the order of [`Topology::attachments`].
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.setup.topology
    }

    /// Returns the options of the device.
    #[must_use]
    pub const fn options(&self) -> &DeviceOptions {
        &self.options
    }

    /// Returns the setup of the device.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the device, for checks.
    pub const fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Stops the device and keeps its links.
    ///
    /// # Errors
    /// The device cannot be restarted ([`DeviceKind::can_restart`]), or does not end.
    pub fn end_device(&mut self, clock: &Clock, signal: StopSignal) -> Result<StopTimes, Failure> {
        let bridges = self.setup.topology.bridges();
        let plan = DevicePlan::of(&self.options, &self.setup, &self.inside, &bridges);
        let signalled = clock.now();
        self.device.end(signal, plan)?;
        let ended = clock.now();
        Ok(StopTimes { signalled, ended })
    }

    /// Starts a stopped device again, at the same links and with the same settings.
    ///
    /// # Errors
    /// The device cannot be restarted, or its start fails.
    pub fn restart_device(&mut self, spawner: &Spawner) -> Result<(), Failure> {
        let bridges = self.setup.topology.bridges();
        let plan = DevicePlan::of(&self.options, &self.setup, &self.inside, &bridges);
        self.device.restart(spawner, plan)
    }

    /// Returns the borrowed network cards in their original state.
    pub fn nics(&self) -> impl Iterator<Item = &NicState> {
        self.nics.iter().map(Nic::state)
    }

    /// Returns the namespace of the device with its ports `p1` and so on; empty if there is no
    /// device or its hosts own the ports.
    #[must_use]
    pub const fn device_namespace(&self) -> &Namespace {
        &self.inside
    }

    /// Returns the counters of the device's ends of its first two ports, or `None` if there is no
    /// device or it has no links.
    ///
    /// # Errors
    /// A port does not exist any more.
    pub fn port_counters(&self) -> Result<Option<[InterfaceCounters; 2]>, Failure> {
        match self.counters_of_ports()?[..] {
            [first, second, ..] => Ok(Some([first, second])),
            _ => Ok(None),
        }
    }

    /// Returns the counters of the device's end of the link to each host, in the order of hosts;
    /// empty if there is no device or it has no links.
    ///
    /// # Errors
    /// A port does not exist any more.
    pub fn counters_of_ports(&self) -> Result<Vec<InterfaceCounters>, Failure> {
        let ports = self.cable_ends().iter();
        ports.map(|port| self.inside.counters(port)).collect()
    }
}

/// Returns the complete setup of a device kind, or refuses it.
fn fit(kind: DeviceKind, setup: &Setup) -> Result<Setup, Failure> {
    let mut setup = setup.clone();
    if matches!(kind, DeviceKind::VlanBridge | DeviceKind::OvsVlanBridge) {
        setup.topology = setup.topology.with_ports(PortKind::Vlan);
    }
    kind.check_topology(&setup.topology)
        .map_err(Failure::Unfit)?;
    if let Some(mode) = setup.mode.filter(|mode| !kind.modes().contains(mode)) {
        let text = format!("{kind} has no mode {mode}");
        return Err(Failure::Unfit(text));
    }
    Ok(setup)
}

#[cfg(test)]
mod tests;
