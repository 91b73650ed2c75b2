//! Table-mod (OF 1.1.0, A.3.3; OF 1.3.5, 7.3.3; OF 1.4.1, 7.3.4.1). In 1.1 and 1.2
//! two bits say what becomes of frames that match nothing; in 1.3 they are left and
//! nobody heeds them. In 1.4 others turn eviction and vacancy events on, which are
//! read, to be refused by the switch that does not do them, and properties say how.

use base::TableId;
use flow::{Refusal, TableMod};

use super::{Body, property};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::version::Version;

/// `OFPTMPT_EVICTION` and `OFPTMPT_VACANCY`.
const EVICTION: u16 = 2;
const VACANCY: u16 = 3;

/// The bits that a version has.
const fn known_config(version: Version) -> u32 {
    match version {
        Version::V10 => 0,
        // OFPTC_TABLE_MISS_MASK; from 1.3 on OFPTC_DEPRECATED_MASK.
        Version::V11 | Version::V12 | Version::V13 => 3,
        // And OFPTC_EVICTION and OFPTC_VACANCY_EVENTS.
        Version::V14 | Version::V15 => 0xf,
    }
}

impl Body for TableMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = TableId(r.u8()?);
        r.skip(3)?;
        let unknown = r.fail(Refusal::TableModBadConfig);
        let config = r.u32()?;
        if config & !known_config(r.version()) != 0 {
            return Err(unknown);
        }
        if matches!(r.version(), Version::V14 | Version::V15) {
            check_properties(r)?;
        }
        Ok(Self { table, config })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        if self.config & !known_config(w.version()) != 0 {
            return Err(w.cannot("this table configuration"));
        }
        w.u8(self.table.0);
        w.zeros(3);
        w.u32(self.config);
        Ok(())
    }
}

/// Passes over the properties that there are. How a table evicts and when it warns
/// matters only where the configuration turns that on.
fn check_properties(r: &mut Reader<'_>) -> Result<(), Malformed> {
    while !r.is_empty() {
        let property = property::next(r)?;
        match property.kind {
            EVICTION | VACANCY if property.value.len() == 4 => {}
            EVICTION | VACANCY => return Err(property.fail(Refusal::PropertyBadLength)),
            _ => return Err(property.unknown()),
        }
    }
    Ok(())
}
