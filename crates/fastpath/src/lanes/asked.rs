//! What a rule asks of a frame, field by field. The words of [`Conditions`] hold several
//! fields each; forms that look at one field after the other need them apart.
//!
//! [`Conditions`]: super::Conditions

use flow::Match;

use super::{halves, lane, place_of};

/// Where a field is: so many bits of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// The word.
    pub(crate) lane: u8,
    /// How far from the right.
    pub(crate) shift: u8,
    /// How many bits, at least one.
    pub(crate) bits: u8,
}

impl Spot {
    /// Where it is told what of a frame is there.
    const PRESENCE: Self = Self {
        lane: narrow(lane::ARRIVAL),
        shift: 0,
        bits: 8,
    };

    /// All of its bits, at the right.
    pub(crate) const fn full(self) -> u64 {
        u64::MAX >> (64 - self.bits as u32)
    }
}

/// What is wanted in one place: `mask` says which bits count, from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) spot: Spot,
    pub(crate) value: u64,
    pub(crate) mask: u64,
}

/// What `matching` asks; a field of 128 bits is two places. No place comes twice.
pub(crate) fn asked(matching: &Match) -> Vec<Asked> {
    let (mut all, mut presence) = (Vec::new(), 0);
    for term in matching.terms() {
        let place = place_of(term.field);
        presence |= place.has;
        let ((upper, lower), (upper_mask, lower_mask)) = (halves(term.value), halves(term.mask));
        if place.is_wide {
            all.push(wide(place.lane, upper, upper_mask));
            all.push(wide(place.lane + 1, lower, lower_mask));
        } else {
            let shift = u8::try_from(place.shift).expect("a word has 64 bits");
            let spot = Spot {
                lane: narrow(place.lane),
                shift,
                bits: u8::try_from(term.field.info().bits).expect("a field in one word"),
            };
            all.push(Asked {
                spot,
                value: lower,
                mask: lower_mask,
            });
        }
    }
    all.push(Asked {
        spot: Spot::PRESENCE,
        value: presence,
        mask: presence,
    });
    all.retain(|asked| asked.mask != 0);
    all
}

fn wide(lane: usize, value: u64, mask: u64) -> Asked {
    let spot = Spot {
        lane: narrow(lane),
        shift: 0,
        bits: 64,
    };
    Asked { spot, value, mask }
}

/// A word's number.
const fn narrow(lane: usize) -> u8 {
    lane.to_le_bytes()[0]
}
