//! Interfaces of the host that belong to no bridge but carry tunnel packets: those of the routes to
//! the tunnels' remote endpoints. The switch receives copies of their frames; the host's own
//! network stack still receives all of them.

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

use super::{Control, rxq_assignment};
use config::{PortKind, TunnelConfig, TunnelEndpoint};
use dataplane::messages::WorkerCommand;
use dataplane::policer::{Policer, PortPolicing};
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use dataplane::underlay::{Underlay, UnderlayPort, is_within};

/// The limit of such interfaces: if rules set the remote endpoint, every interface with a route is
/// one.
const HOST_PORTS_MAX: usize = 16;

/// The worker that receives their frames.
const RX_WORKER: usize = 0;

/// An interface of the host.
pub(super) struct HostPort {
    name: String,
    mac: MacAddr,
    /// Closed on drop.
    _device: Box<dyn Port>,
}

/// All such interfaces.
#[derive(Default)]
pub(super) struct HostPorts {
    /// The open interfaces, by interface index.
    ports: BTreeMap<u32, HostPort>,
    /// Interfaces that could not be opened; the failure is logged.
    failed: BTreeSet<u32>,
    /// Unread sockets by UDP port of a tunnel, so that the host does not answer with ICMP port
    /// unreachable.
    sinks: BTreeMap<u16, Option<UdpSocket>>,
}

/// Returns the port key of an interface of the host.
fn key_of(index: u32) -> PortKey {
    PortKey {
        bridge: BridgeId::HOST,
        port: PortNo(index),
    }
}

impl HostPorts {
    /// Adds the interfaces to those of the bridges, in `underlay` and in `by_index`.
    pub(super) fn add_to(&self, underlay: &mut Underlay, by_index: &mut BTreeMap<u32, PortKey>) {
        for (index, port) in &self.ports {
            let underlay_port = UnderlayPort {
                name: port.name.clone(),
                mac: port.mac,
                addresses: Vec::new(),
                snoops: false,
            };
            underlay.ports_of_host.insert(key_of(*index), underlay_port);
            by_index.insert(*index, key_of(*index));
        }
    }
}

impl Control {
    /// Opens and closes interfaces according to the current routes to the tunnels' endpoints.
    pub(super) fn update_host_ports(&mut self) {
        let required = self.required_host_ports();
        let existing = self.underlay.host_ports.ports.keys().copied();
        let removed: Vec<_> = existing.filter(|index| !required.contains(index)).collect();
        removed
            .into_iter()
            .for_each(|index| self.close_host_port(index));
        for index in required {
            if self.underlay.host_ports.ports.contains_key(&index) {
                continue;
            }
            match self.open_host_port(index) {
                Ok(name) => tracing::info!("{name}: carries tunnel packets"),
                // Retried with each change of routes.
                Err(problem) if self.underlay.host_ports.failed.insert(index) => {
                    tracing::warn!("interface {index} cannot carry tunnel packets: {problem}");
                }
                Err(_) => {}
            }
        }
        self.update_sinks();
    }

    /// Returns the interfaces that tunnels need and that belong to no bridge.
    fn required_host_ports(&self) -> BTreeSet<u32> {
        let ports = || self.sites.values().flat_map(|site| site.ports.values());
        let tunnels: Vec<&TunnelConfig> = ports()
            .filter_map(|port| match &port.spec.kind {
                PortKind::Tunnel(tunnel) => Some(&**tunnel),
                _ => None,
            })
            .collect();
        let taken: BTreeSet<u32> = ports().filter_map(|port| port.index).collect();
        let routes = self.underlay.kernel_routes();
        let mut required: BTreeSet<u32> = BTreeSet::new();
        for tunnel in tunnels {
            match tunnel.remote {
                TunnelEndpoint::Given(remote) => {
                    let fitting = routes
                        .iter()
                        .filter(|route| is_within(remote, route.to, route.len));
                    let best = fitting.max_by_key(|route| (route.len, Reverse(route.metric)));
                    required.extend(best.map(|route| route.index));
                }
                TunnelEndpoint::Flow | TunnelEndpoint::Any => {
                    required.extend(routes.iter().map(|route| route.index))
                }
            }
        }
        let required = required.difference(&taken).copied();
        required.take(HOST_PORTS_MAX).collect()
    }

    fn open_host_port(&mut self, index: u32) -> Result<String, String> {
        let text = |error: std::io::Error| error.to_string();
        let interfaces = Interfaces::current().map_err(text)?;
        let name = interfaces.name(Ifindex(index)).map_err(text)?;
        let mac = MacAddr(interfaces.hardware(&name).map_err(text)?.address);
        let opened = AfPacket::open(&name, NonZeroUsize::MIN);
        let mut device: Box<dyn Port> = Box::new(opened.map_err(|error| error.to_string())?);
        let workers = NonZeroUsize::new(self.tools.workers.len()).unwrap_or(NonZeroUsize::MIN);
        let assigned =
            rxq_assignment::assign_queues(device.as_mut(), &[RX_WORKER], workers).map_err(text)?;
        for (worker, (queue, _)) in self.tools.workers.iter_mut().zip(assigned) {
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
        self.underlay.host_ports.ports.insert(index, port);
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
        let port = self.underlay.host_ports.ports.remove(&index);
        self.tools.reaper.free(Box::new((queues, port)));
    }

    fn update_sinks(&mut self) {
        let mut required = BTreeSet::new();
        if !self.underlay.host_ports.ports.is_empty() {
            let ports = self.sites.values().flat_map(|site| site.ports.values());
            required.extend(ports.filter_map(|port| match &port.spec.kind {
                PortKind::Tunnel(tunnel) if tunnel.port != 0 => Some(tunnel.port),
                _ => None,
            }));
        }
        let sinks = &mut self.underlay.host_ports.sinks;
        sinks.retain(|port, _| required.contains(port));
        for port in required {
            sinks.entry(port).or_insert_with(|| sink(port));
        }
    }
}

fn sink(port: u16) -> Option<UdpSocket> {
    let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
    let bound = any.map(|address| UdpSocket::bind((address, port)));
    let [six, four] = bound;
    six.or(four)
        .inspect_err(|error| tracing::warn!("cannot reserve UDP port {port} for tunnels: {error}"))
        .ok()
}
