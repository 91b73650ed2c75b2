//! Frames of a batch, some at a time, before the first of them goes its way: they are read,
//! and looked up table by table as long as what they find does nothing but lead on, and
//! write what goes with a frame. So what one has to wait for comes from memory while others are looked at, and a table
//! is looked into by all that come to it.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use base::TableId;
use flow::{Action, FragmentHandling};
use pipeline::{DropReason, Pipeline, PortView, Rule, Totals};

use crate::base::Base;
use crate::classifier::{Sole, TableView};
use crate::direct::Direct;
use crate::lanes::Lanes;
use crate::places::Places;
use crate::runner::{Batch, Seen, look_up, read, weight_of};
use crate::steps::{Brief, Set, Step, Steps};
use crate::tally::add;
use crate::way::RESUBMITS_DEEP;

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
    /// What the rule does that it has found there, if that is [`Brief`]: its word.
    pub(crate) gist: u64,
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
        gist: Brief::Not.word(),
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

/// What the rule does that was found, if one was, and if that is [`Brief`].
#[inline]
fn gist_of(seen: Seen<'_>) -> u64 {
    match seen {
        Seen::Found(Some(rule)) => rule.instructions.gist(),
        _ => Brief::Not.word(),
    }
}

#[inline]
fn found(rule: Option<&Arc<Rule>>) -> Seen<'_> {
    Seen::Found(rule.map(AsRef::as_ref))
}

/// Frames that a table leads on.
#[derive(Clone, Copy, Debug)]
struct Led {
    places: Places,
    /// The first table that one of them is led to, and the last.
    first: TableId,
    last: TableId,
}

impl Led {
    const NONE: Self = Self {
        places: Places::NONE,
        first: TableId(u8::MAX),
        last: TableId::FIRST,
    };

    #[inline]
    fn add(&mut self, places: Places, to: TableId) {
        self.places.add(places);
        self.first = self.first.min(to);
        self.last = self.last.max(to);
    }
}

/// Frames one behind the other that find the same rule in a table.
#[derive(Clone, Copy, Debug)]
struct Streak<'a> {
    rule: &'a Rule,
    places: Places,
}

/// What has come of frames in a table.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    led: Led,
    /// What those count for that are led on.
    totals: Totals,
}

impl Arrival {
    const NONE: Self = Self {
        led: Led::NONE,
        totals: Totals {
            packets: 0,
            bytes: 0,
        },
    };
}

impl<'a> Batch<'a> {
    /// Reads some frames, and takes them on as long as the rules that they find do nothing
    /// but lead on, and write what goes with a frame.
    pub(crate) fn look_ahead(&mut self) {
        let frames = self.seen..self.rest.end.min(self.seen + AHEAD);
        self.seen = frames.end;
        for place in std::mem::take(&mut self.runner.written) {
            self.runner.lanes[place].forget();
        }
        let (waiting, table) = (self.read_ahead(frames), self.trunk.table);
        let view = self.ground.view;
        let mut led = match self.trunk.seen {
            Some(Seen::Found(Some(rule))) if Brief::leads(rule.instructions.gist()) => {
                self.arrive(table, waiting, |_, _| Seen::Found(Some(rule)))
            }
            // Noted when they were read.
            Some(_) => return,
            None => self.arrive_in(table, waiting, view.table(table)),
        };
        // A table leads to later ones only, so none is come to twice.
        while !led.places.is_none() {
            let table = led.first;
            let (here, elsewhere) = self.part(led);
            led = self.arrive_in(table, here, view.table(table));
            for place in elsewhere {
                led.add(Places::of(place), self.ahead[place].table);
            }
        }
    }

    /// Those that are led to the first of the tables, and the others.
    #[inline]
    fn part(&self, led: Led) -> (Places, Places) {
        if led.first == led.last {
            return (led.places, Places::NONE);
        }
        let is_here = |place: usize| self.ahead[place % AHEAD].table == led.first;
        let here = led.places.fold(Places::NONE, |mut here, place| {
            here.add(Places::of_if(place, is_here(place)));
            here
        });
        (here, led.places.without(here))
    }

    /// Has these frames looked up in a table. Answers which are led on.
    fn arrive_in(&mut self, id: TableId, here: Places, table: Option<&'a TableView>) -> Led {
        let view = self.ground.view;
        let Some(table) = table else {
            return self.arrive(id, here, |_, _| Seen::Found(None));
        };
        // Each form has a loop of its own, since what is told apart outside is not within.
        match table.sole() {
            Sole::Direct(base, direct) => self.arrive_in_few(id, here, (base, direct)),
            Sole::Tuple(tuple) if tuple.is_large() => {
                let each = view.look_up_each_in(tuple, &self.runner.lanes, here);
                self.arrive_at_far(id, here, &each)
            }
            Sole::Base(base) if base.is_large() => {
                let mut each = [None; AHEAD];
                for place in here {
                    let lanes = &self.runner.lanes[place];
                    each[place] = base.find(lanes, view.epoch(), |_| true);
                }
                self.arrive_at_far(id, here, &each)
            }
            Sole::Base(base) => self.arrive(id, here, |_, lanes| {
                found(base.find(lanes, view.epoch(), |_| true))
            }),
            Sole::Tuple(tuple) => {
                self.arrive(id, here, |_, lanes| found(view.look_up_in(tuple, lanes)))
            }
            Sole::None => self.arrive(id, here, |_, lanes| look_up(view, Some(table), lanes)),
        }
    }

    /// Notes what the table in which they are says to these frames. Answers which are led
    /// on, and leaves them in the table that they are led to.
    #[inline(always)]
    fn arrive(
        &mut self,
        id: TableId,
        here: Places,
        says: impl Fn(usize, &Lanes) -> Seen<'a>,
    ) -> Led {
        let mut arrival = Arrival::NONE;
        let mut streak: Option<Streak<'a>> = None;
        for place in here {
            let rule = match says(place, &self.runner.lanes[place % AHEAD]) {
                Seen::Found(Some(rule)) => rule,
                other => {
                    self.ahead[place % AHEAD].seen = other;
                    continue;
                }
            };
            let one = Places::of(place);
            match &mut streak {
                Some(streak) if std::ptr::eq(streak.rule, rule) => streak.places.add(one),
                other => {
                    let before = other.replace(Streak { rule, places: one });
                    if let Some(before) = before {
                        self.settle(before, &mut arrival);
                    }
                }
            }
        }
        if let Some(last) = streak {
            self.settle(last, &mut arrival);
        }
        self.count_arrival(id, arrival)
    }

    /// The same, where these frames find these rules, which are many in all: what is far away
    /// is asked for all of them together.
    fn arrive_at_far(
        &mut self,
        id: TableId,
        here: Places,
        each: &[Option<&'a Arc<Rule>>; AHEAD],
    ) -> Led {
        let rules = here.filter_map(|place| each[place]);
        let near = rules.fold(0, |near, rule| near ^ rule.instructions.gist());
        black_box(near);
        let (rules, writer) = (here.filter_map(|place| each[place]), self.runner.writer);
        let near = rules.fold(0, |near, rule| near ^ rule.counters.glance(writer));
        black_box(near);
        self.arrive(id, here, |place, _| found(each[place]))
    }

    /// The same, in a table of a few rules: each is compared with all of them.
    fn arrive_in_few(
        &mut self,
        id: TableId,
        here: Places,
        (base, direct): (&'a Base, &'a Direct),
    ) -> Led {
        let (mut arrival, mut left) = (Arrival::NONE, here);
        for (number, rule) in base.seen(self.ground.view.epoch()) {
            let places = direct.fitting(number, &self.runner.lanes, left);
            if !places.is_none() {
                self.settle(Streak { rule, places }, &mut arrival);
                left = left.without(places);
                if left.is_none() {
                    break;
                }
            }
        }
        for place in left {
            self.ahead[place % AHEAD].seen = Seen::Found(None);
        }
        self.count_arrival(id, arrival)
    }

    /// Counts those that are led on for the table, and answers which they are.
    #[inline]
    fn count_arrival(&mut self, id: TableId, arrival: Arrival) -> Led {
        if arrival.totals.packets > 0 {
            self.runner.tables.looked_up(id, arrival.totals);
        }
        arrival.led
    }

    /// Notes what the frames of a streak have found, and takes them on to where it leads.
    fn settle(&mut self, streak: Streak<'a>, arrival: &mut Arrival) {
        let Streak { rule, places } = streak;
        let gist = rule.instructions.gist();
        let Some(to) = self.lead(streak, gist) else {
            for place in places {
                let ahead = &mut self.ahead[place % AHEAD];
                (ahead.seen, ahead.gist) = (Seen::Found(Some(rule)), gist);
            }
            return;
        };
        let mut totals = Totals::default();
        for place in places {
            let ahead = &mut self.ahead[place % AHEAD];
            ahead.gist = Brief::Not.word();
            ahead.table = to;
            ahead.lookups += 1;
            add(&mut totals, ahead.weight);
        }
        let counters = &rule.counters;
        counters.add(self.runner.writer, totals, self.ground.now);
        add(&mut arrival.totals, totals);
        arrival.led.add(places, to);
    }

    /// Where a rule of this gist leads these frames, for whom it has done all else that it
    /// does then; none if it does not lead them on, or not yet.
    #[inline]
    fn lead(&mut self, streak: Streak<'a>, gist: u64) -> Option<TableId> {
        match Brief::of(gist) {
            Brief::Leads(to) => Some(to),
            Brief::Writes(to) => {
                self.write_beside(streak)?;
                Some(to)
            }
            Brief::Resubmits(to) => {
                self.resubmit_ahead(streak, to)?;
                Some(to)
            }
            Brief::Leaves(_) | Brief::Not => None,
        }
    }

    /// Notes a resubmission, and does what is before it; unless it leads to no later table, or
    /// there are too many.
    fn resubmit_ahead(&mut self, streak: Streak<'a>, to: TableId) -> Option<()> {
        let ahead = &self.ahead;
        let is_one = |place: usize| {
            let ahead = &ahead[place % AHEAD];
            to > ahead.table && usize::from(ahead.resubmits) < RESUBMITS_AHEAD
        };
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
        }
        if let Some(write) = steps.metadata {
            places.for_each(|place| lanes[place % AHEAD].write(write));
        }
        Some(())
    }

    /// Reads these frames. Answers which are to be looked up; of the others it is noted what
    /// is said of them.
    fn read_ahead(&mut self, frames: Range<usize>) -> Places {
        let ground = self.ground;
        let guard = self.is_guarded.then_some(Guard {
            pipeline: ground.pipeline,
            ingress: self.ingress,
        });
        let seen = self.trunk.seen.unwrap_or(Ahead::NOWHERE.seen);
        let start = Ahead {
            table: self.trunk.table,
            gist: gist_of(seen),
            seen,
            lookups: self.trunk.len(),
            ..Ahead::NOWHERE
        };
        let runner = &mut *self.runner;
        let places = runner.lanes.iter_mut().zip(&mut self.ahead);
        let mut waiting = Places::NONE;
        for (place, (frame, (lanes, ahead))) in self.frames[frames].iter().zip(places).enumerate() {
            let weight = weight_of(frame);
            *ahead = Ahead { weight, ..start };
            let said = match read(lanes, frame, ground, self.depth) {
                Ok(is_fragment) => guard
                    .as_ref()
                    .and_then(|guard| guard.says(lanes, is_fragment)),
                Err(reason) => Some(Seen::Refused(reason)),
            };
            match said {
                Some(seen) => (ahead.seen, ahead.gist) = (seen, gist_of(seen)),
                None => {
                    waiting.add(Places::of(place));
                    self.trunk.count(weight);
                }
            }
        }
        waiting
    }
}

/// What may be said of frames before they are looked up.
struct Guard<'a> {
    pipeline: &'a Pipeline,
    ingress: Option<PortView>,
}

impl Guard<'_> {
    /// What is said of a frame of these words, if anything is.
    fn says<'a>(&self, lanes: &Lanes, is_fragment: bool) -> Option<Seen<'a>> {
        let open = |port: PortView| port.receives(lanes.eth_dst());
        if !self.ingress.is_some_and(open) {
            return Some(Seen::Refused(DropReason::IngressClosed));
        }
        if self.pipeline.standalone() {
            return Some(Seen::Standalone);
        }
        let drops = self.pipeline.fragments() == FragmentHandling::Drop;
        (is_fragment && drops).then_some(Seen::Refused(DropReason::Fragment))
    }
}
