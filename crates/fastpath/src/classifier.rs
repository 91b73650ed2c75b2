//! The tables of a pipeline, compiled: a tuple for each shape of rule, tried in
//! the order of the highest priority in it.
//!
//! The writer is told what changed and publishes views. A view costs some
//! reference counts, goes on showing what it showed, and asks neither lock nor
//! leave to be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::TableId;
use pipeline::{Changes, Pipeline, Rule};

use crate::base::Base;
use crate::lanes::{Conditions, LANES, Lanes, Parts, Reading};
use crate::segment::Epoch;
use crate::shape::{Hasher, Key, Shape};
use crate::steps::Steps;
use crate::tuple::{TooManyAlike, Tuple, TupleView};

mod clauses;
mod describe;
mod forms;
mod view;

pub(crate) use clauses::ByClauses;
pub use describe::TableDescription;
pub use view::{LookupScratch, View, ViewLookup};
pub(crate) use view::{Sole, TableView, Uncompiled, Views};

/// The writer's end of a table.
#[derive(Debug, Default)]
struct Table {
    /// What was compiled together; the more rules, the earlier.
    bases: Vec<Arc<Base>>,
    tuples: BTreeMap<Shape, Tuple>,
    /// How many rules the tuples have.
    in_tuples: usize,
    plan: forms::Plan,
    clauses: usize,
    /// Rules that found no room, or ask for what words do not have.
    outside: usize,
}

/// The writer: it takes note of every change, and publishes views.
#[derive(Debug)]
pub struct Classifier {
    hasher: Hasher,
    /// What is written now is seen from this epoch on.
    next: Epoch,
    tables: BTreeMap<TableId, Table>,
    views: Arc<Views>,
    /// What is yet to be written.
    noted: Vec<RuleChange>,
    /// How many changes were noted in all.
    changes: u64,
    /// Whether tables are to be made tidy with the next publication.
    tidying: bool,
}

#[derive(Debug)]
enum RuleChange {
    Added(Arc<Rule>),
    Removed(Arc<Rule>),
}

impl RuleChange {
    const fn rule(&self) -> &Arc<Rule> {
        match self {
            Self::Added(rule) | Self::Removed(rule) => rule,
        }
    }

    fn table(&self) -> TableId {
        self.rule().table()
    }

    /// What those have in common that are written together.
    fn kind(&self) -> (TableId, bool) {
        (self.table(), matches!(self, Self::Added(_)))
    }
}

/// How many rules are put in together: the memory for each is asked for before the first
/// is written, so that the writer waits for all of it at once.
const BURST: usize = 16;

/// Rules that are to be put into the same tuple, each with its key.
struct Arrivals<'a> {
    shape: Arc<Shape>,
    /// Where the first of them says what it wants, if that is told shortly.
    reading: Option<Reading>,
    rules: Vec<(&'a Arc<Rule>, Key)>,
}

impl<'a> Arrivals<'a> {
    /// Takes a rule in if it is of the same shape, by what it shares with the last of them:
    /// rules that come one after the other mostly ask for the whole of the same fields.
    /// Answers whether it was.
    fn take(&mut self, rule: &'a Arc<Rule>, hasher: Hasher) -> bool {
        let (matching, key_of) = (rule.matching(), |lanes: &_| self.shape.key(lanes, hasher));
        let key = match (&self.reading, self.rules.last()) {
            (Some(reading), _) => reading.told(matching, key_of),
            (None, Some((last, _))) => {
                let wanted = Lanes::wanted(matching, last.matching());
                wanted.map(|wanted| key_of(&wanted))
            }
            (None, None) => None,
        };
        self.rules.extend(key.map(|key| (rule, key)));
        key.is_some()
    }
}

/// A moment in the changes since the last publication.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint(usize);

impl Classifier {
    /// Tables without rules.
    #[must_use]
    pub fn new() -> Self {
        Self::hashing(Hasher::new())
    }

    /// Tables without rules that hash by this seed, for measurements that come out the
    /// same each time. Whoever knows the seed can choose rules that collide.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::hashing(Hasher::with_seeds([seed, seed.rotate_left(32)]))
    }

    fn hashing(hasher: Hasher) -> Self {
        Self {
            hasher,
            next: 1,
            tables: BTreeMap::new(),
            views: Arc::default(),
            noted: Vec::new(),
            changes: 0,
            tidying: false,
        }
    }

    /// Takes note of changes; of all of them, in their order.
    pub fn queue_changes(&mut self, changes: &Changes) {
        let removed = changes.removed.iter();
        let removed = removed.map(|removal| RuleChange::Removed(Arc::clone(&removal.rule)));
        let added = changes.added.iter();
        let added = added.map(|rule| RuleChange::Added(Arc::clone(rule)));
        self.noted.extend(removed.chain(added));
        self.changes += 1;
    }

    /// Takes note of changes, and takes over the rules that came by them.
    pub fn take_changes(&mut self, changes: &mut Changes) {
        let removed = changes.removed.iter();
        let removed = removed.map(|removal| RuleChange::Removed(Arc::clone(&removal.rule)));
        let added = changes.added.drain(..).map(RuleChange::Added);
        self.noted.extend(removed);
        self.noted.extend(added);
        self.changes += 1;
    }

    /// How often changes were noted: who finds the same number again knows that there were
    /// none.
    #[must_use]
    pub const fn change_count(&self) -> u64 {
        self.changes
    }

    /// How many rules the tables have in which lookups would cost less if they were compiled
    /// anew; zero if there is no such table.
    #[must_use]
    pub fn rules_to_compact(&self) -> usize {
        let untidy = self.tables.values().filter(|table| table.is_untidy());
        untidy.map(Table::rules).sum()
    }

    /// Has the tables compiled anew, with the next publication, for which lookups would
    /// cost less then. It takes the longer the larger they are.
    pub const fn request_compaction(&mut self) {
        self.tidying = true;
    }

    /// The present moment, to which [`Classifier::roll_back`] can go back until the
    /// next publication.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.noted.len())
    }

    /// Forgets what was noted since.
    pub fn roll_back(&mut self, savepoint: Savepoint) {
        self.noted.truncate(savepoint.0);
    }

    /// What was published last, if nothing has changed since.
    #[must_use]
    pub fn current(&self) -> Option<View> {
        self.noted.is_empty().then(|| self.view(self.next - 1))
    }

    fn view(&self, epoch: Epoch) -> View {
        View {
            epoch,
            hasher: self.hasher,
            tables: Arc::clone(&self.views),
        }
    }

    /// Writes what was noted, and shows it. `pipeline` is as the changes left it.
    pub fn publish(&mut self, pipeline: &Pipeline) -> View {
        let (hasher, epoch) = (self.hasher, self.next);
        self.next += 1;
        let mut fates = BTreeMap::new();
        let noted = std::mem::take(&mut self.noted);
        let of_one_kind = |one: &RuleChange, other: &RuleChange| one.kind() == other.kind();
        for changes in noted
            .chunk_by(of_one_kind)
            .flat_map(|alike| alike.chunks(BURST))
        {
            let id = changes[0].table();
            let fate = fates
                .entry(id)
                .or_insert_with(|| TableUpdate::of(id, pipeline));
            if let TableUpdate::Kept { stale } = fate {
                *stale |= self.table(id).write(changes, hasher, epoch);
            }
        }
        for (id, fate) in fates {
            self.show(id, fate, epoch);
        }
        if std::mem::take(&mut self.tidying) {
            self.show_tidied(epoch);
        }
        self.view(epoch)
    }

    fn table(&mut self, id: TableId) -> &mut Table {
        self.tables.entry(id).or_default()
    }

    fn show(&mut self, id: TableId, fate: TableUpdate, epoch: Epoch) {
        let hasher = self.hasher;
        match fate {
            TableUpdate::Emptied => {
                self.tables.remove(&id);
                self.put(id, None);
            }
            TableUpdate::Kept { stale } => {
                if self.table(id).settle(hasher, epoch) || stale {
                    let view = self.table(id).view();
                    self.put(id, Some(Arc::new(view)));
                }
            }
        }
    }

    fn show_tidied(&mut self, epoch: Epoch) {
        let mut views = Vec::new();
        for (id, table) in &mut self.tables {
            if table.is_untidy() {
                table.tidy(self.hasher, epoch);
                views.push((*id, table.view()));
            }
        }
        for (id, view) in views {
            self.put(id, Some(Arc::new(view)));
        }
    }

    /// Has this seen of a table from now on.
    fn put(&mut self, id: TableId, view: Option<Arc<TableView>>) {
        let (views, place) = (Arc::make_mut(&mut self.views), usize::from(id.0));
        views.resize(views.len().max(place + 1), None);
        views[place] = view;
        let last = views.iter().rposition(Option::is_some);
        views.truncate(last.map_or(0, |last| last + 1));
    }
}

/// What has become of a table that changed.
enum TableUpdate {
    /// No rule is left, so that none need be taken out.
    Emptied,
    /// There are rules; whether it is to be shown anew.
    Kept { stale: bool },
}

impl TableUpdate {
    fn of(id: TableId, pipeline: &Pipeline) -> Self {
        match pipeline.rules(id).next() {
            Some(_) => Self::Kept { stale: false },
            None => Self::Emptied,
        }
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// Writes changes of one kind. Answers whether the table is to be shown anew.
    fn write(&mut self, changes: &[RuleChange], hasher: Hasher, epoch: Epoch) -> bool {
        let mut stale = false;
        let mut arrivals: Vec<Arrivals<'_>> = Vec::new();
        for change in changes {
            match change {
                RuleChange::Added(rule) => {
                    rule.instructions.compile(Steps::with_brief);
                    let last = arrivals.last_mut();
                    if !last.is_some_and(|last| last.take(rule, hasher)) {
                        stale |= self.expect(rule, hasher, epoch, &mut arrivals);
                    }
                }
                RuleChange::Removed(rule) => stale |= self.remove(rule, epoch),
            }
        }
        let arrivals = arrivals.iter();
        arrivals.fold(stale, |stale, alike| self.insert(alike, epoch) || stale)
    }

    /// Finds where a rule is to be put. Answers whether the table is to be shown anew for it.
    fn expect<'a>(
        &mut self,
        rule: &'a Arc<Rule>,
        hasher: Hasher,
        epoch: Epoch,
        arrivals: &mut Vec<Arrivals<'a>>,
    ) -> bool {
        let Some(conditions) = Conditions::if_of_words(rule.matching()) else {
            self.outside += 1;
            return true;
        };
        let mut room = [(0, 0); LANES];
        let masks = conditions.masks(&mut room);
        let (tuple, fresh) = match self.tuples.get(masks) {
            Some(tuple) => (tuple, false),
            None => {
                let shape = Shape::of(masks);
                let tuple = Tuple::new(shape.clone(), hasher, epoch);
                (&*self.tuples.entry(shape).or_insert(tuple), true)
            }
        };
        let (shape, key) = tuple.place_of(&conditions);
        match arrivals.last_mut() {
            Some(last) if Arc::ptr_eq(&last.shape, &shape) => last.rules.push((rule, key)),
            _ => {
                let mut rules = Vec::with_capacity(BURST);
                rules.push((rule, key));
                let reading = Reading::of(rule.matching());
                arrivals.push(Arrivals {
                    shape,
                    reading,
                    rules,
                });
            }
        }
        fresh
    }

    /// Puts rules of one tuple in. Answers whether the table is to be shown anew.
    fn insert(&mut self, alike: &Arrivals<'_>, epoch: Epoch) -> bool {
        let tuple = self.tuples.get_mut(&*alike.shape);
        let tuple = tuple.expect("it was found or made, and none is taken out meanwhile");
        tuple.foresee(alike.rules.iter().map(|(_, key)| key.hash));
        let mut stale = false;
        for (rule, key) in &alike.rules {
            let clauses = usize::from(rule.is_clause());
            self.clauses += clauses;
            stale |= clauses > 0;
            match tuple.insert(key, rule, epoch) {
                Ok(remade) => {
                    self.in_tuples += 1;
                    self.plan.added += 1;
                    stale |= remade;
                }
                Err(TooManyAlike) => {
                    self.outside += 1;
                    stale = true;
                }
            }
        }
        stale
    }

    /// Takes a rule out. Answers whether the table is to be shown anew.
    fn remove(&mut self, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let Some(conditions) = Conditions::if_of_words(rule.matching()) else {
            self.outside -= 1;
            return true;
        };
        let clauses = usize::from(rule.is_clause());
        if self.bases.iter().any(|base| base.remove(rule, epoch)) {
            self.clauses -= clauses;
            return clauses > 0;
        }
        let mut room = [(0, 0); LANES];
        let masks = conditions.masks(&mut room);
        let tuple = self.tuples.get_mut(masks);
        let removed = tuple
            .and_then(|tuple| Some((tuple.remove(&conditions, rule, epoch)?, tuple.is_empty())));
        self.clauses -= clauses;
        self.in_tuples -= usize::from(removed.is_some());
        match removed {
            Some((stale, false)) => stale || clauses > 0,
            Some((_, true)) => {
                self.tuples.remove(masks);
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
        let uncompiled = if self.outside > 0 {
            Some(Uncompiled::Outside)
        } else if self.clauses > 0 {
            Some(Uncompiled::Conjunctions)
        } else {
            None
        };
        let mut bases = self.bases.clone();
        bases.sort_by_key(|base| std::cmp::Reverse(base.highest));
        let of_bases = bases.iter().map(|base| base.parts);
        let parts = tuples.iter().map(TupleView::parts).chain(of_bases);
        TableView {
            parts: parts.fold(Parts::default(), Parts::and),
            tuples,
            bases,
            uncompiled,
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod model;
#[cfg(test)]
mod tests;
