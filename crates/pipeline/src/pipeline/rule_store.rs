//! The rules of all tables, with what is derived from them: the index by identity, deadlines, parse
//! depth, and the caches that make a flow-mod cheap.
//!
//! A table is a set of rules, and its meaning is a function from a packet to at most one rule. A rule
//! is identified by table, priority and match: an addition with an existing identity replaces the
//! rule, and "strict" commands name exactly one rule.

use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::sync::Arc;

use base::{Cookie, TableId};
use flow::field::Depth;
use flow::{FlowMod, FlowModCommand, Instructions, Match};
use imbl::OrdMap;

use crate::instructions::SharedInstructions;
use crate::instructions::interner::Interner;
use crate::instructions::match_facts::{MatchFacts, MatchFactsCache};
use crate::rules::rule_index::{IdentityHash, RuleIndex};
use crate::rules::table::Table;
use crate::rules::timeouts::Expiry;
use crate::rules::{Rule, RuleFilter, RuleIdentity, RulePosition, deepest};

/// The rules of all tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleStore {
    /// The tables that have rules.
    tables: OrdMap<TableId, Table>,
    index: RuleIndex,
    expiry: Expiry,
    /// Serial number of the newest rule.
    serial: u64,
    count: usize,
    /// Number of rules by parse depth.
    depths: [usize; Depth::ALL.len()],
    interner: Interner,
    match_facts: MatchFactsCache,
}

impl RuleStore {
    /// Returns the number of rules.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of rules in `table`, or with [`TableId::ALL`] in all tables.
    pub(crate) fn len_of(&self, table: TableId) -> usize {
        match table {
            TableId::ALL => self.count,
            one => self.table(one).map_or(0, Table::len),
        }
    }

    /// Returns the parse depth that the rules need.
    pub(crate) const fn depth(&self) -> Depth {
        deepest(self.depths)
    }

    /// Returns the rules of `table`, or with [`TableId::ALL`] of all tables, in the order of tables
    /// and of lookup.
    pub(crate) fn rules(&self, table: TableId) -> impl Iterator<Item = &Arc<Rule>> {
        self.tables
            .range(range(table))
            .flat_map(|(_, table)| table.rules())
    }

    /// Returns the same rules, but only those after `last`, if it is given.
    pub(crate) fn rules_after(
        &self,
        table: TableId,
        last: Option<&Rule>,
    ) -> impl Iterator<Item = &Arc<Rule>> + use<'_> {
        let last = last.map(|last| (last.table(), last.position));
        let first = last.map_or(TableId::FIRST, |(table, _)| table);
        self.tables
            .range(first..)
            .filter(move |(id, _)| table == TableId::ALL || **id == table)
            .flat_map(move |(id, rules)| {
                let last = last.filter(|(table, _)| table == id);
                rules.rules_after(last.map(|(_, place)| place))
            })
    }

    /// Returns a table, if it has rules.
    #[inline]
    pub(crate) fn table(&self, table: TableId) -> Option<&Table> {
        self.tables.get(&table)
    }

    /// Returns those of the named tables that have rules.
    fn table_ids(&self, table: TableId) -> Vec<TableId> {
        self.tables.range(range(table)).map(|(id, _)| *id).collect()
    }

    /// Returns the number of rules with `cookie` in `table`.
    pub(crate) fn count_cookie(&self, table: TableId, cookie: Cookie) -> usize {
        let rules = self.table(table).into_iter().flat_map(Table::rules);
        rules.filter(|rule| rule.cookie == cookie).count()
    }

    /// Returns the deadlines of rules.
    pub(crate) const fn expiry(&self) -> &Expiry {
        &self.expiry
    }

    /// Stores a later deadline of a rule that was used since the last one was stored.
    pub(crate) fn rearm(&mut self, rule: &Arc<Rule>) {
        self.expiry.arm(rule);
    }

    /// Returns the position of a new rule: after all rules of its priority.
    pub(crate) const fn next_position(&mut self, priority: u16) -> RulePosition {
        self.serial += 1;
        RulePosition::new(priority, self.serial)
    }

    /// Returns the facts of a match.
    pub(crate) fn facts_of(&mut self, matching: &Match) -> MatchFacts {
        self.match_facts.facts_of(matching)
    }

    /// Returns the shared form of `instructions`.
    pub(crate) fn intern(&mut self, instructions: &Instructions) -> Arc<SharedInstructions> {
        self.interner.intern(instructions)
    }

    /// Inserts a rule whose identity has this hash. Returns the rule that it replaces.
    pub(crate) fn insert(
        &mut self,
        hash: IdentityHash,
        rule: &Arc<Rule>,
        depth: Depth,
    ) -> Option<Arc<Rule>> {
        self.count += 1;
        self.depths[depth as usize] += 1;
        self.expiry.arm(rule);
        let old = match self.tables.get_mut(&rule.table()) {
            Some(table) => table.insert(Arc::clone(rule)),
            None => {
                let table = self.tables.entry(rule.table()).or_default();
                table.insert(Arc::clone(rule))
            }
        };
        match &old {
            Some(old) => {
                self.index.replace(hash, rule);
                self.uncount(old);
            }
            None => self.index.insert(hash, rule),
        }
        old
    }

    /// Removes a rule. Returns it, if it was there.
    pub(crate) fn remove(&mut self, rule: &Rule) -> Option<Arc<Rule>> {
        let table = self.tables.entry(rule.table()).or_default();
        let old = table.remove(rule.position)?;
        self.index.remove(&rule.identity);
        self.expiry.disarm(rule);
        self.uncount(&old);
        Some(old)
    }

    /// Removes all rules of `table`, or with [`TableId::ALL`] of all tables, and passes each to
    /// `removed`. This is cheaper than one by one: a table is dropped as a whole.
    pub(crate) fn remove_all(&mut self, table: TableId, mut removed: impl FnMut(Arc<Rule>)) {
        for id in self.table_ids(table) {
            let table = self.tables.remove(&id).unwrap_or_default();
            let are_all = table.len() == self.count;
            if are_all {
                self.index.clear();
            }
            for rule in table.rules() {
                if !are_all {
                    self.index.remove(&rule.identity);
                }
                self.expiry.disarm(rule);
                self.uncount(rule);
                removed(Arc::clone(rule));
            }
        }
    }

    fn uncount(&mut self, rule: &Rule) {
        self.count -= 1;
        self.depths[rule.depth() as usize] -= 1;
    }

    /// Prefetches the index entries for these flow-mods, if they are applied in this order, so that
    /// a burst does not wait for memory once for each. The result of the flow-mods is the same
    /// without it.
    pub(crate) fn prefetch<'a>(&mut self, commands: impl Iterator<Item = &'a FlowMod>) {
        let additions = commands.filter(|command| command.command == FlowModCommand::Add);
        let identities = additions.map(|command| identity(command, command.table));
        let mut identities = identities.peekable();
        if identities.peek().is_some() {
            self.build_index();
            self.index.prefetch(identities);
        }
    }

    /// Returns the identity of the rule that `command` adds, and its hash.
    pub(crate) fn identify(&mut self, command: &FlowMod) -> (IdentityHash, RuleIdentity) {
        let is_same = |prefetched: &RuleIdentity| is_identity_of(prefetched, command);
        self.index.next_prefetched(is_same).unwrap_or_else(|| {
            let identity = identity(command, command.table);
            (self.hash_of(&identity), identity)
        })
    }

    /// Returns the rule that `command` would replace, without building the index.
    pub(crate) fn replaced_by(&self, command: &FlowMod) -> Option<&Arc<Rule>> {
        self.find(&identity(command, command.table))
    }

    /// Returns the rule with this identity, without building the index.
    pub(crate) fn find(&self, identity: &RuleIdentity) -> Option<&Arc<Rule>> {
        if self.index.is_built() {
            self.index.get(self.index.hash(identity), identity)
        } else {
            self.table(identity.table)?.find(identity)
        }
    }

    /// Returns the rule with this identity and hash. The hash is from [`RuleStore::hash_of`] or
    /// [`RuleStore::identify`], which build the index.
    pub(crate) fn find_hashed(
        &self,
        hash: IdentityHash,
        identity: &RuleIdentity,
    ) -> Option<&Arc<Rule>> {
        self.index.get(hash, identity)
    }

    /// Returns the hash of an identity, for a change of the tables.
    pub(crate) fn hash_of(&mut self, identity: &RuleIdentity) -> IdentityHash {
        self.build_index();
        self.index.hash(identity)
    }

    fn build_index(&mut self) {
        if !self.index.is_built() {
            let tables = self.tables.values();
            self.index.build(tables.flat_map(Table::rules).cloned());
        }
    }

    /// Returns the rules that a modification or deletion selects.
    pub(crate) fn selected(
        &mut self,
        command: &FlowMod,
        filter: &RuleFilter<'_>,
    ) -> Vec<Arc<Rule>> {
        let is_strict = matches!(
            command.command,
            FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict
        );
        if is_strict {
            let tables = self.table_ids(command.table).into_iter();
            let same = tables.filter_map(|table| self.find_in(table, command));
            same.filter(|rule| filter.selects(rule)).collect()
        } else {
            let rules = self.rules(command.table);
            rules.filter(|rule| filter.selects(rule)).cloned().collect()
        }
    }

    /// Returns the rule in `table` with the priority and match of `command`.
    fn find_in(&mut self, table: TableId, command: &FlowMod) -> Option<Arc<Rule>> {
        let identity = identity(command, table);
        let hash = self.hash_of(&identity);
        self.find_hashed(hash, &identity).cloned()
    }
}

/// Returns the identity of a command's rule in `table`.
fn identity(command: &FlowMod, table: TableId) -> RuleIdentity {
    RuleIdentity {
        table,
        priority: Reverse(command.priority),
        matching: command.matching.clone(),
    }
}

/// True if `identity` is that of the rule that `command` adds.
fn is_identity_of(identity: &RuleIdentity, command: &FlowMod) -> bool {
    identity.table == command.table
        && identity.priority.0 == command.priority
        && identity.matching == command.matching
}

/// Returns the range of one table, or of all.
const fn range(table: TableId) -> RangeInclusive<TableId> {
    match table {
        TableId::ALL => TableId::FIRST..=TableId::ALL,
        one => one..=one,
    }
}
