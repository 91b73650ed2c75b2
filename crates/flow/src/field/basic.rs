//! The fields of OXM's basic class by their numbers, for decoders: every flow-mod asks
//! for a dozen. Other classes are rare, and their fields found by a walk along the rows.

use super::{FIELDS, Field, WireId};

/// The class of the specification's own fields, but for the packet registers
/// (OF 1.3.5, 7.2.3.3).
pub(super) const CLASS: u16 = 0x8000;

/// The number of each field's row; numbers have seven bits.
static ROWS: [Option<u8>; 128] = {
    let mut rows = [None; 128];
    let mut row = 0;
    while row < Field::COUNT {
        if let Some(WireId { class, number, .. }) = FIELDS[row].oxm
            && class == CLASS
        {
            rows[number as usize] = Some(FIELDS[row].field as u8);
        }
        row += 1;
    }
    rows
};

/// The field of this number, if there is one.
pub(super) fn field(number: u8) -> Option<Field> {
    let row = ROWS.get(usize::from(number)).copied().flatten()?;
    Some(FIELDS[usize::from(row)].field)
}
