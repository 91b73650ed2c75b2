//! Views: fields that represent others. A match stores the terms of the represented fields instead,
//! so that equivalent matches are equal.
//!
//! The rows of views are in the field table like all others.

use super::{Field, VID_PRESENT};

/// Number of general registers.
pub const REGISTERS: usize = 16;

/// Bits of a general register.
const REGISTER_BITS: u32 = 32;

/// Fields that a view represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldView {
    /// Consecutive registers, the first one in the uppermost bits.
    Registers {
        /// The number of the first.
        first: usize,
        /// Number of registers.
        count: usize,
    },
    /// The sixteen bits of [`Field::InPort`] in OpenFlow 1.0.
    InPort,
    /// [`Field::VlanVid`] and [`Field::VlanPcp`].
    VlanTci,
    /// [`Field::IpDscp`], shifted.
    IpTos,
}

/// Value and mask of a field.
pub type MaskedValue = (u128, u128);

impl Field {
    /// First view; all fields after it are views.
    pub(crate) const FIRST_VIEW: Self = Self::Xreg0;

    /// Returns the fields that this view represents, or `None` for other fields.
    #[must_use]
    pub const fn view(self) -> Option<FieldView> {
        let number = self as usize;
        if number >= Self::Xreg0 as usize && number <= Self::Xreg7 as usize {
            return FieldView::registers((number - Self::Xreg0 as usize) * 2, 2);
        }
        if number >= Self::Xxreg0 as usize && number <= Self::Xxreg3 as usize {
            return FieldView::registers((number - Self::Xxreg0 as usize) * 4, 4);
        }
        match self {
            Self::NxInPort => Some(FieldView::InPort),
            Self::VlanTci => Some(FieldView::VlanTci),
            Self::IpTos => Some(FieldView::IpTos),
            _ => None,
        }
    }

    /// Returns the number of the general register, or `None` for other fields.
    #[must_use]
    pub const fn register(self) -> Option<usize> {
        let number = self as usize;
        if number >= Self::Reg0 as usize && number <= Self::Reg15 as usize {
            Some(number - Self::Reg0 as usize)
        } else {
            None
        }
    }

    /// Returns the general register with this number.
    ///
    /// # Panics
    /// If `number` is not below [`REGISTERS`].
    #[must_use]
    pub fn from_register(number: usize) -> Self {
        REGISTER_FIELDS[number]
    }
}

const REGISTER_FIELDS: [Field; REGISTERS] = {
    use Field::{
        Reg0, Reg1, Reg2, Reg3, Reg4, Reg5, Reg6, Reg7, Reg8, Reg9, Reg10, Reg11, Reg12, Reg13,
        Reg14, Reg15,
    };
    [
        Reg0, Reg1, Reg2, Reg3, Reg4, Reg5, Reg6, Reg7, Reg8, Reg9, Reg10, Reg11, Reg12, Reg13,
        Reg14, Reg15,
    ]
};

impl FieldView {
    const fn registers(first: usize, count: usize) -> Option<Self> {
        Some(Self::Registers { first, count })
    }

    /// Computes the view's value from the values that `field` returns.
    pub fn read(self, field: impl Fn(Field) -> Option<u128>) -> Option<u128> {
        match self {
            Self::Registers { first, count } => {
                let registers = REGISTER_FIELDS.iter().skip(first).take(count);
                let parts = registers.map(|register| field(*register).unwrap_or(0));
                Some(parts.fold(0, |whole, part| whole << REGISTER_BITS | part))
            }
            Self::InPort => Some(narrow(field(Field::InPort)?)),
            Self::VlanTci => {
                let vid = field(Field::VlanVid)?;
                Some(vid | field(Field::VlanPcp).unwrap_or(0) << PCP_SHIFT)
            }
            Self::IpTos => Some(field(Field::IpDscp)? << TOS_SHIFT),
        }
    }
}

/// Splits a term on several registers into terms on single ones, without those of empty mask.
pub(crate) fn on_registers(
    first: usize,
    count: usize,
    (value, mask): MaskedValue,
) -> impl Iterator<Item = (Field, MaskedValue)> {
    let part = move |whole: u128, above: usize| {
        whole >> (REGISTER_BITS as usize * above) & u128::from(u32::MAX)
    };
    (0..count)
        .map(move |index| {
            let above = count - 1 - index;
            let field = Field::from_register(first + index);
            (field, (part(value, above), part(mask, above)))
        })
        .filter(|(_, (_, mask))| *mask != 0)
}

/// Converts a port number to sixteen bits; the reserved ports are the highest in both forms.
pub(crate) const fn narrow(port: u128) -> u128 {
    port & 0xffff
}

/// The port that sixteen bits mean (`OFPP_MAX` of OF 1.0.1, 5.2.1).
#[must_use]
pub const fn widen(port: u16) -> u32 {
    if port < 0xff00 {
        port as u32
    } else {
        port as u32 | 0xffff_0000
    }
}

/// Position of the priority in a tag's control information.
pub(crate) const PCP_SHIFT: u32 = 13;

/// Position of the DSCP in its byte.
pub(crate) const TOS_SHIFT: u32 = 2;

/// A tag's bits but for the priority.
pub(crate) const TCI_VID: u128 = VID_PRESENT as u128 | 0x0fff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_after_all_other_fields() {
        for field in Field::ALL {
            assert_eq!(
                field.view().is_some(),
                field >= Field::FIRST_VIEW,
                "{field}"
            );
        }
    }
}
