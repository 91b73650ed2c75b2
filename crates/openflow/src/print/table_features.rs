//! The capabilities of tables, in the format of OpenFlow 1.3 and later, and from the table
//! statistics of earlier versions. `write` formats them.

mod write;

use std::collections::BTreeSet;

use base::TableId;

use super::field_names::{self, FieldSet};
use super::refusal_names::DecodeErrorName;
use super::table;
use super::text::PrintBuffer;
use crate::codec::Reader;
use crate::message::property::{self, Property};
use crate::version::Version;
use ::flow::Refusal;
use write::TablePrinter;

/// Bytes of a table's name.
const NAME: usize = 32;

/// Bytes before the properties.
const HEAD: usize = 64;

/// The capability flags for eviction and for vacancy events (1.4).
const EVICTION: u32 = 1 << 2;
const VACANCY: u32 = 1 << 3;

/// The handling of a table miss before 1.3.
pub(super) const MISS: [&str; 3] = ["controller", "continue", "drop"];

/// The instructions of versions before 1.3, by the bits of their numbers.
const INSTRUCTIONS_V11: u32 = 0x3e;

/// The commands of a request by number (`OFPTFC_*`). The first, replacement, is not printed.
const COMMANDS: [&str; 4] = ["", "modify", "enable", "disable"];

/// The properties; those with the next higher number are for a table miss (`OFPTFPT_*`).
const INSTRUCTIONS_PROPERTY: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SETFIELD: u16 = 12;
const APPLY_SETFIELD: u16 = 14;

/// The properties that every table must have.
const REQUIRED: [u16; 8] = [
    INSTRUCTIONS_PROPERTY,
    NEXT_TABLES,
    WRITE_ACTIONS,
    APPLY_ACTIONS,
    MATCH,
    WILDCARDS,
    WRITE_SETFIELD,
    APPLY_SETFIELD,
];

/// The capabilities of an action list or action set.
#[derive(Clone, Default, PartialEq, Eq)]
struct ActionFeatures {
    names: String,
    set_fields: FieldSet,
}

impl ActionFeatures {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.set_fields.is_empty()
    }
}

/// The capabilities of instructions.
#[derive(Clone, Default, PartialEq, Eq)]
struct InstructionFeatures {
    next: BTreeSet<u8>,
    bits: u32,
    write: ActionFeatures,
    apply: ActionFeatures,
}

impl InstructionFeatures {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The capabilities that are compared between tables.
#[derive(Clone, Default, PartialEq, Eq)]
struct TableAbilities {
    /// The bits of the metadata that the table can match, and those that it can write.
    metadata: (u64, u64),
    /// The handling of a table miss, if the version has it.
    miss_config: Option<&'static str>,
    /// Eviction and vacancy events, if the version has them.
    eviction_and_vacancy: Option<(bool, bool)>,
    entries_max: u32,
    hit: InstructionFeatures,
    miss: InstructionFeatures,
    matching: FieldSet,
}

/// All capabilities of a table.
#[derive(Clone, Default)]
pub(super) struct TableFeatureSet {
    abilities: TableAbilities,
    masked: FieldSet,
    wildcards: FieldSet,
}

/// A table: its id, name and capabilities; and its counters (active rules, lookups, matched
/// packets) if the message has them.
pub(super) struct PrintedTable {
    pub(super) id: TableId,
    pub(super) name: String,
    pub(super) counts: Option<(u32, u64, u64)>,
    pub(super) features: TableFeatureSet,
}

/// Writes the command, if the message has tables, and then the capabilities of the tables.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let command = command(r.clone())?;
    if !command.is_empty() {
        write!(text, "\n  command: {command}");
    }
    print_tables(r, read_table, text)
}

/// The command, which 1.5 repeats in each table (OF 1.5.1, 7.3.5.18.1).
fn command(mut r: Reader<'_>) -> Result<&'static str, DecodeErrorName> {
    if r.version() != Version::V15 || r.len() < HEAD {
        return Ok("");
    }
    r.skip(2)?;
    if TableId(r.u8()?) == TableId::ALL {
        return Ok("");
    }
    let number = usize::from(r.u8()?);
    let bad = r.fail(Refusal::TableFeaturesBadCommand);
    COMMANDS.get(number).copied().ok_or_else(|| bad.into())
}

/// Writes the tables that `read` decodes, up to the first malformed one.
pub(super) fn print_tables(
    r: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<PrintedTable, DecodeErrorName>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut tables = TablePrinter::default();
    while !r.is_empty() {
        match read(r) {
            Ok(table) => tables.write(table, text),
            Err(unreadable) => {
                tables.write_same(text);
                return Err(unreadable);
            }
        }
    }
    tables.write_same(text);
    Ok(())
}

/// Reads the capabilities of a table in the format of 1.3 and later (OF 1.3.5, 7.3.5.5).
fn read_table(r: &mut Reader<'_>) -> Result<PrintedTable, DecodeErrorName> {
    command(r.clone())?;
    let bad_length = r.fail(Refusal::PropertyBadLength);
    let length = usize::from(r.clone().on_short(Refusal::PropertyBadLength).u16()?);
    if length < HEAD || !length.is_multiple_of(8) {
        return Err(bad_length.into());
    }
    let mut r = r.sub_or(length, Refusal::PropertyBadLength)?;
    r.skip(2)?;
    let id = TableId(r.u8()?);
    if id == TableId::ALL {
        return Err(r.fail(Refusal::TableFeaturesBadTable).into());
    }
    r.skip(5)?;
    let name = r.text(NAME)?;
    let mut features = TableFeatureSet::default();
    features.abilities.metadata = (r.u64()?, r.u64()?);
    let capabilities = r.u32()?;
    if r.version() >= Version::V14 {
        let can = |bit| capabilities & bit != 0;
        features.abilities.eviction_and_vacancy = Some((can(EVICTION), can(VACANCY)));
    }
    features.abilities.entries_max = r.u32()?;
    features.read_properties(&mut r)?;
    Ok(PrintedTable {
        id,
        name,
        counts: None,
        features,
    })
}

impl TableFeatureSet {
    /// Reads the capabilities in a table statistics entry of 1.0.
    pub(super) fn read_v10(r: &mut Reader<'_>) -> Result<Self, DecodeErrorName> {
        let mut features = Self {
            wildcards: field_names::of_wildcards_v10(r.u32()?),
            ..Self::default()
        };
        features.abilities.matching = features.wildcards.clone();
        features.abilities.entries_max = r.u32()?;
        Ok(features)
    }

    /// Reads the capabilities in a table statistics entry of 1.1. The list of write actions is also
    /// used for apply actions, as in Open vSwitch.
    pub(super) fn read_v11(r: &mut Reader<'_>) -> Result<Self, DecodeErrorName> {
        let mut features = Self {
            wildcards: field_names::of_bits_v11(r.u32()?),
            ..Self::default()
        };
        features.abilities.matching = field_names::of_bits_v11(r.u32()?);
        let bits = r.u32()? & INSTRUCTIONS_V11;
        let names = table::action_names(r.u32()?, Version::V11);
        r.skip(4)?;
        let write = ActionFeatures {
            names,
            set_fields: FieldSet::new(),
        };
        let apply = write.clone();
        features.read_config(r)?;
        Ok(features.with(bits, write, apply))
    }

    /// Reads the capabilities in a table statistics entry of 1.2.
    pub(super) fn read_v12(r: &mut Reader<'_>) -> Result<Self, DecodeErrorName> {
        let mut features = Self::default();
        features.abilities.matching = field_names::of_bits_v12(r.u64()?);
        features.wildcards = field_names::of_bits_v12(r.u64()?);
        let (write, apply) = (r.u32()?, r.u32()?);
        let (write_fields, apply_fields) = (r.u64()?, r.u64()?);
        features.abilities.metadata = (r.u64()?, r.u64()?);
        let bits = r.u32()? & INSTRUCTIONS_V11;
        let actions = |names, set_fields| ActionFeatures {
            names: table::action_names(names, Version::V12),
            set_fields: field_names::of_bits_v12(set_fields),
        };
        let (write, apply) = (actions(write, write_fields), actions(apply, apply_fields));
        features.read_config(r)?;
        Ok(features.with(bits, write, apply))
    }

    fn read_config(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeErrorName> {
        let miss = usize::try_from(r.u32()? & 3).unwrap_or(0);
        self.abilities.miss_config = Some(MISS.get(miss).unwrap_or(&MISS[0]));
        self.abilities.entries_max = r.u32()?;
        Ok(())
    }

    /// Adds instructions, the same for a hit and a miss, and adds the wildcard fields to the match
    /// fields.
    fn with(mut self, bits: u32, write: ActionFeatures, apply: ActionFeatures) -> Self {
        let hit = InstructionFeatures {
            next: BTreeSet::new(),
            bits,
            write,
            apply,
        };
        self.abilities.miss = hit.clone();
        self.abilities.hit = hit;
        self.abilities.matching.extend(&self.wildcards);
        self
    }

    /// Reads properties. A missing property for a table miss equals the one for a hit.
    fn read_properties(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeErrorName> {
        let bad_features = r.fail(Refusal::TableFeaturesBadFeatures);
        let mut seen = BTreeSet::new();
        while !r.is_empty() {
            let property = property::next(r)?;
            if property.kind <= APPLY_SETFIELD + 1 && !seen.insert(property.kind) {
                return Err(bad_features.into());
            }
            self.read_property(&property)?;
        }
        // In 1.5 a request may omit all properties to leave them unchanged.
        let is_omitted = seen.is_empty() && r.version() == Version::V15;
        if !is_omitted && REQUIRED.iter().any(|kind| !seen.contains(kind)) {
            return Err(bad_features.into());
        }
        let TableAbilities { hit, miss, .. } = &mut self.abilities;
        let is_listed = |kind: u16| seen.contains(&(kind + 1));
        if !is_listed(INSTRUCTIONS_PROPERTY) {
            miss.bits = hit.bits;
        }
        if !is_listed(NEXT_TABLES) {
            miss.next = hit.next.clone();
        }
        for (actions, set_fields, miss, hit) in [
            (WRITE_ACTIONS, WRITE_SETFIELD, &mut miss.write, &hit.write),
            (APPLY_ACTIONS, APPLY_SETFIELD, &mut miss.apply, &hit.apply),
        ] {
            if !is_listed(actions) {
                miss.names.clone_from(&hit.names);
            }
            if !is_listed(set_fields) {
                miss.set_fields.clone_from(&hit.set_fields);
            }
        }
        self.wildcards.extend(&self.masked);
        Ok(())
    }

    fn read_property(&mut self, property: &Property<'_>) -> Result<(), DecodeErrorName> {
        let r = &property.value;
        let TableAbilities { hit, miss, .. } = &mut self.abilities;
        let of = if property.kind & 1 == 0 { hit } else { miss };
        match property.kind & !1 {
            INSTRUCTIONS_PROPERTY => of.bits = bits(r)?,
            NEXT_TABLES => of.next = next_tables(r)?,
            WRITE_ACTIONS => of.write.names = table::action_names(bits(r)?, r.version()),
            APPLY_ACTIONS => of.apply.names = table::action_names(bits(r)?, r.version()),
            WRITE_SETFIELD => of.write.set_fields = exact(r)?,
            APPLY_SETFIELD => of.apply.set_fields = exact(r)?,
            MATCH if property.kind == MATCH => {
                let (exact, masked) = field_names::read(r)?;
                self.abilities.matching = &exact | &masked;
                self.masked = masked;
            }
            WILDCARDS if property.kind == WILDCARDS => self.wildcards = exact(r)?,
            // Experimenter properties and unknown ones are not printed.
            _ => {}
        }
        Ok(())
    }
}

/// The bits of the listed instructions or actions; numbers beyond the bits are skipped.
fn bits(r: &Reader<'_>) -> Result<u32, DecodeErrorName> {
    let mut r = r.clone().on_short(Refusal::PropertyBadLength);
    let mut bits = 0;
    while !r.is_empty() {
        let bad_length = r.fail(Refusal::PropertyBadLength);
        let (kind, length) = (r.u16()?, usize::from(r.u16()?));
        r.skip(length.checked_sub(4).ok_or(bad_length)?)?;
        bits |= 1u32.checked_shl(kind.into()).unwrap_or(0);
    }
    Ok(bits)
}

fn next_tables(r: &Reader<'_>) -> Result<BTreeSet<u8>, DecodeErrorName> {
    let next: BTreeSet<u8> = r.clone().rest().iter().copied().collect();
    if next.contains(&TableId::ALL.0) {
        return Err(r.fail(Refusal::PropertyBadValue).into());
    }
    Ok(next)
}

/// Reads fields, none of which may have a mask.
fn exact(r: &Reader<'_>) -> Result<FieldSet, DecodeErrorName> {
    let (exact, masked) = field_names::read(r)?;
    if masked.is_empty() {
        Ok(exact)
    } else {
        Err(r.fail(Refusal::MatchBadMask).into())
    }
}
