//! The tables of a pipeline, compiled: a tuple for each shape of rule, tried in
//! the order of the highest priority in it.
//!
//! The writer is told what changed and publishes views. A view costs some
//! reference counts, goes on showing what it showed, and asks neither lock nor
//! leave to be read.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::TableId;
use flow::Registers;
use packet::Headers;
use pipeline::{Changes, Found, Lookup, Rule};

use crate::lanes::{self, Lanes};
use crate::segment::Epoch;
use crate::shape::{Hasher, Shape};
use crate::tuple::{TooManyAlike, Tuple, TupleView};

/// One table, for workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableView {
    /// By the highest priority, from the top.
    tuples: Vec<TupleView>,
    /// Why the interpreter has to look itself.
    pub(crate) uncompiled: Option<Uncompiled>,
}

/// Why a table is not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncompiled {
    /// It has clauses of conjunctions.
    Conjunctions,
    /// Too many of its rules differ by nothing but their priority.
    TooManyAlike,
}

impl TableView {
    /// The rule that the frame finds: of those that it fits the one of the highest
    /// priority, and of several of that priority the one that the interpreter
    /// would try first.
    #[inline]
    pub(crate) fn look_up(&self, lanes: &Lanes, hasher: Hasher, epoch: Epoch) -> Option<&Arc<Rule>> {
        let mut best: Option<&Arc<Rule>> = None;
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

/// All tables as they were at one moment.
#[derive(Clone, Debug)]
pub struct View {
    epoch: Epoch,
    hasher: Hasher,
    tables: Arc<BTreeMap<TableId, Arc<TableView>>>,
}

impl View {
    /// The table, if it has ever had a rule.
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Option<&TableView> {
        self.tables.get(&id).map(Arc::as_ref)
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
        lanes.fill(headers, registers);
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

/// The writer's end of a table.
#[derive(Debug, Default)]
struct Table {
    tuples: HashMap<Shape, Tuple>,
    clauses: usize,
    /// Rules that found no room.
    outside: usize,
}

/// The writer: it is told of every change, and publishes views.
#[derive(Debug)]
pub struct Classifier {
    hasher: Hasher,
    /// What is written now is seen from this epoch on.
    next: Epoch,
    tables: BTreeMap<TableId, Table>,
    views: Arc<BTreeMap<TableId, Arc<TableView>>>,
    /// Tables whose views do not show all yet.
    stale: Vec<TableId>,
}

impl Classifier {
    /// Tables without rules.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hasher: Hasher::new(),
            next: 1,
            tables: BTreeMap::new(),
            views: Arc::default(),
            stale: Vec::new(),
        }
    }

    /// Takes in what changed; every change, in their order.
    pub fn follow(&mut self, changes: &Changes) {
        for removal in &changes.removed {
            self.remove(&removal.rule);
        }
        for rule in &changes.added {
            self.insert(rule);
        }
    }

    /// Puts a rule in.
    pub fn insert(&mut self, rule: &Arc<Rule>) {
        let (hasher, epoch) = (self.hasher, self.next);
        let table = self.tables.entry(rule.table).or_default();
        if table.insert(rule, hasher, epoch) {
            self.stale.push(rule.table);
        }
    }

    /// Takes a rule out.
    pub fn remove(&mut self, rule: &Arc<Rule>) {
        let epoch = self.next;
        if let Some(table) = self.tables.get_mut(&rule.table)
            && table.remove(rule, epoch)
        {
            self.stale.push(rule.table);
        }
    }

    /// Shows all that was written.
    pub fn publish(&mut self) -> View {
        self.stale.sort_unstable();
        self.stale.dedup();
        if !self.stale.is_empty() {
            let views = Arc::make_mut(&mut self.views);
            for id in self.stale.drain(..) {
                let view = self.tables.get(&id).map(Table::view);
                views.insert(id, Arc::new(view.unwrap_or_default()));
            }
        }
        let epoch = self.next;
        self.next += 1;
        View {
            epoch,
            hasher: self.hasher,
            tables: Arc::clone(&self.views),
        }
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// Puts a rule in. Answers whether the table is to be shown anew.
    fn insert(&mut self, rule: &Arc<Rule>, hasher: Hasher, epoch: Epoch) -> bool {
        let (shape, key) = Shape::split(&lanes::conditions(rule.matching()));
        let fresh = !self.tuples.contains_key(&shape);
        let tuple = self
            .tuples
            .entry(shape)
            .or_insert_with_key(|shape| Tuple::new(shape.clone(), hasher));
        let clauses = usize::from(rule.is_clause());
        self.clauses += clauses;
        match tuple.insert(&key, rule, epoch) {
            Ok(stale) => stale || fresh || clauses > 0,
            Err(TooManyAlike) => {
                self.outside += 1;
                true
            }
        }
    }

    /// Takes a rule out. Answers whether the table is to be shown anew.
    fn remove(&mut self, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let (shape, key) = Shape::split(&lanes::conditions(rule.matching()));
        let tuple = self.tuples.get_mut(&shape);
        let removed = tuple.and_then(|tuple| Some((tuple.remove(&key, rule, epoch)?, tuple.is_empty())));
        let clauses = usize::from(rule.is_clause());
        self.clauses -= clauses;
        match removed {
            Some((stale, false)) => stale || clauses > 0,
            Some((_, true)) => {
                self.tuples.remove(&shape);
                true
            }
            None => {
                self.outside -= 1;
                true
            }
        }
    }

    fn view(&self) -> TableView {
        let mut tuples: Vec<_> = self.tuples.values().map(Tuple::view).collect();
        tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.highest));
        let uncompiled = if self.clauses > 0 {
            Some(Uncompiled::Conjunctions)
        } else if self.outside > 0 {
            Some(Uncompiled::TooManyAlike)
        } else {
            None
        };
        TableView { tuples, uncompiled }
    }
}

#[cfg(test)]
mod tests;
