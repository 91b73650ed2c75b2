//! The counts of a table (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.4). OpenFlow 1.0 also
//! tells a name, which ours have not, what can be wildcarded, which is all, and
//! how many rules fit.

use base::TableId;
use flow::TableStats;

use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::message::Body;
use crate::version::Version;

/// Bytes of a table's name.
const NAME: usize = 32;

/// `OFPFW_ALL` of OpenFlow 1.0.
const WILDCARDS_ALL: u32 = (1 << 22) - 1;

impl Body for TableStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = TableId(r.u8()?);
        r.skip(3)?;
        let flows_max = match r.version() {
            Version::V10 => {
                r.skip(NAME + 4)?;
                r.u32()?
            }
            Version::V13 => 0,
        };
        Ok(Self {
            table,
            flows_max,
            active: r.u32()?,
            lookups: r.u64()?,
            matched: r.u64()?,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.u8(self.table.0);
        w.zeros(3);
        match w.version() {
            Version::V10 => {
                w.zeros(NAME);
                w.u32(WILDCARDS_ALL);
                w.u32(self.flows_max);
            }
            Version::V13 => {}
        }
        w.u32(self.active);
        w.u64(self.lookups);
        w.u64(self.matched);
        Ok(())
    }
}
