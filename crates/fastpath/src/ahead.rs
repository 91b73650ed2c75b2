//! Frames of a batch, some at a time, before the first of them goes its way: they are read,
//! and looked up table by table as long as what they find does nothing but lead on. So
//! what one has to wait for comes from memory while others are looked at, and a table
//! is looked into by all that come to it.

use std::ops::Range;
use std::sync::Arc;

use base::TableId;
use flow::FragmentHandling;
use pipeline::{DropReason, Pipeline, PortView, Rule};

use crate::classifier::{Sole, TableView};
use crate::lanes::Lanes;
use crate::runner::{Batch, Seen, look_up, read, weight_of};
use crate::steps::Brief;

/// So many frames. Their words take half of a first-level cache of 32 kB at most, and
/// more than some ten are no use: a core has no more loads in flight.
pub(crate) const AHEAD: usize = 32;

/// How far a frame has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead<'a> {
    /// Where it is.
    pub(crate) table: TableId,
    /// What that says.
    pub(crate) seen: Seen<'a>,
    /// What the rule does that it has found there, if that is [`Brief`]: its word.
    pub(crate) gist: u64,
    /// How many lookups there were before that one.
    pub(crate) lookups: usize,
}

impl Ahead<'_> {
    /// Before the first table, which is not looked into.
    pub(crate) const NOWHERE: Self = Self {
        table: TableId::FIRST,
        seen: Seen::Found(None),
        gist: Brief::Not.word(),
        lookups: 0,
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

/// Some of the frames that are read ahead, a bit for each.
#[derive(Clone, Copy, Debug, Default)]
struct Places(u32);

const _: () = assert!(AHEAD == u32::BITS as usize, "a bit for each");

impl Places {
    #[inline]
    const fn add(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let place = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (place < AHEAD).then_some(place)
    }
}

impl<'a> Batch<'a> {
    /// Reads some frames, and takes them on as long as the rules that they find do nothing
    /// but lead on.
    pub(crate) fn look_ahead(&mut self) {
        let frames = self.seen..self.rest.end.min(self.seen + AHEAD);
        let first = frames.start;
        self.seen = frames.end;
        let (mut waiting, mut id) = (self.read_ahead(frames), self.trunk.table);
        let view = self.ground.view;
        let mut led = match self.trunk.seen {
            Some(Seen::Found(Some(rule))) if Brief::leads(rule.instructions.gist()) => {
                self.arrive(first, waiting, |_| Seen::Found(Some(rule)))
            }
            // Noted when they were read.
            Some(_) => return,
            None => self.arrive_in(first, waiting, view.table(id)),
        };
        // A table leads to later ones only, so none is come to twice.
        while !led.is_none() {
            waiting = led;
            id = waiting
                .map(|place| self.ahead[place].table)
                .min()
                .unwrap_or(id);
            let (mut here, mut elsewhere) = (Places::default(), Places::default());
            for place in waiting {
                match self.ahead[place].table == id {
                    true => here.add(place),
                    false => elsewhere.add(place),
                }
            }
            led = self.arrive_in(first, here, view.table(id));
            led.0 |= elsewhere.0;
        }
    }

    /// Has these frames looked up in a table. Answers which are led on.
    fn arrive_in(&mut self, first: usize, here: Places, table: Option<&'a TableView>) -> Places {
        let view = self.ground.view;
        let Some(table) = table else {
            return self.arrive(first, here, |_| Seen::Found(None));
        };
        table.foresee(view, here.map(|place| &self.runner.lanes[place]));
        // Each form has a loop of its own, since what is told apart outside is not within.
        match table.sole() {
            Sole::Direct(base, direct) => self.arrive(first, here, |lanes| {
                found(base.find_direct(direct, lanes, view.epoch()))
            }),
            Sole::Base(base) => self.arrive(first, here, |lanes| {
                found(base.find(lanes, view.epoch(), |_| true))
            }),
            Sole::Tuple(tuple) => {
                self.arrive(first, here, |lanes| found(view.look_up_in(tuple, lanes)))
            }
            Sole::None => self.arrive(first, here, |lanes| look_up(view, Some(table), lanes)),
        }
    }

    /// Notes what the table in which they are says to these frames. Answers which are led
    /// on, and leaves them in the table that they are led to.
    #[inline(always)]
    fn arrive(&mut self, first: usize, here: Places, says: impl Fn(&Lanes) -> Seen<'a>) -> Places {
        let mut led = Places::default();
        for place in here {
            let seen = says(&self.runner.lanes[place]);
            let ahead = &mut self.ahead[place];
            ahead.seen = seen;
            let Seen::Found(Some(rule)) = seen else {
                continue;
            };
            ahead.gist = rule.instructions.gist();
            if Brief::leads(ahead.gist) {
                led.add(place);
                self.lead_on(first + place, place, rule);
            }
        }
        led
    }

    /// Takes a frame on to where a rule leads.
    #[inline]
    fn lead_on(&mut self, index: usize, place: usize, rule: &'a Rule) {
        let ahead = &mut self.ahead[place];
        let gist = std::mem::replace(&mut ahead.gist, Brief::Not.word());
        let Brief::Leads(next) = Brief::of(gist) else {
            return;
        };
        let table = std::mem::replace(&mut ahead.table, next);
        ahead.lookups += 1;
        let weight = weight_of(&self.frames[index]);
        self.count(table, rule, weight);
    }

    /// Reads these frames. Answers which are to be looked up; of the others it is noted what
    /// is said of them.
    fn read_ahead(&mut self, frames: Range<usize>) -> Places {
        let (ground, parts) = (self.ground, self.ground.view.parts());
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
        };
        let runner = &mut *self.runner;
        let places = runner.lanes.iter_mut().zip(&mut self.ahead);
        let mut waiting = Places::default();
        for (place, (frame, (lanes, ahead))) in self.frames[frames].iter().zip(places).enumerate() {
            *ahead = start;
            let said = match read(lanes, frame, ground, self.depth) {
                Ok(is_fragment) => guard
                    .as_ref()
                    .and_then(|guard| guard.says(lanes, is_fragment)),
                Err(reason) => Some(Seen::Refused(reason)),
            };
            lanes.fill_beside(parts, &runner.registers);
            match said {
                Some(seen) => (ahead.seen, ahead.gist) = (seen, gist_of(seen)),
                None => {
                    waiting.add(place);
                    self.trunk.count(frame);
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
