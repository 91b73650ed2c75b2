//! What workers see of the tables, as they were at one moment.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use base::TableId;
use flow::PipelineFields;
use packet::Headers;
use pipeline::{Lookup, LookupResult, Rule};

use super::clauses::ByClauses;
use crate::ahead::AHEAD;
use crate::base::Base;
use crate::direct::Direct;
use crate::lanes::{Lanes, OF_FRAMES, Parts};
use crate::places::Places;
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
    /// Why one lookup does not tell it.
    pub(crate) uncompiled: Option<Uncompiled>,
}

/// The only form that a table has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sole<'a> {
    /// A few rules, compared one after the other.
    Direct(&'a Base, &'a Direct),
    /// Another one that is compiled together.
    Base(&'a Base),
    Tuple(&'a TupleView),
    /// It has several, or one lookup does not tell it.
    None,
}

/// Why what a frame finds in a table is not the first of the rules that it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncompiled {
    /// It has clauses of conjunctions: [`View::look_up_clauses`] tells.
    Conjunctions,
    /// The interpreter has to look itself: too many of its rules differ by nothing but their priority, or one asks for tunnel
    /// options.
    Outside,
}

impl TableView {
    /// Its form, if it is one only, as most tables' are.
    #[inline]
    pub(crate) fn sole(&self) -> Sole<'_> {
        match (&*self.bases, &*self.tuples) {
            _ if self.uncompiled.is_some() => Sole::None,
            ([base], []) => match base.as_direct() {
                Some(direct) => Sole::Direct(base, direct),
                None => Sole::Base(base),
            },
            ([], [tuple]) => Sole::Tuple(tuple),
            _ => Sole::None,
        }
    }

    /// The rule that the frame finds among those that are `wanted`: of those that it
    /// fits the one of the highest priority, and of several of that priority the one
    /// that the interpreter would try first.
    #[inline]
    fn look_up(
        &self,
        lanes: &Lanes,
        hasher: Hasher,
        epoch: Epoch,
        wanted: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let mut best: Option<&Arc<Rule>> = None;
        for base in &self.bases {
            if best.is_some_and(|best| best.priority() > base.highest) {
                break;
            }
            best = first(best, base.find(lanes, epoch, &wanted));
        }
        for tuple in &self.tuples {
            if best.is_some_and(|best| best.priority() > tuple.highest) {
                break;
            }
            best = first(best, tuple.find(lanes, hasher, epoch, &wanted));
        }
        best
    }
}

/// The one of two that is tried first.
#[inline]
fn first<'a>(one: Option<&'a Arc<Rule>>, other: Option<&'a Arc<Rule>>) -> Option<&'a Arc<Rule>> {
    match (one, other) {
        (Some(rule), Some(before)) if before.precedes(rule) => other,
        (Some(_), _) => one,
        (None, _) => other,
    }
}

/// The tables by their number, up to the last that has rules.
pub(crate) type Views = Vec<Option<Arc<TableView>>>;

/// All tables as they were at one moment.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) epoch: Epoch,
    pub(crate) hasher: Hasher,
    pub(crate) tables: Arc<Views>,
}

impl View {
    /// Whether it shows these tables as they were then.
    #[inline]
    pub(crate) fn is(&self, tables: &Weak<Views>, epoch: Epoch) -> bool {
        std::ptr::eq(tables.as_ptr(), Arc::as_ptr(&self.tables)) && epoch == self.epoch
    }

    /// Which bits of each word of a frame itself some table looks at.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (u8, u64)> {
        let mut masks = [0; OF_FRAMES];
        for table in self.tables.iter().flatten() {
            let of_bases = table.bases.iter().flat_map(|base| base.asked());
            let of_tuples = table.tuples.iter().flat_map(TupleView::asked);
            for (lane, mask) in of_bases.chain(of_tuples) {
                if let Some(all) = masks.get_mut(usize::from(*lane)) {
                    *all |= mask;
                }
            }
        }
        (0..).zip(masks)
    }

    /// The table, if it has rules.
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Option<&TableView> {
        self.tables.get(usize::from(id.0))?.as_deref()
    }

    /// When that was.
    #[inline]
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The rules that frames find among those of one shape.
    pub(crate) fn look_up_each_in<'a>(
        &self,
        tuple: &'a TupleView,
        lanes: &[Lanes; AHEAD],
        of: Places,
    ) -> [Option<&'a Arc<Rule>>; AHEAD] {
        tuple.find_each((self.hasher, self.epoch), lanes, of)
    }

    /// The rule that a frame finds among those of one shape.
    pub(crate) fn look_up_in<'a>(
        &self,
        tuple: &'a TupleView,
        lanes: &Lanes,
    ) -> Option<&'a Arc<Rule>> {
        tuple.find(lanes, self.hasher, self.epoch, |_| true)
    }

    /// The rule that a frame finds there.
    #[inline]
    pub(crate) fn look_up<'a>(&self, table: &'a TableView, lanes: &Lanes) -> Option<&'a Arc<Rule>> {
        self.look_up_of(table, lanes, |_| true)
    }

    /// The rule that a frame finds there among those that are wanted.
    #[inline]
    pub(super) fn look_up_of<'a>(
        &self,
        table: &'a TableView,
        lanes: &Lanes,
        wanted: impl Fn(&Rule) -> bool,
    ) -> Option<&'a Arc<Rule>> {
        table.look_up(lanes, self.hasher, self.epoch, wanted)
    }
}

/// A view, and the memory of one worker to look into it with.
#[derive(Debug)]
pub struct ViewLookup<'a> {
    view: &'a View,
    lanes: &'a RefCell<Lanes>,
}

impl<'a> ViewLookup<'a> {
    /// Looks into `view`.
    #[must_use]
    pub const fn new(view: &'a View, scratch: &'a LookupScratch) -> Self {
        Self {
            view,
            lanes: &scratch.0,
        }
    }
}

impl Lookup for ViewLookup<'_> {
    #[inline]
    fn look_up(
        &self,
        table: TableId,
        headers: &Headers,
        registers: &PipelineFields,
    ) -> LookupResult<'_> {
        let Some(table) = self.view.table(table) else {
            return LookupResult::Rule(None);
        };
        let mut lanes = self.lanes.borrow_mut();
        lanes.fill(table.parts, headers, registers);
        match table.uncompiled {
            None => LookupResult::Rule(self.view.look_up(table, &lanes).map(AsRef::as_ref)),
            Some(Uncompiled::Conjunctions) => match self.view.look_up_clauses(table, &lanes) {
                ByClauses::Rule(found) => LookupResult::Rule(found.map(AsRef::as_ref)),
                ByClauses::Conjunction(rule, id) => LookupResult::Conjunction(rule, id),
                ByClauses::TooMany => LookupResult::Unknown,
            },
            Some(Uncompiled::Outside) => LookupResult::Unknown,
        }
    }
}

/// What a worker keeps from frame to frame.
#[derive(Debug)]
pub struct LookupScratch(RefCell<Lanes>);

impl LookupScratch {
    /// A fresh one.
    #[must_use]
    pub const fn new() -> Self {
        Self(RefCell::new(Lanes::new()))
    }
}

impl Default for LookupScratch {
    fn default() -> Self {
        Self::new()
    }
}
