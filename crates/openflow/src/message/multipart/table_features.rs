//! The capabilities of tables (OF 1.3.5, 7.3.5.5; OF 1.5.1, 7.3.5.18). `ovs-ofctl` requests them
//! before every command that names a table, and requires a reply.
//!
//! All tables have the same capabilities, those of the codec, but for the last, which has no
//! `goto_table`; therefore the properties are generated from the registries, and only the next
//! tables differ. From a peer's properties the
//! decoder keeps only the next tables.
//!
//! In a request the properties are the required capabilities of a table. `request` refuses a table
//! that lacks one of them; fewer capabilities change nothing.

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

/// `OFPTFPT_*`. The property for a table miss (`.._MISS`) equals the other and may be omitted.
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

/// The command of a request: `OFPTFC_*` of 1.5. Earlier versions have only the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFeaturesCommand {
    /// Replaces all tables with these.
    #[default]
    Replace,
    /// Modifies these tables.
    Modify,
    /// Enables these tables.
    Enable,
    /// Disables these tables.
    Disable,
}

/// All commands in the order of their numbers.
const COMMANDS: [TableFeaturesCommand; 4] = [
    TableFeaturesCommand::Replace,
    TableFeaturesCommand::Modify,
    TableFeaturesCommand::Enable,
    TableFeaturesCommand::Disable,
];

/// `OFPTFF_INGRESS_TABLE` of 1.5.
const INGRESS: u32 = 1;

/// The features of a table that are particular to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// The table.
    pub table: TableId,
    /// Its name, at most 31 bytes on the wire.
    pub name: String,
    /// The bits of the metadata register that the table can match.
    pub metadata_match: u64,
    /// The bits of the metadata register that the table can write.
    pub metadata_write: u64,
    /// The supported configuration flags (1.4); in 1.3 the present configuration.
    pub capabilities: TableFlags,
    /// The maximum number of rules.
    pub flows_max: u32,
    /// The command, only in a request of 1.5.
    pub command: TableFeaturesCommand,
    /// The tables that `goto_table` may name in this table.
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
            encode_properties(self.table, &self.next, w)
        })
        .map(drop)
    }
}

impl TableFeatures {
    /// Appends the members before the properties.
    fn encode_head(&self, features: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let numbered = (0..).zip(COMMANDS);
        let mut numbers = numbered.filter(|(_, command)| *command == self.command);
        let (command, _) = numbers.next().expect("every command is in the list");
        if command != 0 && w.version() != Version::V15 {
            return Err(w.unsupported("a table features command"));
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

/// Appends a table in a request, with the next tables as its only property, so that the other
/// capabilities remain unchanged.
pub(super) fn encode_request(table: &TableFeatures, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.nested(0, |w| {
        table.encode_head(0, w)?;
        put(property::NEXT_TABLES, w, |w| {
            table.next.iter().for_each(|table| w.u8(table.0));
        })
    })
    .map(drop)
}

/// Decodes a table in a request.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<TableFeatures, Malformed> {
    decode_entry(r, request::check)
}

/// Decodes a table and applies `check` to each property: its type, its value, its table.
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

/// Decodes the command, which is a byte of padding in 1.3 and 1.4.
fn decode_command(r: &mut Reader<'_>) -> Result<TableFeaturesCommand, Malformed> {
    let bad = r.fail(Refusal::TableFeaturesBadCommand);
    let number = r.u8()?;
    match r.version() {
        Version::V15 => COMMANDS.get(usize::from(number)).copied().ok_or(bad),
        _ => Ok(TableFeaturesCommand::Replace),
    }
}

/// Decodes the type and the value of the next property, and skips its padding.
fn decode_property<'a>(r: &mut Reader<'a>) -> Result<(u16, Reader<'a>), Malformed> {
    let place = r.fail(Refusal::RequestBadLength);
    let mut head = r.clone();
    let (kind, length) = (head.u16()?, usize::from(head.u16()?));
    let value = length.checked_sub(PROPERTY_HEAD).ok_or(place)?;
    let mut whole = r.sub(length.next_multiple_of(8))?;
    whole.skip(PROPERTY_HEAD)?;
    Ok((kind, whole.sub(value)?))
}

fn encode_properties(
    table: TableId,
    next: &[TableId],
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let actions: Vec<u16> = action::standard_numbers(w.version()).collect();
    let instructions: Vec<u16> = instruction::numbers_of_table(w.version(), table).collect();
    put_ids(property::INSTRUCTIONS, &instructions, w)?;
    put(property::NEXT_TABLES, w, |w| {
        next.iter().for_each(|table| w.u8(table.0));
    })?;
    put_ids(property::WRITE_ACTIONS, &actions, w)?;
    put_ids(property::APPLY_ACTIONS, &actions, w)?;
    put_fields(property::MATCH, |_| true, true, w)?;
    put_fields(property::WILDCARDS, |_| true, false, w)?;
    put_fields(property::WRITE_SETFIELD, is_announced_as_settable, false, w)?;
    put_fields(property::APPLY_SETFIELD, is_announced_as_settable, false, w)
}

/// Returns true for the fields that tables announce as settable. Those that decide how the bytes
/// behind them are read can be set, but are not announced, as by Open vSwitch.
pub(super) fn is_announced_as_settable(row: &FieldInfo) -> bool {
    let decides = matches!(row.field, Field::EthType | Field::IpProto | Field::MplsBos);
    row.writable && !decides
}

/// Appends a list of instructions or actions: headers without bodies.
fn put_ids(kind: u16, ids: &[u16], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    put(kind, w, |w| {
        for id in ids {
            w.u16(*id);
            w.u16(4);
        }
    })
}

/// Appends the headers of the fields that satisfy `can`. `masks` sets the mask bit of those that
/// allow a mask.
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
