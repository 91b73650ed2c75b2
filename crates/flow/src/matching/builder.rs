//! How a match comes together, term by term, and which terms may stand beside
//! which (OF 1.3.5, 7.2.3.6 to 7.2.3.8).

use super::packed::{self, PackedTerms, Terms};
use super::prerequisites::FactSet;
use super::{Match, Term, options};
use crate::field::{
    FIELDS, Field, FieldView, Maskable, MaskedValue, Prerequisite, VID_PRESENT, view, widen,
};
use crate::options::OptionTerm;
use crate::refusal::Refusal;
use crate::wide::Wide;

/// Bytes of the longest match: every field but the tunnel options, with a mask. A test adds
/// it up.
pub(super) const LONGEST: usize = 2080;

/// Bytes of a match that need no memory of their own while it comes together: nearly
/// every match. So few are soon made zero.
const INSIDE: usize = 256;

/// What is asked of a field before its whole value is added.
struct ShortField {
    /// All its bits; none of a field that has more than 64, and of a view.
    mask: u64,
    /// Bytes of a value, and how many bits they leave of eight bytes.
    width: u8,
    unused: u8,
    needs: FactSet,
    /// Whether it makes something known to others.
    tells: bool,
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
                needs: FactSet::needed(row.needs),
                tells: FactSet::are_told_by(row.field),
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
        needs: FactSet::needed(Prerequisite::None),
        tells: false,
    };
}

/// A match to which terms are added.
#[derive(Clone, Debug)]
pub struct MatchBuilder {
    inside: [u8; INSIDE],
    /// All of the bytes, once there are more than fit inside.
    beyond: Vec<u8>,
    length: usize,
    /// The field that comes last; fields mostly come in order.
    last: Option<Field>,
    /// What the terms make known to those behind them.
    facts: FactSet,
    /// What is asked of tunnel options, in order.
    options: Vec<OptionTerm>,
}

impl Default for MatchBuilder {
    fn default() -> Self {
        Self {
            inside: [0; INSIDE],
            beyond: Vec::new(),
            length: 0,
            last: None,
            facts: FactSet::default(),
            options: Vec::new(),
        }
    }
}

impl From<&Match> for MatchBuilder {
    fn from(matching: &Match) -> Self {
        let mut building = Self::default();
        let mut terms = matching.terms();
        for term in terms.by_ref() {
            building.push(&term);
        }
        building.options = terms.options().collect();
        building
    }
}

impl MatchBuilder {
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

    /// What is there.
    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.beyond.is_empty() {
            &self.inside[..self.length]
        } else {
            &self.beyond[..self.length]
        }
    }

    /// What is there, and room behind it for any term.
    #[inline]
    fn room(&mut self) -> &mut [u8] {
        if self.beyond.is_empty() && self.length + packed::TERM_MAX <= INSIDE {
            &mut self.inside
        } else {
            self.room_beyond()
        }
    }

    #[cold]
    fn room_beyond(&mut self) -> &mut [u8] {
        if self.beyond.is_empty() {
            self.beyond = self.inside.to_vec();
            self.beyond.resize(LONGEST, 0);
        }
        &mut self.beyond
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

    /// Asks also for `field & mask == value`. A mask of zero adds nothing; what is
    /// asked of a view is asked of the fields that it is made of. What more there is to ask of a
    /// tunnel option, [`MatchBuilder::add_option`] does: here all ones are all of its bits.
    ///
    /// # Errors
    /// The field is already there, its prerequisites are not, it takes no such
    /// mask, or the value has bits outside the mask or the field (OF 1.3.5,
    /// 7.2.3.6 and 7.4.4.4). What is built then is of no use.
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

    /// Asks also for `field == value`, as most matches do of most fields.
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

    /// Adds what most matches are made of: the whole of a field of up to 64 bits, which
    /// comes behind all others. Answers whether it was that, and legal.
    #[inline]
    fn append(&mut self, field: Field, value: u64) -> bool {
        let row = &SHORT_FIELDS[field as usize];
        let is_legal = row.mask != 0 && value & !row.mask == 0 && self.facts.have(row.needs);
        let is_last = self.last.is_none_or(|last| last < field) && self.beyond.is_empty();
        let room = self.inside.get_mut(self.length..);
        let Some(room) = room.filter(|_| is_legal && is_last) else {
            return false;
        };
        if !packed::begin(room, field, value << row.unused) {
            return false;
        }
        self.length += 1 + usize::from(row.width);
        self.last = Some(field);
        if row.tells {
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
        if !self.facts.fulfil(row.needs) {
            return Err(Refusal::MatchBadPrerequisite);
        }
        self.insert(&Term { field, value, mask })
    }

    /// Asks also for `field & mask == value` of the option that `field` is bound to; without
    /// any bit, that it be there.
    ///
    /// # Errors
    /// The field is there already, or the value has bits outside the mask.
    ///
    /// # Panics
    /// If the field is none of a tunnel option.
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

    /// What is asked of tunnel options so far, in order.
    #[must_use]
    pub fn options(&self) -> &[OptionTerm] {
        &self.options
    }

    /// Asks also for `field == value`.
    ///
    /// # Errors
    /// As for [`MatchBuilder::add`].
    pub fn add_exact(&mut self, field: Field, value: u128) -> Result<(), Refusal> {
        self.add(field, value, field.full_mask())
    }

    /// Puts a term, unless its mask is empty, in its place.
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
            let room = self.room();
            room.copy_within(at..end, at + length);
            packed::put(room, at, term);
            self.length = end + length;
        }
        Ok(())
    }

    /// Puts a term behind all others.
    #[inline]
    fn push(&mut self, term: &Term) {
        self.facts = self.facts.and(term);
        let end = self.length;
        self.length = packed::append(self.room(), end, term);
        self.last = Some(term.field);
    }

    /// Asks also for what is asked of a view.
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

    /// Asks also for these bits of the outermost tag (`ovs-fields(7)`, `vlan_tci`):
    /// all zero where there is no tag.
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
            // No tag: its priority is zero, as the rest of it.
            (false, 0, _) if vid_mask & present != 0 => Ok(()),
            (false, _, _) | (true, _, _) => Err(Refusal::MatchBadMask),
        }
    }
}
