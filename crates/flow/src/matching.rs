//! Matches: conjunctions of terms on fields, valid by construction.
//!
//! A [`Term`] requires `field & mask == value`. A field without a term is a wildcard.
//! [`MatchBuilder`] adds terms and enforces the specification's rules: prerequisites, permitted
//! masks, no field twice (OF 1.3.5, 7.2.3.6 to 7.2.3.8). Terms on views become terms on the fields
//! that they represent, and the order of insertion does not matter, so that equivalent matches are
//! equal.
//!
//! # Representation
//!
//! A switch may hold a million matches, so a match is a byte string of at most 47 bytes inside a
//! 48-byte value, or a boxed one if it is longer:
//!
//! ```text
//! +------+-------+------+-------+------+------+-------+------+-----------------
//! | head | value | head | value | mask | ...  | 0xfe  | tunnel options        0
//! +------+-------+------+-------+------+------+-------+------+-----------------
//! head = (field + 1) << 1 | masked       values and masks: as wide as the field, big-endian
//! ```
//!
//! - Terms are in the order of [`Field`], so that comparison, hashing and equality work on the bytes, and bytes sort like terms.
//! - Twelve exact fields of IPv4 fit inside the value; longer matches are rare.
//! - Rules that are added one after the other mostly have terms on the same fields. [`TermLayout`] compares the heads of a match with those of the previous one word by word, and readers then know all offsets.
//! - Tunnel options are stored after all terms: their values have up to 124 bytes, and there are too many of them for the heads.
//!
//! The codecs of OpenFlow 1.0, OXM and NXM translate to and from this form; the classifier of the
//! fast path indexes it.

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

/// Condition on one field: `field & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The field.
    pub field: Field,
    /// Required bits; none outside the mask.
    pub value: u128,
    /// Mask of the bits that are compared; not zero.
    pub mask: u128,
}

impl Term {
    /// True if all bits of the field are compared.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.full_mask()
    }

    /// True if the frame has the field and its value satisfies the term.
    #[must_use]
    pub fn accepts(&self, key: &FlowKey) -> bool {
        key.get(self.field)
            .is_some_and(|value| value & self.mask == self.value)
    }

    /// True if this term accepts every value that `other` accepts.
    const fn covers(&self, other: &Self) -> bool {
        other.mask & self.mask == self.mask && other.value & self.mask == self.value
    }

    /// True if some value satisfies both terms.
    const fn overlaps(&self, other: &Self) -> bool {
        (self.value ^ other.value) & self.mask & other.mask == 0
    }
}

/// Match: terms in the order of [`Field`], at most one for each field, and [`OptionTerm`]s for
/// tunnel options.
///
/// Two matches are equal if they have the same terms. The size is 48 bytes, without heap memory for
/// up to twelve exact fields of IPv4.
///
/// ```
/// use flow::{Field, Match, Refusal};
///
/// let matching = Match::any()
///     .with(Field::EthType, 0x0800)
///     .and_then(|m| m.with_masked(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000))
///     .unwrap();
/// assert_eq!(matching, "ip,nw_dst=10.0.0.0/8".parse().unwrap());
/// assert!(matching.covers(&"tcp,nw_dst=10.1.2.3".parse().unwrap()));
///
/// // A field requires its prerequisites.
/// let result = Match::any().with(Field::TcpDst, 80);
/// assert_eq!(result, Err(Refusal::MatchBadPrerequisite));
/// ```
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

    /// Returns the terms on tunnel options, in order.
    #[must_use]
    pub fn options(&self) -> OptionTerms<'_> {
        self.terms().options()
    }

    /// Returns the term on the tunnel option mapped to `field`, if any.
    #[must_use]
    pub fn option(&self, field: Field) -> Option<OptionTerm> {
        self.options().find(|term| term.field == field)
    }

    /// Returns the encoded terms in order: head ([`TermHead`]), value, and mask if not all bits are
    /// compared. After the last term follows the end of the slice, a zero, or the head of the
    /// tunnel options, which is no [`TermHead`].
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        self.packed.as_bytes()
    }

    /// True if every frame satisfies the match.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.as_bytes().first().is_none_or(|head| *head == 0)
    }

    /// Returns the term on `field`, or `None` for a wildcard.
    #[must_use]
    pub fn term(&self, field: Field) -> Option<Term> {
        self.terms().on(field)
    }

    /// Returns the value of `field` if all its bits are compared.
    #[must_use]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.terms().exact(field)
    }

    /// Adds the term `field == value`.
    ///
    /// # Errors
    /// As for [`Match::with_masked`].
    pub fn with(self, field: Field, value: u128) -> Result<Self, Refusal> {
        self.with_masked(field, value, field.full_mask())
    }

    /// Adds the term `field & mask == value`. [`MatchBuilder`] is faster for several terms.
    ///
    /// # Errors
    /// As for [`MatchBuilder::add`].
    pub fn with_masked(self, field: Field, value: u128, mask: u128) -> Result<Self, Refusal> {
        let mut builder = MatchBuilder::from(&self);
        builder.add(field, value, mask)?;
        Ok(builder.build())
    }

    /// Returns the match without its term on `field`. No other term may require it.
    #[must_use]
    pub fn without(&self, field: Field) -> Self {
        MatchBuilder::without(self, field).build()
    }

    /// True if the terms imply the prerequisite `prerequisite`.
    #[must_use]
    pub fn satisfies(&self, prerequisite: Prerequisite) -> bool {
        FactSet::of(self.terms()).satisfy(prerequisite)
    }

    /// True if the frame satisfies every term. A match without a term on the packet type accepts
    /// only Ethernet frames (OF 1.5.1, 7.2.3.11).
    #[must_use]
    pub fn accepts(&self, key: &FlowKey) -> bool {
        let meant = key.is_ethernet() || self.term(Field::PacketType).is_some();
        let mut terms = self.terms();
        meant
            && terms.all(|term| term.accepts(key))
            && terms.options().all(|term| term.accepts(key.options()))
    }

    /// True if `self` accepts every frame that `other` accepts: the condition of a loose
    /// modification or deletion (OF 1.3.5, 6.4). A term on the presence of a tunnel option covers
    /// all terms on the option.
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

    /// True if some frame satisfies both: the condition of `check_overlap`.
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
        let mut debug = f.debug_struct("Match");
        debug.field("terms", &terms);
        if options.clone().next().is_some() {
            debug.field("options", &options);
        }
        debug.finish()
    }
}

/// Returns the EtherType of bare packets of this type.
pub(crate) fn bare_packet_ether_type(kind: u128) -> Option<u128> {
    let kind = PacketType(u32::try_from(kind).ok()?);
    kind.ether_type().map(u128::from)
}

#[cfg(test)]
mod tests;
