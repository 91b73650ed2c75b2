//! The tables, and the rest of what a controller builds.
//!
//! A *table* is a set of rules, and what it means is a function: from what can be
//! seen of a frame to at most one rule. Everything about tables follows from two
//! facts. A rule is known by its priority and its match, so there cannot be two
//! with both the same: adding one again replaces it, and "strict" commands name
//! exactly one. And of all rules that match a frame, only the one of the highest
//! priority counts, so a table is read as a list that is tried from the top.
//! A frame that finds no rule is a *miss*. OpenFlow 1.3 makes of it what the
//! table-miss rule says (priority zero, no conditions) and drops it if there is
//! none (OF 1.3.5, 5.4); before, it went to the controller (OF 1.0.1, 3.4).
//!
//! There are 254 tables. All of them exist from the start and are empty; a frame
//! begins in the first and goes only forward, so it ends.
//!
//! A pipeline is a *value*. Cloning it takes a few reference counts, whatever
//! its size, and a change to one clone is invisible to the other: a worker runs
//! a clone until it is handed the next, and so sees a change whole or not at
//! all. Only the counters are shared between clones, since a frame is counted
//! once, whoever looks.
//!
//! How deep a frame is read depends on the rules. [`Pipeline::depth`] is the
//! deepest that any rule's match or actions look (or a group's, or a meter's), and to that depth every frame
//! is read and judged: a frame is dropped as malformed only if a header is
//! damaged that some rule looks at. So a switch without rules passes on what
//! any bridge would, and a rule about TCP ports cannot be slipped past with half
//! a TCP header. Padding behind an IP datagram is legal, as on any Ethernet.

mod ports;
mod rule_lookup;

use std::ops::RangeInclusive;
use std::sync::Arc;

use base::{GroupId, Instant, MeterId, PortNo, TableId};
use flow::field::Depth;
use flow::{FlowRemovedReason, FragmentHandling, Instructions, Match, Refusal};
use imbl::OrdMap;

use crate::counters::{CounterAllocator, Counters, Totals};
use crate::flow_mod::{Changes, Removal};
use crate::group::Group;
use crate::group_table::GroupTable;
use crate::instructions::SharedInstructions;
use crate::interner::Interner;
use crate::learn_limits::LearnLimits;
use crate::limits::Limits;
use crate::match_facts::{MatchFacts, MatchFactsCache};
use crate::meter::MeterDecision;
use crate::meter_table::MeterTable;
use crate::port::PortView;
use crate::rule::Rule;
use crate::rule_index::{IdentityHash, RuleIndex};
use crate::table::Table;
use crate::table_settings::TableSettings;
use crate::timeouts::Expiry;
use crate::tlv_map::TlvMap;
use crate::tunnel::TunnelPorts;

/// What becomes of a frame that no rule of a table matches, not even a
/// table-miss rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissPolicy {
    /// It is dropped (OF 1.3.5, 5.4).
    #[default]
    Drop,
    /// It goes to the controllers (OF 1.0.1, 3.4).
    Controller,
}

/// The state that controllers build. See the top of this file.
#[derive(Clone, Debug)]
pub struct Pipeline {
    limits: Limits,
    /// Where counters come from.
    allocator: CounterAllocator,
    tables: OrdMap<TableId, Table>,
    settings: OrdMap<TableId, TableSettings>,
    /// Frames looked up, and frames that found a rule, of each table.
    looked_up: Arc<[Counters]>,
    matched: Arc<[Counters]>,
    expiry: Expiry,
    index: RuleIndex,
    /// How many rules there have been: the number of the next.
    serial: u64,
    /// What the latest rules do.
    recent: Interner,
    /// What the latest of them asks for.
    latest: MatchFactsCache,
    rules: usize,
    /// How many rules look how deep.
    depths: [usize; Depth::ALL.len()],
    groups: GroupTable,
    meters: MeterTable,
    learners: LearnLimits,
    pub(crate) options: TlvMap,
    pub(crate) tunnels: TunnelPorts,
    ports: OrdMap<PortNo, PortView>,
    fragments: FragmentHandling,
    miss: MissPolicy,
    standalone: bool,
}

impl Pipeline {
    /// Empty tables and no ports. `writers` is how many interpreters count at
    /// the same time.
    #[must_use]
    pub fn new(limits: Limits, writers: usize) -> Self {
        let mut allocator = CounterAllocator::new(writers);
        let mut per_table = || {
            (0..=TableId::LAST.0)
                .map(|_| allocator.allocate())
                .collect()
        };
        let (looked_up, matched) = (per_table(), per_table());
        Self {
            limits,
            allocator,
            tables: OrdMap::new(),
            settings: OrdMap::new(),
            looked_up,
            matched,
            expiry: Expiry::default(),
            index: RuleIndex::default(),
            serial: 0,
            recent: Interner::default(),
            latest: MatchFactsCache::default(),
            rules: 0,
            depths: [0; Depth::ALL.len()],
            groups: GroupTable::default(),
            meters: MeterTable::default(),
            learners: LearnLimits::default(),
            options: TlvMap::default(),
            tunnels: TunnelPorts::default(),
            ports: OrdMap::new(),
            fragments: FragmentHandling::Normal,
            miss: MissPolicy::Drop,
            standalone: false,
        }
    }

    /// How deep a frame is read, by the rules there are.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let deepest = deepest(self.depths)
            .max(self.groups.depth())
            .max(self.meters.depth());
        match self.fragments {
            FragmentHandling::Drop => deepest.max(Depth::Network),
            _ => deepest,
        }
    }

    /// All rules of `table`, or with [`TableId::ALL`] of all, in the order of
    /// tables and of lookup.
    pub fn rules(&self, table: TableId) -> impl Iterator<Item = &Arc<Rule>> {
        self.tables(table).flat_map(Table::rules)
    }

    /// As [`Pipeline::rules`], but only those behind `last`, if there is one.
    pub(crate) fn rules_behind(
        &self,
        table: TableId,
        last: Option<&Rule>,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let last = last.map(|last| (last.table(), last.place));
        let first = last.map_or(TableId::FIRST, |(table, _)| table);
        self.tables
            .range(first..)
            .filter(move |(id, _)| table == TableId::ALL || **id == table)
            .flat_map(move |(id, rules)| {
                let behind = last.filter(|(table, _)| table == id);
                rules.rules_behind(behind.map(|(_, place)| place))
            })
    }

    /// How many rules there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rules
    }

    /// Whether there are no rules.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules == 0
    }

    /// What a miss comes to.
    #[must_use]
    pub const fn miss_policy(&self) -> MissPolicy {
        self.miss
    }

    /// Says what a miss comes to.
    pub const fn set_miss_policy(&mut self, miss: MissPolicy) {
        self.miss = miss;
    }

    /// What becomes of IP fragments.
    #[must_use]
    pub const fn fragments(&self) -> FragmentHandling {
        self.fragments
    }

    /// Says what becomes of IP fragments.
    ///
    /// # Errors
    /// Putting fragments together is not supported.
    pub const fn set_fragments(&mut self, fragments: FragmentHandling) -> Result<(), Refusal> {
        match fragments {
            FragmentHandling::Reassemble => Err(Refusal::ConfigBadFlags),
            FragmentHandling::Normal | FragmentHandling::Drop | FragmentHandling::NxMatch => {
                self.fragments = fragments;
                Ok(())
            }
        }
    }

    /// Whether the switch is on its own.
    #[must_use]
    pub const fn is_standalone(&self) -> bool {
        self.standalone
    }

    /// On its own, the switch sends every frame `NORMAL`, whatever the tables
    /// hold (OF 1.3.5, 6.3).
    pub const fn set_standalone(&mut self, standalone: bool) {
        self.standalone = standalone;
    }

    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    /// What is configured of tables.
    pub(crate) const fn settings(&self) -> &OrdMap<TableId, TableSettings> {
        &self.settings
    }

    pub(crate) const fn settings_mut(&mut self) -> &mut OrdMap<TableId, TableSettings> {
        &mut self.settings
    }

    /// Where counters come from.
    pub(crate) const fn allocator(&mut self) -> &mut CounterAllocator {
        &mut self.allocator
    }

    pub(crate) const fn expiry(&self) -> &Expiry {
        &self.expiry
    }

    /// A group, if there is one of this number.
    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.find(id).map(AsRef::as_ref)
    }

    /// The groups.
    #[inline]
    pub(crate) const fn groups(&self) -> &GroupTable {
        &self.groups
    }

    pub(crate) const fn groups_mut(&mut self) -> &mut GroupTable {
        &mut self.groups
    }

    /// The meters.
    #[inline]
    pub(crate) const fn meters(&self) -> &MeterTable {
        &self.meters
    }

    pub(crate) const fn meters_mut(&mut self) -> &mut MeterTable {
        &mut self.meters
    }

    /// What a meter says of a frame that is submitted to it, and counted as `writer`; none
    /// if it is not there.
    #[must_use]
    pub fn submit_to_meter(
        &self,
        id: MeterId,
        writer: usize,
        weight: Totals,
        now: Instant,
    ) -> Option<MeterDecision> {
        let meter = self.meters.find(id)?;
        Some(meter.submit(writer, weight, now))
    }

    /// The rules that make rules.
    pub(crate) const fn learners(&self) -> &LearnLimits {
        &self.learners
    }

    pub(crate) const fn learners_mut(&mut self) -> &mut LearnLimits {
        &mut self.learners
    }

    /// The counters of a table: frames looked up, frames that found a rule.
    #[inline]
    #[must_use]
    pub fn table_counters(&self, table: TableId) -> (&Counters, &Counters) {
        let index = usize::from(table.0);
        (&self.looked_up[index], &self.matched[index])
    }

    /// A table, if it has rules.
    #[inline]
    pub(crate) fn table(&self, table: TableId) -> Option<&Table> {
        self.tables.get(&table)
    }

    /// A table, or all of them, if they have rules.
    pub(crate) fn tables(&self, table: TableId) -> impl Iterator<Item = &Table> {
        self.tables.range(these(table)).map(|(_, table)| table)
    }

    /// Which table that is, or which tables, if they have rules.
    pub(crate) fn table_ids(&self, table: TableId) -> Vec<TableId> {
        self.tables.range(these(table)).map(|(id, _)| *id).collect()
    }

    /// Whether another rule may be put into a table.
    pub(crate) fn has_room(&self, table: TableId) -> bool {
        let in_table = self.table(table).map_or(0, Table::len);
        self.rules < self.limits.rules && in_table < self.flows_max(table)
    }

    /// The number of a new rule.
    pub(crate) const fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// What a match asks for.
    pub(crate) fn asked_by(&mut self, matching: &Match) -> MatchFacts {
        self.latest.asked(matching)
    }

    /// `instructions`, or those equal to them that another rule has.
    pub(crate) fn shared(&mut self, instructions: &Instructions) -> Arc<SharedInstructions> {
        self.recent.shared(instructions)
    }

    /// Puts a rule in, in place of the one of the same identity.
    pub(crate) fn put(&mut self, rule: Arc<Rule>, now: Instant, changes: &mut Changes) {
        let (hash, depth) = (self.hash_of(&rule.identity), rule.depth());
        self.put_hashed(hash, rule, depth, now, changes);
    }

    /// The same of a rule whose identity's hash is known, and its depth.
    pub(crate) fn put_hashed(
        &mut self,
        hash: IdentityHash,
        rule: Arc<Rule>,
        depth: Depth,
        now: Instant,
        changes: &mut Changes,
    ) {
        self.rules += 1;
        self.depths[depth as usize] += 1;
        self.expiry.arm(&rule);
        let old = match self.tables.get_mut(&rule.table()) {
            Some(table) => table.insert(Arc::clone(&rule)),
            None => {
                let table = self.tables.entry(rule.table()).or_default();
                table.insert(Arc::clone(&rule))
            }
        };
        match old {
            Some(old) => {
                self.index.replace(hash, &rule);
                self.left(old, None, now, changes);
            }
            None => self.index.insert(hash, &rule),
        }
        self.groups.rule_came(&rule);
        self.meters.rule_came(&rule);
        if let Some(settings) = self.settings.get_mut(&rule.table()) {
            settings.rule_came(&rule);
        }
        self.learners.rule_came(&rule, &self.tables);
        changes.added.push(rule);
    }

    /// Takes a rule out, if it is there.
    pub(crate) fn take(
        &mut self,
        rule: &Rule,
        reason: Option<FlowRemovedReason>,
        now: Instant,
        changes: &mut Changes,
    ) {
        let table = self.tables.entry(rule.table()).or_default();
        if let Some(old) = table.remove(rule.place) {
            self.index.remove(&rule.identity);
            self.expiry.disarm(rule);
            self.left(old, reason, now, changes);
        }
    }

    /// Takes all rules of `table` out, or with [`TableId::ALL`] of all. That is a good
    /// deal cheaper than one by one: a table is forgotten whole.
    pub(crate) fn take_all(
        &mut self,
        table: TableId,
        reason: Option<FlowRemovedReason>,
        now: Instant,
        changes: &mut Changes,
    ) {
        for id in self.table_ids(table) {
            let table = self.tables.remove(&id).unwrap_or_default();
            changes.removed.reserve(table.len());
            let are_all = table.len() == self.rules;
            if are_all {
                self.index.clear();
            }
            for rule in table.rules() {
                if !are_all {
                    self.index.remove(&rule.identity);
                }
                self.expiry.disarm(rule);
                self.left(Arc::clone(rule), reason, now, changes);
            }
        }
    }

    fn left(
        &mut self,
        rule: Arc<Rule>,
        reason: Option<FlowRemovedReason>,
        at: Instant,
        changes: &mut Changes,
    ) {
        self.rules -= 1;
        self.depths[rule.depth() as usize] -= 1;
        self.groups.rule_went(&rule);
        self.meters.rule_went(&rule);
        if let Some(settings) = self.settings.get_mut(&rule.table()) {
            settings.rule_went(&rule);
        }
        self.learners.rule_went(&rule);
        changes.removed.push(Removal { rule, reason, at });
    }

    /// Notes the rule's deadline anew: a frame has come since.
    pub(crate) fn rearm(&mut self, rule: &Arc<Rule>) {
        self.expiry.arm(rule);
    }
}

/// A table, or all of them.
const fn these(table: TableId) -> RangeInclusive<TableId> {
    match table {
        TableId::ALL => TableId::FIRST..=TableId::ALL,
        one => one..=one,
    }
}

/// The deepest that any is read for, where so many are for each depth.
pub(crate) const fn deepest(depths: [usize; Depth::ALL.len()]) -> Depth {
    match depths {
        [_, 0, 0] => Depth::Link,
        [_, _, 0] => Depth::Network,
        _ => Depth::Transport,
    }
}
