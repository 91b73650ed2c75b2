//! What a rule asks of a frame: a conjunction of terms, one a field, legal by
//! construction. An absent field is a wildcard.
//!
//! This is meaning only: how 1.0, OXM and NXM write a match is the codec's
//! business, and how it is found quickly the fast path's.

mod builder;
mod layout;
mod options;
mod packed;
mod prerequisites;

use std::fmt;

use crate::extension::PacketType;
use crate::field::{Field, Prerequisite};
use crate::flow_key::FlowKey;
use crate::options::OptionTerm;
use crate::refusal::Refusal;

pub use builder::MatchBuilder;
pub use layout::TermLayout;
pub use options::OptionTerms;
use packed::PackedTerms;
pub use packed::{TermHead, Terms};
use prerequisites::FactSet;

/// One condition: the field, under the mask, equals the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The field.
    pub field: Field,
    /// The bits wanted; none outside the mask.
    pub value: u128,
    /// The bits that count; never zero.
    pub mask: u128,
}

impl Term {
    /// Whether every bit of the field counts.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.full_mask()
    }

    /// Whether the field of the frame is there and is as wanted.
    #[must_use]
    pub fn accepts(&self, key: &FlowKey) -> bool {
        key.get(self.field)
            .is_some_and(|value| value & self.mask == self.value)
    }

    /// Whether every value of the field that `other` accepts is accepted by this one.
    const fn covers(&self, other: &Self) -> bool {
        other.mask & self.mask == self.mask && other.value & self.mask == self.value
    }

    /// Whether some value of the field could satisfy both.
    const fn overlaps(&self, other: &Self) -> bool {
        (self.value ^ other.value) & self.mask & other.mask == 0
    }
}

/// Terms in the order of [`Field`], at most one for each; and what is asked of tunnel
/// options ([`OptionTerm`]), whose values are too wide to be terms.
///
/// Two matches are equal when they accept the same frames by the same terms;
/// the order in which terms were given leaves no trace. A match is small, since
/// there may be a million: twelve exact fields of IPv4 take 48 bytes in all and
/// nothing on the heap.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    packed: PackedTerms,
}

impl Match {
    /// The match that every frame satisfies.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            packed: PackedTerms::EMPTY,
        }
    }

    /// The terms, in order.
    #[must_use]
    pub fn terms(&self) -> Terms<'_> {
        Terms::of(self.packed.as_bytes())
    }

    /// What is asked of tunnel options, in order.
    #[must_use]
    pub fn options(&self) -> OptionTerms<'_> {
        self.terms().options()
    }

    /// What is asked of the tunnel option that `field` is bound to; none if nothing is.
    #[must_use]
    pub fn option(&self, field: Field) -> Option<OptionTerm> {
        self.options().find(|term| term.field == field)
    }

    /// The terms as bytes, one behind the other in order: a head ([`TermHead`]), the value
    /// and perhaps a mask. What is behind the last of them, if anything is, begins with what is
    /// no head: with zero, if nothing is asked of tunnel options.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        self.packed.as_bytes()
    }

    /// Whether every frame satisfies it.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.as_bytes().first().is_none_or(|head| *head == 0)
    }

    /// The term on `field`; none if it is a wildcard.
    #[must_use]
    pub fn term(&self, field: Field) -> Option<Term> {
        self.terms().on(field)
    }

    /// The value of `field`, if all of it is given.
    #[must_use]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.terms().exact(field)
    }

    /// This match and also `field == value`.
    ///
    /// # Errors
    /// As for [`Match::with_masked`].
    pub fn with(self, field: Field, value: u128) -> Result<Self, Refusal> {
        self.with_masked(field, value, field.full_mask())
    }

    /// This match and also `field & mask == value`. For several at once there is
    /// [`MatchBuilder`].
    ///
    /// # Errors
    /// As for [`MatchBuilder::add`].
    pub fn with_masked(self, field: Field, value: u128, mask: u128) -> Result<Self, Refusal> {
        let mut building = MatchBuilder::from(&self);
        building.add(field, value, mask)?;
        Ok(building.build())
    }

    /// Whether every frame that matches fulfils `needs`, by what the terms say.
    #[must_use]
    pub fn satisfies(&self, needs: Prerequisite) -> bool {
        FactSet::of(self.terms()).fulfil(needs)
    }

    /// Whether the frame satisfies every term. A match that does not say which kind of
    /// packet it is for is for Ethernet frames (OF 1.5.1, 7.2.3.11).
    #[must_use]
    pub fn accepts(&self, key: &FlowKey) -> bool {
        let meant = key.is_ethernet() || self.term(Field::PacketType).is_some();
        let mut terms = self.terms();
        meant
            && terms.all(|term| term.accepts(key))
            && terms.options().all(|term| term.accepts(key.options()))
    }

    /// Whether every frame that `other` accepts is accepted by `self`: what a
    /// loose modification or deletion asks (OF 1.3.5, 6.4).
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let (mut mine, mut theirs) = (self.terms(), other.terms());
        let covers = mine.all(|mine| {
            let next = theirs.find(|term| term.field >= mine.field);
            next.is_some_and(|term| term.field == mine.field && mine.covers(&term))
        });
        covers
            && mine.options().all(|mine| {
                let same = other.option(mine.field);
                same.is_some_and(|term| mine.covers(&term))
            })
    }

    /// Whether some frame could satisfy both: what `check_overlap` asks.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mut mine, mut theirs) = (self.terms(), other.terms().peekable());
        let overlaps = mine.all(|mine| {
            while theirs.next_if(|term| term.field < mine.field).is_some() {}
            let same = theirs.next_if(|term| term.field == mine.field);
            same.is_none_or(|term| mine.overlaps(&term))
        });
        overlaps
            && mine.options().all(|mine| {
                let same = other.option(mine.field);
                same.is_none_or(|term| mine.overlaps(&term))
            })
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (terms, options) = (self.terms(), self.options());
        let mut told = f.debug_struct("Match");
        told.field("terms", &terms);
        if options.clone().next().is_some() {
            told.field("options", &options);
        }
        told.finish()
    }
}

/// The type that an Ethernet header would have before bare packets of this kind.
pub(crate) fn of_bare_packets(kind: u128) -> Option<u128> {
    let kind = PacketType(u32::try_from(kind).ok()?);
    kind.ether_type().map(u128::from)
}

#[cfg(test)]
mod tests;
