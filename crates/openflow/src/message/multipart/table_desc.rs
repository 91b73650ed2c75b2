//! How each table is configured (OF 1.4.1, 7.3.5.18). The properties say how a
//! table evicts and when it warns; ours do neither, so there are none, and another
//! switch's are passed over.

use base::TableId;
use flow::Refusal;

use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::message::Body;

/// A table's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDesc {
    /// The table.
    pub table: TableId,
    /// `OFPTC_*` bits.
    pub config: u32,
}

impl Body for TableDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(r.clone().u16()?);
        let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
        r.skip(2)?;
        let table = TableId(r.u8()?);
        r.skip(1)?;
        let config = r.u32()?;
        r.rest();
        Ok(Self { table, config })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.nested(0, |w| {
            w.u16(0);
            w.u8(self.table.0);
            w.zeros(1);
            w.u32(self.config);
            Ok(())
        })
        .map(drop)
    }
}
