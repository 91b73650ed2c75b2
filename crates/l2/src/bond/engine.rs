//! The state machine of a bond: active member, enabled members, and the view for workers.

use std::collections::BTreeMap;

use base::{Instant, PortNo};

use super::share::Share;
use super::view::{BondEgress, BondVerdict, BondView};
use super::{BUCKETS, BondMember, BondMode, BondSettings};
use crate::lacp::LacpStatus;

/// A bond.
#[derive(Debug)]
pub struct Bond {
    settings: BondSettings,
    lacp: LacpStatus,
    members: BTreeMap<PortNo, BondMember>,
    active: Option<PortNo>,
    /// The most recent active member.
    last_active: Option<PortNo>,
    share: Share,
    next_rebalance: Option<Instant>,
    /// Members were added or removed, and the buckets are not yet distributed among them.
    is_unassigned: bool,
    /// The view changed since workers received it.
    is_changed: bool,
    /// The active member changed, and learning packets are due.
    is_active_changed: bool,
}

impl Bond {
    /// Returns a bond without members.
    pub const fn new(settings: BondSettings) -> Self {
        Self {
            settings,
            lacp: LacpStatus::Off,
            members: BTreeMap::new(),
            active: None,
            last_active: None,
            share: Share::new(),
            next_rebalance: None,
            is_unassigned: true,
            is_changed: true,
            is_active_changed: false,
        }
    }

    /// Replaces settings and members; remaining members keep their state.
    pub fn configure(&mut self, settings: BondSettings, members: &[PortNo], now: Instant) {
        self.settings = settings;
        self.members.retain(|port, _| members.contains(port));
        for port in members {
            let member = BondMember {
                lacp_allows: self.lacp == LacpStatus::Off,
                ..BondMember::default()
            };
            self.members.entry(*port).or_insert(member);
        }
        let stays = |port: &PortNo| members.contains(port);
        self.active = self.active.filter(stays);
        self.last_active = self.last_active.filter(stays);
        self.is_unassigned = true;
        self.next_rebalance = settings.rebalance_interval.map(|interval| now + interval);
        self.update(now);
    }

    /// Returns the members.
    pub fn members(&self) -> impl Iterator<Item = (PortNo, &BondMember)> {
        self.members.iter().map(|(port, member)| (*port, member))
    }

    /// Returns the active member, which carries all frames that only one member may carry.
    pub const fn active(&self) -> Option<PortNo> {
        self.active
    }

    /// Returns the most recent active member. It is preferred when no member is active.
    pub const fn last_active(&self) -> Option<PortNo> {
        self.last_active
    }

    /// Restores the active member from before a restart.
    pub fn set_last_active(&mut self, port: PortNo) {
        self.last_active = self.last_active.or(Some(port));
    }

    /// Returns the LACP status.
    pub const fn lacp(&self) -> LacpStatus {
        self.lacp
    }

    /// Returns the time of the next rebalancing.
    pub fn next_rebalance(&self) -> Option<Instant> {
        self.next_rebalance.filter(|_| self.shares())
    }

    /// Sets the carrier state of a member.
    pub fn handle_carrier(&mut self, port: PortNo, carrier: bool, now: Instant) {
        if let Some(member) = self.members.get_mut(&port)
            && member.carrier != carrier
        {
            member.carrier = carrier;
            member.admin_enabled = None;
            self.update(now);
        }
    }

    /// Sets the LACP status and the members that LACP permits.
    pub fn handle_lacp(
        &mut self,
        status: LacpStatus,
        may_enable: impl Fn(PortNo) -> bool,
        now: Instant,
    ) {
        self.is_changed |= self.lacp != status;
        self.lacp = status;
        for (port, member) in &mut self.members {
            member.lacp_allows = status == LacpStatus::Off || may_enable(*port);
        }
        self.update(now);
    }

    /// Enables or disables a member by command, until its carrier changes.
    pub fn set_enabled(&mut self, port: PortNo, enabled: bool, now: Instant) {
        if let Some(member) = self.members.get_mut(&port) {
            member.admin_enabled = Some(enabled);
            self.update(now);
        }
    }

    /// Selects the active member by command. Returns `false` if the member is not enabled.
    pub fn set_active_member(&mut self, port: PortNo) -> bool {
        let can = self.members.get(&port).is_some_and(BondMember::is_enabled);
        if can && self.active != Some(port) {
            self.change_active(Some(port));
        }
        can
    }

    /// Moves a bucket to a member by command. Returns `false` if the member is not enabled.
    pub fn migrate(&mut self, index: usize, port: PortNo) -> bool {
        let can = self.members.get(&port).is_some_and(BondMember::is_enabled);
        let member = self.share.bucket_members.get_mut(index).filter(|_| can);
        if let Some(member) = member {
            *member = Some(port);
            self.is_changed = true;
        }
        can
    }

    /// Adds the bytes sent per bucket since the last call.
    pub fn handle_loads(&mut self, bytes: &[u64; BUCKETS]) {
        for (load, bytes) in self.share.loads.iter_mut().zip(bytes) {
            *load = load.saturating_add(*bytes);
        }
    }

    /// Returns the non-empty buckets of a member with their bytes.
    pub fn loads_of(&self, port: PortNo) -> impl Iterator<Item = (usize, u64)> {
        let share = &self.share;
        (0..BUCKETS)
            .filter(move |index| share.bucket_members[*index] == Some(port))
            .map(move |index| (index, share.loads[index]))
            .filter(|(_, load)| *load > 0)
    }

    /// Executes expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.update(now);
        if self.next_rebalance().is_some_and(|due| due <= now) {
            let enabled = self.enabled();
            self.is_changed |= self.share.rebalance(&enabled);
            let interval = self.settings.rebalance_interval;
            self.next_rebalance = interval.map(|interval| now + interval);
        }
    }

    /// Returns the time at which [`Bond::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let members = self.members.values().filter_map(BondMember::delay_expires);
        members.chain(self.next_rebalance()).min()
    }

    /// Returns the view for workers, if it changed.
    pub fn poll_view(&mut self) -> Option<BondView> {
        std::mem::take(&mut self.is_changed).then(|| self.view())
    }

    /// Returns whether learning packets are due: after a change of the active member they show the
    /// other end the new member for local stations. A partner that speaks LACP with balance-tcp
    /// does not need them.
    pub fn poll_learning_packets(&mut self) -> bool {
        std::mem::take(&mut self.is_active_changed) && self.mode() != Some(BondMode::BalanceTcp)
    }

    /// The effective mode; `None` if the bond carries no frames.
    fn mode(&self) -> Option<BondMode> {
        match (self.lacp, self.settings.mode) {
            (LacpStatus::Configured, _) if self.settings.lacp_fallback => {
                Some(BondMode::ActiveBackup)
            }
            (LacpStatus::Configured, _) | (LacpStatus::Off, BondMode::BalanceTcp) => None,
            (_, mode) => Some(mode),
        }
    }

    /// Returns whether several members may carry frames.
    fn shares(&self) -> bool {
        let lacp_fallback = self.settings.lacp_fallback && self.lacp == LacpStatus::Configured;
        self.settings.mode != BondMode::ActiveBackup && !lacp_fallback
    }

    fn enabled(&self) -> Vec<PortNo> {
        let enabled = self.members.iter().filter(|(_, member)| member.enabled);
        enabled.map(|(port, _)| *port).collect()
    }

    /// Updates the enabled members and selects the active one.
    fn update(&mut self, now: Instant) {
        // Delays apply to carriers only; both ends have agreed on the state of LACP.
        let delays = match self.lacp {
            LacpStatus::Off => (self.settings.updelay, self.settings.downdelay),
            LacpStatus::Configured | LacpStatus::Negotiated => Default::default(),
        };
        let mut changed = false;
        for member in self.members.values_mut() {
            changed |= member.update(delays, now);
        }
        changed |= self.choose_active();
        if changed || std::mem::take(&mut self.is_unassigned) {
            let enabled = self.enabled();
            self.share.redistribute(&enabled);
            self.is_changed = true;
        }
    }

    /// Keeps the active member until it is disabled or the primary returns. If no member is
    /// enabled, the next candidate is enabled without its delay. Returns whether that happened.
    fn choose_active(&mut self) -> bool {
        let is_used = |port: &PortNo| self.members.get(port).is_some_and(BondMember::is_enabled);
        let primary = self.settings.primary.filter(is_used);
        let primary = primary.filter(|_| self.mode() == Some(BondMode::ActiveBackup));
        let stays = self.active.filter(is_used);
        let used = || {
            self.last_active
                .filter(is_used)
                .or_else(|| self.enabled().first().copied())
        };
        let next = || {
            let waiting = self.members.iter();
            let waiting = waiting.filter(|(_, member)| member.may_enable());
            let soonest = waiting.min_by_key(|(port, member)| {
                (member.delay_expires, self.last_active != Some(**port))
            });
            soonest.map(|(port, _)| *port)
        };
        let chosen = primary.or(stays).or_else(used);
        let immediate = if chosen.is_none() { next() } else { None };
        if let Some(member) = immediate.and_then(|port| self.members.get_mut(&port)) {
            member.set_enabled(true);
        }
        let chosen = chosen.or(immediate);
        if chosen != self.active {
            self.change_active(chosen);
        }
        immediate.is_some()
    }

    fn change_active(&mut self, active: Option<PortNo>) {
        self.is_active_changed = active.is_some();
        self.active = active;
        self.last_active = active.or(self.last_active);
        self.is_changed = true;
    }

    /// Returns the view for workers.
    pub fn view(&self) -> BondView {
        let mode = self.mode();
        let bucket_members = || Box::new(self.share.bucket_members);
        let egress = match (mode, self.active) {
            (None, _) | (_, None) => BondEgress::None,
            (Some(BondMode::ActiveBackup), Some(active)) => BondEgress::One(active),
            (Some(BondMode::BalanceSlb), _) => BondEgress::BySource(bucket_members()),
            (Some(BondMode::BalanceTcp), _) => BondEgress::ByFlow(bucket_members()),
        };
        let members = self.members.iter();
        let verdicts = members.map(|(port, member)| (*port, self.verdicts(*port, member)));
        BondView {
            egress,
            basis: self.settings.hash_basis,
            verdicts: verdicts.collect(),
        }
    }

    /// Verdicts on frames received from a member: unicast, multicast.
    fn verdicts(&self, port: PortNo, member: &BondMember) -> (BondVerdict, BondVerdict) {
        let accept_if = |accepts: bool| {
            if accepts {
                BondVerdict::Accept
            } else {
                BondVerdict::Drop
            }
        };
        let is_active = accept_if(self.active == Some(port));
        match (self.lacp, self.mode()) {
            (_, None) => (BondVerdict::Drop, BondVerdict::Drop),
            // The other end sends each frame once, on members that both ends have enabled.
            (LacpStatus::Negotiated, _) => (accept_if(member.enabled), accept_if(member.enabled)),
            // The other end floods on all members: it does not know of the bond.
            (_, Some(BondMode::BalanceSlb)) => match is_active {
                BondVerdict::Drop if !self.settings.all_members_active => {
                    (BondVerdict::DropIfMoved, BondVerdict::Drop)
                }
                _ => (BondVerdict::DropIfMoved, BondVerdict::DropIfMoved),
            },
            (_, Some(BondMode::ActiveBackup | BondMode::BalanceTcp)) => (is_active, is_active),
        }
    }
}
