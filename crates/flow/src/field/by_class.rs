//! Index of the fields by OXM class and number, for decoders: a flow-mod contains about a dozen
//! fields. Fields of rare classes are found by a search of all rows.

use super::{FIELDS, Field, WireId};

/// Fields of one class, indexed by their seven-bit number.
pub(super) struct FieldClass {
    number: u16,
    /// The number of each field's row.
    rows: [Option<u8>; 128],
}

/// Basic class: the specification's fields except for the packet registers (OF 1.3.5, 7.2.3.3).
pub(super) static BASIC: FieldClass = FieldClass::of_oxm(0x8000);

/// Nicira's classes: fields of OpenFlow 1.0 and later additions (`ovs-fields(7)`).
pub(super) static NXM: [FieldClass; 2] = [FieldClass::of_nxm(0x0000), FieldClass::of_nxm(0x0001)];

impl FieldClass {
    const fn of_oxm(number: u16) -> Self {
        let mut class = Self::empty(number);
        let mut row = 0;
        while row < Field::COUNT {
            class.put(row, FIELDS[row].oxm);
            row += 1;
        }
        class
    }

    const fn of_nxm(number: u16) -> Self {
        let mut class = Self::empty(number);
        let mut row = 0;
        while row < Field::COUNT {
            class.put(row, FIELDS[row].nxm);
            row += 1;
        }
        class
    }

    const fn empty(number: u16) -> Self {
        Self {
            number,
            rows: [None; 128],
        }
    }

    const fn put(&mut self, row: usize, id: Option<WireId>) {
        if let Some(WireId { class, number, .. }) = id
            && class == self.number
        {
            self.rows[number as usize] = Some(FIELDS[row].field as u8);
        }
    }

    /// True if the header has this class.
    pub(super) const fn has(&self, id: WireId) -> bool {
        id.class == self.number
    }

    /// Returns the field with this number, if any.
    pub(super) fn field(&self, number: u8) -> Option<Field> {
        let row = self.rows.get(usize::from(number)).copied().flatten()?;
        Some(FIELDS[usize::from(row)].field)
    }
}
