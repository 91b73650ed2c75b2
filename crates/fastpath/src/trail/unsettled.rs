//! What frames that went trails have counted there, written down for the rules and tables on
//! their way: some of it a batch, so that none waits long, and none later than is said here;
//! or all of it, before somebody relies on it.

use std::time::Duration;

use base::{Instant, TableId};
use pipeline::{Counters, Pipeline, Totals};

use super::kept::{End, Kept, RULES, Route, TRAILS};
use crate::classifier::View;
use crate::tally::{TableTally, add};

/// After so long what has been counted is due, ...
pub(super) const EVERY: Duration = Duration::from_millis(4);

/// ... and that of so many trails is written down before each batch.
pub(super) const SETTLED_A_BATCH: usize = 32;

/// Which trails have counted something that their rules have not.
#[derive(Debug)]
pub(super) struct Unsettled {
    writer: usize,
    /// Those that have since what is due was told last, ...
    fresh: Vec<u16>,
    /// ... and those that are due. No trail is in both, nor twice in one.
    due: Vec<u16>,
    /// When those that are fresh are due.
    next: Instant,
    /// Where tables count, by their number: what was looked up, and what found a rule.
    tables: Vec<Option<(Counters, Counters)>>,
    tally: TableTally,
}

impl Unsettled {
    /// None, of nobody's tables.
    pub(super) fn new(writer: usize) -> Self {
        Self {
            writer,
            fresh: Vec::with_capacity(TRAILS),
            due: Vec::with_capacity(TRAILS),
            next: Instant::START,
            tables: Vec::new(),
            tally: TableTally::new(),
        }
    }

    /// One more.
    #[cold]
    pub(super) fn list(&mut self, place: usize) {
        let place = u16::try_from(place).expect("there are not so many trails");
        self.fresh.push(place);
    }
}

const _: () = assert!(TRAILS <= 1 << u16::BITS, "they have numbers of 16 bits");

/// What the rules in one place of several trails have counted: mostly it is the same rule, or
/// another for each trail.
#[derive(Clone, Copy)]
struct Sum<'t> {
    counters: &'t Counters,
    table: TableId,
    totals: Totals,
    used: Instant,
}

/// Where that is written down.
struct Book<'t> {
    writer: usize,
    sums: [Option<Sum<'t>>; RULES],
    /// Until when all of that was counted.
    used: Instant,
    tables: &'t mut TableTally,
}

impl<'t> Book<'t> {
    fn note(&mut self, sum: Sum<'_>) {
        let Sum { totals, used, .. } = sum;
        sum.counters.add_until(self.writer, totals, used);
        self.tables.looked_up(sum.table, totals);
    }

    /// Has what was counted at the end of this route counted by its rules.
    fn settle(&mut self, end: &mut End, route: &'t Route) {
        let totals = std::mem::take(&mut end.totals);
        end.is_listed = false;
        self.used = self.used.max(end.used);
        for (place, (counters, table)) in route.counters().enumerate() {
            if let Some(sum) = &mut self.sums[place]
                && sum.counters.is_same_as(counters)
            {
                add(&mut sum.totals, totals);
                sum.used = sum.used.max(end.used);
                continue;
            }
            let sum = Sum {
                counters,
                table,
                totals,
                used: end.used,
            };
            if let Some(before) = self.sums[place].replace(sum) {
                self.note(before);
            }
        }
    }

    /// Writes down what is left. Answers until when all of it was counted.
    fn close(mut self) -> Instant {
        let sums = std::mem::replace(&mut self.sums, [None; RULES]);
        sums.into_iter().flatten().for_each(|sum| self.note(sum));
        self.used
    }
}

impl Kept {
    /// Begins anew with these tables.
    pub(super) fn turn_to(&mut self, view: &View, pipeline: &Pipeline) {
        self.forget();
        let tables = (0..).zip(view.tables.iter());
        let counters = tables.map(|(id, table)| {
            let (looked_up, matched) = pipeline.table_counters(TableId(id));
            table.as_ref().map(|_| (looked_up.clone(), matched.clone()))
        });
        self.unsettled.tables = counters.collect();
    }

    /// Begins a batch: some of what is due is written down.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        let Unsettled { next, due, .. } = &self.unsettled;
        if now >= *next || !due.is_empty() {
            self.settle_some(now);
        }
    }

    #[inline(never)]
    fn settle_some(&mut self, now: Instant) {
        let Unsettled {
            next, due, fresh, ..
        } = &mut self.unsettled;
        if due.is_empty() {
            std::mem::swap(due, fresh);
            *next = now + EVERY;
        }
        let left = due.len().saturating_sub(SETTLED_A_BATCH);
        self.settle_due(left);
    }

    /// Writes all down.
    #[inline]
    pub(super) fn settle_all(&mut self) {
        if !self.has_settled() {
            let Unsettled { due, fresh, .. } = &mut self.unsettled;
            due.append(fresh);
            self.settle_due(0);
        }
    }

    /// Whether all is written down.
    #[inline]
    pub(super) fn has_settled(&self) -> bool {
        let Unsettled { due, fresh, .. } = &self.unsettled;
        due.is_empty() && fresh.is_empty()
    }

    /// Writes down what is due, but for so many.
    fn settle_due(&mut self, left: usize) {
        let mut due = std::mem::take(&mut self.unsettled.due);
        self.settle(&due[left..]);
        due.truncate(left);
        self.unsettled.due = due;
    }

    /// Writes down what one has counted, which stays listed.
    pub(super) fn settle_one(&mut self, place: usize) {
        if self.ends[place].is_listed {
            let place = u16::try_from(place).expect("there are not so many trails");
            self.settle(&[place]);
            self.ends[usize::from(place)].is_listed = true;
        }
    }

    fn settle(&mut self, places: &[u16]) {
        let Unsettled {
            writer,
            tables,
            tally,
            ..
        } = &mut self.unsettled;
        let mut book = Book {
            writer: *writer,
            sums: [None; RULES],
            used: Instant::START,
            tables: tally,
        };
        for place in places {
            let place = usize::from(*place) % TRAILS;
            book.settle(&mut self.ends[place], &self.routes[place]);
        }
        let used = book.close();
        let counters = |table: TableId| {
            let counters = tables[usize::from(table.0)].as_ref();
            let (looked_up, matched) = counters.expect("a rule was found there");
            (looked_up, matched)
        };
        tally.settle(counters, *writer, used);
    }
}
