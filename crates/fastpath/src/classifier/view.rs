//! Views: immutable readings of the compiled tables at one epoch, for workers.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::TableId;
use flow::PipelineFields;
use packet::Headers;
use pipeline::{Lookup, LookupResult, Rule};

use super::conjunction::ConjunctiveMatch;
use crate::batch_mask::{BatchMask, LOOKUP_BATCH};
use crate::compiled_set::CompiledSet;
use crate::epoch::Epoch;
use crate::key_hash::KeyHasher;
use crate::linear::LinearSearch;
use crate::packed_key::{HEADER_WORDS, KeyParts, OptionalBits, PackedKey};
use crate::tuple::TupleView;

/// View of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableView {
    /// In descending order of the highest priority.
    pub(super) compiled_sets: Vec<Arc<CompiledSet>>,
    /// In descending order of the highest priority.
    pub(super) tuples: Vec<TupleView>,
    /// Parts of a key that lookups read.
    pub(crate) parts: KeyParts,
    /// Reason why one lookup does not find the rule, if any.
    pub(crate) fallback: Option<LookupFallback>,
    /// The rules that no structure takes, in match order, if the interpreter needs to search only
    /// these.
    pub(super) uncompiled: Option<Arc<[Arc<Rule>]>>,
    /// The first of these that packets without tunnel options may match.
    pub(super) first_without_options: Option<Arc<Rule>>,
}

/// The form of a table that has only one, as most have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SingleForm<'a> {
    /// A compiled set with the linear form.
    Linear(&'a CompiledSet, &'a LinearSearch),
    /// A compiled set with another form.
    CompiledSet(&'a CompiledSet),
    Tuple(&'a TupleView),
    /// Several forms, or one lookup does not find the rule.
    None,
}

/// Reason why the result of a table is not simply the first rule that the packet satisfies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupFallback {
    /// The table has conjunction clauses: [`View::look_up_conjunctive`] finds the rule.
    Conjunctions,
    /// The interpreter must search: a rule matches on tunnel options, or too many rules differ
    /// only in their priority.
    Interpreter,
}

impl TableView {
    /// The form of the table, if it has only one.
    #[inline]
    pub(crate) fn single_form(&self) -> SingleForm<'_> {
        match (&*self.compiled_sets, &*self.tuples) {
            _ if self.fallback.is_some() => SingleForm::None,
            ([compiled], []) => match compiled.as_linear() {
                Some(linear) => SingleForm::Linear(compiled, linear),
                None => SingleForm::CompiledSet(compiled),
            },
            ([], [tuple]) => SingleForm::Tuple(tuple),
            _ => SingleForm::None,
        }
    }

    /// True if compiled lookups find the rule of every packet.
    pub(crate) fn is_compiled(&self) -> bool {
        self.fallback != Some(LookupFallback::Interpreter)
    }

    /// Compiled sets in descending order of the highest priority.
    pub(crate) fn compiled_sets(&self) -> impl Iterator<Item = &CompiledSet> {
        self.compiled_sets.iter().map(AsRef::as_ref)
    }

    /// Tuples in descending order of the highest priority.
    pub(crate) fn tuples(&self) -> &[TupleView] {
        &self.tuples
    }

    /// Returns the clause that the packet satisfies first among the eligible ones.
    fn look_up_clause(
        &self,
        key: &PackedKey,
        hasher: KeyHasher,
        epoch: Epoch,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let is_eligible = |rule: &Rule| is_eligible(rule) && rule.is_clause();
        let sets = self.compiled_sets.iter().filter(|set| set.has_clauses);
        let of_sets = sets.filter_map(|set| set.find(key, epoch, is_eligible));
        let tuples = self.tuples.iter().filter(|tuple| tuple.has_clauses);
        let of_tuples = tuples.filter_map(|tuple| tuple.find(key, hasher, epoch, is_eligible));
        of_sets
            .chain(of_tuples)
            .fold(None, |best, rule| first_tried(best, Some(rule)))
    }

    /// Optional bits that rules of the table read.
    pub(crate) fn optional_bits(&self) -> OptionalBits {
        let mut bits = OptionalBits::NONE;
        if self.fallback == Some(LookupFallback::Interpreter) {
            return OptionalBits::ALL;
        }
        let of_sets = self.compiled_sets.iter().map(|set| set.mask());
        for mask in of_sets.chain(self.tuples.iter().map(TupleView::mask)) {
            bits.insert(&OptionalBits::of_mask(mask));
        }
        bits
    }

    /// Returns the rule that the packet matches among the eligible ones: the rule of the highest
    /// priority that it satisfies and, of several with that priority, the one that the interpreter
    /// tries first.
    #[inline]
    fn look_up(
        &self,
        key: &PackedKey,
        hasher: KeyHasher,
        epoch: Epoch,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let mut best: Option<&Arc<Rule>> = None;
        for compiled in &self.compiled_sets {
            if best.is_some_and(|best| best.priority() > compiled.highest) {
                break;
            }
            best = first_tried(best, compiled.find(key, epoch, &is_eligible));
        }
        for tuple in &self.tuples {
            if best.is_some_and(|best| best.priority() > tuple.highest) {
                break;
            }
            best = first_tried(best, tuple.find(key, hasher, epoch, &is_eligible));
        }
        best
    }
}

/// The one of two rules that is tried first.
#[inline]
pub(crate) fn first_tried<'a>(
    one: Option<&'a Arc<Rule>>,
    other: Option<&'a Arc<Rule>>,
) -> Option<&'a Arc<Rule>> {
    match (one, other) {
        (Some(rule), Some(before)) if before.precedes(rule) => other,
        (Some(_), _) => one,
        (None, _) => other,
    }
}

/// Views by table number, up to the last table that has rules.
pub(crate) type TableViews = Vec<Option<Arc<TableView>>>;

/// Identity of the rules of all tables, which no other rules have in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentId(u64);

impl ContentId {
    /// Returns a new one.
    pub(super) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// View of all tables at one epoch. Cloning it costs one reference count.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) epoch: Epoch,
    pub(super) content: ContentId,
    pub(crate) hasher: KeyHasher,
    pub(crate) tables: Arc<TableViews>,
}

impl View {
    /// Views with the same rules, in whatever structures, have the same.
    #[inline]
    pub(crate) const fn content(&self) -> ContentId {
        self.content
    }

    /// Header words that some table reads, with the bits of each; zero for words that none reads.
    pub(crate) fn header_mask(&self) -> impl Iterator<Item = (u8, u64)> {
        let mut masks = [0; HEADER_WORDS];
        for table in self.tables.iter().flatten() {
            let of_sets = table
                .compiled_sets
                .iter()
                .flat_map(|compiled| compiled.mask());
            let of_tuples = table.tuples.iter().flat_map(TupleView::mask);
            for (word, mask) in of_sets.chain(of_tuples) {
                if let Some(all) = masks.get_mut(usize::from(*word)) {
                    *all |= mask;
                }
            }
        }
        (0..).zip(masks)
    }

    /// Returns the view of a table, or `None` if it has no rules.
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Option<&TableView> {
        self.tables.get(usize::from(id.0))?.as_deref()
    }

    #[inline]
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the rules of one tuple that these packets match.
    pub(crate) fn look_up_batch_in<'a>(
        &self,
        tuple: &'a TupleView,
        keys: &[PackedKey; LOOKUP_BATCH],
        packets: BatchMask,
    ) -> [Option<&'a Arc<Rule>>; LOOKUP_BATCH] {
        tuple.find_each((self.hasher, self.epoch), keys, packets)
    }

    /// Returns the rule of one tuple that a packet matches.
    pub(crate) fn look_up_in<'a>(
        &self,
        tuple: &'a TupleView,
        key: &PackedKey,
    ) -> Option<&'a Arc<Rule>> {
        tuple.find(key, self.hasher, self.epoch, |_| true)
    }

    /// Returns the rule of one tuple that a packet matches among those that are no clauses.
    pub(crate) fn look_up_plain_in<'a>(
        &self,
        tuple: &'a TupleView,
        key: &PackedKey,
    ) -> Option<&'a Arc<Rule>> {
        if tuple.has_only_clauses {
            return None;
        }
        tuple.find(key, self.hasher, self.epoch, |rule| !rule.is_clause())
    }

    /// Returns the clause of a table that a packet satisfies first among the eligible ones.
    pub(super) fn look_up_clause<'a>(
        &self,
        table: &'a TableView,
        key: &PackedKey,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&'a Arc<Rule>> {
        table.look_up_clause(key, self.hasher, self.epoch, is_eligible)
    }

    /// Returns the rule of a table that a packet matches.
    #[inline]
    pub(crate) fn look_up<'a>(
        &self,
        table: &'a TableView,
        key: &PackedKey,
    ) -> Option<&'a Arc<Rule>> {
        self.look_up_eligible(table, key, |_| true)
    }

    /// Returns the result of a table for a packet that cannot match a rule that no structure takes:
    /// it matches a rule that precedes these, or has no tunnel options, which they require. `None`
    /// for other packets.
    pub(crate) fn look_up_compiled<'a>(
        &self,
        table: &'a TableView,
        key: &PackedKey,
        has_options: bool,
    ) -> Option<Option<&'a Arc<Rule>>> {
        let uncompiled = table.uncompiled.as_deref()?;
        let first = match has_options {
            true => uncompiled.first(),
            false => table.first_without_options.as_ref(),
        };
        let Some(first) = first else {
            return Some(self.look_up(table, key));
        };
        let found = self.look_up_eligible(table, key, |rule| rule.precedes(first));
        found.map(Some)
    }

    /// Returns the rule of a table that a packet matches among the eligible ones.
    #[inline]
    pub(super) fn look_up_eligible<'a>(
        &self,
        table: &'a TableView,
        key: &PackedKey,
        is_eligible: impl Fn(&Rule) -> bool,
    ) -> Option<&'a Arc<Rule>> {
        table.look_up(key, self.hasher, self.epoch, is_eligible)
    }
}

/// Lookups of the interpreter in a view, with the memory of one worker.
#[derive(Debug)]
pub struct ViewLookup<'a> {
    view: &'a View,
    key: &'a RefCell<PackedKey>,
}

impl<'a> ViewLookup<'a> {
    /// Lookups in `view`.
    #[must_use]
    pub const fn new(view: &'a View, scratch: &'a LookupScratch) -> Self {
        Self {
            view,
            key: &scratch.0,
        }
    }
}

impl Lookup for ViewLookup<'_> {
    #[inline]
    fn look_up(
        &self,
        table: TableId,
        headers: &Headers,
        fields: &PipelineFields,
    ) -> LookupResult<'_> {
        let Some(table) = self.view.table(table) else {
            return LookupResult::Rule(None);
        };
        let mut key = self.key.borrow_mut();
        key.fill(table.parts, headers, fields);
        match table.fallback {
            None => LookupResult::Rule(self.view.look_up(table, &key).map(AsRef::as_ref)),
            Some(LookupFallback::Conjunctions) => {
                match self.view.look_up_conjunctive(table, &key) {
                    ConjunctiveMatch::Rule(found) => LookupResult::Rule(found.map(AsRef::as_ref)),
                    ConjunctiveMatch::Conjunction(rule, id) => LookupResult::Conjunction(rule, id),
                    ConjunctiveMatch::TooMany => LookupResult::Unknown,
                }
            }
            Some(LookupFallback::Interpreter) => match &table.uncompiled {
                Some(uncompiled) => LookupResult::Partial {
                    compiled: self.view.look_up(table, &key).map(AsRef::as_ref),
                    uncompiled,
                },
                None => LookupResult::Unknown,
            },
        }
    }
}

/// Memory for lookups, which a worker keeps from packet to packet.
#[derive(Debug)]
pub struct LookupScratch(RefCell<PackedKey>);

impl LookupScratch {
    /// New memory.
    #[must_use]
    pub const fn new() -> Self {
        Self(RefCell::new(PackedKey::new()))
    }
}

impl Default for LookupScratch {
    fn default() -> Self {
        Self::new()
    }
}
