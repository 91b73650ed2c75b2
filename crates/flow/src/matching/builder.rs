//! Construction of a match, term by term, with the validity rules of OF 1.3.5, 7.2.3.6 to 7.2.3.8.

use super::packed::{self, PackedTerms, Terms};
use super::prerequisites::FactSet;
use super::{Match, Term, options};
use crate::field::{
    FIELDS, Field, FieldView, Maskable, MaskedValue, Prerequisite, VID_PRESENT, view, widen,
};
use crate::options::OptionTerm;
use crate::refusal::Refusal;
use crate::wide::Wide;

/// Length of the longest match in bytes: all ordinary fields with masks. A test verifies it.
pub(super) const LONGEST: usize = 2233;

/// Length of a match that the builder holds without allocation: nearly every match. Small, because
/// it is zeroed for each.
const INLINE: usize = 256;

/// Precomputed checks for an exact value of a field.
struct ShortField {
    /// Mask of all bits; zero for a field of more than 64 bits and for a view.
    mask: u64,
    /// Length of a value in bytes, and the unused bits of eight bytes.
    width: u8,
    unused: u8,
    required: FactSet,
    /// True if a term on this field implies facts for others.
    implies: bool,
}

const SHORT_FIELDS: [ShortField; Field::COUNT] = {
    let mut rows = [const { ShortField::NONE }; Field::COUNT];
    let mut index = 0;
    while index < Field::FIRST_TUNNEL_OPTION as usize {
        let row = &FIELDS[index];
        if row.bits <= 64 {
            let width = packed::width_of(row);
            rows[index] = ShortField {
                mask: u64::MAX >> (64 - row.bits as u32),
                width,
                unused: 64 - 8 * width,
                required: FactSet::required_by(row.prerequisite),
                implies: FactSet::depend_on(row.field),
            };
        }
        index += 1;
    }
    rows
};

impl ShortField {
    const NONE: Self = Self {
        mask: 0,
        width: 0,
        unused: 0,
        required: FactSet::required_by(Prerequisite::None),
        implies: false,
    };
}

/// A match to which terms are added.
#[derive(Clone, Debug)]
pub struct MatchBuilder {
    inline: [u8; INLINE],
    /// All bytes, if they exceed the inline buffer.
    overflow: Vec<u8>,
    length: usize,
    /// Last field so far; terms mostly arrive in order.
    last: Option<Field>,
    /// Facts that the terms so far imply.
    facts: FactSet,
    /// Terms on tunnel options, in order.
    options: Vec<OptionTerm>,
}

impl Default for MatchBuilder {
    fn default() -> Self {
        Self {
            inline: [0; INLINE],
            overflow: Vec::new(),
            length: 0,
            last: None,
            facts: FactSet::default(),
            options: Vec::new(),
        }
    }
}

impl From<&Match> for MatchBuilder {
    fn from(matching: &Match) -> Self {
        Self::filtered(matching, |_| true)
    }
}

impl MatchBuilder {
    /// The terms of a match, except for that on `field`.
    pub(super) fn without(matching: &Match, field: Field) -> Self {
        Self::filtered(matching, |of| of != field)
    }

    /// The terms of a match on the fields for which `keep` is true.
    fn filtered(matching: &Match, keep: impl Fn(Field) -> bool) -> Self {
        let mut builder = Self::default();
        let mut terms = matching.terms();
        for term in terms.by_ref().filter(|term| keep(term.field)) {
            builder.push(&term);
        }
        builder.options = terms.options().filter(|term| keep(term.field)).collect();
        builder
    }

    /// The match as it is now.
    #[must_use]
    pub fn build(&self) -> Match {
        if !self.options.is_empty() {
            return self.build_with_options();
        }
        Match {
            packed: PackedTerms::new(self.bytes()),
        }
    }

    #[cold]
    fn build_with_options(&self) -> Match {
        let mut bytes = self.bytes().to_vec();
        options::append(&mut bytes, &self.options);
        Match {
            packed: PackedTerms::new(&bytes),
        }
    }

    /// Encoded terms.
    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.overflow.is_empty() {
            &self.inline[..self.length]
        } else {
            &self.overflow[..self.length]
        }
    }

    /// Returns the buffer, with space after the terms for any term.
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        if self.overflow.is_empty() && self.length + packed::TERM_MAX <= INLINE {
            &mut self.inline
        } else {
            self.overflow_buffer()
        }
    }

    #[cold]
    fn overflow_buffer(&mut self) -> &mut [u8] {
        if self.overflow.is_empty() {
            self.overflow = self.inline.to_vec();
            self.overflow.resize(LONGEST, 0);
        }
        &mut self.overflow
    }

    /// The terms, in order.
    #[must_use]
    pub fn terms(&self) -> Terms<'_> {
        Terms::of(self.bytes())
    }

    /// The value of `field`, if all of it is given.
    #[must_use]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.terms().exact(field)
    }

    /// Adds the term `field & mask == value`. A mask of zero adds nothing. A term on a view becomes
    /// terms on the fields that it represents. For tunnel options a mask of all ones selects all
    /// 992 bits; [`MatchBuilder::add_option`] supports the rest.
    ///
    /// # Errors
    /// The field has a term already, lacks its prerequisite or does not permit the mask, or the
    /// value has bits outside the mask or the field (OF 1.3.5, 7.2.3.6 and 7.4.4.4). The builder
    /// must not be used afterwards.
    #[inline]
    pub fn add(&mut self, field: Field, value: u128, mask: u128) -> Result<(), Refusal> {
        let whole = field.full_mask();
        if mask == whole
            && let Ok(value) = u64::try_from(value)
            && self.append(field, value)
        {
            return Ok(());
        }
        self.add_any(field, value, mask)
    }

    /// Adds the term `field == value`, the most frequent kind.
    ///
    /// # Errors
    /// As for [`MatchBuilder::add`].
    #[inline]
    pub fn add_number(&mut self, field: Field, value: u64) -> Result<(), Refusal> {
        if self.append(field, value) {
            return Ok(());
        }
        self.add_any(field, value.into(), field.full_mask())
    }

    /// Adds an exact value of a field of up to 64 bits after all other terms, the most frequent
    /// case. Returns false, and changes nothing, if the term is of another kind or invalid.
    #[inline]
    fn append(&mut self, field: Field, value: u64) -> bool {
        let row = &SHORT_FIELDS[field as usize];
        let is_legal = row.mask != 0 && value & !row.mask == 0 && self.facts.contain(row.required);
        let is_last = self.last.is_none_or(|last| last < field) && self.overflow.is_empty();
        let room = self.inline.get_mut(self.length..);
        let Some(room) = room.filter(|_| is_legal && is_last) else {
            return false;
        };
        if !packed::begin(room, field, value << row.unused) {
            return false;
        }
        self.length += 1 + usize::from(row.width);
        self.last = Some(field);
        if row.implies {
            let (value, mask) = (value.into(), row.mask.into());
            self.facts = self.facts.and(&Term { field, value, mask });
        }
        true
    }

    fn add_any(&mut self, field: Field, value: u128, mask: u128) -> Result<(), Refusal> {
        if field.option().is_some() {
            let exact = mask == field.full_mask();
            let mask = if exact { Wide::ONES } else { mask.into() };
            return match mask.is_zero() {
                true => Ok(()),
                false => self.add_option(field, value.into(), mask),
            };
        }
        let full = field.full_mask();
        if value & !full != 0 {
            return Err(Refusal::MatchBadValue);
        }
        let mask = mask & full;
        if value & !mask != 0 {
            return Err(Refusal::MatchBadWildcards);
        }
        let row = field.info();
        if mask != full && mask != 0 && row.maskable == Maskable::No {
            return Err(Refusal::MatchBadMask);
        }
        if field >= Field::FIRST_VIEW
            && let Some(view) = field.view()
        {
            return self.add_view(view, (value, mask));
        }
        if !self.facts.satisfy(row.prerequisite) {
            return Err(Refusal::MatchBadPrerequisite);
        }
        self.insert(&Term { field, value, mask })
    }

    /// Adds a term on the tunnel option mapped to `field`. A mask of zero requires that the option
    /// is present.
    ///
    /// # Errors
    /// The field has a term already, or the value has bits outside the mask.
    ///
    /// # Panics
    /// If the field is not a tunnel option.
    pub fn add_option(&mut self, field: Field, value: Wide, mask: Wide) -> Result<(), Refusal> {
        assert!(field.option().is_some(), "{field} is of no tunnel option");
        if !(value & !mask).is_zero() {
            return Err(Refusal::MatchBadWildcards);
        }
        match self.options.binary_search_by_key(&field, |term| term.field) {
            Ok(_) => Err(Refusal::MatchDuplicateField),
            Err(place) => {
                self.options
                    .insert(place, OptionTerm { field, value, mask });
                Ok(())
            }
        }
    }

    /// Returns the terms on tunnel options so far, in order.
    #[must_use]
    pub fn options(&self) -> &[OptionTerm] {
        &self.options
    }

    /// Adds the term `field == value`.
    ///
    /// # Errors
    /// As for [`MatchBuilder::add`].
    pub fn add_exact(&mut self, field: Field, value: u128) -> Result<(), Refusal> {
        self.add(field, value, field.full_mask())
    }

    /// Inserts a term at its position, unless its mask is empty.
    #[inline]
    fn insert(&mut self, term: &Term) -> Result<(), Refusal> {
        let behind_all = self.last.is_none_or(|last| last < term.field);
        if !behind_all && self.terms().on(term.field).is_some() {
            return Err(Refusal::MatchDuplicateField);
        }
        if term.mask == 0 {
            return Ok(());
        }
        if behind_all {
            self.push(term);
        } else {
            self.facts = self.facts.and(term);
            let at = self.terms().bytes_before(term.field);
            let length = packed::length_of(term);
            let end = self.length;
            let room = self.buffer();
            room.copy_within(at..end, at + length);
            packed::put(room, at, term);
            self.length = end + length;
        }
        Ok(())
    }

    /// Appends a term.
    #[inline]
    fn push(&mut self, term: &Term) {
        self.facts = self.facts.and(term);
        let end = self.length;
        self.length = packed::append(self.buffer(), end, term);
        self.last = Some(term.field);
    }

    /// Adds the terms that a term on a view represents.
    fn add_view(&mut self, view: FieldView, (value, mask): MaskedValue) -> Result<(), Refusal> {
        match view {
            FieldView::Registers { first, count } => {
                view::on_registers(first, count, (value, mask))
                    .try_for_each(|(register, (value, mask))| self.add(register, value, mask))
            }
            FieldView::InPort => match u16::try_from(value) {
                Ok(port) if mask != 0 => self.add_exact(Field::InPort, widen(port).into()),
                Ok(_) => Ok(()),
                Err(_) => Err(Refusal::MatchBadValue),
            },
            FieldView::VlanTci => self.add_tci(value, mask),
            FieldView::IpTos if value & ((1 << view::TOS_SHIFT) - 1) != 0 => {
                Err(Refusal::MatchBadValue)
            }
            FieldView::IpTos if mask == 0 => Ok(()),
            FieldView::IpTos => self.add_exact(Field::IpDscp, value >> view::TOS_SHIFT),
        }
    }

    /// Adds a term on the control information of the outermost tag (`ovs-fields(7)`, `vlan_tci`),
    /// which is zero without a tag.
    fn add_tci(&mut self, value: u128, mask: u128) -> Result<(), Refusal> {
        let present = u128::from(VID_PRESENT);
        let (pcp, pcp_mask) = (value >> view::PCP_SHIFT, mask >> view::PCP_SHIFT);
        let (mut vid, mut vid_mask) = (value & view::TCI_VID, mask & view::TCI_VID);
        if pcp != 0 && mask & present == 0 {
            // Only a tag has a priority other than zero.
            vid |= present;
            vid_mask |= present;
        }
        self.add(Field::VlanVid, vid, vid_mask)?;
        match (vid & present != 0, pcp, pcp_mask) {
            (_, _, 0) => Ok(()),
            (true, _, 7) => self.add_exact(Field::VlanPcp, pcp),
            // Without a tag the priority is zero, like the rest.
            (false, 0, _) if vid_mask & present != 0 => Ok(()),
            (false, _, _) | (true, _, _) => Err(Refusal::MatchBadMask),
        }
    }
}
