//! A device under test between two hosts, each of the three in a namespace of its
//! own: `client eth0 -- p1 device p2 -- eth0 server`.
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
    fn new(number: u8) -> Result<Self, Failure> {
        Ok(Self {
            namespace: Namespace::new()?,
            interface: "eth0",
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
        let (client, server) = (Host::new(1)?, Host::new(2)?);
        let inside = Namespace::new()?;
        if options.kind == DeviceKind::Direct {
            client
                .namespace
                .join(client.interface, &server.namespace, server.interface)?;
        } else {
            for (host, port) in [&client, &server].into_iter().zip(PORTS) {
                host.namespace.join(host.interface, &inside, port)?;
                inside.set_up(port)?;
                if !options.kind.bears_offloads() {
                    inside.set_offload(port, Offload::TxChecksum, false)?;
                }
            }
        }
        client.settle(&server, options.kind.bears_offloads())?;
        server.settle(&client, options.kind.bears_offloads())?;
        let bench = Self {
            device: Device::start(spawner, clock, &inside, options)?,
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
        let direct = self.device.kind() == DeviceKind::Direct;
        let ends = hosts
            .into_iter()
            .chain(ports.into_iter().filter(|_| !direct));
        for (namespace, interface) in ends {
            if !namespace.carries(interface)? {
                return Ok(false);
            }
        }
        Ok(true)
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

    /// Where the device lives, with its ports `p1` and `p2`; empty if there is no device.
    #[must_use]
    pub const fn device_namespace(&self) -> &Namespace {
        &self.inside
    }

    /// What the device's side of its ports has counted, port 1 first; none if
    /// there is no device.
    ///
    /// # Errors
    /// A port is gone.
    pub fn port_counters(&self) -> Result<Option<[InterfaceCounters; 2]>, Failure> {
        if self.device.kind() == DeviceKind::Direct {
            return Ok(None);
        }
        let [first, second] = PORTS;
        Ok(Some([
            self.inside.counters(first)?,
            self.inside.counters(second)?,
        ]))
    }
}

#[cfg(test)]
mod tests;
