//! The rule that is there already, for a flow-mod that is to take its place, to change it or
//! to delete it.

use std::cmp::Reverse;
use std::sync::Arc;

use base::TableId;
use flow::{FlowMod, FlowModCommand};

use super::Pipeline;
use crate::rule::{Rule, RuleIdentity};
use crate::rule_index::IdentityHash;
use crate::table::Table;

impl Pipeline {
    /// Has the memory near that these flow-mods will need, if they come in this order: a
    /// burst of many does not wait for each. They come to the same without it.
    pub fn prefetch<'a>(&mut self, coming: impl Iterator<Item = &'a FlowMod>) {
        let additions = coming.filter(|command| command.command == FlowModCommand::Add);
        let identities = additions.map(|command| identity(command, command.table));
        let mut identities = identities.peekable();
        if identities.peek().is_some() {
            self.make_index();
            self.index.prefetch(identities);
        }
    }

    /// What will make the rule that `command` adds the one it is, and its hash.
    pub(crate) fn identify(&mut self, command: &FlowMod) -> (IdentityHash, RuleIdentity) {
        let is_it = |foreseen: &RuleIdentity| is_of(foreseen, command);
        self.index.coming(is_it).unwrap_or_else(|| {
            let identity = identity(command, command.table);
            (self.hash_of(&identity), identity)
        })
    }

    /// The rule of this identity, for one who only looks.
    pub(crate) fn find(&self, identity: &RuleIdentity) -> Option<&Arc<Rule>> {
        if self.index.is_made() {
            self.index.get(self.index.hash(identity), identity)
        } else {
            self.table(identity.table)?.find(identity)
        }
    }

    /// The rule of this identity, whose hash that is.
    pub(crate) fn look_for(
        &self,
        hash: IdentityHash,
        identity: &RuleIdentity,
    ) -> Option<&Arc<Rule>> {
        self.index.get(hash, identity)
    }

    /// The rule of the same identity as `command`'s, but in this table.
    pub(crate) fn look_in(&mut self, table: TableId, command: &FlowMod) -> Option<&Arc<Rule>> {
        let identity = identity(command, table);
        let hash = self.hash_of(&identity);
        self.look_for(hash, &identity)
    }

    /// The hash of an identity, for one who is about to change the tables.
    pub(crate) fn hash_of(&mut self, identity: &RuleIdentity) -> IdentityHash {
        self.make_index();
        self.index.hash(identity)
    }

    fn make_index(&mut self) {
        if !self.index.is_made() {
            let tables = self.tables.values();
            self.index.make(tables.flat_map(Table::rules).cloned());
        }
    }
}

/// What a command means in one of its tables.
fn identity(command: &FlowMod, table: TableId) -> RuleIdentity {
    RuleIdentity {
        table,
        priority: Reverse(command.priority),
        matching: command.matching.clone(),
    }
}

/// Whether it is the identity of what `command` adds.
fn is_of(identity: &RuleIdentity, command: &FlowMod) -> bool {
    identity.table == command.table
        && identity.priority.0 == command.priority
        && identity.matching == command.matching
}
