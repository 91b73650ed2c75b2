//! Frequently read columns of the field table (mask, parse depth) as arrays, indexed by field.

use super::{Depth, FIELDS, Field};

/// Values of [`Field::full_mask`].
static FULL_MASKS: [u128; Field::COUNT] = {
    let mut masks = [0; Field::COUNT];
    let mut index = 0;
    while index < Field::COUNT {
        // Only the lowest bits of a tunnel option fit.
        masks[index] = u128::MAX >> 128_u32.saturating_sub(FIELDS[index].bits as u32);
        index += 1;
    }
    masks
};

/// Values of [`Field::depth`].
static DEPTHS: [Depth; Field::COUNT] = {
    let mut depths = [Depth::Link; Field::COUNT];
    let mut index = 0;
    while index < Field::COUNT {
        depths[index] = FIELDS[index].depth;
        index += 1;
    }
    depths
};

impl Field {
    /// All fields, in order.
    pub const ALL: [Self; Self::COUNT] = {
        let mut all = [Self::InPort; Self::COUNT];
        let mut index = 0;
        while index < Self::COUNT {
            all[index] = FIELDS[index].field;
            index += 1;
        }
        all
    };

    /// Returns the parse depth that the field requires.
    #[must_use]
    pub const fn depth(self) -> Depth {
        DEPTHS[self as usize]
    }

    /// Returns a mask of all bits of the field; of a tunnel option, the lowest 128 bits.
    #[must_use]
    pub const fn full_mask(self) -> u128 {
        FULL_MASKS[self as usize]
    }
}
