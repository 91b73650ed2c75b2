//! The fields of one frame, as a rule sees them.

use crate::field::Field;

/// The value of every field that the frame has.
#[derive(Clone, Debug)]
pub struct Key {
    present: u64,
    values: [u128; Field::COUNT],
}

impl Key {
    /// The key of a frame without any field.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            present: 0,
            values: [0; Field::COUNT],
        }
    }

    /// The value of `field`; none if the frame has no such header.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u128> {
        (self.present >> field as u8 & 1 == 1).then(|| self.values[field as usize])
    }

    /// Gives `field` a value.
    ///
    /// # Panics
    /// If the value does not fit the field.
    pub fn set(&mut self, field: Field, value: u128) {
        assert!(
            value & !field.full_mask() == 0,
            "{field} has {} bits",
            field.info().bits
        );
        self.present |= 1 << field as u8;
        self.values[field as usize] = value;
    }

    /// Forgets every field; the same key then serves the next frame.
    pub fn clear(&mut self) {
        self.present = 0;
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}
