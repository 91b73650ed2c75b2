//! The pipeline of one bridge: tables, groups, meters and ports, as one value.
//!
//! ```text
//!                     flow_mod, group_mod, meter_mod, table_mod, tlv_table_mod, set_port
//!                                             |
//!   Pipeline ---------------------------------+----------------------------------------------
//!     rules: RuleStore        tables in lookup order, index by identity, deadlines, interner
//!     groups: GroupTable      buckets, references from rules, chaining check
//!     meters: MeterTable      token buckets, references from rules
//!     settings: TableSettings names, sizes, eviction and vacancy of configured tables
//!     learn_limits            counts of learned rules by table and cookie
//!     tlv_map                 Geneve options of tun_metadata fields
//!     ports: PortTable        configuration, state, tunnels
//! ```
//!
//! A pipeline is a *value*. A clone costs a few reference counts at any size, and a change of one
//! clone is invisible to the other: a worker runs a clone until it receives the next, and so sees a
//! change completely or not at all. Only the counters are shared between clones, since a packet is
//! counted once.
//!
//! There are 254 tables, all empty at first. A packet enters the first and only moves forward, so it
//! terminates. A packet without a matching rule is a *miss*: OpenFlow 1.3 applies the table-miss rule
//! (priority zero, no conditions) and drops the packet if there is none (OF 1.3.5, 5.4); older
//! versions send it to the controller (OF 1.0.1, 3.4).
//!
//! The parse depth depends on the rules. [`Pipeline::depth`] is the deepest header that a rule, group
//! or meter reads, and every packet is parsed and checked to that depth: a packet is dropped as
//! malformed only if a header is malformed that some rule reads. A switch without rules therefore
//! forwards what any bridge would, and half a TCP header cannot evade a rule on TCP ports. Padding
//! behind an IP datagram is legal, as on any Ethernet.

pub(crate) mod diff;
mod flow_mod;
mod groups;
mod learning;
mod meters;
mod option_lengths;
mod packet_checks;
mod ports;
mod rule_store;
mod statistics;
mod table_settings;
mod tlv_map;

use std::sync::Arc;

use base::{Instant, PortNo, TableId};
use conntrack::Conntrack;
use flow::field::Depth;
use flow::{FlowMod, FlowRemovedReason, FragmentHandling, PortDesc, Refusal};
use packet::wire::Fragment;
use packet::{FragmentPorts, Frame, Headers};

use crate::counters::{CounterAllocator, Counters};
use crate::fragment_store::FragmentStore;
use crate::groups::GroupTable;
use crate::limits::Limits;
use crate::meters::MeterTable;
use crate::port::PortView;
use crate::rules::rule_index::IdentityHash;
use crate::rules::table::Table;
use crate::rules::{Changes, Removal, Rule};
use crate::verdict::{Destination, DropReason};
pub use flow_mod::check_internal_table;
pub(crate) use groups::spend;
use learning::LearnLimits;
use ports::PortTable;
use rule_store::RuleStore;
pub use table_settings::TableMiss;
use table_settings::TableSettings;
pub use table_settings::{EvictionPolicy, NameAuthor};
use tlv_map::TlvMap;

/// The treatment of a packet that no rule of a table matches, not even a table-miss rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissPolicy {
    /// The packet is dropped (OF 1.3.5, 5.4).
    #[default]
    Drop,
    /// The packet is sent to the controllers (OF 1.0.1, 3.4).
    Controller,
}

/// The tables, groups, meters and ports of a bridge. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Pipeline {
    limits: Limits,
    allocator: CounterAllocator,
    rules: RuleStore,
    table_counters: TableCounters,
    settings: TableSettings,
    groups: GroupTable,
    meters: MeterTable,
    learn_limits: LearnLimits,
    tlv_map: TlvMap,
    ports: PortTable,
    modes: PipelineModes,
    /// The connections of the datapath, which all of its bridges share.
    tracker: Option<Arc<Conntrack>>,
    /// The fragments that `ct` holds, with this bridge's number among the users of the store.
    fragment_store: Option<(Arc<FragmentStore>, u32)>,
}

/// The counters of all tables: packets looked up, and packets that matched a rule.
#[derive(Clone, Debug)]
struct TableCounters {
    lookups: Arc<[Counters]>,
    matches: Arc<[Counters]>,
}

/// Settings of the bridge that change the meaning of all tables.
#[derive(Clone, Copy, Debug, Default)]
struct PipelineModes {
    fragments: FragmentHandling,
    miss: MissPolicy,
    is_standalone: bool,
    /// True if a miss in any table continues in the next.
    any_continues: bool,
}

impl Pipeline {
    /// Creates a pipeline with empty tables and no ports. `writers` is the number of interpreters
    /// that count concurrently.
    #[must_use]
    pub fn new(limits: Limits, writers: usize) -> Self {
        let mut allocator = CounterAllocator::new(writers);
        let mut per_table = || {
            (0..=TableId::LAST.0)
                .map(|_| allocator.allocate())
                .collect()
        };
        let table_counters = TableCounters {
            lookups: per_table(),
            matches: per_table(),
        };
        Self {
            limits,
            allocator,
            rules: RuleStore::default(),
            table_counters,
            settings: TableSettings::default(),
            groups: GroupTable::default(),
            meters: MeterTable::default(),
            learn_limits: LearnLimits::default(),
            tlv_map: TlvMap::default(),
            ports: PortTable::default(),
            modes: PipelineModes::default(),
            tracker: None,
            fragment_store: None,
        }
    }

    /// Returns the tracker of connections. Without one, `ct` drops the packet.
    #[must_use]
    pub const fn tracker(&self) -> Option<&Arc<Conntrack>> {
        self.tracker.as_ref()
    }

    /// Sets the tracker of connections.
    pub fn set_tracker(&mut self, tracker: Arc<Conntrack>) {
        self.tracker = Some(tracker);
    }

    /// Returns the store of fragments and the bridge's number there. Without one, fragments are
    /// tracked apart, and are invalid.
    pub(crate) const fn fragment_store(&self) -> Option<&(Arc<FragmentStore>, u32)> {
        self.fragment_store.as_ref()
    }

    /// True if `ct` holds fragments, which only the interpreter does.
    #[must_use]
    pub const fn holds_fragments(&self) -> bool {
        self.fragment_store.is_some()
    }

    /// Sets the store of fragments, which the bridges of a datapath share.
    pub fn set_fragment_store(&mut self, store: Arc<FragmentStore>) {
        let owner = store.add_owner();
        self.fragment_store = Some((store, owner));
    }

    /// Returns the parse depth that the installed rules, groups and meters need.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let of_rules = self.rules.depth();
        of_rules.max(self.groups.depth()).max(self.meters.depth())
    }

    /// Returns the rules of `table`, or with [`TableId::ALL`] of all tables, in the order of tables
    /// and of lookup.
    pub fn rules(&self, table: TableId) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.rules(table)
    }

    /// Returns the number of rules.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rules.len()
    }

    /// True if there are no rules.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.len() == 0
    }

    /// Prefetches the memory for these flow-mods, if they are applied in this order: a burst does not
    /// wait for memory once for each. Their result does not depend on it.
    pub fn prefetch<'a>(&mut self, commands: impl Iterator<Item = &'a FlowMod>) {
        self.rules.prefetch(commands);
    }

    /// Returns the treatment of misses.
    #[must_use]
    pub const fn miss_policy(&self) -> MissPolicy {
        self.modes.miss
    }

    /// Sets the treatment of misses.
    pub const fn set_miss_policy(&mut self, miss: MissPolicy) {
        self.modes.miss = miss;
    }

    /// Returns the treatment of IP fragments.
    #[must_use]
    pub const fn fragments(&self) -> FragmentHandling {
        self.modes.fragments
    }

    /// Returns if lookups see the ports of first fragments.
    #[inline]
    #[must_use]
    pub const fn fragment_ports(&self) -> FragmentPorts {
        match self.modes.fragments {
            FragmentHandling::NxMatch => FragmentPorts::Visible,
            _ => FragmentPorts::Hidden,
        }
    }

    /// True if a frame is a fragment and the switch drops fragments. A frame whose IP header is
    /// malformed is no fragment. `headers` are those of the frame, parsed to any depth.
    #[must_use]
    pub fn drops_fragment(&self, frame: &Frame, headers: Option<&Headers>) -> bool {
        if self.modes.fragments != FragmentHandling::Drop {
            return false;
        }
        let fragment = match headers.and_then(Headers::fragment) {
            None => Headers::parse(frame, Depth::Network)
                .ok()
                .and_then(|headers| headers.fragment()),
            known => known,
        };
        !matches!(fragment, None | Some(Fragment::No))
    }

    /// Sets the treatment of IP fragments.
    ///
    /// # Errors
    /// Reassembly is not supported.
    pub const fn set_fragments(&mut self, fragments: FragmentHandling) -> Result<(), Refusal> {
        match fragments {
            FragmentHandling::Reassemble => Err(Refusal::ConfigBadFlags),
            FragmentHandling::Normal | FragmentHandling::Drop | FragmentHandling::NxMatch => {
                self.modes.fragments = fragments;
                Ok(())
            }
        }
    }

    /// True if the switch forwards without a controller.
    #[must_use]
    pub const fn is_standalone(&self) -> bool {
        self.modes.is_standalone
    }

    /// Sets standalone mode, in which every packet is forwarded by `NORMAL`, whatever the tables
    /// hold (OF 1.3.5, 6.3).
    pub const fn set_standalone(&mut self, is_standalone: bool) {
        self.modes.is_standalone = is_standalone;
    }

    /// Returns the counters of a table: packets looked up, and packets that matched a rule.
    #[inline]
    #[must_use]
    pub fn table_counters(&self, table: TableId) -> (&Counters, &Counters) {
        let index = usize::from(table.0);
        let TableCounters { lookups, matches } = &self.table_counters;
        (&lookups[index], &matches[index])
    }

    /// Returns a table, if it has rules.
    #[inline]
    pub(crate) fn table(&self, table: TableId) -> Option<&Table> {
        self.rules.table(table)
    }

    /// Adds a port, or updates its configuration and state.
    pub fn set_port(&mut self, port: &PortDesc) {
        self.ports.set(port);
    }

    /// Sets if the spanning tree blocks a port for output.
    pub fn set_stp_blocked(&mut self, port: PortNo, is_stp_blocked: bool) {
        self.ports
            .update(port, |view| view.is_stp_blocked = is_stp_blocked);
    }

    /// Sets if a port must not be used although its link is up: its monitors or LACP object.
    pub fn set_unusable(&mut self, port: PortNo, is_unusable: bool) {
        self.ports
            .update(port, |view| view.is_unusable = is_unusable);
    }

    /// Sets if a port is protected: packets from it are not forwarded to other protected ports.
    pub fn set_protected(&mut self, port: PortNo, is_protected: bool) {
        self.ports
            .update(port, |view| view.is_protected = is_protected);
    }

    /// Sets if a port is a tunnel.
    pub fn set_tunnel(&mut self, port: PortNo, is_tunnel: bool) {
        self.ports.set_tunnel(port, is_tunnel);
    }

    /// Removes a port. Rules that name it stay, and their outputs to it are dropped.
    pub fn remove_port(&mut self, port: PortNo) {
        self.ports.remove(port);
    }

    /// Returns the port with this number.
    #[must_use]
    pub fn port(&self, port: PortNo) -> Option<PortView> {
        self.ports.get(port)
    }

    /// Returns all ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, PortView)> {
        self.ports.iter()
    }

    /// True if a port is protected.
    #[must_use]
    pub fn is_protected(&self, port: PortNo) -> bool {
        self.ports.is_protected(port)
    }

    /// Checks an output of a packet from the port `from` to the port `to`.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn check_egress(&self, from: PortNo, to: PortNo) -> Result<(), DropReason> {
        self.ports.check_egress(from, to)
    }

    /// True if a packet with this destination may be sent by a tunnel.
    #[must_use]
    pub fn may_tunnel(&self, to: &Destination) -> bool {
        self.ports.may_tunnel(to)
    }

    /// True if the limits permit another rule in a table.
    fn has_space(&self, table: TableId) -> bool {
        self.rules.len() < self.limits.rules && self.rules.len_of(table) < self.flows_max(table)
    }

    /// Inserts a rule. It replaces the rule with the same identity.
    fn insert(&mut self, rule: Arc<Rule>, now: Instant, changes: &mut Changes) {
        let (hash, depth) = (self.rules.hash_of(&rule.identity), rule.depth());
        self.insert_hashed(hash, rule, depth, now, changes);
    }

    /// Inserts a rule whose depth and identity's hash are known.
    fn insert_hashed(
        &mut self,
        hash: IdentityHash,
        rule: Arc<Rule>,
        depth: Depth,
        now: Instant,
        changes: &mut Changes,
    ) {
        if let Some(old) = self.rules.insert(hash, &rule, depth) {
            self.note_removed(old, None, now, changes);
        }
        self.groups.rule_added(&rule);
        self.meters.rule_added(&rule);
        self.settings.rule_added(&rule);
        self.learn_limits.rule_added(&rule, &self.rules);
        changes.added.push(rule);
    }

    /// Removes a rule, if it exists.
    fn remove(
        &mut self,
        rule: &Rule,
        reason: Option<FlowRemovedReason>,
        now: Instant,
        changes: &mut Changes,
    ) {
        if let Some(old) = self.rules.remove(rule) {
            self.note_removed(old, reason, now, changes);
        }
    }

    /// Removes all rules of `table`, or with [`TableId::ALL`] of all tables.
    fn remove_all(
        &mut self,
        table: TableId,
        reason: Option<FlowRemovedReason>,
        now: Instant,
        changes: &mut Changes,
    ) {
        let Self {
            rules,
            groups,
            meters,
            settings,
            learn_limits,
            ..
        } = self;
        changes.removed.reserve(rules.len_of(table));
        rules.remove_all(table, |rule| {
            groups.rule_removed(&rule);
            meters.rule_removed(&rule);
            settings.rule_removed(&rule);
            learn_limits.rule_removed(&rule);
            let at = now;
            changes.removed.push(Removal { rule, reason, at });
        });
    }

    /// Updates everything that refers to a rule that was removed from the store.
    fn note_removed(
        &mut self,
        rule: Arc<Rule>,
        reason: Option<FlowRemovedReason>,
        at: Instant,
        changes: &mut Changes,
    ) {
        self.groups.rule_removed(&rule);
        self.meters.rule_removed(&rule);
        self.settings.rule_removed(&rule);
        self.learn_limits.rule_removed(&rule);
        changes.removed.push(Removal { rule, reason, at });
    }
}
