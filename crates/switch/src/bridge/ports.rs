//! The ports of a bridge: descriptions, counters and port-mods.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo, QueueId};
use flow::{
    PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStats, Refusal,
    UNAVAILABLE,
};
use ports::{Counter, QueueCounters, QueueCounts, Status};

use super::queues::QueueEntry;
use super::spanning::with_link;
use super::{Bridge, Effect};
use crate::link::Link;

/// The configuration bits that a port-mod may change: OpenFlow 1.3's, and those of 1.0.
const CHANGEABLE: PortConfig = PortConfig(
    PortConfig::DOWN.0
        | PortConfig::NO_STP.0
        | PortConfig::NO_RECV.0
        | PortConfig::NO_RECV_STP.0
        | PortConfig::NO_FLOOD.0
        | PortConfig::NO_FWD.0
        | PortConfig::NO_PACKET_IN.0,
);

/// One port.
pub struct PortEntry {
    /// The OpenFlow description.
    pub desc: PortDesc,
    /// The counters of its receive and transmit queues.
    pub counters: Vec<Arc<QueueCounters>>,
    /// The kernel's index of its interface, if it has one.
    pub index: Option<u32>,
    /// True if the link is full duplex, if that is known.
    pub full_duplex: Option<bool>,
    /// The time at which the port was added.
    pub since: Instant,
    /// True for a patch port or a tunnel, which counts no errors: drops are counted by reason.
    pub(super) is_virtual: bool,
    /// True for a dummy, which has one queue and counts no errors.
    pub(super) is_dummy: bool,
    /// The further counters of a dummy.
    pub(super) custom: Option<CustomCounters>,
    /// The egress queues; without QoS only a dummy has one.
    pub(super) queues: BTreeMap<QueueId, QueueEntry>,
}

/// Returns counters by name.
pub type CustomCounters = Arc<dyn Fn() -> Vec<(String, u64)> + Send + Sync>;

/// The ports of a bridge.
pub(super) type PortEntries = BTreeMap<PortNo, PortEntry>;

/// The result of a port-mod.
pub(super) struct PortChange {
    /// The new administrative state of the interface, if it changes.
    pub(super) set_up: Option<bool>,
    /// The description before the port-mod.
    pub(super) before: PortDesc,
}

impl Bridge {
    /// Adds a port. `status` is the state that the interface reports.
    pub fn handle_port_added(
        &mut self,
        number: PortNo,
        status: &Status,
        counters: Vec<Arc<QueueCounters>>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let entry = PortEntry {
            desc: describe(number, status),
            counters,
            index: status.index.map(|index| index.0),
            full_duplex: status.full_duplex,
            since: now,
            is_virtual: false,
            is_dummy: false,
            custom: None,
            queues: BTreeMap::new(),
        };
        let desc = entry.desc.clone();
        self.tables.pipeline.set_port(&desc);
        self.publication.request();
        self.ports.insert(number, entry);
        self.update_protected();
        self.send_port_status(PortReason::Add, desc.clone(), effects);
        // As in Open vSwitch, a new port becomes live afterwards.
        if self.update_live(number) {
            self.send_port_modified(number, &desc, effects);
        }
        self.update_spanning();
        self.update_punts();
    }

    /// Sets whether a port is a tunnel endpoint.
    pub fn set_tunnel(&mut self, number: PortNo, is_one: bool) {
        self.tables.pipeline.set_tunnel(number, is_one);
        self.publication.request();
    }

    /// Marks a port as one without a device: a patch port or a tunnel.
    pub fn set_virtual(&mut self, number: PortNo) {
        if let Some(entry) = self.ports.get_mut(&number) {
            entry.is_virtual = true;
        }
    }

    /// Adds the counters of a further queue of a port.
    pub fn handle_queue_added(&mut self, number: PortNo, counters: Arc<QueueCounters>) {
        if let Some(entry) = self.ports.get_mut(&number) {
            entry.counters.push(counters);
        }
    }

    /// Removes a port: its interface disappeared, or its configuration was deleted.
    pub fn handle_port_removed(&mut self, number: PortNo, effects: &mut Vec<Effect>) {
        let Some(entry) = self.ports.remove(&number) else {
            return;
        };
        self.tables.pipeline.remove_port(number);
        self.tables.pipeline.set_tunnel(number, false);
        if let Some(fdb_port) = self.protocols.bonds.lost_fdb_port(&self.ports, number) {
            self.normal.remove_port(fdb_port);
        }
        self.publication.request();
        self.send_port_status(PortReason::Delete, entry.desc, effects);
        self.update_spanning();
        self.update_punts();
    }

    /// Updates a port from the state of its interface.
    pub fn handle_port_link(&mut self, number: PortNo, link: &Link, effects: &mut Vec<Effect>) {
        let Some(entry) = self.ports.get_mut(&number) else {
            return;
        };
        let before = entry.desc.clone();
        let live = PortState(before.state.0 & PortState::LIVE.0);
        entry.desc.state = with_link(before.state, PortState(state(link.carrier).0 | live.0));
        entry.desc.config = admin_config(before.config, link.up);
        entry.desc.hw_addr = link.hw_addr.unwrap_or(before.hw_addr);
        let changed = entry.desc != before;
        self.tables.pipeline.set_port(&entry.desc);
        if !self.update_live(number) && !changed {
            return;
        }
        if !link.carrier
            && let Some(fdb_port) = self.protocols.bonds.lost_fdb_port(&self.ports, number)
        {
            self.normal.fdb.flush_port(fdb_port);
        }
        self.publication.request();
        self.send_port_modified(number, &before, effects);
        self.update_spanning();
    }

    /// Returns all ports.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &PortEntry)> {
        self.ports.iter().map(|(number, entry)| (*number, entry))
    }

    /// Executes a port-mod. The interface follows later.
    pub(super) fn change_port(&mut self, command: PortMod) -> Result<PortChange, Refusal> {
        let entry = self.ports.get_mut(&command.port);
        let entry = entry.ok_or(Refusal::PortModBadPort)?;
        if entry.desc.hw_addr != command.hw_addr {
            return Err(Refusal::PortModBadHwAddr);
        }
        let mask = PortConfig(command.mask.0 & CHANGEABLE.0);
        let before = entry.desc.clone();
        entry.desc.config = before.config.changed(command.config, mask);
        let is_down = |desc: &PortDesc| desc.config.contains(PortConfig::DOWN);
        let down = is_down(&entry.desc);
        let change = PortChange {
            set_up: (down != is_down(&before)).then_some(!down),
            before,
        };
        self.tables.pipeline.set_port(&entry.desc);
        self.publication.request();
        self.update_live(command.port);
        self.update_spanning();
        Ok(change)
    }

    /// Recomputes whether a port is live: its link is up, it is not administratively down, and
    /// neither its monitors nor LACP object. Returns whether that has changed.
    pub(super) fn update_live(&mut self, number: PortNo) -> bool {
        let permits = self.protocols.monitors.is_operational(number)
            && self.protocols.bonds.lacp_permits(number);
        self.tables.pipeline.set_unusable(number, !permits);
        let Some(entry) = self.ports.get_mut(&number) else {
            return false;
        };
        let is_live = permits && entry.is_up();
        if is_live == entry.desc.state.contains(PortState::LIVE) {
            return false;
        }
        let state = entry.desc.state.0 & !PortState::LIVE.0;
        let live = if is_live { PortState::LIVE.0 } else { 0 };
        entry.desc.state = PortState(state | live);
        self.tables.pipeline.set_port(&entry.desc);
        self.publication.request();
        true
    }

    /// Recomputes which ports are live, and reports changes to controllers.
    pub(super) fn update_live_ports(&mut self) {
        let numbers: Vec<_> = self.ports.keys().copied().collect();
        let mut effects = Vec::new();
        for number in numbers {
            let before = self.ports[&number].desc.clone();
            if self.update_live(number) {
                self.send_port_modified(number, &before, &mut effects);
            }
        }
        if !effects.is_empty() {
            self.update_spanning();
            self.notifications.defer(effects);
        }
    }

    /// Returns the statistics of one port, or of all for `PortNo::ANY`.
    ///
    /// # Errors
    /// The bridge has no such port.
    pub fn port_stats(&self, number: PortNo, now: Instant) -> Result<Vec<PortStats>, Refusal> {
        if number != PortNo::ANY && !self.ports.contains_key(&number) {
            return Err(Refusal::RequestBadPort);
        }
        let wanted = self
            .ports()
            .filter(|(port, _)| number == PortNo::ANY || *port == number);
        Ok(wanted.map(|(port, entry)| entry.stats(port, now)).collect())
    }
}

impl PortEntry {
    /// Returns whether the link is up, and the port is not administratively down.
    pub(super) fn is_up(&self) -> bool {
        !self.desc.state.contains(PortState::LINK_DOWN)
            && !self.desc.config.contains(PortConfig::DOWN)
    }

    /// Returns the sum of the counters of all its queues.
    pub fn counts(&self) -> QueueCounts {
        let counts = self.counters.iter().map(|counters| counters.read());
        counts.fold(QueueCounts::default(), |sum, counts| sum + counts)
    }

    fn stats(&self, port: PortNo, now: Instant) -> PortStats {
        let counts = self.counts();
        let lost = counts[Counter::RxOverrun] + counts[Counter::RxTruncated];
        let has_no_errors = self.is_dummy || self.is_virtual;
        let or_unavailable = |count: u64| if has_no_errors { UNAVAILABLE } else { count };
        let if_available = |counter: Counter| (!has_no_errors).then(|| counts[counter]);
        PortStats {
            port,
            rx_packets: counts[Counter::RxPackets],
            tx_packets: counts[Counter::TxPackets],
            rx_bytes: counts[Counter::RxBytes],
            tx_bytes: counts[Counter::TxBytes],
            rx_dropped: or_unavailable(lost),
            tx_dropped: or_unavailable(counts.tx_dropped() - counts[Counter::TxErrors]),
            rx_errors: or_unavailable(counts.rx_dropped() - lost),
            tx_errors: or_unavailable(counts[Counter::TxErrors]),
            rx_frame_errors: if_available(Counter::RxRunt),
            rx_over_errors: if_available(Counter::RxOverrun),
            rx_crc_errors: None,
            collisions: None,
            custom: self.custom.as_ref().map(|read| read()).unwrap_or_default(),
            duration: now - self.since,
        }
    }
}

/// Returns the OpenFlow description of an interface.
fn describe(number: PortNo, status: &Status) -> PortDesc {
    let (current, speed_kbps) = speed(status.speed_mbps);
    PortDesc {
        hw_addr: status.address,
        name: status.name.clone(),
        config: admin_config(PortConfig::default(), status.up),
        state: state(status.carrier),
        current,
        speed_kbps,
        speed_kbps_max: speed_kbps,
        ..PortDesc::new(number)
    }
}

/// Returns the link bits of a port state; [`Bridge::update_live`] adds the bit of a live port.
fn state(carrier: bool) -> PortState {
    if carrier {
        PortState::default()
    } else {
        PortState::LINK_DOWN
    }
}

/// Returns the configuration with the administrative state, the one bit that the system can also
/// change.
fn admin_config(config: PortConfig, up: bool) -> PortConfig {
    let down = if up {
        PortConfig::default()
    } else {
        PortConfig::DOWN
    };
    config.changed(down, PortConfig::DOWN)
}

/// Returns a speed as OpenFlow's feature bits, and in kbit/s.
fn speed(mbps: Option<u32>) -> (PortFeatures, u32) {
    const KNOWN: [(u32, PortFeatures); 6] = [
        (10, PortFeatures::FD_10M),
        (100, PortFeatures::FD_100M),
        (1_000, PortFeatures::FD_1G),
        (10_000, PortFeatures::FD_10G),
        (40_000, PortFeatures::FD_40G),
        (100_000, PortFeatures::FD_100G),
    ];
    let Some(mbps) = mbps else {
        return Default::default();
    };
    let known = KNOWN.iter().find(|(speed, _)| *speed == mbps);
    let bits = known.map(|(_, bits)| *bits).unwrap_or_default();
    (bits, mbps.saturating_mul(1_000))
}
