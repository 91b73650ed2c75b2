//! The bonds of a bridge: their configuration, the state of their members, and LACP (`bond`,
//! `lacp`). The control thread polls carriers and timers of all bonds once an iteration.

mod learning_packets;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo};
use packet::wire::slow::{LacpSystem, SlowPdu};
use packet::{Frame, MacAddr};

use super::monitoring::BridgeMonitors;
use super::ports::PortEntries;
use super::{Bridge, Effect, PortEntry};
use config::{BondConfig, BondMemberConfig, LogicalPort};
use dataplane::bonds::{BondLoads, BondState, RecentSources};
use dataplane::switching::SwitchingView;
use l2::bond::{self, BUCKETS, Bond};
use l2::lacp::{self, LacpGroup, LacpStatus, ReceiveState};

/// All bonds of a bridge, by the names of their ports.
pub(crate) struct Bonds {
    bonds: BTreeMap<String, BridgeBond>,
    /// Number of threads that send, the control thread last.
    writers: usize,
    /// The active member and the LACP state of the members at the last [`Bridge::poll_bonds`].
    reported: Vec<(Option<PortNo>, Vec<bool>)>,
    /// The permission of LACP for each member at the last [`Bonds::run`].
    permitted: Vec<(PortNo, bool)>,
}

/// The changes of a run that concern the bridge.
#[derive(Default)]
struct BondChanges {
    /// True if the workers need the new state of a bond.
    view_changed: bool,
    /// The bonds with a new active member.
    failed_over: Vec<String>,
    /// True if LACP permits other members than before.
    permits_changed: bool,
}

/// A bond.
pub struct BridgeBond {
    config: BondConfig,
    bond: Bond,
    lacp: Option<LacpGroup>,
    state: BondState,
    /// Bytes of each hash bucket that the bond has already taken into account.
    counted: Box<[u64; BUCKETS]>,
}

impl Bonds {
    /// Returns an empty set for a bridge with this number of sending threads.
    pub(super) const fn new(writers: usize) -> Self {
        Self {
            bonds: BTreeMap::new(),
            writers,
            reported: Vec::new(),
            permitted: Vec::new(),
        }
    }

    /// Returns the index of the control thread among the sending threads.
    pub(super) const fn writer(&self) -> usize {
        self.writers - 1
    }

    /// Returns the time of the next bond timer.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let bonds = self.bonds.values();
        bonds.filter_map(BridgeBond::next_timeout).min()
    }

    /// Returns the port under which the forwarding database knows addresses behind `port`.
    pub(super) fn fdb_port(&self, port: PortNo) -> PortNo {
        let bonded = self.of(port);
        bonded.map_or(port, |bonded| bonded.state.fdb_port)
    }

    /// Returns the ports that punt slow protocols.
    pub(super) fn lacp_members(&self) -> Vec<PortNo> {
        let bonds = self.bonds.values();
        let speak = bonds.filter(|bonded| bonded.config.lacp.is_some());
        speak.flat_map(|bonded| numbers(&bonded.config)).collect()
    }

    /// Returns whether LACP permits the use of a port; true without LACP.
    pub(super) fn lacp_permits(&self, port: PortNo) -> bool {
        let bonded = self.of(port).filter(|bonded| bonded.config.lacp.is_some());
        bonded.is_none_or(|bonded| {
            let group = bonded.lacp.as_ref();
            group.is_some_and(|group| group.may_enable(port))
        })
    }

    /// Sets the bonds; bonds that remain keep their state.
    fn set(&mut self, ports: &[LogicalPort], now: Instant) {
        let wanted = |name: &String| {
            ports
                .iter()
                .any(|port| port.bond.is_some() && port.name == *name)
        };
        self.bonds.retain(|name, _| wanted(name));
        let writers = self.writers;
        for port in ports {
            let Some(config) = &port.bond else { continue };
            let bonded = self.bonds.entry(port.name.clone());
            let bonded = bonded.or_insert_with(|| BridgeBond::new(config.clone(), writers, now));
            bonded.configure(config, now);
        }
    }

    /// Returns whether an active member or an LACP state changed since the last call.
    fn poll(&mut self) -> bool {
        let bonds = || self.bonds.values().map(BridgeBond::reported_state);
        if self.reported.iter().cloned().eq(bonds()) {
            return false;
        }
        self.reported = bonds().collect();
        true
    }

    /// Returns the view of `NORMAL` with the state of the bonds.
    fn view_with(&self, view: &SwitchingView) -> Arc<SwitchingView> {
        view.with_bonds(|name: &str| {
            let bonded = self.bonds.get(name);
            let bonded = bonded.filter(|bonded| !bonded.config.is_single_member);
            bonded.map(|bonded| bonded.state.clone())
        })
    }

    /// Runs the bonds: carriers, timers and LACP. Pushes the frames to send.
    fn run(
        &mut self,
        ports: &PortEntries,
        monitors: &BridgeMonitors,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> BondChanges {
        let mut changes = BondChanges::default();
        let local = ports.get(&PortNo::LOCAL);
        let address = local.map_or_else(MacAddr::default, |local| local.desc.hw_addr);
        for (name, bonded) in &mut self.bonds {
            bonded.configure_lacp(address);
            bonded.restore_active(|port, address| {
                let entry = ports.get(&port);
                entry.is_some_and(|entry| entry.desc.hw_addr == address)
            });
            let has_carrier = |port| ports.get(&port).is_some_and(PortEntry::is_up);
            bonded.poll(has_carrier, |port| monitors.is_operational(port), now);
            if let Some(view) = bonded.bond.poll_view() {
                bonded.state.view = view;
                changes.view_changed = true;
            }
            if bonded.bond.poll_learning_packets() && !bonded.config.is_single_member {
                changes.failed_over.push(name.clone());
            }
            let Some(group) = &mut bonded.lacp else {
                continue;
            };
            while let Some((port, pdu)) = group.poll_transmit(now) {
                let from = ports.get(&port).map(|entry| entry.desc.hw_addr);
                let frame = from.map(|from| Frame::from_bytes(&pdu.emit(from)));
                effects.extend(frame.map(|frame| Effect::Transmit(port, frame, None)));
            }
        }
        let members = self.lacp_members().into_iter();
        let permitted = members.map(|port| (port, self.lacp_permits(port)));
        let permitted: Vec<_> = permitted.collect();
        changes.permits_changed = self.permitted != permitted;
        self.permitted = permitted;
        changes
    }

    /// Returns the port of forwarding database entries that lose their path with `port`; none if
    /// another member of its bond still has a carrier.
    pub(super) fn lost_fdb_port(&self, ports: &PortEntries, port: PortNo) -> Option<PortNo> {
        let leads = |port: PortNo| ports.get(&port).is_some_and(PortEntry::is_up);
        let bonded = self.of(port);
        let members = bonded.into_iter().flat_map(|bonded| &bonded.config.members);
        let mut others = members.filter(|other| other.port != port);
        let is_reached = others.any(|other| leads(other.port));
        (!is_reached).then(|| self.fdb_port(port))
    }

    /// Handles a slow protocol frame and sends the immediate reply to a marker.
    pub(super) fn handle_slow_protocol(
        &mut self,
        ports: &PortEntries,
        from: PortNo,
        frame: &[u8],
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let address = ports.get(&from).map(|entry| entry.desc.hw_addr);
        let mut bonds = self.bonds.values_mut();
        let bonded = bonds.find(|bonded| bonded.has(from));
        let group = bonded.and_then(|bonded| bonded.lacp.as_mut());
        if let (Some(group), Some(address)) = (group, address)
            && let Some(SlowPdu::Marker(answer)) = group.handle_frame(from, frame, now)
        {
            let frame = Frame::from_bytes(&answer.emit(address));
            effects.push(Effect::Transmit(from, frame, None));
        }
    }

    fn of(&self, member: PortNo) -> Option<&BridgeBond> {
        let mut bonds = self.bonds.values();
        bonds.find(|bonded| bonded.has(member))
    }
}

impl BridgeBond {
    fn new(config: BondConfig, writers: usize, now: Instant) -> Self {
        let mut bond = Bond::new(settings(&config));
        bond.configure(settings(&config), &numbers(&config), now);
        let state = BondState {
            fdb_port: fdb_port(&config),
            view: bond.view(),
            loads: BondLoads::new(writers),
            recent_sources: Arc::default(),
            announced: RecentSources::announced().into(),
        };
        Self {
            config,
            bond,
            lacp: None,
            state,
            counted: Box::new([0; BUCKETS]),
        }
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &BondConfig {
        &self.config
    }

    /// Returns the state machine of the bond.
    pub const fn bond(&self) -> &Bond {
        &self.bond
    }

    /// Returns the state machine for operator commands.
    pub const fn bond_mut(&mut self) -> &mut Bond {
        &mut self.bond
    }

    /// Returns the LACP state, if LACP is enabled.
    pub const fn lacp(&self) -> Option<&LacpGroup> {
        self.lacp.as_ref()
    }

    fn has(&self, member: PortNo) -> bool {
        self.config.members.iter().any(|of| of.port == member)
    }

    /// Applies a configuration.
    fn configure(&mut self, config: &BondConfig, now: Instant) {
        if self.config != *config {
            self.config = config.clone();
            self.state.fdb_port = fdb_port(config);
            self.bond.configure(settings(config), &numbers(config), now);
        }
    }

    /// Starts, updates or stops LACP by the configuration. `address` is the default system address.
    fn configure_lacp(&mut self, address: MacAddr) {
        let Some(lacp) = self.config.lacp else {
            self.lacp = None;
            return;
        };
        let system = LacpSystem {
            priority: lacp.priority,
            address: lacp.system.unwrap_or(address),
        };
        let settings = lacp::LacpSettings {
            activity: lacp.activity,
            is_fast: lacp.is_fast,
            system,
            lacp_fallback: self.config.lacp_fallback,
            aggregates: self.config.members.len() > 1,
        };
        let members = &self.config.members;
        let number = |port: PortNo| u16::try_from(port.0).unwrap_or(u16::MAX);
        let lacp_number = |member: &BondMemberConfig| {
            let own = || number(member.port);
            member.lacp.number.unwrap_or_else(own)
        };
        // All members have one key, or the number of the first one, as in Open vSwitch.
        let first = members.iter().min_by_key(|member| member.port);
        let key = first.map_or(0, |member| {
            member.lacp.key.unwrap_or_else(|| lacp_number(member))
        });
        let ports = members.iter().map(|member| {
            let settings = lacp::LacpPortSettings {
                number: lacp_number(member),
                priority: member.lacp.priority,
                key: member.lacp.key.unwrap_or(key),
            };
            (member.port, settings)
        });
        let ports = ports.collect();
        let group = self.lacp.get_or_insert_with(|| LacpGroup::new(settings));
        group.configure(settings, &ports);
    }

    /// Restores the member that was active before a restart, once it is a port.
    fn restore_active(&mut self, has: impl Fn(PortNo, MacAddr) -> bool) {
        let Some(address) = self
            .config
            .last_active
            .filter(|_| self.bond.last_active().is_none())
        else {
            return;
        };
        let mut members = self.config.members.iter();
        let last = members.find(|member| has(member.port, address));
        last.into_iter()
            .for_each(|member| self.bond.set_last_active(member.port));
    }

    /// Updates carriers and runs due timers. LACP runs as long as there is a carrier; the bond also
    /// needs the consent of the monitors. The last active member is first, because the bond
    /// activates the first member with a carrier at once while none is active.
    fn poll(
        &mut self,
        has_carrier: impl Fn(PortNo) -> bool,
        is_operational: impl Fn(PortNo) -> bool,
        now: Instant,
    ) {
        let last = self.bond.last_active();
        let (first, others): (Vec<_>, Vec<_>) = self
            .config
            .members
            .iter()
            .partition(|member| Some(member.port) == last);
        for member in first.into_iter().chain(others) {
            let carrier = has_carrier(member.port);
            if let Some(group) = &mut self.lacp {
                group.handle_carrier(member.port, carrier, now);
            }
            let is_usable = carrier && is_operational(member.port);
            self.bond.handle_carrier(member.port, is_usable, now);
        }
        if let Some(group) = &mut self.lacp {
            group.handle_timeout(now);
        }
        let (status, group) = (
            self.lacp
                .as_ref()
                .map_or(LacpStatus::Off, LacpGroup::status),
            &self.lacp,
        );
        let may_enable = |port| group.as_ref().is_none_or(|group| group.may_enable(port));
        self.bond.handle_lacp(status, may_enable, now);
        if self.bond.next_timeout().is_some_and(|due| due <= now) {
            self.take_loads();
            self.bond.handle_timeout(now);
        }
    }

    /// Passes the bytes sent since the last call to the bond.
    fn take_loads(&mut self) {
        let sent = self.state.loads.read();
        let new = std::array::from_fn(|place| sent[place] - self.counted[place]);
        self.bond.handle_loads(&new);
        *self.counted = sent;
    }

    /// Returns whether a member's LACP receive machine is current; none without LACP.
    pub(crate) fn is_current(&self, member: PortNo) -> Option<bool> {
        let port = self.lacp.as_ref()?.port(member)?;
        Some(port.receive() == ReceiveState::Current)
    }

    fn next_timeout(&self) -> Option<Instant> {
        let lacp = self.lacp.as_ref().and_then(LacpGroup::next_timeout);
        [self.bond.next_timeout(), lacp].into_iter().flatten().min()
    }

    /// Returns the state that the database shows.
    fn reported_state(&self) -> (Option<PortNo>, Vec<bool>) {
        let members = self.config.members.iter();
        let heard = members.filter_map(|member| self.is_current(member.port));
        (self.bond.active(), heard.collect())
    }
}

impl Bridge {
    /// Sets the bonds; bonds that remain keep their state.
    pub(super) fn set_bonds(&mut self, ports: &[LogicalPort], now: Instant) {
        self.protocols.bonds.set(ports, now);
        self.publish_bonds();
        self.update_punts();
    }

    /// Returns the bonds, by the names of their ports.
    pub fn bonds(&self) -> impl Iterator<Item = (&str, &BridgeBond)> {
        let bonds = self.protocols.bonds.bonds.iter();
        let bonds = bonds.filter(|(_, bonded)| !bonded.config.is_single_member);
        bonds.map(|(name, bonded)| (name.as_str(), bonded))
    }

    /// Passes the bytes sent to all bonds.
    pub fn take_loads(&mut self) {
        self.protocols
            .bonds
            .bonds
            .values_mut()
            .for_each(BridgeBond::take_loads);
    }

    /// Returns the ports that run LACP, bonds or not, by name.
    pub fn lacp_ports(&self) -> impl Iterator<Item = (&str, &BridgeBond, &LacpGroup)> {
        let all = self.protocols.bonds.bonds.iter();
        all.filter_map(|(name, bonded)| Some((name.as_str(), bonded, bonded.lacp()?)))
    }

    /// Returns whether a port's LACP receive machine is current; none without LACP.
    pub fn is_lacp_current(&self, port: PortNo) -> Option<bool> {
        self.protocols.bonds.of(port)?.is_current(port)
    }

    /// Returns the addresses of the active members, by the names of the bonds' ports.
    pub fn active_members(&self) -> BTreeMap<String, MacAddr> {
        let active = self.bonds().filter_map(|(name, bonded)| {
            let entry = self.ports.get(&bonded.bond.active()?)?;
            Some((name.to_owned(), entry.desc.hw_addr))
        });
        active.collect()
    }

    /// Returns a bond by the name of its port.
    pub fn bond_mut(&mut self, name: &str) -> Option<&mut BridgeBond> {
        let bonded = self.protocols.bonds.bonds.get_mut(name);
        bonded.filter(|bonded| !bonded.config.is_single_member)
    }

    /// Returns whether an active member or an LACP state changed since the last call.
    pub fn poll_bonds(&mut self) -> bool {
        self.protocols.bonds.poll()
    }

    /// Runs the bonds: carriers, timers and LACP. Pushes the frames to send.
    pub(super) fn run_bonds(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let protocols = &mut self.protocols;
        let changes = protocols
            .bonds
            .run(&self.ports, &protocols.monitors, now, effects);
        if changes.permits_changed {
            self.update_live_ports();
        }
        if changes.view_changed {
            self.publish_bonds();
        }
        for name in changes.failed_over {
            self.send_learning_packets(&name, effects);
        }
    }

    /// Publishes the state of the bonds to the workers.
    fn publish_bonds(&mut self) {
        let view = self.normal.switching.as_deref();
        let bonds = &self.protocols.bonds;
        self.normal.switching = view.map(|view| bonds.view_with(view));
        self.publication.request();
    }
}

fn settings(config: &BondConfig) -> bond::BondSettings {
    let primary = config.members.iter();
    let mut primary = primary.filter(|member| Some(&member.name) == config.primary.as_ref());
    bond::BondSettings {
        mode: config.mode,
        updelay: config.updelay,
        downdelay: config.downdelay,
        rebalance_interval: config.rebalance_interval,
        hash_basis: config.hash_basis,
        primary: primary.next().map(|member| member.port),
        all_members_active: config.all_members_active,
        lacp_fallback: config.lacp_fallback,
    }
}

fn numbers(config: &BondConfig) -> Vec<PortNo> {
    config.members.iter().map(|member| member.port).collect()
}

/// Returns the lowest port number of the members.
fn fdb_port(config: &BondConfig) -> PortNo {
    let numbers = config.members.iter().map(|member| member.port);
    numbers.min().unwrap_or(PortNo::ANY)
}
