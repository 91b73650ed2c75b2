//! A device under test between two hosts, each of the three in a namespace of its
//! own: `client eth0 -- p1 device p2 -- eth0 server`. Where the device makes TAP interfaces
//! there are no cables: the hosts have `p1` and `p2` as theirs.
//!
//! Every bench has the same addresses, so that traffic differs in nothing but the
//! device it passes; several can be up at once without knowing of each other.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::device::PORTS;
use crate::{
    Clock, Device, DeviceKind, DeviceOptions, Failure, InterfaceCounters, Namespace, Offload,
    Spawner,
};

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
    fn new(number: u8, interface: &'static str) -> Result<Self, Failure> {
        Ok(Self {
            namespace: Namespace::new()?,
            interface,
            mac: [0x02, 0, 0, 0, 0, number],
            address: Ipv4Addr::new(10, 98, 0, number),
        })
    }

    /// Gives the host its addresses and tells it where the other one is.
    fn settle(&self, other: &Self, offloads: bool) -> Result<(), Failure> {
        let Self {
            namespace,
            interface,
            ..
        } = self;
        namespace.set_mac(interface, self.mac)?;
        namespace.set_up(interface)?;
        namespace.add_address(interface, self.address, 24)?;
        namespace.add_neighbour(interface, other.address, other.mac)?;
        if !offloads {
            namespace.set_offload(interface, Offload::TxChecksum, false)?;
        }
        Ok(())
    }

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
    pub fn offloads(&self) -> Result<Vec<Offload>, Failure> {
        let known = [
            Offload::RxChecksum,
            Offload::TxChecksum,
            Offload::ScatterGather,
            Offload::TcpSegmentation,
            Offload::GenericSegmentation,
            Offload::GenericReceive,
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
/// them once a second at the latest.
const READY: Duration = Duration::from_secs(10);

/// A device, running, between two hosts.
#[derive(Debug)]
pub struct Bench {
    // Dropped first: the device should be stopped before its links vanish.
    device: Device,
    inside: Namespace,
    client: Host,
    server: Host,
}

impl Bench {
    /// Lays the cables and starts the device. It may not forward yet: OpenFlow
    /// devices wait for rules, which their controller must send.
    ///
    /// # Errors
    /// Whatever of that fails, by name.
    pub fn build(
        spawner: &Spawner,
        clock: &Clock,
        options: &DeviceOptions,
    ) -> Result<Self, Failure> {
        let kind = options.kind;
        let [one, other] = match kind.makes_taps() {
            true => PORTS,
            false => ["eth0"; 2],
        };
        let (client, server) = (Host::new(1, one)?, Host::new(2, other)?);
        let inside = Namespace::new()?;
        let hosts = [&client, &server];
        let device = if kind.makes_taps() {
            let device = Device::start(spawner, clock, &inside, options)?;
            hand_out_taps(&inside, hosts, clock)?;
            settle(hosts, kind)?;
            device
        } else {
            lay_cables(&inside, hosts, kind)?;
            settle(hosts, kind)?;
            Device::start(spawner, clock, &inside, options)?
        };
        let bench = Self {
            device,
            inside,
            client,
            server,
        };
        clock.wait_for("the cables to carry frames", READY, || {
            Ok(bench.carries()?.then_some(()))
        })?;
        Ok(bench)
    }

    /// Whether the cables carry frames, at the hosts' ends and at the device's.
    fn carries(&self) -> Result<bool, Failure> {
        let hosts = [&self.client, &self.server].map(|host| (&host.namespace, host.interface));
        let ports = PORTS.map(|port| (&self.inside, port));
        let has_cables = self.has_cables();
        let ends = hosts
            .into_iter()
            .chain(ports.into_iter().filter(|_| has_cables));
        for (namespace, interface) in ends {
            if !namespace.carries(interface)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether cables lead to the device.
    fn has_cables(&self) -> bool {
        let kind = self.device.kind();
        kind != DeviceKind::Direct && !kind.makes_taps()
    }

    /// The host at port 1.
    #[must_use]
    pub const fn client(&self) -> &Host {
        &self.client
    }

    /// The host at port 2.
    #[must_use]
    pub const fn server(&self) -> &Host {
        &self.server
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

    /// Where the device lives, with its ports `p1` and `p2`; empty if there is no device, or
    /// if its hosts have them.
    #[must_use]
    pub const fn device_namespace(&self) -> &Namespace {
        &self.inside
    }

    /// What the device's side of its ports has counted, port 1 first; none if
    /// there is no device, or if no cables lead to it.
    ///
    /// # Errors
    /// A port is gone.
    pub fn port_counters(&self) -> Result<Option<[InterfaceCounters; 2]>, Failure> {
        if !self.has_cables() {
            return Ok(None);
        }
        let [first, second] = PORTS;
        Ok(Some([
            self.inside.counters(first)?,
            self.inside.counters(second)?,
        ]))
    }
}

/// Lays the cables: from host to host, or from each to a port of the device.
fn lay_cables(inside: &Namespace, hosts: [&Host; 2], kind: DeviceKind) -> Result<(), Failure> {
    let [client, server] = hosts;
    if kind == DeviceKind::Direct {
        let (near, far) = (&client.namespace, &server.namespace);
        return near.join(client.interface, far, server.interface);
    }
    for (host, port) in hosts.into_iter().zip(PORTS) {
        host.namespace.join(host.interface, inside, port)?;
        inside.set_up(port)?;
        if !kind.bears_offloads() {
            inside.set_offload(port, Offload::TxChecksum, false)?;
        }
    }
    Ok(())
}

/// Waits for the TAP interfaces that the device makes, and gives each host its own.
fn hand_out_taps(inside: &Namespace, hosts: [&Host; 2], clock: &Clock) -> Result<(), Failure> {
    for (host, port) in hosts.into_iter().zip(PORTS) {
        clock.wait_for("the device to make its ports", READY, || {
            Ok(inside.counters(port).is_ok().then_some(()))
        })?;
        inside.hand_over(port, &host.namespace)?;
    }
    Ok(())
}

/// Tells both hosts who they are, and where the other one is.
fn settle([client, server]: [&Host; 2], kind: DeviceKind) -> Result<(), Failure> {
    client.settle(server, kind.bears_offloads())?;
    server.settle(client, kind.bears_offloads())
}

#[cfg(test)]
mod tests;
