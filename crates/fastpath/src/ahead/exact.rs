//! Frames in a table whose rules are of one shape: each finds its own by a hash. What comes
//! next is asked for of all of them, so that none waits for the memory of another: buckets,
//! then lines.

use pipeline::Rule;
use sys::cache::prefetch;

use super::{AHEAD, Arrival, Group, Led};
use crate::places::Places;
use crate::runner::{BatchRun, Seen};
use crate::segment::Line;
use crate::shape::KEPT_MAX;
use crate::tuple::{Lookups, TupleView, words_of};

const _: () = assert!(KEPT_MAX == 4, "so many words are told apart below");

impl<'a> BatchRun<'a> {
    /// Looks these frames up, and takes them on to where their rules lead. Answers which are
    /// led on.
    pub(super) fn arrive_in_one_shape(&mut self, group: Group, tuple: &'a TupleView) -> Led {
        // What is told apart here is not frame by frame.
        match *tuple.asked() {
            [a] => self.arrive_by_lines(group, tuple, [a]),
            [a, b] => self.arrive_by_lines(group, tuple, [a, b]),
            [a, b, c] => self.arrive_by_lines(group, tuple, [a, b, c]),
            [a, b, c, d] => self.arrive_by_lines(group, tuple, [a, b, c, d]),
            _ => {
                let (view, lanes) = (self.ground.view, &self.runner.lanes);
                let each = view.look_up_each_in(tuple, lanes, group.places);
                self.arrive_at_far(group, &each)
            }
        }
    }

    /// The same, where entries have lines, and these bits of these words are asked.
    #[inline(never)]
    fn arrive_by_lines<const N: usize>(
        &mut self,
        group: Group,
        tuple: &'a TupleView,
        asked: [(u8, u64); N],
    ) -> Led {
        let view = self.ground.view;
        let lookups = tuple.begin_by_lines(view.hasher, &self.runner.lanes, group.places, asked);
        let Lookups {
            steps,
            lines,
            missing,
        } = lookups;
        if tuple.is_far() {
            self.ask_for_counts(&lines);
        }
        let mut arrival = self.arrival(group);
        for place in group.places {
            let (segment, hash) = steps[place % AHEAD];
            let words = words_of(&self.runner.lanes[place % AHEAD], asked);
            let told = lines[place % AHEAD];
            let told = told.filter(|line| segment.is_told(line, words, view.epoch()));
            match told.and_then(|line| Some((line.gist(), line.counters()?))) {
                Some(what) => {
                    let rule = || segment.rule(segment.likely(hash)?).map(AsRef::as_ref);
                    self.settle_one(place, what, rule, &mut arrival);
                }
                None if missing.have(place) => {
                    self.end(Places::of(place), Seen::Found(None), &arrival.group);
                }
                None => self.arrive_alone(place, tuple, &mut arrival),
            }
        }
        self.count_arrival(arrival)
    }

    /// Asks for the memory where these lines count.
    #[inline(never)]
    fn ask_for_counts(&self, lines: &[Option<&Line>; AHEAD]) {
        for line in lines.iter().flatten() {
            let counters = line.counters();
            let place = counters.and_then(|counters| counters.prefetch_target(self.runner.writer));
            place.into_iter().for_each(prefetch);
        }
    }

    /// Looks one frame up of which no line tells what it finds.
    #[inline(never)]
    fn arrive_alone(&mut self, place: usize, tuple: &'a TupleView, arrival: &mut Arrival) {
        let lanes = &self.runner.lanes[place % AHEAD];
        match self.ground.view.look_up_in(tuple, lanes) {
            Some(rule) => self.settle_rule(place, rule, arrival),
            None => self.end(Places::of(place), Seen::Found(None), &arrival.group),
        }
    }

    /// Notes that one frame has found this rule.
    #[inline]
    pub(super) fn settle_rule(&mut self, place: usize, rule: &'a Rule, arrival: &mut Arrival) {
        let what = (rule.instructions.inline_program(), &rule.counters);
        self.settle_one(place, what, || Some(rule), arrival);
    }
}
