//! A few rules, compared with a frame one after the other, in the order in which they are
//! tried.
//!
//! Cost of a lookup, in modelled instructions: so much for each rule, and so much for each
//! word that it asks for.

use std::sync::Arc;

use pipeline::Rule;

use crate::ahead::AHEAD;
use crate::lanes::{Conditions, LANES, Lanes};
use crate::places::Places;

/// Most rules: beyond, other forms cost less.
pub(crate) const RULES_MAX: usize = 16;

/// What a rule wants of a word.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lane: u8,
    mask: u64,
    value: u64,
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Direct {
    wanted: Box<[Wanted]>,
    /// By rule: where what it wants ends.
    ends: Box<[usize]>,
}

impl Direct {
    /// These rules, which stand in the order in which they are tried.
    pub(crate) fn of(rules: &[Arc<Rule>]) -> Self {
        let (mut wanted, mut ends) = (Vec::new(), Vec::new());
        for rule in rules {
            let conditions = Conditions::of(rule.matching());
            let mut room = [(0, 0); LANES];
            let masks = conditions.masks(&mut room).iter();
            wanted.extend(masks.map(|(lane, mask)| Wanted {
                lane: *lane,
                mask: *mask,
                value: conditions.values.word(*lane),
            }));
            ends.push(wanted.len());
        }
        Self {
            wanted: wanted.into(),
            ends: ends.into(),
        }
    }

    /// The place of the rule that the frame finds, of those that are `seen`.
    #[inline]
    pub(crate) fn find(&self, lanes: &Lanes, seen: impl Fn(usize) -> bool) -> Option<usize> {
        let mut start = 0;
        for (place, end) in self.ends.iter().enumerate() {
            let is_it = |wanted: &Wanted| lanes.word(wanted.lane) & wanted.mask == wanted.value;
            if self.wanted[start..*end].iter().all(is_it) && seen(place) {
                return Some(place);
            }
            start = *end;
        }
        None
    }

    /// Which of the frames in these places fit the rule in place `rule`.
    #[inline]
    pub(crate) fn fitting(&self, rule: usize, lanes: &[Lanes; AHEAD], of: Places) -> Places {
        let start = rule.checked_sub(1).map_or(0, |before| self.ends[before]);
        let wanted = &self.wanted[start..self.ends[rule]];
        if of
            .len_if_first()
            .is_some_and(|count| all_fit(wanted, &lanes[..count]))
        {
            return of;
        }
        let end = of.end();
        // Of most of those up to the last it is asked: then it is asked of each, without a
        // branch that depends on which they are.
        let is_dense = 2 * of.len() as usize >= end;
        let mut fitting = of;
        for Wanted { lane, mask, value } in wanted {
            let fits = |lanes: &Lanes| (lanes.word(*lane) ^ value) & mask == 0;
            fitting = match is_dense {
                true => fitting.both(Places::which(&lanes[..end], fits)),
                false => fitting.fold(Places::NONE, |mut fitting, place| {
                    fitting.add(Places::of_if(place, fits(&lanes[place % AHEAD])));
                    fitting
                }),
            };
            if fitting.is_none() {
                break;
            }
        }
        fitting
    }

    /// What a lookup takes, in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        cost(self.ends.len(), self.wanted.len())
    }

    /// What a lookup among so many rules is likely to take: few words tell that a rule is
    /// not the one.
    pub(crate) const fn likely_cost(rules: usize) -> usize {
        cost(rules, 2 * rules)
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.wanted) + size_of_val(&*self.ends)
    }
}

/// Whether all of these frames have what is wanted, which takes less to tell than of each
/// which have; not if already the first has not.
#[inline]
fn all_fit(wanted: &[Wanted], lanes: &[Lanes]) -> bool {
    let differs =
        |lanes: &Lanes, wanted: &Wanted| (lanes.word(wanted.lane) ^ wanted.value) & wanted.mask;
    let first = lanes
        .first()
        .is_some_and(|first| wanted.iter().all(|wanted| differs(first, wanted) == 0));
    first
        && wanted.iter().all(|wanted| {
            let all = lanes.iter();
            all.fold(0, |differing, lanes| differing | differs(lanes, wanted)) == 0
        })
}

/// What a lookup takes, in instructions as callgrind counts them.
const fn cost(rules: usize, words: usize) -> usize {
    const ALWAYS: usize = 15;
    const RULE: usize = 10;
    const WORD: usize = 7;
    ALWAYS + rules * RULE + words * WORD
}
