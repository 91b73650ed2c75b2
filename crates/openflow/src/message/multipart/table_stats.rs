//! The counters of a table (OF 1.0.1, 5.3.5; OF 1.1.0, A.3.5; OF 1.2, A.3.5.3; OF 1.3.5, 7.3.5.4).
//! Until OpenFlow 1.2 the entry also has a name, the capabilities, which are those of the codec, and
//! the maximum number of rules.

use base::TableId;
use flow::field::FieldInfo;
use flow::{Field, TableStats};

use super::table_features::is_announced_as_settable;
use crate::action;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::instruction;
use crate::message::WireFormat;
use crate::version::Version;

/// Bytes of a table's name.
const NAME: usize = 32;

/// `OFPFW_ALL` of OpenFlow 1.0.
const WILDCARDS_ALL: u32 = (1 << 22) - 1;

/// `OFPTC_TABLE_MISS_CONTROLLER`: a table miss sends the packet to the controllers.
const CONFIG: u32 = 0;

/// `OFPXMC_OPENFLOW_BASIC`.
const OXM_BASIC: u16 = 0x8000;

/// `OFPFMF_*` of OpenFlow 1.1, all of them.
const FIELDS_V11: u32 = 0xffff;

/// Bytes of padding after the table id.
const fn padding(version: Version) -> usize {
    match version {
        Version::V10 | Version::V13 | Version::V14 | Version::V15 => 3,
        Version::V11 | Version::V12 => 7,
    }
}

/// Bytes of the capabilities, in versions that have them here.
const fn capability_bytes(version: Version) -> Option<usize> {
    match version {
        Version::V10 => Some(4),
        Version::V11 => Some(6 * 4),
        Version::V12 => Some(6 * 8 + 4 * 4),
        Version::V13 | Version::V14 | Version::V15 => None,
    }
}

/// Appends the capabilities of the table.
fn encode_capabilities(table: TableId, w: &mut Writer<'_>) {
    let actions = action::standard_numbers(w.version()).fold(0, |bits, number| bits | 1 << number);
    let instructions = instruction::numbers_of_table(w.version(), table)
        .fold(0, |bits, number| bits | 1 << number);
    match w.version() {
        Version::V10 => w.u32(WILDCARDS_ALL),
        Version::V11 => {
            w.u32(FIELDS_V11);
            w.u32(FIELDS_V11);
            for bits in [instructions, actions, actions, CONFIG] {
                w.u32(bits);
            }
        }
        Version::V12 => {
            let (fields, settable) = (fields(|_| true), fields(is_announced_as_settable));
            w.u64(fields);
            w.u64(fields);
            w.u32(actions);
            w.u32(actions);
            w.u64(settable);
            w.u64(settable);
            w.u64(u64::MAX);
            w.u64(u64::MAX);
            w.u32(instructions);
            w.u32(CONFIG);
        }
        Version::V13 | Version::V14 | Version::V15 => {}
    }
}

/// The basic OXM fields that satisfy `can`, one bit each.
fn fields(can: impl Fn(&FieldInfo) -> bool) -> u64 {
    Field::all()
        .filter(|row| can(row))
        .filter_map(|row| row.oxm)
        .filter(|id| id.class == OXM_BASIC && id.number < 64)
        .fold(0, |bits, id| bits | 1 << id.number)
}

impl WireFormat for TableStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = TableId(r.u8()?);
        r.skip(padding(r.version()))?;
        let (name, flows_max) = match capability_bytes(r.version()) {
            Some(capability_bytes) => {
                let name = r.text(NAME)?;
                r.skip(capability_bytes)?;
                (name, r.u32()?)
            }
            None => (String::new(), 0),
        };
        Ok(Self {
            table,
            name,
            flows_max,
            active: r.u32()?,
            lookups: r.u64()?,
            matched: r.u64()?,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u8(self.table.0);
        w.zeros(padding(w.version()));
        if capability_bytes(w.version()).is_some() {
            w.text(NAME, &self.name);
            encode_capabilities(self.table, w);
            w.u32(self.flows_max);
        }
        w.u32(self.active);
        w.u64(self.lookups);
        w.u64(self.matched);
        Ok(())
    }
}
