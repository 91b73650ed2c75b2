//! The bonds of a bridge: what is asked of each, how its members are, and what becomes of both
//! (`bond`, `lacp`). Members are asked how they are, and bonds what is due, each time the control
//! thread goes round.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use base::{Instant, PortNo};
use flow::{PortConfig, PortState};
use packet::wire::arp::ArpAddresses;
use packet::wire::ethernet::{EtherType, Ethernet};
use packet::wire::slow::{LacpSystem, SlowPdu};
use packet::{Frame, Link, MacAddr};

use super::{Bridge, Effect, PortEntry};
use config::{BondConfig, LogicalPort};
use dataplane::bonds::{BondLoads, BondState, EgressFrame, RecentSources};
use dataplane::normal::NormalContext;
use dataplane::vlans::FrameVlans;
use l2::bond::{self, BUCKETS, Bond};
use l2::lacp::{self, LacpGroup, LacpStatus, ReceiveState};

/// What RARP asks of the network by the frames that tell it where a station is (RFC 903).
const REVERSE_REQUEST: u16 = 3;

/// All bonds of a bridge, by the names of their ports.
pub(crate) struct Bonds {
    bonds: BTreeMap<String, Bonded>,
    /// How many send, the control thread last.
    writers: usize,
    /// Who was active, and which members have heard their partners, when that was told last.
    told: Vec<(Option<PortNo>, Vec<bool>)>,
}

/// A bond.
pub struct Bonded {
    config: BondConfig,
    bond: Bond,
    lacp: Option<LacpGroup>,
    state: BondState,
    /// What of its loads the bond knows.
    counted: Box<[u64; BUCKETS]>,
}

impl Bonds {
    /// None, of a bridge whose frames are sent by so many.
    pub(super) const fn new(writers: usize) -> Self {
        Self {
            bonds: BTreeMap::new(),
            writers,
            told: Vec::new(),
        }
    }

    /// The control thread's place among those who send.
    pub(super) const fn writer(&self) -> usize {
        self.writers - 1
    }

    fn of(&self, member: PortNo) -> Option<&Bonded> {
        let mut bonds = self.bonds.values();
        bonds.find(|bonded| bonded.has(member))
    }
}

impl Bonded {
    fn new(config: BondConfig, writers: usize, now: Instant) -> Self {
        let mut bond = Bond::new(settings(&config));
        bond.configure(settings(&config), &numbers(&config), now);
        let state = BondState {
            home: home(&config),
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

    /// What is asked of it.
    pub const fn config(&self) -> &BondConfig {
        &self.config
    }

    /// Who carries its frames.
    pub const fn bond(&self) -> &Bond {
        &self.bond
    }

    /// The same, to be told something by hand.
    pub const fn bond_mut(&mut self) -> &mut Bond {
        &mut self.bond
    }

    /// What LACP has come to, where it is spoken.
    pub const fn lacp(&self) -> Option<&LacpGroup> {
        self.lacp.as_ref()
    }

    fn has(&self, member: PortNo) -> bool {
        self.config.members.iter().any(|of| of.port == member)
    }

    /// Goes on with what is asked of it now.
    fn configure(&mut self, config: &BondConfig, now: Instant) {
        if self.config != *config {
            self.config = config.clone();
            self.state.home = home(config);
            self.bond.configure(settings(config), &numbers(config), now);
        }
    }

    /// Speaks LACP as it is asked to, in the name of `address`.
    fn speak(&mut self, address: MacAddr) {
        let Some(asked) = self.config.lacp else {
            self.lacp = None;
            return;
        };
        let system = LacpSystem {
            priority: asked.priority,
            address: asked.system.unwrap_or(address),
        };
        let settings = lacp::LacpSettings {
            activity: asked.activity,
            is_fast: asked.is_fast,
            system,
            lacp_fallback: self.config.lacp_fallback,
            aggregates: self.config.members.len() > 1,
        };
        let members = &self.config.members;
        let number = |port: PortNo| u16::try_from(port.0).unwrap_or(u16::MAX);
        let key = number(self.state.home);
        let ports = members.iter().map(|member| {
            let settings = lacp::LacpPortSettings {
                number: member.lacp.number.unwrap_or_else(|| number(member.port)),
                priority: member.lacp.priority,
                key: member.lacp.key.unwrap_or(key),
            };
            (member.port, settings)
        });
        let ports = ports.collect();
        let group = self.lacp.get_or_insert_with(|| LacpGroup::new(settings));
        group.configure(settings, &ports);
    }

    /// Has the bond know who was active when the switch ran last, once that is a port.
    fn recall(&mut self, has: impl Fn(PortNo, MacAddr) -> bool) {
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

    /// Takes note of how its members are, and does what is due. Who was active last is looked at
    /// first: whoever has a carrier while nobody is active is taken up at once.
    fn look(&mut self, has_carrier: impl Fn(PortNo) -> bool, now: Instant) {
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
            self.bond.handle_carrier(member.port, carrier, now);
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

    /// Has the bond know what has left by it.
    fn take_loads(&mut self) {
        let sent = self.state.loads.read();
        let new = std::array::from_fn(|place| sent[place] - self.counted[place]);
        self.bond.handle_loads(&new);
        *self.counted = sent;
    }

    /// Whether a member has heard its partner; none, if LACP is not spoken.
    pub(crate) fn is_current(&self, member: PortNo) -> Option<bool> {
        let port = self.lacp.as_ref()?.port(member)?;
        Some(port.receive() == ReceiveState::Current)
    }

    fn next_timeout(&self) -> Option<Instant> {
        let lacp = self.lacp.as_ref().and_then(LacpGroup::next_timeout);
        [self.bond.next_timeout(), lacp].into_iter().flatten().min()
    }

    /// How it is, as far as others are told by the database.
    fn standing(&self) -> (Option<PortNo>, Vec<bool>) {
        let members = self.config.members.iter();
        let heard = members.filter_map(|member| self.is_current(member.port));
        (self.bond.active(), heard.collect())
    }
}

impl Bridge {
    /// Has these bonds from now on; those that stay are as they were.
    pub(super) fn set_bonds(&mut self, ports: &[LogicalPort], now: Instant) {
        let wanted = |name: &String| {
            ports
                .iter()
                .any(|port| port.bond.is_some() && port.name == *name)
        };
        self.bonds.bonds.retain(|name, _| wanted(name));
        let writers = self.bonds.writers;
        for port in ports {
            let Some(config) = &port.bond else { continue };
            let bonded = self.bonds.bonds.entry(port.name.clone());
            let bonded = bonded.or_insert_with(|| Bonded::new(config.clone(), writers, now));
            bonded.configure(config, now);
        }
        self.publish_bonds();
        self.update_punts();
    }

    /// The bonds, by the names of their ports.
    pub fn bonds(&self) -> impl Iterator<Item = (&str, &Bonded)> {
        let bonds = self.bonds.bonds.iter();
        let bonds = bonds.filter(|(_, bonded)| !bonded.config.is_single_member);
        bonds.map(|(name, bonded)| (name.as_str(), bonded))
    }

    /// Has all of them know what has left by them.
    pub fn take_loads(&mut self) {
        self.bonds.bonds.values_mut().for_each(Bonded::take_loads);
    }

    /// The ports that speak LACP, bonds or not, by name.
    pub fn lacp_ports(&self) -> impl Iterator<Item = (&str, &Bonded, &LacpGroup)> {
        let all = self.bonds.bonds.iter();
        all.filter_map(|(name, bonded)| Some((name.as_str(), bonded, bonded.lacp()?)))
    }

    /// Whether a port has heard its partner, if it speaks LACP.
    pub fn is_lacp_current(&self, port: PortNo) -> Option<bool> {
        self.bonds.of(port)?.is_current(port)
    }

    /// The addresses of the members that are active, by the names of their bonds' ports.
    pub fn active_members(&self) -> BTreeMap<String, MacAddr> {
        let active = self.bonds().filter_map(|(name, bonded)| {
            let entry = self.ports.get(&bonded.bond.active()?)?;
            Some((name.to_owned(), entry.desc.hw_addr))
        });
        active.collect()
    }

    /// One of them.
    pub fn bond_mut(&mut self, name: &str) -> Option<&mut Bonded> {
        let bonded = self.bonds.bonds.get_mut(name);
        bonded.filter(|bonded| !bonded.config.is_single_member)
    }

    /// Whether others are to be told of them: somebody else is active, or is heard.
    pub fn poll_bonds(&mut self) -> bool {
        let bonds = || self.bonds.bonds.values().map(Bonded::standing);
        if self.bonds.told.iter().cloned().eq(bonds()) {
            return false;
        }
        self.bonds.told = bonds().collect();
        true
    }

    /// Does what is due for bonds, and says what is to be said to their other ends.
    pub(super) fn look_after_bonds(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.bonds.bonds.is_empty() {
            return;
        }
        let local = self.ports.get(&PortNo::LOCAL);
        let address = local.map_or_else(MacAddr::default, |local| local.desc.hw_addr);
        let ports = &self.ports;
        let (mut is_news, mut moved) = (false, Vec::new());
        for (name, bonded) in &mut self.bonds.bonds {
            bonded.speak(address);
            bonded.recall(|port, address| {
                let entry = ports.get(&port);
                entry.is_some_and(|entry| entry.desc.hw_addr == address)
            });
            bonded.look(|port| ports.get(&port).is_some_and(has_carrier), now);
            if let Some(view) = bonded.bond.poll_view() {
                bonded.state.view = view;
                is_news = true;
            }
            if bonded.bond.poll_learning_packets() && !bonded.config.is_single_member {
                moved.push(name.clone());
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
        if is_news {
            self.publish_bonds();
        }
        for name in moved {
            self.announce(&name, effects);
        }
    }

    /// When there is something to do for bonds.
    pub(super) fn next_of_bonds(&self) -> Option<Instant> {
        let bonds = self.bonds.bonds.values();
        bonds.filter_map(Bonded::next_timeout).min()
    }

    /// Under which number the stations behind a port are known.
    pub(super) fn home(&self, port: PortNo) -> PortNo {
        let bonded = self.bonds.of(port);
        bonded.map_or(port, |bonded| bonded.state.home)
    }

    /// Under which number stations are known that are not reached any more, now that this port
    /// leads nowhere; none, if another member of its bond leads to them.
    pub(super) fn lost_home(&self, port: PortNo) -> Option<PortNo> {
        let leads = |port: PortNo| self.ports.get(&port).is_some_and(has_carrier);
        let bonded = self.bonds.of(port);
        let members = bonded.into_iter().flat_map(|bonded| &bonded.config.members);
        let mut others = members.filter(|other| other.port != port);
        let is_reached = others.any(|other| leads(other.port));
        (!is_reached).then(|| self.home(port))
    }

    /// Takes a message of a slow protocol, and answers it if that is to be done at once.
    pub(super) fn handle_slow_protocol(
        &mut self,
        from: PortNo,
        frame: &[u8],
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let address = self.ports.get(&from).map(|entry| entry.desc.hw_addr);
        let mut bonds = self.bonds.bonds.values_mut();
        let bonded = bonds.find(|bonded| bonded.has(from));
        let group = bonded.and_then(|bonded| bonded.lacp.as_mut());
        if let (Some(group), Some(address)) = (group, address)
            && let Some(SlowPdu::Marker(answer)) = group.handle_frame(from, frame, now)
        {
            let frame = Frame::from_bytes(&answer.emit(address));
            effects.push(Effect::Transmit(from, frame, None));
        }
    }

    /// The ports that take messages of slow protocols.
    pub(super) fn speakers_of_lacp(&self) -> Vec<PortNo> {
        let bonds = self.bonds.bonds.values();
        let speak = bonds.filter(|bonded| bonded.config.lacp.is_some());
        speak.flat_map(|bonded| numbers(&bonded.config)).collect()
    }

    /// Has workers know how bonds are now.
    fn publish_bonds(&mut self) {
        let bonds = &self.bonds.bonds;
        let state = |name: &str| {
            let bonded = bonds
                .get(name)
                .filter(|bonded| !bonded.config.is_single_member);
            bonded.map(|bonded| bonded.state.clone())
        };
        let view = self.switching.as_deref();
        self.switching = view.map(|view| view.with_bonds(state));
        self.unpublished = true;
    }

    /// Has the other end of a bond know by which member the stations of other ports are reached
    /// now: each seems to say something, as Open vSwitch has it.
    fn announce(&self, name: &str, effects: &mut Vec<Effect>) {
        let Some(Bonded { state, .. }) = self.bonds.bonds.get(name) else {
            return;
        };
        let stations = self.stations.view();
        let knowledge = NormalContext {
            mirrors: self.mirrors.as_deref(),
            stations: &stations,
            switching: self.switching.as_deref(),
            multicast: None,
        };
        let others = stations
            .iter()
            .filter(|(_, station)| station.port() != state.home);
        for (address, station) in others {
            let within = FrameVlans::of_vlan(address.vid);
            if !knowledge.joins(station.port(), state.home, &within) {
                continue;
            }
            let mut frame = Frame::from_bytes(&announcement(address.mac));
            let Ok(link) = Link::parse(frame.bytes()) else {
                continue;
            };
            let leaving = EgressFrame {
                frame: &frame,
                link: &link,
                within,
                writer: None,
            };
            let Some(exit) = state.exit(&leaving) else {
                continue;
            };
            if knowledge.retag(exit, &within).change(&mut frame) {
                effects.push(Effect::Transmit(exit, frame, None));
            }
        }
    }
}

/// Whether frames can come and go by a port.
fn has_carrier(entry: &PortEntry) -> bool {
    let is_live = entry.desc.state.contains(PortState::LIVE);
    is_live && !entry.desc.config.contains(PortConfig::DOWN)
}

/// A frame of a station that says no more than where it is: it asks by RARP for its own address.
fn announcement(station: MacAddr) -> Vec<u8> {
    let addresses = ArpAddresses {
        sha: station,
        spa: Ipv4Addr::UNSPECIFIED,
        tha: station,
        tpa: Ipv4Addr::UNSPECIFIED,
    };
    let header = Ethernet {
        dst: MacAddr::BROADCAST,
        src: station,
    };
    [
        &header.emit(EtherType::RARP.0)[..],
        &addresses.emit(REVERSE_REQUEST),
    ]
    .concat()
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

/// The lowest number of its members.
fn home(config: &BondConfig) -> PortNo {
    let numbers = config.members.iter().map(|member| member.port);
    numbers.min().unwrap_or(PortNo::ANY)
}
