//! Ways that frames have gone: a frame that has all that tables look at in common with one
//! that came before finds what that one found, in each of them. So frames of few flows are
//! looked up once where there are many tables.
//!
//! Whether a frame goes such a *trail* is never a matter of what becomes of it, only of what it costs: the
//! words of both are compared whole, and a trail is of one view of the tables. Trails are
//! few and of fixed size, and are looked for only where frames come by several tables and
//! most find one: traffic that has no use for them pays for no more than an attempt now and
//! then. They end where frames leave and nothing else becomes of them; of others there are
//! none.

use std::sync::{Arc, Weak};

use base::{PortNo, TableId};
use pipeline::{Counters, Rule};
use sys::cache::prefetch;

use crate::ahead::AHEAD;
use crate::classifier::{View, Views};
use crate::lanes::Lanes;
use crate::places::Places;
use crate::segment::Epoch;
use crate::shape::Hasher;

/// Words of a frame that tables look at, at most: those of a connection between stations are six.
/// Where they look at more there are no trails.
const WORDS: usize = 8;

/// Rules along a trail at most, from the table on that not all frames of a batch come to:
/// then a trail has four cache lines.
pub(crate) const RULES: usize = 10;

/// Trails that are kept: one megabyte. They are in a second-level cache then, or nearly.
const TRAILS: usize = 4096;

/// Places where one may be: so hardly a flow finds all of its own taken before half of all are.
const PLACES: usize = 4;

const _: () = assert!(TRAILS.is_multiple_of(PLACES), "places lie side by side");

/// Frames that are followed of those that are read together: so it costs little where frames
/// never come again.
const FOLLOWED: usize = 4;

/// After so many times that frames were read ahead it is asked whether trails are of use.
const WINDOW: u32 = 512;

/// So many tables frames come by, on an average, where it is tried.
const TABLES_MIN: u32 = 4;

/// One frame of so many goes a trail at least, or none are looked for ...
const SHARE: u64 = 2;

/// ... for so many windows, and twice as many if that is so again, up to the second.
const REST_MIN: u32 = 32;
const REST_MAX: u32 = 1024;

/// Changes of the tables within a window that trails outlast: all begin anew with each.
const CHANGES_MAX: u32 = 8;

/// Whether trails are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not for so many windows.
    Resting(u32),
    /// Yes, and none is surprised that there are few.
    Learning,
    /// Yes.
    Used,
    /// Yes, of use or not.
    Always,
}

/// What of frames the tables of a view look at.
#[derive(Debug)]
struct Asked {
    /// Keeps the address, not the tables.
    tables: Weak<Views>,
    epoch: Epoch,
    hasher: Hasher,
    /// Words, and bits of them; none of those behind the first that has no bits.
    words: [(u8, u64); WORDS],
    len: usize,
}

/// What a frame is compared by, and its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    words: [u64; WORDS],
    place: u16,
}

impl Mark {
    /// That of nothing.
    pub(crate) const NONE: Self = Self {
        words: [0; WORDS],
        place: 0,
    };
}

/// A way.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Trail {
    words: [u64; WORDS],
    /// By which port frames leave.
    pub(crate) port: PortNo,
    /// Of which of all views that have been; zero for none.
    view: u32,
    tables: [TableId; RULES],
    /// Of the rules on the way, each found in the table of its place.
    counters: [Option<Counters>; RULES],
}

const _: () = assert!(size_of::<Trail>() == 256, "four cache lines");

impl Trail {
    const NONE: Self = Self {
        words: [0; WORDS],
        port: PortNo::ANY,
        view: 0,
        tables: [TableId::FIRST; RULES],
        counters: [const { None }; RULES],
    };

    /// The counts of the rules on the way, and in which tables these are.
    #[inline]
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&Counters, TableId)> {
        let counters = self.counters.iter().map_while(Option::as_ref);
        counters.zip(self.tables.iter().copied())
    }
}

/// A worker's trails.
#[derive(Debug)]
pub(crate) struct Trails {
    stage: Stage,
    /// None if the tables look at too much.
    asked: Option<Asked>,
    /// The number of the view that trails are of.
    view: u32,
    /// None until they are looked for.
    trails: Box<[Trail]>,
    /// Which of them is looked at next for whether it is of an older view.
    swept: usize,
    /// How long the next rest is.
    rest: u32,
    window: Window,
}

/// What has happened in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// How often frames were read ahead, and by how many tables they came.
    looks: u32,
    tables: u32,
    frames: u64,
    hits: u64,
    changes: u32,
}

impl Trails {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Resting(0),
            asked: None,
            view: 0,
            trails: Box::new([]),
            swept: 0,
            rest: REST_MIN,
            window: Window::default(),
        }
    }

    /// Has them looked for whether they are of use or not.
    pub(crate) const fn always(&mut self) {
        self.stage = Stage::Always;
    }

    /// Whether they are looked for in this batch.
    #[inline]
    pub(crate) const fn are_kept(&self) -> bool {
        self.asked.is_some()
    }

    /// Begins a batch.
    #[inline]
    pub(crate) fn begin(&mut self, view: &View) {
        if self.window.looks >= WINDOW {
            self.judge();
        }
        if matches!(self.stage, Stage::Resting(_)) && self.swept >= self.trails.len() {
            return;
        }
        self.sweep();
        let is_same = |asked: &Asked| view.is(&asked.tables, asked.epoch);
        let is_stale = !self.asked.as_ref().is_some_and(is_same);
        if is_stale && !matches!(self.stage, Stage::Resting(_)) {
            self.turn_to(view);
        }
    }

    /// Takes note that frames were read ahead and came by so many tables.
    #[inline]
    pub(crate) const fn note(&mut self, tables: u32) {
        self.window.looks += 1;
        self.window.tables += tables;
    }

    /// And that of these frames those went no trail.
    #[inline]
    pub(crate) const fn note_found(&mut self, of: Places, others: Places) {
        self.window.frames += of.len() as u64;
        self.window.hits += of.without(others).len() as u64;
    }

    /// Decides what to do in the next window.
    #[cold]
    fn judge(&mut self) {
        let window = std::mem::take(&mut self.window);
        let is_worth_it = window.tables >= TABLES_MIN * window.looks;
        self.stage = match self.stage {
            Stage::Resting(0) if is_worth_it => Stage::Learning,
            Stage::Resting(left) => Stage::Resting(left.saturating_sub(1)),
            Stage::Learning => Stage::Used,
            Stage::Used if window.frames < SHARE * window.hits => {
                self.rest = REST_MIN;
                Stage::Used
            }
            Stage::Used => self.repose(),
            Stage::Always => Stage::Always,
        };
    }

    /// Lets go of all of them.
    fn repose(&mut self) -> Stage {
        let rest = self.rest;
        self.rest = (2 * rest).min(REST_MAX);
        self.asked = None;
        self.forget();
        Stage::Resting(rest)
    }

    /// None of those that are there is gone any more.
    fn forget(&mut self) {
        self.view = self.view.wrapping_add(1).max(1);
        self.swept = 0;
    }

    /// Lets go of what the next trail holds, if it is of an older view: of one a batch, so
    /// that no batch waits for all.
    #[inline]
    fn sweep(&mut self) {
        if let Some(trail) = self.trails.get_mut(self.swept) {
            if trail.view != self.view && trail.view != 0 {
                *trail = Trail::NONE;
            }
            self.swept += 1;
        }
    }

    /// Begins anew, for this view.
    #[cold]
    fn turn_to(&mut self, view: &View) {
        self.window.changes += 1;
        if self.window.changes > CHANGES_MAX && self.stage != Stage::Always {
            self.stage = self.repose();
            return;
        }
        if self.trails.is_empty() {
            self.trails = (0..TRAILS).map(|_| Trail::NONE).collect();
        }
        self.forget();
        self.asked = Asked::of(view);
        if self.asked.is_none() && self.stage != Stage::Always {
            self.stage = self.repose();
        }
    }

    /// What a frame of these words is compared by.
    #[inline]
    pub(crate) fn mark(&self, lanes: &Lanes) -> Mark {
        let mut mark = Mark::NONE;
        let Some(asked) = &self.asked else {
            return mark;
        };
        for (word, (lane, mask)) in mark.words.iter_mut().zip(&asked.words[..asked.len]) {
            *word = lanes.word(*lane) & mask;
        }
        let words = mark.words.iter().copied().take(asked.len);
        mark.place = asked.hasher.hash(words).bucket();
        mark
    }

    /// Asks for the memory where a trail of this mark is found first.
    #[inline]
    pub(crate) fn prefetch(&self, mark: &Mark) {
        let trail = &self.trails[usize::from(mark.place) % TRAILS];
        prefetch(&trail.words);
        let of_lines = trail.counters.iter().step_by(4);
        of_lines.for_each(prefetch);
    }

    /// The trail of this mark.
    #[inline]
    pub(crate) fn find(&self, mark: &Mark) -> Option<&Trail> {
        places(mark).find_map(|place| {
            let trail = &self.trails[place];
            let words = trail.words.iter().zip(&mark.words);
            let differing = words.fold(0, |differing, (one, other)| differing | one ^ other);
            (differing == 0 && trail.view == self.view).then_some(trail)
        })
    }

    /// Keeps the way of a frame of this mark that has found these rules, one after the
    /// other, and left by this port.
    fn keep<'a>(&mut self, mark: &Mark, rules: impl Iterator<Item = &'a Rule>, port: PortNo) {
        if self.find(mark).is_some() {
            return;
        }
        let is_free = |place: &usize| self.trails[*place].view != self.view;
        let free = places(mark).find(is_free);
        let place = usize::from(mark.place) % TRAILS;
        let mut trail = Trail {
            words: mark.words,
            view: self.view,
            port,
            ..Trail::NONE
        };
        let places = trail.counters.iter_mut().zip(&mut trail.tables);
        for ((counters, table), rule) in places.zip(rules) {
            (*counters, *table) = (Some(rule.counters.clone()), rule.table());
        }
        self.trails[free.unwrap_or(place)] = trail;
    }
}

/// Where a trail of this mark may be.
#[inline]
fn places(mark: &Mark) -> impl Iterator<Item = usize> {
    let first = usize::from(mark.place) % TRAILS;
    (0..PLACES).map(move |other| first ^ other)
}

impl Asked {
    /// What the tables of this view look at; none if it is too much.
    fn of(view: &View) -> Option<Self> {
        let mut words = [(0, 0); WORDS];
        let mut len = 0;
        for (lane, mask) in view.asked().filter(|(_, mask)| *mask != 0) {
            *words.get_mut(len)? = (lane, mask);
            len += 1;
        }
        Some(Self {
            tables: Arc::downgrade(&view.tables),
            epoch: view.epoch(),
            hasher: view.hasher,
            words,
            len,
        })
    }
}

/// A frame whose way is noted while it goes it.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    place: usize,
    mark: Mark,
    rules: [Option<&'a Rule>; RULES],
    /// How many it has found, which may be too many.
    len: usize,
}

/// Frames whose ways are noted while they go them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Followed<'a>([Option<Way<'a>>; FOLLOWED]);

impl<'a> Followed<'a> {
    /// Some of these frames, of these marks.
    pub(crate) fn of(places: Places, marks: &[Mark; AHEAD]) -> Self {
        let mut followed = Self::default();
        for (room, place) in followed.0.iter_mut().zip(places) {
            *room = Some(Way {
                place,
                mark: marks[place % AHEAD],
                rules: [None; RULES],
                len: 0,
            });
        }
        followed
    }

    /// Frames in these places have found a rule, and leave then if a port is told of.
    pub(crate) fn find(
        &mut self,
        places: Places,
        rule: &'a Rule,
        leaving: Option<PortNo>,
        trails: &mut Trails,
    ) {
        let ways = self.0.iter_mut().flatten();
        for way in ways.filter(|way| places.have(way.place)) {
            if let Some(room) = way.rules.get_mut(way.len) {
                *room = Some(rule);
            }
            way.len += 1;
            if let (Some(port), Some(rules)) = (leaving, way.rules.get(..way.len)) {
                trails.keep(&way.mark, rules.iter().copied().flatten(), port);
            }
        }
    }
}

const _: () = assert!(FOLLOWED <= AHEAD, "of those that are read ahead");

#[cfg(test)]
mod tests;
