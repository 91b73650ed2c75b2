//! Fields while vectors are made: which rules want which class, and fields that are joined.

use std::collections::BTreeMap;

use super::WORD;
use super::classes::Classes;
use super::joint::Joint;
use crate::prefix::NONE;

/// How many pairs of classes a table tells at most: it takes eight kilobytes.
const PAIRS_MAX: usize = 4096;

/// How many classes they make at most: of a thousand rules their vectors take 64 kB.
const JOINED_MAX: usize = 512;

/// Words of a vector that are not zero, by their number.
pub(super) type Words = Vec<(u32, u64)>;

/// What vectors are made from, for one field or some that are joined.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) joint: Joint,
    /// By class: the rules that want it.
    pub(super) own: Vec<Words>,
    /// The rules that want nothing here.
    pub(super) wild: Vec<u64>,
}

impl Field {
    /// A field of which no rule wants anything, where bits have these ranks.
    pub(super) fn of_none(ranks: &[u32]) -> Self {
        Self {
            joint: Joint::of(Classes::of_one()),
            own: vec![Words::new()],
            wild: all(ranks),
        }
    }

    /// The vector of a class.
    pub(super) fn vector(&self, own: &Words) -> Vec<u64> {
        let mut vector = self.wild.clone();
        for (word, bits) in own {
            vector[*word as usize] |= bits;
        }
        vector
    }

    /// What both fields make together, if they do not have too many classes, and vectors no more
    /// words than there is room for.
    fn pairs(&self, other: &Self, room: &mut usize) -> Option<Pairs> {
        if self.own.len() * other.own.len() > PAIRS_MAX {
            return None;
        }
        let each = |field: &Self| -> Vec<_> {
            let own = field.own.iter();
            own.map(|own| field.vector(own)).collect()
        };
        let (ones, others) = (each(self), each(other));
        let wild = self.wild.iter().zip(&other.wild);
        let wild: Vec<u64> = wild.map(|(one, other)| one & other).collect();
        let (mut known, mut both) = (BTreeMap::new(), Vec::new());
        let (mut own, mut more) = (Vec::new(), 0);
        for one in &ones {
            for other in &others {
                let words = one.iter().zip(other).zip(&wild);
                let words = words.map(|((one, other), wild)| one & other & !wild);
                let words: Words = (0..).zip(words).filter(|(_, bits)| *bits != 0).collect();
                let class = *known.entry(words).or_insert_with_key(|words| {
                    more += words.len() + 2;
                    own.push(words.clone());
                    own.len() - 1
                });
                both.push(u16::try_from(class).expect("there are fewer pairs"));
            }
        }
        let left = room.checked_sub(more);
        *room = left.filter(|_| own.len() <= JOINED_MAX)?;
        Some(Pairs { own, wild, both })
    }

    /// With a field more, as those pairs say.
    fn with(self, other: Self, Pairs { own, wild, both }: Pairs) -> Self {
        let joint = self.joint.with(other.joint, other.own.len(), both);
        Self { joint, own, wild }
    }
}

/// What two fields make together.
struct Pairs {
    own: Vec<Words>,
    wild: Vec<u64>,
    /// By class of the one, and of the other: which class they make.
    both: Vec<u16>,
}

/// A bit for each rule, where bits have these ranks.
pub(super) fn all(ranks: &[u32]) -> Vec<u64> {
    let of_word = |ranks: &[u32]| {
        let ranks = ranks.iter().rev();
        ranks.fold(0, |bits, rank| bits << 1 | u64::from(*rank != NONE))
    };
    ranks.chunks(WORD).map(of_word).collect()
}

/// Those of these fields joined that have few classes.
pub(super) fn joined(mut fields: Vec<Field>, room: &mut usize) -> Vec<Field> {
    fields.sort_by_key(|field| field.own.len());
    let mut joined: Vec<Field> = Vec::new();
    for field in fields {
        let last = joined.last().map(|last| last.pairs(&field, room));
        match (last.flatten(), joined.pop()) {
            (Some(pairs), Some(last)) => joined.push(last.with(field, pairs)),
            (_, last) => joined.extend(last.into_iter().chain([field])),
        }
    }
    joined
}
