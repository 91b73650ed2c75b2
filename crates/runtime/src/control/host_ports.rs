//! Interfaces of the host that are no bridge's, and that tunnels' packets go by all the same: those
//! that its routes to tunnels' other ends lead by. Frames are seen beside the host's own protocols,
//! which have theirs as ever.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::num::NonZeroUsize;

use base::PortNo;
use base::sync::mpsc::channel;
use packet::MacAddr;
use ports::Port;
use ports::af_packet::AfPacket;
use sys::interface::{Ifindex, Interfaces};

use super::{Control, seats};
use config::{PortKind, TunnelConfig, TunnelEndpoint};
use dataplane::messages::WorkerCommand;
use dataplane::policer::{Policer, PortPolicing};
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use dataplane::underlay::{Underlay, UnderlayPort, is_within};

/// Interfaces that are seen for tunnels, at most: with ends that rules say, each that has a
/// route is one.
const HOST_PORTS_MAX: usize = 16;

/// The worker that takes their frames.
const TAKER: usize = 0;

/// An interface of the host.
pub(super) struct HostPort {
    name: String,
    mac: MacAddr,
    /// Goes with the value.
    _device: Box<dyn Port>,
}

/// All of them.
#[derive(Default)]
pub(super) struct HostPorts {
    /// By the numbers of the interfaces.
    ports: BTreeMap<u32, HostPort>,
    /// Those that could not be opened, as was said.
    failed: BTreeSet<u32>,
    /// By UDP port, so that the host does not answer that nobody is there. Nobody reads them.
    sinks: BTreeMap<u16, Option<UdpSocket>>,
}

/// The place of an interface of the host.
fn key_of(index: u32) -> PortKey {
    PortKey {
        bridge: BridgeId::HOST,
        port: PortNo(index),
    }
}

impl HostPorts {
    /// Takes them in with those that bridges have. Of these `by_index` tells.
    pub(super) fn take_in(&self, underlay: &mut Underlay, by_index: &mut BTreeMap<u32, PortKey>) {
        for (index, port) in &self.ports {
            let ground = UnderlayPort {
                name: port.name.clone(),
                mac: port.mac,
                addresses: Vec::new(),
            };
            underlay.ports_of_host.insert(key_of(*index), ground);
            by_index.insert(*index, key_of(*index));
        }
    }
}

impl Control {
    /// Opens and closes interfaces of the host, as the routes to tunnels' other ends are now.
    pub(super) fn settle_host_ports(&mut self) {
        let wanted = self.wanted_host_ports();
        let here = self.host_ports.ports.keys().copied();
        let gone: Vec<_> = here.filter(|index| !wanted.contains(index)).collect();
        gone.into_iter()
            .for_each(|index| self.close_host_port(index));
        for index in wanted {
            if self.host_ports.ports.contains_key(&index) {
                continue;
            }
            match self.open_host_port(index) {
                Ok(name) => tracing::info!("{name}: tunnels go by it"),
                // It is tried again with each change of routes.
                Err(problem) if self.host_ports.failed.insert(index) => {
                    tracing::warn!("tunnels do not go by interface {index}: {problem}");
                }
                Err(_) => {}
            }
        }
        self.settle_sinks();
    }

    /// Which interfaces that no bridge has are wanted.
    fn wanted_host_ports(&self) -> BTreeSet<u32> {
        let ports = || self.sites.values().flat_map(|site| site.ports.values());
        let tunnels: Vec<&TunnelConfig> = ports()
            .filter_map(|port| match &port.wanted.kind {
                PortKind::Tunnel(tunnel) => Some(&**tunnel),
                _ => None,
            })
            .collect();
        let taken: BTreeSet<u32> = ports().filter_map(|port| port.index).collect();
        let routes = self.underlay.kernel_routes();
        let mut wanted: BTreeSet<u32> = BTreeSet::new();
        for tunnel in tunnels {
            match tunnel.remote {
                TunnelEndpoint::Given(remote) => {
                    let fitting = routes
                        .iter()
                        .filter(|route| is_within(remote, route.to, route.len));
                    let best = fitting.max_by_key(|route| (route.len, Reverse(route.metric)));
                    wanted.extend(best.map(|route| route.index));
                }
                TunnelEndpoint::Flow | TunnelEndpoint::Any => {
                    wanted.extend(routes.iter().map(|route| route.index))
                }
            }
        }
        let wanted = wanted.difference(&taken).copied();
        wanted.take(HOST_PORTS_MAX).collect()
    }

    fn open_host_port(&mut self, index: u32) -> Result<String, String> {
        let told = |error: std::io::Error| error.to_string();
        let interfaces = Interfaces::current().map_err(told)?;
        let name = interfaces.name(Ifindex(index)).map_err(told)?;
        let mac = MacAddr(interfaces.hardware(&name).map_err(told)?.address);
        let opened = AfPacket::open(&name, NonZeroUsize::MIN);
        let mut device: Box<dyn Port> = Box::new(opened.map_err(|error| error.to_string())?);
        let workers = NonZeroUsize::new(self.tools.workers.len()).unwrap_or(NonZeroUsize::MIN);
        let dealt = seats::deal(device.as_mut(), &[TAKER], workers).map_err(told)?;
        for (worker, (queue, _)) in self.tools.workers.iter_mut().zip(dealt) {
            let policing = PortPolicing {
                policer: Policer::new(None),
                counters: std::sync::Arc::default(),
            };
            let command = WorkerCommand::AddPort(key_of(index), queue, policing);
            worker.handle.send_reliably(command);
        }
        let name = name.to_string();
        let port = HostPort {
            name: name.clone(),
            mac,
            _device: device,
        };
        self.host_ports.ports.insert(index, port);
        Ok(name)
    }

    fn close_host_port(&mut self, index: u32) {
        let (back, returned) = channel();
        for worker in &mut self.tools.workers {
            let command = WorkerCommand::RemovePort(key_of(index), back.clone());
            worker.handle.send_reliably(command);
        }
        drop(back);
        let mut queues = Vec::new();
        while let Ok(queue) = returned.recv() {
            queues.push(queue);
        }
        let port = self.host_ports.ports.remove(&index);
        self.tools.reaper.free(Box::new((queues, port)));
    }

    fn settle_sinks(&mut self) {
        let mut wanted = BTreeSet::new();
        if !self.host_ports.ports.is_empty() {
            let ports = self.sites.values().flat_map(|site| site.ports.values());
            wanted.extend(ports.filter_map(|port| match &port.wanted.kind {
                PortKind::Tunnel(tunnel) if tunnel.port != 0 => Some(tunnel.port),
                _ => None,
            }));
        }
        let sinks = &mut self.host_ports.sinks;
        sinks.retain(|port, _| wanted.contains(port));
        for port in wanted {
            sinks.entry(port).or_insert_with(|| sink(port));
        }
    }
}

fn sink(port: u16) -> Option<UdpSocket> {
    let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
    let bound = any.map(|address| UdpSocket::bind((address, port)));
    let [six, four] = bound;
    six.or(four)
        .inspect_err(|error| tracing::warn!("UDP port {port} of tunnels: {error}"))
        .ok()
}
