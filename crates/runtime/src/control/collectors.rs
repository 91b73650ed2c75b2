//! Datagrams to collectors, each by a non-blocking socket. An unreachable collector delays nothing,
//! and is logged once.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use ports::InterfaceName;
use sys::interface::Interfaces;

use super::{BURST_MAX, Control};
use crate::worker_thread::EVENTS_MAX;
use config::{Exporters, SflowConfig};
use dataplane::program::BridgeId;
use dataplane::sampling::{ActionSample, FrameSample};
use flow_export::flows::Ipv4Flow;
use switch::bridge::Bridge;

/// The collectors that received a datagram.
#[derive(Debug, Default)]
pub(super) struct Collectors(BTreeMap<SocketAddr, Collector>);

#[derive(Debug)]
struct Collector {
    /// The socket; none if it could not be opened.
    socket: Option<UdpSocket>,
    /// True if a failure is already logged.
    is_logged: bool,
}

impl Collectors {
    /// Sends a datagram. Returns false if it could not be sent.
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> bool {
        let collector = self.0.entry(to).or_insert_with(|| Collector {
            socket: None,
            is_logged: false,
        });
        let sent = collector.send(to, datagram);
        if let Err(error) = &sent
            && !std::mem::replace(&mut collector.is_logged, true)
        {
            tracing::warn!("{to}: sending to collector failed ({error})");
        }
        sent.is_ok()
    }
}

impl Collector {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => open(to)?,
        };
        let sent = socket.send(datagram);
        self.socket = Some(socket);
        sent.map(drop)
    }
}

/// Returns a connected UDP socket, so that ICMP errors are reported.
fn open(to: SocketAddr) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}

impl Control {
    /// Sends a bridge's datagram to all targets.
    pub(super) fn export(
        &mut self,
        bridge: BridgeId,
        targets: &Arc<[SocketAddr]>,
        datagram: &[u8],
    ) {
        let sent = |to: &&SocketAddr| self.collectors.send(**to, datagram);
        let sent = targets.iter().filter(sent).count();
        let unsent = (targets.len() - sent) as u64;
        self.counters.exports_sent += sent as u64;
        self.counters.exports_lost += unsent;
        if let Some(site) = self.sites.get_mut(&bridge).filter(|_| unsent > 0) {
            site.bridge.handle_unsent(targets, unsent);
        }
    }

    /// Exports a frame that a worker sampled.
    pub(super) fn handle_sampled(&mut self, sampled: &FrameSample) {
        let (bridge, now) = (sampled.from.bridge, self.now());
        let Some(site) = self.sites.get_mut(&bridge) else {
            return;
        };
        let mut effects = Vec::new();
        site.bridge.handle_sampled(sampled, now, &mut effects);
        self.apply_effects(bridge, effects, &mut None);
    }

    /// Exports a frame that a rule's `sample` action sent to a collector set.
    pub(super) fn handle_sampled_by_rule(&mut self, sampled: &ActionSample) {
        let (bridge, now) = (sampled.from.bridge, self.now());
        let mut effects = Vec::new();
        if let Some(site) = self.sites.get_mut(&bridge) {
            site.bridge
                .handle_sampled_by_rule(sampled, now, &mut effects);
        }
        self.apply_effects(bridge, effects, &mut None);
    }

    /// Adds a worker's flow records of a bridge.
    pub(super) fn handle_flows(&mut self, bridge: BridgeId, flows: &[Ipv4Flow]) {
        let now = self.now();
        let mut effects = Vec::new();
        if let Some(site) = self.sites.get_mut(&bridge) {
            site.bridge.handle_flows(flows, now, &mut effects);
        }
        self.apply_effects(bridge, effects, &mut None);
    }

    /// Flushes the exporters of bridges that are about to be removed and whose ports are closed;
    /// the workers have already reported their flow records.
    pub(super) fn end_exports(&mut self, is_selected: impl Fn(BridgeId) -> bool) {
        let sites = self.sites.iter();
        let ending = sites.filter(|(id, site)| is_selected(**id) && site.bridge.exports());
        let ending: Vec<BridgeId> = ending.map(|(id, _)| *id).collect();
        if ending.is_empty() {
            return;
        }
        // At most a full ring is read: a worker that keeps reporting must not delay this.
        for _ in 0..EVENTS_MAX.div_ceil(BURST_MAX) {
            if self.read_workers() {
                break;
            }
        }
        let now = self.now();
        for id in ending {
            let mut effects = Vec::new();
            if let Some(site) = self.sites.get_mut(&id) {
                site.bridge.end_exports(now, &mut effects);
            }
            self.apply_effects(id, effects, &mut None);
        }
    }

    /// Configures a bridge's exporters; the sFlow agent is set when the whole configuration is
    /// applied.
    pub(super) fn configure_exporters(&mut self, bridge: &str, exporters: &Exporters) {
        if let Some((id, _)) = self.site_named(bridge) {
            self.set_exporters(id, exporters, None);
        }
    }

    fn set_exporters(&mut self, id: BridgeId, exporters: &Exporters, agent: Option<IpAddr>) {
        let now = self.now();
        let mut effects = Vec::new();
        if let Some(site) = self.sites.get_mut(&id) {
            site.bridge
                .set_exporters(exporters, agent, now, &mut effects);
        }
        self.apply_effects(id, effects, &mut None);
    }

    /// Exports the records that are due.
    pub(super) fn export_due(&mut self) {
        let now = self.now();
        let bridges: Vec<BridgeId> = self.sites.keys().copied().collect();
        for bridge in bridges {
            let mut effects = Vec::new();
            if let Some(site) = self.sites.get_mut(&bridge) {
                site.bridge.export_due(now, &mut effects);
            }
            if !effects.is_empty() {
                self.apply_effects(bridge, effects, &mut None);
                // An exporter that has ended may have sent its last datagram.
                self.remove_unused_collectors();
            }
        }
    }

    /// Updates the address of each sFlow agent, because the host's addresses may change, and
    /// removes unused collectors.
    pub(super) fn update_agents(&mut self) {
        let exporters: Vec<_> = self
            .sites
            .iter()
            .map(|(id, site)| (*id, site.bridge.exporters().clone()))
            .collect();
        for (id, exporters) in &exporters {
            let agent = exporters.sflow.as_ref().and_then(|sflow| self.agent(sflow));
            self.set_exporters(*id, exporters, agent);
        }
        self.remove_unused_collectors();
    }

    /// Removes collectors that no exporter uses.
    fn remove_unused_collectors(&mut self) {
        let targets = |bridge: &Bridge, to: &SocketAddr| {
            let Exporters {
                sflow,
                ipfix,
                netflow,
                sets,
            } = bridge.exporters();
            let of_sflow = sflow.iter().flat_map(|sflow| &sflow.targets);
            let of_ipfix = ipfix.iter().flat_map(|ipfix| &ipfix.targets);
            let of_netflow = netflow.iter().flat_map(|netflow| &netflow.targets);
            let of_sets = sets.values().flat_map(|set| &set.targets);
            let of_both = of_sflow.chain(of_ipfix);
            let mut all = of_both.chain(of_netflow).chain(of_sets);
            all.any(|target| target == to)
        };
        let sites = &self.sites;
        self.collectors
            .0
            .retain(|to, _| sites.values().any(|site| targets(&site.bridge, to)));
    }

    /// Returns the address of an sFlow agent: that of its interface, else the source address
    /// towards its first reachable collector.
    fn agent(&self, sflow: &SflowConfig) -> Option<IpAddr> {
        if sflow.agent.is_some() && !self.underlay.knows_addresses() {
            return None;
        }
        let named = sflow.agent.as_ref().and_then(|name| {
            let name: InterfaceName = name.parse().ok()?;
            let index = Interfaces::current().ok()?.index(&name).ok()?;
            self.underlay.address_of(index.0)
        });
        let mut targets = sflow.targets.iter();
        named.or_else(|| targets.find_map(|to| Some(open(*to).ok()?.local_addr().ok()?.ip())))
    }
}
