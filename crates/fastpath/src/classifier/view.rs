//! What workers see of the tables, as they were at one moment.

use std::cell::RefCell;
use std::sync::Arc;

use base::TableId;
use flow::Registers;
use packet::Headers;
use pipeline::{Found, Lookup, Rule};

use crate::base::Base;
use crate::lanes::{Lanes, Parts};
use crate::segment::Epoch;
use crate::shape::Hasher;
use crate::tuple::TupleView;

/// One table, for workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableView {
    /// What was compiled together, by the highest priority, from the top.
    pub(super) bases: Vec<Arc<Base>>,
    /// By the highest priority, from the top.
    pub(super) tuples: Vec<TupleView>,
    /// What of a frame they look at.
    pub(crate) parts: Parts,
    /// Why the interpreter has to look itself.
    pub(crate) uncompiled: Option<Uncompiled>,
}

/// Why a table is not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncompiled {
    /// It has clauses of conjunctions.
    Conjunctions,
    /// Too many of its rules differ by nothing but their priority, or one asks for tunnel
    /// options.
    Outside,
}

impl TableView {
    /// The rule that the frame finds: of those that it fits the one of the highest
    /// priority, and of several of that priority the one that the interpreter
    /// would try first.
    #[inline]
    pub(crate) fn look_up(
        &self,
        lanes: &Lanes,
        hasher: Hasher,
        epoch: Epoch,
    ) -> Option<&Arc<Rule>> {
        let mut best: Option<&Arc<Rule>> = None;
        for base in &self.bases {
            if best.is_some_and(|best| best.priority() > base.highest) {
                break;
            }
            let found = base.find(lanes, epoch);
            if let Some(rule) = found
                && best.is_none_or(|best| rule.is_tried_before(best))
            {
                best = Some(rule);
            }
        }
        for tuple in &self.tuples {
            if best.is_some_and(|best| best.priority() > tuple.highest) {
                break;
            }
            let found = tuple.find(lanes, hasher, epoch);
            if let Some(rule) = found
                && best.is_none_or(|best| rule.is_tried_before(best))
            {
                best = Some(rule);
            }
        }
        best
    }
}

/// The tables by their number, up to the last that has rules.
pub(super) type Views = Vec<Option<Arc<TableView>>>;

/// All tables as they were at one moment.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) epoch: Epoch,
    pub(super) hasher: Hasher,
    pub(super) tables: Arc<Views>,
    /// What of a frame any of them looks at.
    pub(super) parts: Parts,
}

impl View {
    /// What of a frame any table looks at.
    #[inline]
    pub(crate) const fn parts(&self) -> Parts {
        self.parts
    }

    /// The table, if it has rules.
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Option<&TableView> {
        self.tables.get(usize::from(id.0))?.as_deref()
    }

    /// The rule that a frame finds there.
    #[inline]
    pub(crate) fn look_up<'a>(&self, table: &'a TableView, lanes: &Lanes) -> Option<&'a Arc<Rule>> {
        table.look_up(lanes, self.hasher, self.epoch)
    }
}

/// A view, and the memory of one worker to look into it with.
#[derive(Debug)]
pub struct Looker<'a> {
    view: &'a View,
    lanes: &'a RefCell<Lanes>,
}

impl<'a> Looker<'a> {
    /// Looks into `view`.
    #[must_use]
    pub const fn new(view: &'a View, scratch: &'a Scratch) -> Self {
        Self {
            view,
            lanes: &scratch.0,
        }
    }
}

impl Lookup for Looker<'_> {
    #[inline]
    fn look_up(&self, table: TableId, headers: &Headers, registers: &Registers) -> Found<'_> {
        let Some(table) = self.view.table(table) else {
            return Found::Rule(None);
        };
        if table.uncompiled.is_some() {
            return Found::Unknown;
        }
        let mut lanes = self.lanes.borrow_mut();
        lanes.fill(table.parts, headers, registers);
        let found = self.view.look_up(table, &lanes);
        Found::Rule(found.map(AsRef::as_ref))
    }
}

/// What a worker keeps from frame to frame.
#[derive(Debug)]
pub struct Scratch(RefCell<Lanes>);

impl Scratch {
    /// A fresh one.
    #[must_use]
    pub const fn new() -> Self {
        Self(RefCell::new(Lanes::new()))
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
