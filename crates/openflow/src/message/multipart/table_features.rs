//! What each table can do (OF 1.3.5, 7.3.5.5; OF 1.5.1, 7.3.5.18). `ovs-ofctl` asks
//! before every command that names a table, and wants an answer.
//!
//! All tables can do the same, which is what the codec has words for; so the
//! properties are made from the registries, and only which tables may follow is
//! told apart. Of another switch's properties only that one is read.
//!
//! In a request they say what a table shall be able to do. What is more than it can is
//! refused here, and what is less changes nothing (`request`).

use base::TableId;
use flow::field::{FieldInfo, Maskable};
use flow::{Field, Refusal, TableFlags};

use crate::action;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::instruction;
use crate::message::WireFormat;
use crate::oxm::{self, HeaderFamily};
use crate::version::Version;

mod request;

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
    pub(super) const SYNC_FROM: u16 = 16;
    pub(super) const WRITE_COPYFIELD: u16 = 18;
    pub(super) const APPLY_COPYFIELD: u16 = 20;
    pub(super) const PACKET_TYPES: u16 = 22;
    pub(super) const EXPERIMENTER: u16 = 0xfffe;
}

/// What is to be done with tables: `OFPTFC_*` of 1.5. Before, there is but the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFeaturesCommand {
    /// These, and no others, are the tables.
    #[default]
    Replace,
    /// Change these.
    Modify,
    /// Use these again.
    Enable,
    /// Use these no longer.
    Disable,
}

/// In the order of their numbers.
const COMMANDS: [TableFeaturesCommand; 4] = [
    TableFeaturesCommand::Replace,
    TableFeaturesCommand::Modify,
    TableFeaturesCommand::Enable,
    TableFeaturesCommand::Disable,
];

/// `OFPTFF_INGRESS_TABLE` of 1.5.
const INGRESS: u32 = 1;

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
    /// What can be configured of it (1.4; in 1.3, how it is configured).
    pub capabilities: TableFlags,
    /// Rules it may hold.
    pub flows_max: u32,
    /// What is to be done with the table; only a request says so, and in 1.5 only.
    pub command: TableFeaturesCommand,
    /// The tables that `goto_table` may name in it.
    pub next: Vec<TableId>,
}

impl WireFormat for TableFeatures {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        decode_entry(r, |_, _, _| Ok(()))
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let features = if w.version() == Version::V15 {
            INGRESS
        } else {
            0
        };
        w.nested(0, |w| {
            self.encode_head(features, w)?;
            encode_properties(&self.next, w)
        })
        .map(drop)
    }
}

impl TableFeatures {
    /// Appends what comes before the properties.
    fn encode_head(&self, features: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let numbered = (0..).zip(COMMANDS);
        let mut numbers = numbered.filter(|(_, command)| *command == self.command);
        let (command, _) = numbers.next().expect("every command is in the list");
        if command != 0 && w.version() != Version::V15 {
            return Err(w.unsupported("a command for tables"));
        }
        w.u16(0);
        w.u8(self.table.0);
        w.u8(command);
        w.u32(features);
        w.text(NAME, &self.name);
        w.u64(self.metadata_match);
        w.u64(self.metadata_write);
        w.u32(self.capabilities.0);
        w.u32(self.flows_max);
        Ok(())
    }
}

/// Appends a table as a request has it: without properties, so that what it can do stays
/// as it is.
pub(super) fn encode_request(table: &TableFeatures, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.nested(0, |w| {
        table.encode_head(0, w)?;
        put(property::NEXT_TABLES, w, |w| {
            table.next.iter().for_each(|table| w.u8(table.0));
        })
    })
    .map(drop)
}

/// Reads a table as a request has it.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<TableFeatures, Malformed> {
    decode_entry(r, request::check)
}

/// Reads a table, and has each property checked: its kind, its value, of which table.
fn decode_entry(
    r: &mut Reader<'_>,
    check: impl Fn(u16, Reader<'_>, TableId) -> Result<(), Malformed>,
) -> Result<TableFeatures, Malformed> {
    let length = usize::from(r.clone().u16()?);
    if length < 2 {
        return Err(r.fail(Refusal::RequestBadLength));
    }
    let mut r = r.sub(length)?;
    r.skip(2)?;
    let table = TableId(r.u8()?);
    let command = decode_command(&mut r)?;
    r.skip(4)?;
    let name = r.text(NAME)?;
    let (metadata_match, metadata_write) = (r.u64()?, r.u64()?);
    let capabilities = TableFlags(r.u32()?);
    let flows_max = r.u32()?;
    let mut next = Vec::new();
    while !r.is_empty() {
        let (kind, value) = decode_property(&mut r)?;
        check(kind, value.clone(), table)?;
        if kind == property::NEXT_TABLES {
            next = value.clone().rest().iter().copied().map(TableId).collect();
        }
    }
    Ok(TableFeatures {
        table,
        name,
        metadata_match,
        metadata_write,
        capabilities,
        flows_max,
        command,
        next,
    })
}

/// What is to be done with the table; in 1.3 and 1.4 a byte of padding stands there.
fn decode_command(r: &mut Reader<'_>) -> Result<TableFeaturesCommand, Malformed> {
    let bad = r.fail(Refusal::TableFeaturesBadCommand);
    let number = r.u8()?;
    match r.version() {
        Version::V15 => COMMANDS.get(usize::from(number)).copied().ok_or(bad),
        _ => Ok(TableFeaturesCommand::Replace),
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

fn encode_properties(next: &[TableId], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let actions: Vec<u16> = action::standard_numbers(w.version()).collect();
    let instructions: Vec<u16> = instruction::supported_numbers(w.version()).collect();
    put_ids(property::INSTRUCTIONS, &instructions, w)?;
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
fn put_ids(kind: u16, ids: &[u16], w: &mut Writer<'_>) -> Result<(), EncodeError> {
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
) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        for row in Field::all().filter(|row| can(row)) {
            let masked = masks && row.maskable != Maskable::No;
            if let Some(header) = oxm::header_of(row.field, HeaderFamily::Oxm, masked) {
                header.encode(w);
            }
        }
    })
}

fn put(
    kind: u16,
    w: &mut Writer<'_>,
    value: impl FnOnce(&mut Writer<'_>),
) -> Result<(), EncodeError> {
    w.nested_padded(2, |w| {
        w.u16(kind);
        w.u16(0);
        value(w);
        Ok(())
    })
    .map(drop)
}
