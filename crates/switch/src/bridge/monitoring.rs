//! The connectivity monitoring of a bridge's ports: BFD, CFM and LLDP. A port whose monitors
//! report a failure is not live, so groups, bonds and bundles do not use it. The control thread
//! runs the timers of all monitors once an iteration.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use base::{Instant, PortNo, SplitMix64};
use flow::PipelineFields;
use packet::Frame;
use packet::wire::bfd::BfdDatagram;
use packet::wire::cfm::ContinuityCheckHeader;
use ports::Counter;

use super::ports::{PortEntries, PortEntry};
use super::{Bridge, Effect};
use config::{BfdConfig, MonitoringConfig};
use dataplane::punt::{BfdFilter, CfmFilter, PuntedProtocol, PuntedProtocols};
use l2::bfd::{BfdIdentity, BfdSession, BfdStatus};
use l2::cfm::{CfmPoint, CfmStatus};
use l2::lldp::LldpAgent;

/// The UDP source ports of BFD sessions (RFC 5881, 4), and their number.
const BFD_PORT_FIRST: u16 = 49152;
const BFD_PORTS: u16 = 16384;

/// The OAM flag of a tunnel.
const TUNNEL_OAM: u8 = 1;

/// The monitored ports of a bridge.
pub(super) struct BridgeMonitors {
    ports: BTreeMap<PortNo, PortMonitor>,
    random: SplitMix64,
    /// Number of BFD sessions so far.
    sessions: u16,
}

/// The monitors of a port.
#[derive(Debug)]
pub struct PortMonitor {
    name: String,
    bfd: Option<BfdSession>,
    cfm: Option<CfmPoint>,
    lldp: Option<LldpAgent>,
    /// The port may be used, at the last check.
    was_operational: bool,
}

impl BridgeMonitors {
    /// Returns no monitors. The seed must differ between bridges.
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            ports: BTreeMap::new(),
            random: SplitMix64::new(seed),
            sessions: 0,
        }
    }

    /// Returns the protocols that each monitored port punts.
    pub(super) fn add_punts(&self, ports: &mut BTreeMap<PortNo, PuntedProtocols>) {
        for (number, monitor) in &self.ports {
            let punted = ports.entry(*number).or_default();
            punted.bfd = monitor.bfd.as_ref().map(|bfd| bfd_filter(bfd.config()));
            punted.cfm = monitor.cfm.as_ref().map(|cfm| CfmFilter {
                eth_dst: cfm.address(),
                check_tunnel_key: cfm.config().check_tunnel_key,
            });
            punted.lldp = monitor.lldp.is_some();
        }
    }

    /// Returns whether the monitors of a port permit its use; true without monitors.
    pub(super) fn is_operational(&self, port: PortNo) -> bool {
        self.ports
            .get(&port)
            .is_none_or(PortMonitor::is_operational)
    }

    /// Returns the time of the next timer of a port that exists.
    pub(super) fn next_timeout(&self, ports: &PortEntries) -> Option<Instant> {
        let present = self.ports.iter();
        let present = present.filter(|(number, _)| ports.contains_key(number));
        present
            .filter_map(|(_, monitor)| monitor.next_timeout())
            .min()
    }

    /// Sets the monitors of a port; those that remain keep their state. Returns whether the port had
    /// monitors before, or has them now.
    fn set(
        &mut self,
        (number, entry): (PortNo, Option<&PortEntry>),
        name: &str,
        config: &MonitoringConfig,
        now: Instant,
    ) -> bool {
        let before = self.ports.remove(&number);
        if config.is_none() {
            return before.is_some();
        }
        let before = before.filter(|monitor| monitor.name == name);
        let mut monitor = before.unwrap_or_else(|| PortMonitor::new(name));
        self.configure(&mut monitor, config, entry.map_or(0, rx_frames), now);
        self.ports.insert(number, monitor);
        true
    }

    fn configure(
        &mut self,
        monitor: &mut PortMonitor,
        config: &MonitoringConfig,
        rx_frames: u64,
        now: Instant,
    ) {
        monitor.bfd = config.bfd.as_ref().map(|bfd| match monitor.bfd.take() {
            None => BfdSession::new(bfd, self.identify(), rx_frames, now),
            Some(mut session) => {
                if session.config() != bfd {
                    session.configure(bfd, rx_frames, now);
                }
                session
            }
        });
        monitor.cfm = config.cfm.map(|cfm| match monitor.cfm.take() {
            None => CfmPoint::new(cfm, self.random.next_u64(), rx_frames, now),
            Some(mut point) => {
                if *point.config() != cfm {
                    point.configure(cfm, rx_frames, now);
                }
                point
            }
        });
        monitor.lldp = config.lldp.as_ref().map(|lldp| match monitor.lldp.take() {
            None => LldpAgent::new(&monitor.name, lldp.clone(), now),
            Some(mut agent) => {
                agent.configure(lldp.clone());
                agent
            }
        });
    }

    /// Returns the numbers of a new BFD session.
    fn identify(&mut self) -> BfdIdentity {
        let discriminator = loop {
            let [.., a, b, c, d] = self.random.next_u64().to_be_bytes();
            let number = u32::from_be_bytes([a, b, c, d]);
            let mut sessions = self.ports.values().filter_map(|port| port.bfd.as_ref());
            let is_taken = |bfd: &BfdSession| bfd.status().local.discriminator == number;
            if number != 0 && !sessions.any(is_taken) {
                break number;
            }
        };
        let udp_src = BFD_PORT_FIRST + self.sessions % BFD_PORTS;
        self.sessions = self.sessions.wrapping_add(1);
        BfdIdentity {
            discriminator,
            udp_src,
            seed: self.random.next_u64(),
        }
    }

    /// Runs the due monitors of existing ports. Pushes the frames to send. Returns whether a port
    /// may be used from now on, or no longer.
    fn run(&mut self, ports: &PortEntries, now: Instant, effects: &mut Vec<Effect>) -> bool {
        let mut changed = false;
        for (number, monitor) in &mut self.ports {
            if let Some(entry) = ports.get(number)
                && monitor.next_timeout().is_some_and(|due| due <= now)
            {
                monitor.run((*number, entry), now, effects);
                changed |= monitor.poll_operational();
            }
        }
        changed
    }
}

impl PortMonitor {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            bfd: None,
            cfm: None,
            lldp: None,
            was_operational: true,
        }
    }

    /// Returns the name of the port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the status of the BFD session, if there is one.
    pub fn bfd_status(&self) -> Option<BfdStatus> {
        self.bfd.as_ref().map(BfdSession::status)
    }

    /// Returns the status of the CFM maintenance point, if there is one.
    pub fn cfm_status(&self) -> Option<CfmStatus> {
        self.cfm.as_ref().map(CfmPoint::status)
    }

    /// Returns the LLDP agent, if there is one.
    pub const fn lldp(&self) -> Option<&LldpAgent> {
        self.lldp.as_ref()
    }

    /// Returns the BFD session for operator commands.
    pub const fn bfd_mut(&mut self) -> Option<&mut BfdSession> {
        self.bfd.as_mut()
    }

    /// Returns the CFM maintenance point for operator commands.
    pub const fn cfm_mut(&mut self) -> Option<&mut CfmPoint> {
        self.cfm.as_mut()
    }

    /// Returns whether the port may be used: one of BFD and CFM confirms it, or there is neither.
    fn is_operational(&self) -> bool {
        let (bfd, cfm) = (self.bfd.as_ref(), self.cfm.as_ref());
        (bfd.is_none() && cfm.is_none())
            || bfd.is_some_and(BfdSession::is_forwarding)
            || cfm.is_some_and(CfmPoint::is_operational)
    }

    /// Returns whether [`PortMonitor::is_operational`] has changed since the last call.
    fn poll_operational(&mut self) -> bool {
        let is_operational = self.is_operational();
        std::mem::replace(&mut self.was_operational, is_operational) != is_operational
    }

    /// Returns whether the status in the database has changed since the last call.
    fn poll_change(&mut self) -> bool {
        let bfd = self.bfd.as_mut().is_some_and(BfdSession::poll_change);
        let cfm = self.cfm.as_mut().is_some_and(CfmPoint::poll_change);
        bfd | cfm
    }

    fn next_timeout(&self) -> Option<Instant> {
        let bfd = self.bfd.as_ref().and_then(BfdSession::next_timeout);
        let cfm = self.cfm.as_ref().map(CfmPoint::next_timeout);
        let lldp = self.lldp.as_ref().map(LldpAgent::next_timeout);
        [bfd, cfm, lldp].into_iter().flatten().min()
    }

    fn run(
        &mut self,
        (number, entry): (PortNo, &PortEntry),
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let (own, received) = (entry.desc.hw_addr, rx_frames(entry));
        let mut send = |frame: Option<Frame>, fields: Option<Box<PipelineFields>>| {
            effects.extend(frame.map(|frame| Effect::Transmit(number, frame, fields)));
        };
        if let Some(cfm) = &mut self.cfm {
            send(cfm.poll_transmit(own, now), None);
            let before = cfm.status().faults;
            cfm.handle_timeout(received, now);
            let after = cfm.status().faults;
            if before != after {
                tracing::info!(
                    target: "cfm",
                    "{}: CFM faults changed from [{before}] to [{after}].",
                    self.name
                );
            }
        }
        if let Some(bfd) = &mut self.bfd {
            let before = bfd.status();
            let fields = bfd.config().oam.then(oam_fields);
            send(bfd.poll_transmit(own, now), fields);
            bfd.handle_timeout(received, now);
            log_bfd(&self.name, &before, &bfd.status());
        }
        if let Some(lldp) = &mut self.lldp {
            send(lldp.poll_transmit(own, now), None);
            lldp.handle_timeout(now);
        }
    }

    fn handle_frame(
        &mut self,
        entry: &PortEntry,
        (protocol, frame): (PuntedProtocol, &[u8]),
        now: Instant,
    ) {
        let name = &self.name;
        match protocol {
            PuntedProtocol::Bfd => {
                let datagram = BfdDatagram::find(frame);
                if let (Some(bfd), Some(datagram)) = (&mut self.bfd, datagram) {
                    let before = bfd.status();
                    let packet = (datagram.payload, datagram.ttl);
                    if let Err(reason) = bfd.handle_packet(packet, rx_frames(entry), now) {
                        tracing::debug!(target: "bfd", "{name}: discarded BFD control message: {reason}");
                    }
                    log_bfd(name, &before, &bfd.status());
                }
            }
            PuntedProtocol::Cfm => {
                let message = ContinuityCheckHeader::find(frame);
                if let (Some(cfm), Some((_, message))) = (&mut self.cfm, message)
                    && let Err(reason) = cfm.handle_message(message, now)
                {
                    tracing::debug!(target: "cfm", "{name}: discarded CCM: {reason}");
                }
            }
            PuntedProtocol::Lldp => {
                if let Some(lldp) = &mut self.lldp
                    && let Err(reason) = lldp.handle_frame(frame, now)
                {
                    tracing::warn!(target: "lldp", "{reason} received on {name}");
                }
            }
            PuntedProtocol::Slow | PuntedProtocol::Spanning => {}
        }
    }
}

impl Bridge {
    /// Sets the monitors of a port, which need not exist yet, with its name; those that remain keep
    /// their state.
    pub fn set_monitoring(
        &mut self,
        port: PortNo,
        name: &str,
        config: &MonitoringConfig,
        now: Instant,
    ) {
        let of = (port, self.ports.get(&port));
        if self.protocols.monitors.set(of, name, config, now) {
            self.update_punts();
            self.update_live_ports();
        }
    }

    /// Returns the monitors of a port, if it has any.
    pub fn port_monitor(&self, port: PortNo) -> Option<&PortMonitor> {
        self.protocols.monitors.ports.get(&port)
    }

    /// Returns all monitors.
    pub fn port_monitors(&self) -> impl Iterator<Item = &PortMonitor> {
        self.protocols.monitors.ports.values()
    }

    /// Returns all monitors for operator commands. [`Bridge::handle_operator`] must follow.
    pub fn port_monitors_mut(&mut self) -> impl Iterator<Item = &mut PortMonitor> {
        self.protocols.monitors.ports.values_mut()
    }

    /// Handles the changes that an operator command made to monitors.
    pub fn handle_operator(&mut self) {
        self.update_live_ports();
    }

    /// Returns whether the status of a monitor in the database has changed since the last call.
    pub fn poll_monitors(&mut self) -> bool {
        let monitors = self.protocols.monitors.ports.values_mut();
        monitors.fold(false, |changed, monitor| changed | monitor.poll_change())
    }

    /// Runs the due monitors. Pushes the frames to send.
    pub(super) fn run_monitors(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.protocols.monitors.run(&self.ports, now, effects) {
            self.update_live_ports();
        }
    }

    /// Handles a frame of a monitor's protocol.
    pub(super) fn handle_monitored(
        &mut self,
        from: PortNo,
        (protocol, frame): (PuntedProtocol, &[u8]),
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let monitor = self.protocols.monitors.ports.get_mut(&from);
        if let (Some(monitor), Some(entry)) = (monitor, self.ports.get(&from)) {
            monitor.handle_frame(entry, (protocol, frame), now);
            // An answer to a poll is due at once.
            if monitor.next_timeout().is_some_and(|due| due <= now) {
                monitor.run((from, entry), now, effects);
            }
            if monitor.poll_operational() {
                self.update_live_ports();
            }
        }
    }
}

/// Returns the seed of a bridge's monitors.
pub(super) fn seed(name: &str, started: std::time::Duration) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, started).hash(&mut hasher);
    hasher.finish()
}

fn bfd_filter(config: &BfdConfig) -> BfdFilter {
    BfdFilter {
        eth_dst: config.remote_eth_dst,
        // The default source is the same at both ends.
        ip_dst: (config.ip_src != BfdConfig::IP_SRC).then_some(config.ip_src),
        check_tunnel_key: config.check_tunnel_key,
    }
}

/// Returns the pipeline fields of a control packet with the OAM flag.
fn oam_fields() -> Box<PipelineFields> {
    Box::new(PipelineFields {
        tunnel_flags: TUNNEL_OAM,
        ..PipelineFields::new(PortNo::CONTROLLER)
    })
}

/// Returns the number of frames that a port has received.
fn rx_frames(entry: &PortEntry) -> u64 {
    entry.counts()[Counter::RxPackets]
}

/// Logs changes of a BFD session, in Open vSwitch's words.
fn log_bfd(name: &str, before: &BfdStatus, after: &BfdStatus) {
    let state = |status: &BfdStatus| (status.local.state, status.local.diagnostic);
    if state(before) != state(after) {
        let (from, to) = (before.local, after.local);
        tracing::info!(
            target: "bfd",
            "{name}: BFD state change: {}->{} \"{}\"->\"{}\".",
            from.state.name(),
            to.state.name(),
            from.diagnostic.name(),
            to.diagnostic.name(),
        );
    }
    if before.remote_multiplier != after.remote_multiplier {
        let (from, to) = (before.remote_multiplier, after.remote_multiplier);
        tracing::info!(target: "bfd", "Interface {name} remote mult value {from} changed to {to}");
    }
}
