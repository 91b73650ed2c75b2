//! Classifier: the single writer of the compiled tables (Open vSwitch `struct classifier`).
//!
//! The classifier receives the changes of a pipeline and publishes [`View`]s. It holds each table
//! in up to three kinds of structure:
//!
//! * [tuples](crate::tuple), to which every rule is added first,
//! * [compiled sets](crate::compiled_set), into which the [merge plan](merge_plan) moves the rules
//!   of tuples when a lookup costs less then,
//! * a count of *conjunction clauses*, which make lookups use [`conjunction`], and a list of the
//!   [rules that no structure takes](uncompiled), which the interpreter searches.
//!
//! ```text
//!   flow-mod -> pipeline -> Changes -> queue_changes
//!                                          |
//!   publish:   in bursts of 16 rules:  tuple of the mask, prefetch, insert at epoch e
//!              tables that are due:    merge plan
//!              changed tables:         new TableView
//!                                          |
//!                                        View { epoch e, tables } -> workers
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use base::TableId;
use pipeline::{Changes, Pipeline, Rule};

use crate::action_program::ActionProgram;
use crate::compiled_set::CompiledSet;
use crate::epoch::Epoch;
use crate::key_hash::KeyHasher;
use crate::mask::{MaskedKey, TupleMask};
use crate::packed_key::{KEY_WORDS, KeyParts, MatchReader, PackedKey, PackedMatch};
use crate::tuple::{DuplicateLimit, Tuple, TupleView};

mod conjunction;
mod describe;
mod merge_plan;
mod uncompiled;
mod view;

pub(crate) use conjunction::ConjunctiveMatch;
pub use describe::TableDescription;
use uncompiled::{UncompiledRules, may_match_without_options};
pub(crate) use view::{ContentId, LookupFallback, SingleForm, TableView, TableViews, first_tried};
pub use view::{LookupScratch, View, ViewLookup};

/// A table as the writer holds it.
#[derive(Debug, Default)]
struct ClassifierTable {
    /// Compiled sets, in descending order of their size.
    compiled_sets: Vec<Arc<CompiledSet>>,
    tuples: BTreeMap<TupleMask, Tuple>,
    /// Number of rules in tuples.
    in_tuples: usize,
    plan: merge_plan::MergePlan,
    /// Number of rules that are conjunction clauses.
    clauses: usize,
    /// The rules that no structure takes: on fields without a position in the key, or beyond the
    /// limit of duplicates.
    uncompiled: UncompiledRules,
}

/// The writer of the compiled tables: it receives every change of a pipeline and publishes views.
#[derive(Debug)]
pub struct Classifier {
    hasher: KeyHasher,
    /// Epoch of the next publication.
    next_epoch: Epoch,
    /// Identity of the published rules.
    content: ContentId,
    tables: BTreeMap<TableId, ClassifierTable>,
    views: Arc<TableViews>,
    /// Changes since the last publication.
    queue: Vec<PendingChange>,
    /// Number of calls that queued changes.
    change_count: u64,
    /// True if tables are to be compacted with the next publication.
    compacts: bool,
}

#[derive(Debug)]
enum PendingChange {
    Add(Arc<Rule>),
    Remove(Arc<Rule>),
}

impl PendingChange {
    const fn rule(&self) -> &Arc<Rule> {
        match self {
            Self::Add(rule) | Self::Remove(rule) => rule,
        }
    }

    fn table(&self) -> TableId {
        self.rule().table()
    }

    /// Common part of changes that are applied together.
    fn kind(&self) -> (TableId, bool) {
        (self.table(), matches!(self, Self::Add(_)))
    }
}

/// Rules that are inserted together: the memory of all is prefetched before the first is written,
/// so that the writer waits for all of it at the same time.
const BURST: usize = 16;

/// Rules to insert in one tuple, with their masked keys.
struct TupleInsertion<'a> {
    mask: Arc<TupleMask>,
    /// Reader for matches with the layout of the first rule, if that is short.
    reader: Option<MatchReader>,
    rules: Vec<(&'a Arc<Rule>, MaskedKey)>,
}

impl<'a> TupleInsertion<'a> {
    /// Appends a rule if it has the same mask. Returns false if not. The key is read with the
    /// layout of the previous rules: consecutive rules mostly match on the same complete fields.
    fn append(&mut self, rule: &'a Arc<Rule>, hasher: KeyHasher) -> bool {
        let matching = rule.matching();
        let masked = |key: &PackedKey| self.mask.apply(key, hasher);
        let key = match (&self.reader, self.rules.last()) {
            (Some(reader), _) => reader.read(matching, masked),
            (None, Some((last, _))) => {
                let key = PackedKey::of_similar_match(matching, last.matching());
                key.map(|key| masked(&key))
            }
            (None, None) => None,
        };
        self.rules.extend(key.map(|key| (rule, key)));
        key.is_some()
    }
}

/// A position in the changes since the last publication.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint(usize);

impl Classifier {
    /// A classifier without rules.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(KeyHasher::new())
    }

    /// A classifier without rules whose hash function has this seed, for reproducible
    /// measurements. A peer that knows the seed can choose rules that collide.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_hasher(KeyHasher::with_seeds([seed, seed.rotate_left(32)]))
    }

    fn with_hasher(hasher: KeyHasher) -> Self {
        Self {
            hasher,
            next_epoch: 1,
            content: ContentId::next(),
            tables: BTreeMap::new(),
            views: Arc::default(),
            queue: Vec::new(),
            change_count: 0,
            compacts: false,
        }
    }

    /// Queues changes for the next publication. Every change of the pipeline must be queued, in
    /// order.
    pub fn queue_changes(&mut self, changes: &Changes) {
        let removed = changes.removed.iter();
        let removed = removed.map(|removal| PendingChange::Remove(Arc::clone(&removal.rule)));
        let added = changes.added.iter();
        let added = added.map(|rule| PendingChange::Add(Arc::clone(rule)));
        self.queue.extend(removed.chain(added));
        self.change_count += 1;
    }

    /// Queues changes and takes the added rules out of them.
    pub fn take_changes(&mut self, changes: &mut Changes) {
        let removed = changes.removed.iter();
        let removed = removed.map(|removal| PendingChange::Remove(Arc::clone(&removal.rule)));
        let added = changes.added.drain(..).map(PendingChange::Add);
        self.queue.extend(removed);
        self.queue.extend(added);
        self.change_count += 1;
    }

    /// Number of calls that queued changes: an equal number later means that there were none.
    #[must_use]
    pub const fn change_count(&self) -> u64 {
        self.change_count
    }

    /// Number of rules in the tables that compaction would make cheaper to search; zero if there
    /// is no such table.
    #[must_use]
    pub fn rules_to_compact(&self) -> usize {
        let tables = self.tables.values().filter(|table| table.can_compact());
        tables.map(ClassifierTable::rules).sum()
    }

    /// Compacts, with the next publication, the tables that are cheaper to search then: all their
    /// rules are distributed again. The time grows with the number of rules.
    pub const fn request_compaction(&mut self) {
        self.compacts = true;
    }

    /// The current position, to which [`Classifier::roll_back`] can return until the next
    /// publication.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.queue.len())
    }

    /// Discards the changes since a savepoint.
    pub fn roll_back(&mut self, savepoint: Savepoint) {
        self.queue.truncate(savepoint.0);
    }

    /// Returns the view that was published last, or `None` if changes are queued.
    #[must_use]
    pub fn current(&self) -> Option<View> {
        let epoch = self.next_epoch - 1;
        self.queue.is_empty().then(|| self.view(epoch))
    }

    fn view(&self, epoch: Epoch) -> View {
        View {
            epoch,
            content: self.content,
            hasher: self.hasher,
            tables: Arc::clone(&self.views),
        }
    }

    /// Applies the queued changes and returns a view that shows them. `pipeline` is the state
    /// after these changes.
    pub fn publish(&mut self, pipeline: &Pipeline) -> View {
        let (hasher, epoch) = (self.hasher, self.next_epoch);
        self.next_epoch += 1;
        let mut updates = BTreeMap::new();
        let queue = std::mem::take(&mut self.queue);
        if !queue.is_empty() {
            self.content = ContentId::next();
        }
        let is_same_kind = |one: &PendingChange, other: &PendingChange| one.kind() == other.kind();
        for changes in queue
            .chunk_by(is_same_kind)
            .flat_map(|same| same.chunks(BURST))
        {
            let id = changes[0].table();
            let update = updates
                .entry(id)
                .or_insert_with(|| TableUpdate::of(id, pipeline));
            if let TableUpdate::Changed { is_stale } = update {
                *is_stale |= self.table(id).apply(changes, hasher, epoch);
            }
        }
        for (id, update) in updates {
            self.update_view(id, update, epoch);
        }
        if std::mem::take(&mut self.compacts) {
            self.compact_tables(epoch);
        }
        self.view(epoch)
    }

    fn table(&mut self, id: TableId) -> &mut ClassifierTable {
        self.tables.entry(id).or_default()
    }

    fn update_view(&mut self, id: TableId, update: TableUpdate, epoch: Epoch) {
        let hasher = self.hasher;
        match update {
            TableUpdate::Emptied => {
                self.tables.remove(&id);
                self.set_view(id, None);
            }
            TableUpdate::Changed { is_stale } => {
                if self.table(id).merge_if_due(hasher, epoch) || is_stale {
                    let view = self.table(id).view();
                    self.set_view(id, Some(Arc::new(view)));
                }
            }
        }
    }

    fn compact_tables(&mut self, epoch: Epoch) {
        let mut views = Vec::new();
        for (id, table) in &mut self.tables {
            if table.can_compact() {
                table.compact(self.hasher, epoch);
                views.push((*id, table.view()));
            }
        }
        for (id, view) in views {
            self.set_view(id, Some(Arc::new(view)));
        }
    }

    /// Replaces the view of a table.
    fn set_view(&mut self, id: TableId, view: Option<Arc<TableView>>) {
        let (views, index) = (Arc::make_mut(&mut self.views), usize::from(id.0));
        views.resize(views.len().max(index + 1), None);
        views[index] = view;
        let last = views.iter().rposition(Option::is_some);
        views.truncate(last.map_or(0, |last| last + 1));
    }
}

/// State of a table with changes, after a publication.
enum TableUpdate {
    /// The table has no rules, so none needs to be removed from its structures.
    Emptied,
    /// The table has rules; `is_stale` if its view must be replaced.
    Changed { is_stale: bool },
}

impl TableUpdate {
    fn of(id: TableId, pipeline: &Pipeline) -> Self {
        match pipeline.rules(id).next() {
            Some(_) => Self::Changed { is_stale: false },
            None => Self::Emptied,
        }
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new()
    }
}

// Methods that change a table return true if its view must be replaced.
impl ClassifierTable {
    /// Applies changes of one kind.
    fn apply(&mut self, changes: &[PendingChange], hasher: KeyHasher, epoch: Epoch) -> bool {
        let mut is_stale = false;
        let mut insertions: Vec<TupleInsertion<'_>> = Vec::new();
        for change in changes {
            match change {
                PendingChange::Add(rule) => {
                    rule.instructions
                        .compile(ActionProgram::with_inline_program);
                    let last = insertions.last_mut();
                    if !last.is_some_and(|last| last.append(rule, hasher)) {
                        is_stale |= self.assign_tuple(rule, hasher, epoch, &mut insertions);
                    }
                }
                PendingChange::Remove(rule) => is_stale |= self.remove(rule, epoch),
            }
        }
        let insertions = insertions.iter();
        insertions.fold(is_stale, |is_stale, insertion| {
            self.insert(insertion, epoch) || is_stale
        })
    }

    /// Assigns a rule to the tuple of its mask, which is created if it does not exist.
    fn assign_tuple<'a>(
        &mut self,
        rule: &'a Arc<Rule>,
        hasher: KeyHasher,
        epoch: Epoch,
        insertions: &mut Vec<TupleInsertion<'a>>,
    ) -> bool {
        let Some(packed) = PackedMatch::try_of(rule.matching()) else {
            self.uncompiled.insert(rule);
            return true;
        };
        let mut buffer = [(0, 0); KEY_WORDS];
        let words = packed.mask(&mut buffer);
        let (tuple, is_new) = match self.tuples.get(words) {
            Some(tuple) => (tuple, false),
            None => {
                let mask = TupleMask::of(words);
                let tuple = Tuple::new(mask.clone(), hasher, epoch);
                (&*self.tuples.entry(mask).or_insert(tuple), true)
            }
        };
        let (mask, key) = tuple.masked_key(&packed);
        match insertions.last_mut() {
            Some(last) if Arc::ptr_eq(&last.mask, &mask) => last.rules.push((rule, key)),
            _ => {
                let mut rules = Vec::with_capacity(BURST);
                rules.push((rule, key));
                let reader = MatchReader::of(rule.matching());
                insertions.push(TupleInsertion {
                    mask,
                    reader,
                    rules,
                });
            }
        }
        is_new
    }

    /// Inserts rules of one tuple.
    fn insert(&mut self, insertion: &TupleInsertion<'_>, epoch: Epoch) -> bool {
        let tuple = self.tuples.get_mut(&*insertion.mask);
        let tuple = tuple.expect("the tuple exists since the rules were assigned to it");
        tuple.prefetch_hashes(insertion.rules.iter().map(|(_, key)| key.hash));
        let mut is_stale = false;
        for (rule, key) in &insertion.rules {
            let clauses = usize::from(rule.is_clause());
            self.clauses += clauses;
            is_stale |= clauses > 0;
            match tuple.insert(key, rule, epoch) {
                Ok(has_changed) => {
                    self.in_tuples += 1;
                    self.plan.added += 1;
                    is_stale |= has_changed;
                }
                Err(DuplicateLimit) => {
                    self.uncompiled.insert(rule);
                    is_stale = true;
                }
            }
        }
        is_stale
    }

    /// Removes a rule.
    fn remove(&mut self, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let Some(packed) = PackedMatch::try_of(rule.matching()) else {
            self.uncompiled.remove(rule);
            return true;
        };
        let clauses = usize::from(rule.is_clause());
        if self
            .compiled_sets
            .iter()
            .any(|compiled| compiled.remove(rule, epoch))
        {
            self.clauses -= clauses;
            return clauses > 0;
        }
        let mut buffer = [(0, 0); KEY_WORDS];
        let words = packed.mask(&mut buffer);
        let tuple = self.tuples.get_mut(words);
        let removed =
            tuple.and_then(|tuple| Some((tuple.remove(&packed, rule, epoch)?, tuple.is_empty())));
        self.clauses -= clauses;
        self.in_tuples -= usize::from(removed.is_some());
        match removed {
            Some((has_changed, false)) => has_changed || clauses > 0,
            Some((_, true)) => {
                self.tuples.remove(words);
                true
            }
            None => {
                self.uncompiled.remove(rule);
                true
            }
        }
    }

    fn view(&self) -> TableView {
        let mut tuples: Vec<_> = self.tuples.values().map(Tuple::view).collect();
        tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.highest));
        let fallback = if self.uncompiled.len() > 0 {
            Some(LookupFallback::Interpreter)
        } else if self.clauses > 0 {
            Some(LookupFallback::Conjunctions)
        } else {
            None
        };
        let mut compiled_sets = self.compiled_sets.clone();
        compiled_sets.sort_by_key(|compiled| std::cmp::Reverse(compiled.highest));
        let of_sets = compiled_sets.iter().map(|compiled| compiled.parts);
        let parts = tuples.iter().map(TupleView::parts).chain(of_sets);
        let uncompiled = match self.clauses {
            0 => self.uncompiled.in_order(),
            _ => None,
        };
        let mut listed = uncompiled.iter().flat_map(|rules| rules.iter());
        let without_options = listed.find(|rule| may_match_without_options(rule));
        let first_without_options = without_options.cloned();
        TableView {
            parts: parts.fold(KeyParts::default(), KeyParts::union),
            tuples,
            compiled_sets,
            fallback,
            first_without_options,
            uncompiled,
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod model;
#[cfg(test)]
mod tests;
#[cfg(all(test, not(feature = "model")))]
mod weak_memory;
