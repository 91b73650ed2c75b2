//! The trails that are kept, and what has been counted for them and not yet for the rules on
//! their way. What a frame that goes one touches stands in two cache lines and a few that
//! all share; the rules are behind.

use base::{Instant, PortNo, TableId};
use pipeline::{Counters, Rule, Totals};

use super::asked::{Mark, WORDS};
use super::unsettled::Unsettled;

/// Rules along a trail at most, from the table on that not all frames of a batch come to.
pub(crate) const RULES: usize = 10;

/// Places where a trail of one hash may be, side by side: so hardly a flow finds all of its own
/// taken before half of all are.
pub(super) const PLACES: usize = 8;

/// Sets of such places.
pub(super) const SETS: u16 = 512;

/// Trails that are kept: they take one megabyte, and are in a second-level cache then, or nearly.
pub(super) const TRAILS: usize = SETS as usize * PLACES;

/// The words of a trail, which have a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Words([u64; WORDS]);

/// Where a trail ends, and what has been counted there.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct End {
    /// What its rules have not counted yet, ...
    pub(super) totals: Totals,
    /// ... and until when that was.
    pub(super) used: Instant,
    /// By which port frames leave.
    port: PortNo,
    /// Whether it is listed among those of which that is so.
    pub(super) is_listed: bool,
}

const _: () = assert!(size_of::<End>() == 32, "half a cache line");

impl End {
    fn at(port: PortNo) -> Self {
        Self {
            totals: Totals::default(),
            used: Instant::START,
            port,
            is_listed: false,
        }
    }
}

/// The rules that frames find which go a trail.
#[derive(Debug)]
pub(super) struct Route {
    /// Of each, found in the table of its place.
    counters: [Option<Counters>; RULES],
    tables: [TableId; RULES],
}

impl Route {
    const NONE: Self = Self {
        counters: [const { None }; RULES],
        tables: [TableId::FIRST; RULES],
    };

    fn of<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let mut route = Self::NONE;
        let places = route.counters.iter_mut().zip(&mut route.tables);
        for ((counters, table), rule) in places.zip(rules) {
            (*counters, *table) = (Some(rule.counters.clone()), rule.table());
        }
        route
    }

    /// The counts of the rules, and in which tables these are.
    #[inline]
    pub(super) fn counters(&self) -> impl Iterator<Item = (&Counters, TableId)> {
        let counters = self.counters.iter().map_while(Option::as_ref);
        counters.zip(self.tables.iter().copied())
    }
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Kept {
    /// By set and place: some bits of the hash, so that mostly one trail is compared, and it is
    /// the right one; zero where there is none.
    tags: Box<[[u8; PLACES]; SETS as usize]>,
    words: Box<[Words; TRAILS]>,
    pub(super) ends: Box<[End; TRAILS]>,
    pub(super) routes: Box<[Route; TRAILS]>,
    pub(super) unsettled: Unsettled,
    /// Which of them is looked at next for whether it is there no more.
    swept: usize,
}

impl Kept {
    /// None yet.
    pub(super) fn new(writer: usize) -> Self {
        let none = End::at(PortNo::ANY);
        Self {
            tags: many(|| [0; PLACES]),
            words: many(|| Words([0; WORDS])),
            ends: many(|| none),
            routes: many(|| Route::NONE),
            unsettled: Unsettled::new(writer),
            swept: 0,
        }
    }

    /// Where the trail of this mark is.
    #[inline(always)]
    fn find<const N: usize>(&self, mark: &Mark<N>) -> Option<usize> {
        let set = mark.set();
        let mut likely = which(self.tags[set], mark.tag);
        while likely != 0 {
            let place = set * PLACES + likely.trailing_zeros() as usize / TAG_BITS;
            let Words(words) = &self.words[place % TRAILS];
            let words = words.iter().zip(&mark.words);
            if words.fold(0, |differing, (one, other)| differing | one ^ other) == 0 {
                return Some(place);
            }
            likely &= likely - 1;
        }
        None
    }

    /// Has a frame of this mark and weight go its trail, if there is one and the frame may
    /// leave by that port, which it answers.
    #[inline(always)]
    pub(crate) fn go<const N: usize>(
        &mut self,
        mark: &Mark<N>,
        (weight, now): (Totals, Instant),
        may_leave: impl FnOnce(PortNo) -> bool,
    ) -> Option<PortNo> {
        let place = self.find(mark)?;
        let end = &mut self.ends[place % TRAILS];
        if !may_leave(end.port) {
            return None;
        }
        end.totals.packets = end.totals.packets.wrapping_add(weight.packets);
        end.totals.bytes = end.totals.bytes.wrapping_add(weight.bytes);
        end.used = now;
        if !end.is_listed {
            end.is_listed = true;
            self.unsettled.list(place);
        }
        Some(end.port)
    }

    /// Keeps the way of a frame of this mark that has found these rules, one after the
    /// other, and left by this port.
    pub(super) fn keep<'a>(
        &mut self,
        mark: &Mark<WORDS>,
        rules: impl Iterator<Item = &'a Rule>,
        port: PortNo,
    ) {
        if self.find(mark).is_some() {
            return;
        }
        let set = mark.set();
        let free = self.tags[set].iter().position(|tag| *tag == 0);
        // Of a set that is full some other is given up, mostly another one each time.
        let at = free.unwrap_or_else(|| usize::from(mark.bucket / SETS) % PLACES);
        let place = set * PLACES + at;
        self.settle_one(place);
        self.tags[set][at] = mark.tag;
        self.words[place] = Words(mark.words);
        self.ends[place].port = port;
        self.routes[place] = Route::of(rules);
    }

    /// None of those that are there is gone any more.
    pub(super) fn forget(&mut self) {
        self.settle_all();
        self.tags.fill([0; PLACES]);
        self.swept = 0;
    }

    /// Lets go of what the next trail holds, if it is there no more: of one a batch, so
    /// that no batch waits for all. Answers whether there is another.
    #[inline]
    pub(super) fn sweep(&mut self) -> bool {
        let Some(route) = self.routes.get_mut(self.swept) else {
            return false;
        };
        if self.tags[self.swept / PLACES][self.swept % PLACES] == 0 {
            *route = Route::NONE;
        }
        self.swept += 1;
        true
    }

    /// How many hold anything.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let is_one = |route: &&Route| route.counters().next().is_some();
        self.routes.iter().filter(is_one).count()
    }
}

/// So many of what is made, without a copy on the stack.
fn many<T, const N: usize>(one: impl Fn() -> T) -> Box<[T; N]> {
    let all: Box<[T]> = (0..N).map(|_| one()).collect();
    all.try_into()
        .unwrap_or_else(|_| unreachable!("so many were made"))
}

/// Bits of a tag.
const TAG_BITS: usize = u8::BITS as usize;

/// Which of the tags may be this one: for each the uppermost of its bits, from the right. The
/// first that is told is one for certain.
#[inline(always)]
const fn which(tags: [u8; PLACES], tag: u8) -> u64 {
    /// The lowest bit of each tag, and the uppermost.
    const LOWEST: u64 = u64::from_le_bytes([1; PLACES]);
    const UPPERMOST: u64 = LOWEST << (TAG_BITS - 1);
    let differing = u64::from_le_bytes(tags) ^ u64::from_le_bytes([tag; PLACES]);
    differing.wrapping_sub(LOWEST) & !differing & UPPERMOST
}
