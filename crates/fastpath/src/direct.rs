//! A few rules, compared with a frame one after the other, in the order in which they are
//! tried.
//!
//! Frames of a group are compared together: the words that rules ask for are laid side by side,
//! word by word, so that one instruction compares those of several frames.
//!
//! Cost of a lookup, in modelled instructions: so much for each rule, and so much for each
//! word that it asks for.

use std::sync::Arc;

use pipeline::Rule;
use sys::vectors::{self, WordCondition};

use crate::ahead::AHEAD;
use crate::lanes::{Conditions, LANES, Lanes};
use crate::places::Places;

/// Most rules: beyond, other forms cost less.
pub(crate) const RULES_MAX: usize = 16;

/// Words that are laid side by side at most: with more, frames are compared one by one.
const COLUMNS_MAX: usize = 8;

/// What a rule wants of a word.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    lane: u8,
    mask: u64,
    value: u64,
}

/// The words of frames that rules ask for, side by side.
#[derive(Debug)]
pub(crate) struct Columns([[u64; AHEAD]; COLUMNS_MAX]);

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Direct {
    wanted: Box<[Wanted]>,
    /// The same, by columns; empty if they would be too many.
    conditions: Box<[WordCondition]>,
    /// By column: the word that it is of.
    columns: Box<[u8]>,
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
        let (columns, conditions) = by_columns(&wanted);
        Self {
            wanted: wanted.into(),
            conditions: conditions.into(),
            columns: columns.into(),
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

    /// Which of the frames in these places fit the rule in place `rule`. `columns` is where their
    /// words are laid side by side, if they have to be.
    #[inline]
    pub(crate) fn fitting(
        &self,
        rule: usize,
        lanes: &[Lanes; AHEAD],
        of: Places,
        columns: &mut Option<Columns>,
    ) -> Places {
        let start = rule.checked_sub(1).map_or(0, |before| self.ends[before]);
        let of_rule = start..self.ends[rule];
        if let Some(columns) = columns {
            return which_have(columns, &self.conditions[of_rule], of);
        }
        let wanted = &self.wanted[of_rule.clone()];
        if of
            .len_if_first()
            .is_some_and(|count| all_fit(wanted, &lanes[..count]))
        {
            return of;
        }
        // Where they are few among others, they are looked at one by one.
        let is_dense = 2 * of.len() as usize >= of.end();
        if is_dense && self.conditions.len() == self.wanted.len() {
            let columns = columns.insert(self.side_by_side(&lanes[..of.end()]));
            return which_have(columns, &self.conditions[of_rule], of);
        }
        let mut fitting = of;
        for Wanted { lane, mask, value } in wanted {
            let fits = |lanes: &Lanes| (lanes.word(*lane) ^ value) & mask == 0;
            fitting = fitting.fold(Places::NONE, |mut fitting, place| {
                fitting.add(Places::of_if(place, fits(&lanes[place % AHEAD])));
                fitting
            });
            if fitting.is_none() {
                break;
            }
        }
        fitting
    }

    /// The words of these frames that rules ask for.
    #[inline]
    fn side_by_side(&self, frames: &[Lanes]) -> Columns {
        let mut columns = [[0; AHEAD]; COLUMNS_MAX];
        for (column, lane) in columns.iter_mut().zip(&self.columns) {
            for (word, lanes) in column.iter_mut().zip(frames) {
                *word = lanes.word(*lane);
            }
        }
        Columns(columns)
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
        let wanted = size_of_val(&*self.wanted) + size_of_val(&*self.conditions);
        wanted + size_of_val(&*self.columns) + size_of_val(&*self.ends)
    }
}

/// Which words are asked for, and what is wanted of each; nothing if they are too many.
fn by_columns(wanted: &[Wanted]) -> (Vec<u8>, Vec<WordCondition>) {
    let mut lanes: Vec<u8> = wanted.iter().map(|wanted| wanted.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    if lanes.len() > COLUMNS_MAX {
        return (Vec::new(), Vec::new());
    }
    let column = |of: &Wanted| lanes.iter().position(|lane| *lane == of.lane);
    let condition = |wanted: &Wanted| WordCondition {
        column: column(wanted).expect("it is one of them"),
        mask: wanted.mask,
        value: wanted.value,
    };
    let conditions = wanted.iter().map(condition).collect();
    (lanes, conditions)
}

/// Which of these frames have what is wanted.
#[inline]
fn which_have(Columns(columns): &Columns, wanted: &[WordCondition], of: Places) -> Places {
    of.both(Places::of_bits(vectors::match_words(
        columns,
        wanted,
        of.bits(),
    )))
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
