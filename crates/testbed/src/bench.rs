//! A device under test between hosts, each in a namespace of its own. With two of them it is
//! `client eth0 -- p1 device p2 -- eth0 server`; [`Topology`] has what else there is. Where
//! the device makes TAP interfaces there are no cables: the hosts have `p1` and `p2` as
//! theirs. Where it is a switch of its own, the hosts have the machine's network cards.
//!
//! Every bench has the same addresses, so that traffic differs in nothing but the
//! device it passes; several can be up at once without knowing of each other.

mod cables;

use std::net::Ipv4Addr;
use std::time::Duration;

use base::Instant;

use crate::device::Plan;
use crate::nic::Nic;
use crate::{
    Clock, Device, DeviceKind, DeviceOffload, DeviceOptions, Ending, Failure, InterfaceCounters,
    Namespace, NicState, PortKind, Setup, Spawner, Topology,
};
use cables::Cables;

/// A host at one end of the device.
#[derive(Debug)]
pub struct Host {
    /// Where it lives.
    pub namespace: Namespace,
    /// Its one interface.
    pub interface: &'static str,
    /// The hardware address of that.
    pub mac: [u8; 6],
    /// The IPv4 address of that, in a network of 24 bits.
    pub address: Ipv4Addr,
}

impl Host {
    /// What its interface has counted.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn counters(&self) -> Result<InterfaceCounters, Failure> {
        self.namespace.counters(self.interface)
    }

    /// Which offloads of its interface are on.
    ///
    /// # Errors
    /// The interface is gone.
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

/// How long cables may take until they carry frames. The kernel looks after
/// them once a second at the latest, and network cards that agree on a speed take some more.
const READY: Duration = Duration::from_secs(10);

/// A device, running, between its hosts.
#[derive(Debug)]
pub struct Bench {
    // Dropped first: the device should be stopped before its links vanish.
    device: Device,
    nics: Vec<Nic>,
    inside: Namespace,
    hosts: Vec<Host>,
    options: DeviceOptions,
    setup: Setup,
}

/// When a device was told to end, and when it was gone.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// When it was told.
    pub told: Instant,
    /// When it was gone.
    pub gone: Instant,
}

impl Bench {
    /// Lays the cables between two hosts and starts the device in its usual mode. It may not
    /// forward yet: OpenFlow devices wait for rules, which their controller must send.
    ///
    /// # Errors
    /// Whatever of that fails, by name.
    pub fn build(
        spawner: &Spawner,
        clock: &Clock,
        options: &DeviceOptions,
    ) -> Result<Self, Failure> {
        Self::build_as(spawner, clock, options, &Setup::default())
    }

    /// Lays the cables and starts the device as `setup` says.
    ///
    /// # Errors
    /// The device cannot be that; whatever of it fails, by name.
    pub fn build_as(
        spawner: &Spawner,
        clock: &Clock,
        options: &DeviceOptions,
        setup: &Setup,
    ) -> Result<Self, Failure> {
        let kind = options.kind;
        let setup = &fit(kind, setup)?;
        let inside = Namespace::new()?;
        let cables = Cables {
            kind,
            inside: &inside,
            setup,
        };
        let mut hosts = cables.hosts()?;
        let mut nics = Vec::new();
        let device = if kind.makes_taps() {
            let device = Device::start(spawner, clock, &inside, options, setup)?;
            cables.hand_out_taps(&hosts, clock)?;
            cables.settle(&hosts)?;
            device
        } else {
            nics = cables.lay(&mut hosts)?;
            cables.settle(&hosts)?;
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

    /// Whether the cables carry frames, at the hosts' ends and at the device's.
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

    /// The device's side of the cables that lead to it.
    fn cable_ends(&self) -> &'static [&'static str] {
        match cables::are_laid(self.device.kind()) {
            true => self.setup.topology.cable_ends(),
            false => &[],
        }
    }

    /// The host at port 1.
    #[must_use]
    pub fn client(&self) -> &Host {
        &self.hosts[0]
    }

    /// The host at port 2, or at the other end of a chain.
    #[must_use]
    pub fn server(&self) -> &Host {
        &self.hosts[1]
    }

    /// All hosts, in the order of [`Topology::places`].
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// How hosts and bridges are joined.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.setup.topology
    }

    /// What the device was started with.
    #[must_use]
    pub const fn options(&self) -> &DeviceOptions {
        &self.options
    }

    /// What the device was set up as.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The device, to be checked.
    pub const fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Ends the device; its cables stay.
    ///
    /// # Errors
    /// It is none that can be started again ([`DeviceKind::can_restart`]), or it does not end.
    pub fn end_device(&mut self, clock: &Clock, ending: Ending) -> Result<Stopped, Failure> {
        let bridges = self.setup.topology.bridges();
        let plan = Plan::of(&self.options, &self.setup, &self.inside, &bridges);
        let told = clock.now();
        self.device.end(ending, plan)?;
        let gone = clock.now();
        Ok(Stopped { told, gone })
    }

    /// Starts the device again that was ended, at the same cables and with the same settings.
    ///
    /// # Errors
    /// It is none that can be started again, or it fails.
    pub fn start_device_again(&mut self, spawner: &Spawner) -> Result<(), Failure> {
        let bridges = self.setup.topology.bridges();
        let plan = Plan::of(&self.options, &self.setup, &self.inside, &bridges);
        self.device.start_again(spawner, plan)
    }

    /// The machine's network cards that its hosts have, as they were.
    pub fn nics(&self) -> impl Iterator<Item = &NicState> {
        self.nics.iter().map(Nic::state)
    }

    /// Where the device lives, with its ports `p1` and on; empty if there is no device, or
    /// if its hosts have them.
    #[must_use]
    pub const fn device_namespace(&self) -> &Namespace {
        &self.inside
    }

    /// What the device's side of its first two ports has counted, port 1 first; none if
    /// there is no device, or if no cables lead to it.
    ///
    /// # Errors
    /// A port is gone.
    pub fn port_counters(&self) -> Result<Option<[InterfaceCounters; 2]>, Failure> {
        match self.counters_of_ports()?[..] {
            [first, second, ..] => Ok(Some([first, second])),
            _ => Ok(None),
        }
    }

    /// What the device's side of the cable to each host has counted, in the order of hosts;
    /// nothing if there is no device, or if no cables lead to it.
    ///
    /// # Errors
    /// A port is gone.
    pub fn counters_of_ports(&self) -> Result<Vec<InterfaceCounters>, Failure> {
        let ports = self.cable_ends().iter();
        ports.map(|port| self.inside.counters(port)).collect()
    }
}

/// What `kind` comes to be of `setup`: refused, if it cannot.
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
