//! Consecutive bits of a field.

use std::fmt;

use crate::field::Field;
use crate::wide::Wide;

/// Consecutive bits of a field: at least one, and none outside the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subfield {
    field: Field,
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
            offset: 0,
            bits,
        }
    }

    /// So many bits of `field`, the lowest of which is bit `offset`; none if the
    /// field does not have them.
    #[must_use]
    pub fn new(field: Field, offset: u16, bits: u16) -> Option<Self> {
        let end = offset.checked_add(bits)?;
        if bits == 0 || end > field.info().bits {
            return None;
        }
        Some(Self {
            field,
            offset,
            bits,
        })
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

    /// How many bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.bits
    }

    /// Whether it is all of the field.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.bits == self.field.info().bits
    }

    /// Whether it is of a tunnel option, which may have more bits than a number of the
    /// machine's. The numbers without `wide` in their names are of parts that are not.
    #[must_use]
    pub const fn is_tunnel_option(self) -> bool {
        self.field.option().is_some()
    }

    /// The highest number that fits: all its bits are ones, 128 at most.
    #[must_use]
    pub const fn ones(self) -> u128 {
        u128::MAX >> 128_u32.saturating_sub(self.bits as u32)
    }

    /// The subfield's bits of the whole field's value, as a number.
    #[must_use]
    pub fn of(self, value: u128) -> u128 {
        value.checked_shr(self.offset.into()).unwrap_or(0) & self.ones()
    }

    /// A number in the place of the subfield in the field, cut off where it does not fit.
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

    /// The subfield's bits of the whole field's value, as a number.
    #[must_use]
    pub fn wide_of(self, value: Wide) -> Wide {
        value >> self.offset.into() & self.wide_ones()
    }

    /// A number in the place of the subfield in the field, cut off where it does not fit.
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
    /// As `ovs-ofctl` writes it: `NXM_NX_REG0[3..5]`.
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
    fn a_part_lies_within_its_field() {
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
    fn bits_are_taken_and_put() {
        let subfield = Subfield::new(Field::Reg0, 4, 8).expect("of 32");
        assert_eq!(subfield.of(0x1234), 0x23);
        assert_eq!(subfield.place(0x1ab), 0xab0);
        assert_eq!(subfield.mask(), 0xff0);
    }
}
