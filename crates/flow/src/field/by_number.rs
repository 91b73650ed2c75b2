//! What is asked of fields so often that it lies side by side, by their numbers, and not
//! in rows: which there are, how wide each is and how deep. The registry has the rest.

use super::{Depth, FIELDS, Field};

/// What [`Field::full_mask`] answers.
static FULL_MASKS: [u128; Field::COUNT] = {
    let mut masks = [0; Field::COUNT];
    let mut index = 0;
    while index < Field::COUNT {
        // Of a tunnel option no more than the lowest bits fit here.
        masks[index] = u128::MAX >> 128_u32.saturating_sub(FIELDS[index].bits as u32);
        index += 1;
    }
    masks
};

/// What [`Field::depth`] answers.
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

    /// How deep a frame must be read for it.
    #[must_use]
    pub const fn depth(self) -> Depth {
        DEPTHS[self as usize]
    }

    /// All ones, as wide as the field; of a tunnel option, the lowest 128 bits.
    #[must_use]
    pub const fn full_mask(self) -> u128 {
        FULL_MASKS[self as usize]
    }
}
