//! The TLV map of tunnel options: Nicira's messages to change and request it, and the reply, the
//! same in every version (`nicira-ext.h` of Open vSwitch 3.1, NXT_TLV_TABLE_*).

use flow::{Refusal, TlvCommand, TlvMapping, TlvTable, TlvTableMod};

use super::WireFormat;
use crate::codec::{EncodeError, Malformed, Reader, Writer};

/// Bytes of a mapping.
const MAPPING: usize = 8;

/// `NXTTMC_*`.
const COMMANDS: [TlvCommand; 3] = [TlvCommand::Add, TlvCommand::Delete, TlvCommand::Clear];

impl WireFormat for TlvTableMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad = r.fail(Refusal::TlvBadCommand);
        let number = usize::from(r.u16()?);
        r.skip(6)?;
        Ok(Self {
            command: *COMMANDS.get(number).ok_or(bad)?,
            mappings: decode_mappings(r)?,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u16(match self.command {
            TlvCommand::Add => 0,
            TlvCommand::Delete => 1,
            TlvCommand::Clear => 2,
        });
        w.zeros(6);
        encode_mappings(&self.mappings, w);
        Ok(())
    }
}

impl WireFormat for TlvTable {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (space_max, fields_max) = (r.u32()?, r.u16()?);
        r.skip(10)?;
        Ok(Self {
            space_max,
            fields_max,
            mappings: decode_mappings(r)?,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u32(self.space_max);
        w.u16(self.fields_max);
        w.zeros(10);
        encode_mappings(&self.mappings, w);
        Ok(())
    }
}

/// Decodes mappings to the end of `r`, which must be a whole number of them.
pub(crate) fn decode_mappings(r: &mut Reader<'_>) -> Result<Vec<TlvMapping>, Malformed> {
    let mut mappings = Vec::new();
    while !r.is_empty() {
        let mut r = r.sub(MAPPING)?;
        mappings.push(TlvMapping {
            class: r.u16()?,
            kind: r.u8()?,
            length: r.u8()?,
            index: r.u16()?,
        });
    }
    Ok(mappings)
}

fn encode_mappings(mappings: &[TlvMapping], w: &mut Writer<'_>) {
    for mapping in mappings {
        w.u16(mapping.class);
        w.u8(mapping.kind);
        w.u8(mapping.length);
        w.u16(mapping.index);
        w.zeros(2);
    }
}
