//! Subfields: consecutive bits of a field (Open vSwitch `mf_subfield`).

use std::fmt;

use crate::field::Field;
use crate::wide::Wide;

/// Consecutive bits of a field: at least one, and none outside the field.
///
/// ```
/// use flow::{Field, Subfield};
///
/// let subfield = Subfield::new(Field::Reg0, 4, 8).unwrap();
/// assert_eq!(subfield.to_string(), "NXM_NX_REG0[4..11]");
/// assert_eq!(subfield.of(0x1234), 0x23);
/// assert_eq!(subfield.mask(), 0xff0);
/// assert_eq!(Subfield::new(Field::Reg0, 30, 4), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subfield {
    field: Field,
    /// Length of the mapped tunnel option in bytes; zero if it is unknown.
    option_bytes: u8,
    offset: u16,
    bits: u16,
}

impl Subfield {
    /// All of `field`.
    #[must_use]
    pub fn whole(field: Field) -> Self {
        let bits = field.info().bits;
        Self {
            field,
            option_bytes: 0,
            offset: 0,
            bits,
        }
    }

    /// Returns `bits` bits of `field` from bit `offset` on, or `None` if the field is narrower.
    #[must_use]
    pub fn new(field: Field, offset: u16, bits: u16) -> Option<Self> {
        let end = offset.checked_add(bits)?;
        if bits == 0 || end > field.info().bits {
            return None;
        }
        Some(Self {
            field,
            option_bytes: 0,
            offset,
            bits,
        })
    }

    /// Returns the subfield of a tunnel option that is mapped to an option of this length in bytes.
    #[must_use]
    pub const fn with_option_bytes(self, option_bytes: u8) -> Self {
        Self {
            option_bytes,
            ..self
        }
    }

    /// Length of the mapped tunnel option in bytes, if it is known. Rules have it, commands do not.
    #[must_use]
    pub const fn option_bytes(self) -> Option<u8> {
        match self.option_bytes {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// The field.
    #[must_use]
    pub const fn field(self) -> Field {
        self.field
    }

    /// The lowest bit.
    #[must_use]
    pub const fn offset(self) -> u16 {
        self.offset
    }

    /// Number of bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.bits
    }

    /// True if it is the whole field.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.bits == self.field.info().bits
    }

    /// True for a subfield of a tunnel option, which may exceed 128 bits. Methods without `wide` in
    /// their name do not support it.
    #[must_use]
    pub const fn is_tunnel_option(self) -> bool {
        self.field.option().is_some()
    }

    /// Returns the largest value, with all bits set, at most 128.
    #[must_use]
    pub const fn ones(self) -> u128 {
        u128::MAX >> 128_u32.saturating_sub(self.bits as u32)
    }

    /// Extracts the subfield from a value of the field.
    #[must_use]
    pub fn of(self, value: u128) -> u128 {
        value.checked_shr(self.offset.into()).unwrap_or(0) & self.ones()
    }

    /// Returns `number` shifted to the subfield's position; excess bits are dropped.
    #[must_use]
    pub fn place(self, number: u128) -> u128 {
        let number = number & self.ones();
        number.checked_shl(self.offset.into()).unwrap_or(0)
    }

    /// The subfield's bits in the field.
    #[must_use]
    pub fn mask(self) -> u128 {
        self.place(u128::MAX)
    }

    /// All its bits, as a number.
    #[must_use]
    pub fn wide_ones(self) -> Wide {
        Wide::ones(self.bits.into())
    }

    /// Extracts the subfield from a value of the field.
    #[must_use]
    pub fn wide_of(self, value: Wide) -> Wide {
        value >> self.offset.into() & self.wide_ones()
    }

    /// Returns `number` shifted to the subfield's position; excess bits are dropped.
    #[must_use]
    pub fn wide_place(self, number: Wide) -> Wide {
        (number & self.wide_ones()) << self.offset.into()
    }

    /// The subfield's bits in the field.
    #[must_use]
    pub fn wide_mask(self) -> Wide {
        self.wide_place(Wide::ONES)
    }
}

impl fmt::Display for Subfield {
    /// Formats it like `ovs-ofctl`: `NXM_NX_REG0[3..5]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field.nxm_name())?;
        let last = self.offset + self.bits - 1;
        match (self.is_whole(), self.bits) {
            (true, _) => f.write_str("[]"),
            (false, 1) => write!(f, "[{}]", self.offset),
            (false, _) => write!(f, "[{}..{last}]", self.offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subfield_is_within_its_field() {
        assert_eq!(Subfield::new(Field::Reg0, 0, 33), None);
        assert_eq!(Subfield::new(Field::Reg0, 32, 1), None);
        assert_eq!(Subfield::new(Field::Reg0, 3, 0), None);
        assert_eq!(Subfield::new(Field::Reg0, u16::MAX, 1), None);
        let subfield = Subfield::new(Field::Xxreg0, 0, 128).expect("all of it");
        assert_eq!(subfield, Subfield::whole(Field::Xxreg0));
        assert_eq!(subfield.ones(), u128::MAX);
    }

    #[test]
    fn bits_of_an_option_are_taken_and_put() {
        let whole = Subfield::whole(Field::TunMetadata5);
        assert_eq!((whole.bits(), whole.wide_mask()), (992, Wide::ONES));
        let subfield = Subfield::new(Field::TunMetadata5, 980, 12).expect("of 992");
        assert_eq!(subfield.wide_of(Wide::ONES), Wide::from(0xfff));
        assert_eq!(
            subfield.wide_place(Wide::from(0x1001)),
            Wide::from(1) << 980
        );
        assert_eq!((subfield.place(1), subfield.mask()), (0, 0));
        assert_eq!(Subfield::new(Field::TunMetadata5, 980, 13), None);
    }

    #[test]
    fn subfield_has_the_length_of_its_mapped_option() {
        let part = Subfield::new(Field::TunMetadata5, 0, 32).expect("of 992");
        assert_eq!(part.option_bytes(), None);
        let mapped = part.with_option_bytes(4);
        assert_eq!(mapped.option_bytes(), Some(4));
        assert_eq!(mapped.to_string(), part.to_string());
    }

    #[test]
    fn bits_are_taken_and_put() {
        let subfield = Subfield::new(Field::Reg0, 4, 8).expect("of 32");
        assert_eq!(subfield.of(0x1234), 0x23);
        assert_eq!(subfield.place(0x1ab), 0xab0);
        assert_eq!(subfield.mask(), 0xff0);
    }
}
