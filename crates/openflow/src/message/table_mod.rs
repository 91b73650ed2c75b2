//! Table-mod (OF 1.3.5, 7.3.3). What is left of it in 1.3 are two bits that say
//! what 1.1 did with frames that match nothing, and nobody heeds.

use base::TableId;
use flow::{Refusal, TableMod};

use super::Body;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};

/// `OFPTC_DEPRECATED_MASK`.
const DEPRECATED: u32 = 3;

impl Body for TableMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = TableId(r.u8()?);
        r.skip(3)?;
        let unknown = r.fail(Refusal::TableModBadConfig);
        let config = r.u32()?;
        if config & !DEPRECATED != 0 {
            return Err(unknown);
        }
        Ok(Self { table, config })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.u8(self.table.0);
        w.zeros(3);
        w.u32(self.config);
        Ok(())
    }
}
