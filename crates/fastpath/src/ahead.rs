//! Frames of a batch, some at a time, before the first of them goes its way: they are read,
//! and looked up table by table as long as what they find does nothing but lead on, and
//! write what goes with a frame. So what one has to wait for comes from memory while others are looked at, and a table
//! is looked into by all that come to it.

use std::sync::Arc;

use base::{PortNo, TableId};
use flow::Action;
use pipeline::{Counters, Rule, Totals};
use sys::cache::prefetch;

use crate::base::Base;
use crate::classifier::Sole;
use crate::direct::Direct;
use crate::lanes::Lanes;
use crate::places::Places;
use crate::runner::{BatchRun, Seen, look_up};
use crate::steps::{Brief, Set, Step, Steps};
use crate::tally::add;
use crate::way::RESUBMITS_DEEP;

mod along;
mod exact;
mod group;
mod reading;

use group::{Arrival, Group, Led, Streak};

/// So many frames. Their words take half of a first-level cache of 32 kB at most, and
/// more than some ten are no use: a core has no more loads in flight.
pub(crate) const AHEAD: usize = 32;

/// Resubmissions that are noted of a frame that is read ahead. Beyond them it goes its way.
pub(crate) const RESUBMITS_AHEAD: usize = 12;

const _: () = assert!(RESUBMITS_AHEAD < RESUBMITS_DEEP, "a way goes deeper");

/// How far a frame has come. It has a cache line, so that it is found without a multiplication.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Ahead<'a> {
    /// What that says.
    pub(crate) seen: Seen<'a>,
    /// By which port it leaves, which is open to it, if that is all that becomes of it.
    pub(crate) leaves: Option<PortNo>,
    /// What it counts for.
    pub(crate) weight: Totals,
    /// What was written into its action set.
    pub(crate) set: Option<&'a Action>,
    /// Where it is.
    pub(crate) table: TableId,
    /// How many lookups there were before that one.
    pub(crate) lookups: u16,
    /// How many of them by resubmission.
    pub(crate) resubmits: u8,
}

impl Ahead<'_> {
    /// Before the first table, which is not looked into.
    pub(crate) const NOWHERE: Self = Self {
        seen: Seen::Found(None),
        leaves: None,
        weight: Totals {
            packets: 0,
            bytes: 0,
        },
        set: None,
        table: TableId::FIRST,
        lookups: 0,
        resubmits: 0,
    };
}

#[inline]
fn found(rule: Option<&Arc<Rule>>) -> Seen<'_> {
    Seen::Found(rule.map(AsRef::as_ref))
}

/// Asks for the memory of what is wanted of a rule that was found.
#[inline]
pub(crate) fn ask_for(rule: &Rule) {
    prefetch(&rule.instructions);
    prefetch(&rule.counters);
}

impl<'a> BatchRun<'a> {
    /// Reads some frames, and takes them on as long as the rules that they find do nothing
    /// but lead on, and write what goes with a frame.
    pub(crate) fn look_ahead(&mut self) {
        let frames = self.seen..self.rest.end.min(self.seen + AHEAD);
        self.seen = frames.end;
        for place in std::mem::take(&mut self.runner.written) {
            self.runner.lanes[place].forget();
        }
        for place in std::mem::take(&mut self.with_set) {
            self.ahead[place % AHEAD].set = None;
        }
        let mut group = self.read_ahead(frames);
        self.trunk.count(group.totals);
        self.followed = None;
        let mut led = match self.trunk.seen {
            None => {
                group = self.go_trails(group);
                match group.places.is_none() {
                    true => Led::NONE,
                    false => self.arrive_in(group),
                }
            }
            Some(Seen::Found(Some(rule))) => {
                let (mut arrival, places) = (self.arrival(group), group.places);
                self.settle(Streak { rule, places }, &mut arrival);
                self.count_arrival(arrival)
            }
            Some(seen) => return self.end(group.places, seen, &group),
        };
        // A table leads to later ones only, so none is come to twice.
        let (mut lookups, mut tables) = (1, 1);
        while !led.places.is_none() {
            if !led.is_one() {
                self.note_lookups(led.places, std::mem::take(&mut lookups));
            }
            let (group, elsewhere) = self.part(led, lookups);
            led = self.arrive_in(group);
            (lookups, tables) = (lookups + 1, tables + 1);
            if !elsewhere.is_none() {
                self.note_lookups(led.places, std::mem::take(&mut lookups));
                for place in elsewhere {
                    let Ahead { weight, table, .. } = self.ahead[place];
                    led.add(Places::of(place), table, &mut self.ahead);
                    add(&mut led.totals, weight);
                }
            }
        }
        self.runner.trails.note(tables);
    }

    /// Notes of these frames that they have had so many lookups more.
    fn note_lookups(&mut self, places: Places, lookups: u16) {
        places.for_each(|place| self.ahead[place % AHEAD].lookups += lookups);
    }

    /// Those that are led to the first of the tables, and the others.
    #[inline]
    fn part(&self, led: Led, lookups: u16) -> (Group, Places) {
        let mut group = Group {
            places: led.places,
            totals: led.totals,
            table: led.first,
            lookups,
        };
        if led.is_one() {
            return (group, Places::NONE);
        }
        let is_here = |place: usize| self.ahead[place % AHEAD].table == led.first;
        group.places = led.places.fold(Places::NONE, |mut here, place| {
            here.add(Places::of_if(place, is_here(place)));
            here
        });
        group.totals = self.weigh(group.places);
        (group, led.places.without(group.places))
    }

    /// What these frames count for.
    #[inline]
    fn weigh(&self, places: Places) -> Totals {
        places.fold(Totals::default(), |mut totals, place| {
            add(&mut totals, self.ahead[place % AHEAD].weight);
            totals
        })
    }

    /// Has these frames looked up in their table. Answers which are led on.
    fn arrive_in(&mut self, group: Group) -> Led {
        let view = self.ground.view;
        let Some(table) = view.table(group.table) else {
            self.end(group.places, Seen::Found(None), &group);
            return Led::NONE;
        };
        // Each form has a loop of its own, since what is told apart outside is not within.
        match table.sole() {
            Sole::Direct(base, direct) => self.arrive_in_few(group, (base, direct)),
            Sole::Tuple(tuple) => self.arrive_in_one_shape(group, tuple),
            Sole::Base(base) => self.arrive_in_base(group, base),
            Sole::None => self.arrive(group, |_, lanes| look_up(view, Some(table), lanes)),
        }
    }

    /// What is to come of a group in its table.
    #[inline]
    fn arrival(&self, group: Group) -> Arrival {
        Arrival {
            group,
            led: Led::NONE,
            left: Places::NONE,
            is_plain: self.followed.is_none() && self.with_set.is_none(),
        }
    }

    /// The same, in a table of rules that were compiled together.
    fn arrive_in_base(&mut self, group: Group, base: &'a Base) -> Led {
        let epoch = self.ground.view.epoch();
        let each = base.likely_each(&self.runner.lanes, group.places, epoch);
        let mut arrival = self.arrival(group);
        for place in group.places {
            let likely = each[place % AHEAD];
            if let Some(outcome) = base.outcome(likely, epoch) {
                let rule = || base.rule(likely).map(AsRef::as_ref);
                let what = (outcome.gist, &outcome.counters);
                self.settle_one(place, what, rule, &mut arrival);
                continue;
            }
            let lanes = &self.runner.lanes[place % AHEAD];
            match base
                .rule(likely)
                .and_then(|_| base.find(lanes, epoch, |_| true))
            {
                Some(rule) => self.settle_rule(place, rule, &mut arrival),
                None => self.end(Places::of(place), Seen::Found(None), &group),
            }
        }
        self.count_arrival(arrival)
    }

    /// Notes what their table says to these frames. Answers which are led on.
    #[inline(always)]
    fn arrive(&mut self, group: Group, says: impl Fn(usize, &Lanes) -> Seen<'a>) -> Led {
        let mut arrival = self.arrival(group);
        for place in group.places {
            match says(place, &self.runner.lanes[place % AHEAD]) {
                Seen::Found(Some(rule)) => self.settle_rule(place, rule, &mut arrival),
                other => self.end(Places::of(place), other, &group),
            }
        }
        self.count_arrival(arrival)
    }

    /// The same, where these frames find these rules, which are many in all, and were asked
    /// for: what is far away is asked for all of them together.
    fn arrive_at_far(&mut self, group: Group, each: &[Option<&'a Arc<Rule>>; AHEAD]) -> Led {
        for rule in group.places.filter_map(|place| each[place]) {
            prefetch(rule.instructions.prefetch_target());
            let place = rule.counters.prefetch_target(self.runner.writer);
            place.into_iter().for_each(prefetch);
        }
        self.arrive(group, |place, _| found(each[place]))
    }

    /// Notes what one frame has found: a rule of this gist and these counts. The rule itself
    /// is asked for only if it does more than most do.
    #[inline(always)]
    fn settle_one(
        &mut self,
        place: usize,
        (gist, counters): (u32, &Counters),
        rule: impl FnOnce() -> Option<&'a Rule>,
        arrival: &mut Arrival,
    ) {
        match Brief::of(gist) {
            Brief::Leaves(port) if arrival.is_plain && self.doors.is_way_out(port) => {
                self.ahead[place % AHEAD].leaves = Some(port);
                arrival.left.add(Places::of(place));
            }
            Brief::Leads(to) if arrival.is_plain => {
                arrival.led.add(Places::of(place), to, &mut self.ahead);
            }
            _ => {
                let places = Places::of(place);
                let streak = rule().map(|rule| Streak { rule, places });
                streak
                    .into_iter()
                    .for_each(|streak| self.settle(streak, arrival));
                return;
            }
        }
        let weight = self.ahead[place % AHEAD].weight;
        counters.add(self.runner.writer, weight, self.ground.now);
    }

    /// The same, in a table of a few rules: each is compared with all of them.
    fn arrive_in_few(&mut self, group: Group, (base, direct): (&'a Base, &'a Direct)) -> Led {
        let (mut arrival, mut left) = (self.arrival(group), group.places);
        let mut columns = None;
        for (number, rule) in base.seen(self.ground.view.epoch()) {
            let places = direct.fitting(number, &self.runner.lanes, left, &mut columns);
            if !places.is_none() {
                self.settle(Streak { rule, places }, &mut arrival);
                left = left.without(places);
                if left.is_none() {
                    break;
                }
            }
        }
        self.end(left, Seen::Found(None), &group);
        self.count_arrival(arrival)
    }

    /// Counts for the table those that are led on or leave, and answers which are led on.
    #[inline]
    fn count_arrival(&mut self, arrival: Arrival) -> Led {
        let Arrival {
            group,
            mut led,
            left,
            ..
        } = arrival;
        let all = led.places.and(left);
        if !all.is_none() {
            let totals = self.weigh_of(all, &group);
            self.runner.tables.looked_up(group.table, totals);
            led.totals = match led.places == all {
                true => totals,
                false => self.weigh(led.places),
            };
        }
        led
    }

    /// Notes what the frames of a streak have found, and takes them on to where it leads.
    fn settle(&mut self, streak: Streak<'a>, arrival: &mut Arrival) {
        let Streak { rule, places } = streak;
        let gist = rule.instructions.inline_program();
        if let Brief::Leaves(port) = Brief::of(gist)
            && arrival.is_plain
            && places != arrival.group.places
            && self.doors.is_way_out(port)
        {
            // Those of several rules: what they count for is told on the way.
            let totals = places.fold(Totals::default(), |mut totals, place| {
                let ahead = &mut self.ahead[place % AHEAD];
                ahead.leaves = Some(port);
                add(&mut totals, ahead.weight);
                totals
            });
            arrival.left.add(places);
            return rule
                .counters
                .add(self.runner.writer, totals, self.ground.now);
        }
        // Most rules lead on or have frames leave, and do nothing else.
        let taken = match Brief::of(gist) {
            Brief::Leads(to) => {
                arrival.led.add(places, to, &mut self.ahead);
                self.follow(streak, None);
                places
            }
            Brief::Leaves(port) if self.with_set.is_none() && self.doors.is_way_out(port) => {
                arrival.left.add(places);
                self.leave(streak, port);
                places
            }
            _ => self.settle_with_care(streak, gist, arrival),
        };
        if !taken.is_none() {
            let totals = self.weigh_of(taken, &arrival.group);
            let counters = &rule.counters;
            counters.add(self.runner.writer, totals, self.ground.now);
        }
    }

    /// The same, whatever the rule does. Answers which of those frames are led on, or leave.
    #[inline(never)]
    fn settle_with_care(&mut self, streak: Streak<'a>, gist: u32, arrival: &mut Arrival) -> Places {
        let Streak { rule, places } = streak;
        let group = &arrival.group;
        if let Some(to) = self.lead(streak, gist, group.table) {
            arrival.led.add(places, to, &mut self.ahead);
            self.follow(streak, None);
            return places;
        }
        let leaving = match Brief::of(gist) {
            Brief::Leaves(port) if self.doors.is_way_out(port) => {
                let places = places.without(self.with_set);
                self.leave(Streak { places, ..streak }, port);
                places
            }
            _ => Places::NONE,
        };
        self.end(places.without(leaving), Seen::Found(Some(rule)), group);
        arrival.left.add(leaving);
        leaving
    }

    /// What these frames of a group count for.
    #[inline]
    fn weigh_of(&self, places: Places, group: &Group) -> Totals {
        match places == group.places {
            true => group.totals,
            false => self.weigh(places),
        }
    }

    /// These frames go their way from what their table says.
    #[inline]
    fn end(&mut self, places: Places, seen: Seen<'a>, group: &Group) {
        for place in places {
            let ahead = &mut self.ahead[place % AHEAD];
            ahead.seen = seen;
            ahead.table = group.table;
            ahead.lookups += group.lookups;
        }
    }

    /// Has the frames of a streak leave by this port, as they may.
    #[inline]
    fn leave(&mut self, streak: Streak<'a>, port: PortNo) {
        for place in streak.places {
            self.ahead[place % AHEAD].leaves = Some(port);
        }
        self.follow(streak, Some(port));
    }

    /// Where a rule of this gist leads these frames, for whom it has done all else that it
    /// does then; none if it does not lead them on, or not yet.
    #[inline]
    fn lead(&mut self, streak: Streak<'a>, gist: u32, from: TableId) -> Option<TableId> {
        match Brief::of(gist) {
            Brief::Leads(to) => Some(to),
            Brief::Writes(to) => {
                self.write_beside(streak)?;
                Some(to)
            }
            Brief::Resubmits(to) => {
                if to <= from {
                    return None;
                }
                self.resubmit_ahead(streak)?;
                Some(to)
            }
            Brief::Leaves(_) | Brief::Not => None,
        }
    }

    /// Notes a resubmission, and does what is before it; unless there are too many.
    #[inline(never)]
    fn resubmit_ahead(&mut self, streak: Streak<'a>) -> Option<()> {
        let ahead = &self.ahead;
        let is_one = |place: usize| usize::from(ahead[place % AHEAD].resubmits) < RESUBMITS_AHEAD;
        if !streak.places.into_iter().all(is_one) {
            return None;
        }
        self.write_beside(streak)?;
        let none = || [[None; RESUBMITS_AHEAD]; AHEAD];
        let resubmitted = self.resubmitted.get_or_insert_with(none);
        for place in streak.places {
            let ahead = &mut self.ahead[place % AHEAD];
            let room = &mut resubmitted[place % AHEAD][usize::from(ahead.resubmits)];
            *room = Some(streak.rule);
            ahead.resubmits += 1;
        }
        Some(())
    }

    /// Writes what a rule does that goes with a frame, which is all that it does but lead on.
    #[inline(never)]
    fn write_beside(&mut self, streak: Streak<'a>) -> Option<()> {
        let Streak { rule, places } = streak;
        let steps = rule.instructions.compiled::<Steps>()?;
        self.runner.written.add(places);
        let lanes = &mut *self.runner.lanes;
        for step in &*steps.steps {
            match *step {
                Step::Write(write) => places.for_each(|place| lanes[place % AHEAD].write(write)),
                Step::Copy { from, to } => {
                    places.for_each(|place| lanes[place % AHEAD].copy(from, to));
                }
                _ => {}
            }
        }
        for place in places.filter(|_| steps.set != Set::Kept) {
            let set = &mut self.ahead[place % AHEAD].set;
            if let Some(port) = steps.set.put(set, &rule.instructions.write) {
                lanes[place % AHEAD].put_set_output(port);
            }
            self.with_set = self.with_set.without(Places::of(place));
            self.with_set.add(Places::of_if(place, set.is_some()));
        }
        if let Some(write) = steps.metadata {
            places.for_each(|place| lanes[place % AHEAD].write(write));
        }
        Some(())
    }
}
