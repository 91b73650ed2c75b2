//! What each table can do (OF 1.3.5, 7.3.5.5). `ovs-ofctl` asks before every
//! command that names a table, and wants an answer.
//!
//! All tables can do the same, which is what the codec has words for; so the
//! properties are made from the registries, and only which tables may follow is
//! told apart. Of another switch's properties only that one is read.

use base::TableId;
use flow::field::{FieldInfo, Maskable};
use flow::{Field, Refusal};

use crate::action;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::instruction;
use crate::message::Body;
use crate::oxm::{self, Prefer};

/// Bytes of a table's name.
const NAME: usize = 32;

/// Bytes of a property's head.
const PROPERTY_HEAD: usize = 4;

/// `OFPTFPT_*`. What holds for frames that match nothing (`.._MISS`) is the same
/// and may be left out.
mod property {
    pub(super) const INSTRUCTIONS: u16 = 0;
    pub(super) const NEXT_TABLES: u16 = 2;
    pub(super) const WRITE_ACTIONS: u16 = 4;
    pub(super) const APPLY_ACTIONS: u16 = 6;
    pub(super) const MATCH: u16 = 8;
    pub(super) const WILDCARDS: u16 = 10;
    pub(super) const WRITE_SETFIELD: u16 = 12;
    pub(super) const APPLY_SETFIELD: u16 = 14;
}

/// A table, and what is particular to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// The table.
    pub table: TableId,
    /// Its name, at most 31 bytes on the wire.
    pub name: String,
    /// Bits of the metadata register that it can match.
    pub metadata_match: u64,
    /// Bits of the metadata register that it can write.
    pub metadata_write: u64,
    /// Rules it may hold.
    pub flows_max: u32,
    /// The tables that `goto_table` may name in it.
    pub next: Vec<TableId>,
}

impl Body for TableFeatures {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(r.clone().u16()?);
        if length < 2 {
            return Err(r.fail(Refusal::RequestBadLength));
        }
        let mut r = r.sub(length)?;
        r.skip(2)?;
        let table = TableId(r.u8()?);
        r.skip(5)?;
        let name = r.text(NAME)?;
        let (metadata_match, metadata_write) = (r.u64()?, r.u64()?);
        r.skip(4)?;
        let flows_max = r.u32()?;
        let mut next = Vec::new();
        while !r.is_empty() {
            let (kind, mut value) = decode_property(&mut r)?;
            if kind == property::NEXT_TABLES {
                next = value.rest().iter().copied().map(TableId).collect();
            }
        }
        Ok(Self {
            table,
            name,
            metadata_match,
            metadata_write,
            flows_max,
            next,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.nested(0, |w| {
            w.u16(0);
            w.u8(self.table.0);
            w.zeros(5);
            w.text(NAME, &self.name);
            w.u64(self.metadata_match);
            w.u64(self.metadata_write);
            w.u32(0);
            w.u32(self.flows_max);
            encode_properties(&self.next, w)
        })
        .map(drop)
    }
}

/// The kind and the value of the property at hand; `r` then stands behind its padding.
fn decode_property<'a>(r: &mut Reader<'a>) -> Result<(u16, Reader<'a>), Malformed> {
    let place = r.fail(Refusal::RequestBadLength);
    let mut head = r.clone();
    let (kind, length) = (head.u16()?, usize::from(head.u16()?));
    let value = length.checked_sub(PROPERTY_HEAD).ok_or(place)?;
    let mut whole = r.sub(length.next_multiple_of(8))?;
    whole.skip(PROPERTY_HEAD)?;
    Ok((kind, whole.sub(value)?))
}

fn encode_properties(next: &[TableId], w: &mut Writer<'_>) -> Result<(), Inexpressible> {
    let actions: Vec<u16> = action::own_numbers(w.version()).collect();
    put_ids(property::INSTRUCTIONS, &instruction::KNOWN, w)?;
    put(property::NEXT_TABLES, w, |w| {
        next.iter().for_each(|table| w.u8(table.0));
    })?;
    put_ids(property::WRITE_ACTIONS, &actions, w)?;
    put_ids(property::APPLY_ACTIONS, &actions, w)?;
    put_fields(property::MATCH, |_| true, true, w)?;
    put_fields(property::WILDCARDS, |_| true, false, w)?;
    put_fields(property::WRITE_SETFIELD, |row| row.writable, false, w)?;
    put_fields(property::APPLY_SETFIELD, |row| row.writable, false, w)
}

/// Appends a list of instructions or actions: heads without bodies.
fn put_ids(kind: u16, ids: &[u16], w: &mut Writer<'_>) -> Result<(), Inexpressible> {
    put(kind, w, |w| {
        for id in ids {
            w.u16(*id);
            w.u16(4);
        }
    })
}

/// Appends the headers of the fields that `can`. `masks` marks those that take a
/// mask.
fn put_fields(
    kind: u16,
    can: impl Fn(&FieldInfo) -> bool,
    masks: bool,
    w: &mut Writer<'_>,
) -> Result<(), Inexpressible> {
    put(kind, w, |w| {
        for row in Field::all().filter(|row| can(row)) {
            let masked = masks && row.maskable != Maskable::No;
            if let Some(header) = oxm::header_of(row.field, Prefer::Oxm, masked) {
                header.encode(w);
            }
        }
    })
}

fn put(
    kind: u16,
    w: &mut Writer<'_>,
    value: impl FnOnce(&mut Writer<'_>),
) -> Result<(), Inexpressible> {
    w.nested_padded(2, |w| {
        w.u16(kind);
        w.u16(0);
        value(w);
        Ok(())
    })
    .map(drop)
}
