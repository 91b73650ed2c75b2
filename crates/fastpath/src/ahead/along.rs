//! Frames that go a trail, and those that make one.

use base::{Instant, PortNo, TableId};
use pipeline::{Counters, Totals};

use super::{AHEAD, Group, Streak};
use crate::places::Places;
use crate::runner::Batch;
use crate::tally::{TableTally, add};
use crate::trail::{Followed, Mark, RULES, Trail};

/// What the rules in one place of several trails have counted: mostly it is the same rule, or
/// another for each frame.
#[derive(Clone, Copy)]
struct Sum<'t> {
    counters: &'t Counters,
    table: TableId,
    totals: Totals,
}

/// Where that is written down.
struct Book<'r> {
    writer: usize,
    now: Instant,
    tables: &'r mut TableTally,
}

impl Book<'_> {
    #[inline]
    fn note(&mut self, sum: Sum<'_>) {
        sum.counters.add(self.writer, sum.totals, self.now);
        self.tables.looked_up(sum.table, sum.totals);
    }

    /// A frame of this weight has gone a trail.
    #[inline]
    fn count<'t>(&mut self, trail: &'t Trail, weight: Totals, sums: &mut [Option<Sum<'t>>; RULES]) {
        for (sum, (counters, table)) in sums.iter_mut().zip(trail.counters()) {
            if let Some(sum) = sum
                && sum.counters.are(counters)
            {
                add(&mut sum.totals, weight);
                continue;
            }
            let before = sum.replace(Sum {
                counters,
                table,
                totals: weight,
            });
            if let Some(before) = before {
                self.note(before);
            }
        }
    }
}

impl<'a> Batch<'a> {
    /// Has those of these frames leave that go a trail, and follows some of the others, which
    /// it answers.
    pub(super) fn go_trails(&mut self, group: Group) -> Group {
        let runner = &mut *self.runner;
        let trails = &runner.trails;
        let mut marks = [Mark::NONE; AHEAD];
        for place in group.places {
            marks[place] = trails.mark(&runner.lanes[place]);
        }
        for place in group.places {
            trails.prefetch(&marks[place]);
        }
        let mut book = Book {
            writer: runner.writer,
            now: self.ground.now,
            tables: &mut runner.tables,
        };
        let (mut sums, mut others) = ([None; RULES], Places::NONE);
        for place in group.places {
            let trail = trails.find(&marks[place]);
            let trail = trail.filter(|trail| self.doors.is_way_out(trail.port));
            let Some(trail) = trail else {
                others.add(Places::of(place));
                continue;
            };
            let ahead = &mut self.ahead[place];
            ahead.leaves = Some(trail.port);
            book.count(trail, ahead.weight, &mut sums);
        }
        sums.into_iter().flatten().for_each(|sum| book.note(sum));
        runner.trails.note_found(group.places, others);
        if others.is_none() {
            return Group {
                places: others,
                totals: Totals::default(),
                ..group
            };
        }
        self.followed = Some(Followed::of(others, &marks));
        Group {
            places: others,
            totals: self.weigh_of(others, &group),
            ..group
        }
    }

    /// Notes that those of these frames that are followed have found their rule, and leave
    /// then if a port is told of.
    #[inline]
    pub(super) fn follow(&mut self, streak: Streak<'a>, leaving: Option<PortNo>) {
        if self.followed.is_some() {
            self.note_followed(streak, leaving);
        }
    }

    #[inline(never)]
    fn note_followed(&mut self, streak: Streak<'a>, leaving: Option<PortNo>) {
        let Streak { rule, places } = streak;
        if let Some(followed) = &mut self.followed {
            followed.find(places, rule, leaving, &mut self.runner.trails);
        }
    }
}
