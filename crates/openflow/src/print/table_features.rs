//! What tables can do: as OpenFlow 1.3 and later describe it, and as the versions before
//! tell it with what tables counted. What a table has in common with the one before is
//! told once.

use std::collections::BTreeSet;

use base::TableId;

use super::fields::{self, Fields};
use super::names::Unreadable;
use super::table;
use super::text::{Hex, Text};
use crate::codec::Reader;
use crate::message::property::{self, Property};
use crate::version::Version;
use ::flow::Refusal;

/// Bytes of a table's name.
const NAME: usize = 32;

/// Bytes before the properties.
const HEAD: usize = 64;

/// Tables can evict rules, and tell of vacancy (1.4).
const EVICTION: u32 = 1 << 2;
const VACANCY: u32 = 1 << 3;

/// What becomes of a frame that no rule matches, before 1.3.
pub(super) const MISS: [&str; 3] = ["controller", "continue", "drop"];

/// Instructions by the bit of their number, as they are ordered in a list.
const INSTRUCTIONS: [(u32, &str); 6] = [
    (1 << 6, "meter"),
    (1 << 4, "apply_actions"),
    (1 << 5, "clear_actions"),
    (1 << 3, "write_actions"),
    (1 << 2, "write_metadata"),
    (1 << 1, "goto_table"),
];

/// Those that versions before 1.3 have.
const INSTRUCTIONS_V11: u32 = 0x3e;

/// The properties, of which those with the next higher number are for frames that no
/// rule matches (`OFPTFPT_*`).
const INSTRUCTIONS_PROPERTY: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SETFIELD: u16 = 12;
const APPLY_SETFIELD: u16 = 14;

/// Those that are there for every table.
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

/// What actions in one place can be.
#[derive(Clone, Default, PartialEq, Eq)]
struct Actions {
    names: String,
    set_fields: Fields,
}

impl Actions {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.set_fields.is_empty()
    }
}

/// What instructions can be.
#[derive(Clone, Default, PartialEq, Eq)]
struct Instructions {
    next: BTreeSet<u8>,
    bits: u32,
    write: Actions,
    apply: Actions,
}

impl Instructions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is compared of two tables.
#[derive(Clone, Default, PartialEq, Eq)]
struct Abilities {
    /// Bits of the metadata that can be matched, and written.
    metadata: (u64, u64),
    /// What becomes of a frame that no rule matches, where the version says so.
    miss_config: Option<&'static str>,
    /// Whether rules are evicted, and vacancy told, where the version says so.
    eviction_and_vacancy: Option<(bool, bool)>,
    entries_max: u32,
    hit: Instructions,
    miss: Instructions,
    matching: Fields,
}

/// What a table can do.
#[derive(Clone, Default)]
pub(super) struct Features {
    abilities: Abilities,
    masked: Fields,
    wildcards: Fields,
}

/// A table: what it is called, what it can do, and what it counted (active rules, lookups
/// and frames that matched) if that is told.
pub(super) struct Table {
    pub(super) id: TableId,
    pub(super) name: String,
    pub(super) counts: Option<(u32, u64, u64)>,
    pub(super) features: Features,
}

/// Writes what tables can do.
pub(super) fn print(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    let mut last = None;
    while !r.is_empty() {
        let table = read_table(r)?;
        table.write(last.as_ref(), text);
        last = Some(table);
    }
    Ok(())
}

/// Reads what a table can do, as 1.3 and later describe it (OF 1.3.5, 7.3.5.5).
fn read_table(r: &mut Reader<'_>) -> Result<Table, Unreadable> {
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
    let mut features = Features::default();
    features.abilities.metadata = (r.u64()?, r.u64()?);
    let capabilities = r.u32()?;
    if r.version() >= Version::V14 {
        let can = |bit| capabilities & bit != 0;
        features.abilities.eviction_and_vacancy = Some((can(EVICTION), can(VACANCY)));
    }
    features.abilities.entries_max = r.u32()?;
    features.read_properties(&mut r)?;
    Ok(Table {
        id,
        name,
        counts: None,
        features,
    })
}

impl Features {
    /// Reads what 1.0 tells of a table with its counts.
    pub(super) fn read_v10(r: &mut Reader<'_>) -> Result<Self, Unreadable> {
        let mut features = Self {
            wildcards: fields::of_wildcards_v10(r.u32()?),
            ..Self::default()
        };
        features.abilities.matching = features.wildcards.clone();
        features.abilities.entries_max = r.u32()?;
        Ok(features)
    }

    /// Reads what 1.1 tells of a table with its counts. What may be applied is told by what
    /// may be written, as Open vSwitch tells it.
    pub(super) fn read_v11(r: &mut Reader<'_>) -> Result<Self, Unreadable> {
        let mut features = Self {
            wildcards: fields::of_bits_v11(r.u32()?),
            ..Self::default()
        };
        features.abilities.matching = fields::of_bits_v11(r.u32()?);
        let bits = r.u32()? & INSTRUCTIONS_V11;
        let names = table::action_names(r.u32()?, Version::V11);
        r.skip(4)?;
        let write = Actions {
            names,
            set_fields: Fields::new(),
        };
        let apply = write.clone();
        features.read_config(r)?;
        Ok(features.with(bits, write, apply))
    }

    /// Reads what 1.2 tells of a table with its counts.
    pub(super) fn read_v12(r: &mut Reader<'_>) -> Result<Self, Unreadable> {
        let mut features = Self::default();
        features.abilities.matching = fields::of_bits_v12(r.u64()?);
        features.wildcards = fields::of_bits_v12(r.u64()?);
        let (write, apply) = (r.u32()?, r.u32()?);
        let (write_fields, apply_fields) = (r.u64()?, r.u64()?);
        features.abilities.metadata = (r.u64()?, r.u64()?);
        let bits = r.u32()? & INSTRUCTIONS_V11;
        let actions = |names, set_fields| Actions {
            names: table::action_names(names, Version::V12),
            set_fields: fields::of_bits_v12(set_fields),
        };
        let (write, apply) = (actions(write, write_fields), actions(apply, apply_fields));
        features.read_config(r)?;
        Ok(features.with(bits, write, apply))
    }

    fn read_config(&mut self, r: &mut Reader<'_>) -> Result<(), Unreadable> {
        let miss = usize::try_from(r.u32()? & 3).unwrap_or(0);
        self.abilities.miss_config = Some(MISS.get(miss).unwrap_or(&MISS[0]));
        self.abilities.entries_max = r.u32()?;
        Ok(())
    }

    /// With instructions that are the same whether a rule matches or not, and all fields
    /// that count for nothing among those that count.
    fn with(mut self, bits: u32, write: Actions, apply: Actions) -> Self {
        let hit = Instructions {
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

    /// Reads properties. What is not told of frames that no rule matches is as for others.
    fn read_properties(&mut self, r: &mut Reader<'_>) -> Result<(), Unreadable> {
        let bad_features = r.fail(Refusal::TableFeaturesBadFeatures);
        let mut seen = BTreeSet::new();
        while !r.is_empty() {
            let property = property::next(r)?;
            if property.kind <= APPLY_SETFIELD + 1 && !seen.insert(property.kind) {
                return Err(bad_features.into());
            }
            self.read_property(&property)?;
        }
        if REQUIRED.iter().any(|kind| !seen.contains(kind)) {
            return Err(bad_features.into());
        }
        let Abilities { hit, miss, .. } = &mut self.abilities;
        let told = |kind: u16| seen.contains(&(kind + 1));
        if !told(INSTRUCTIONS_PROPERTY) {
            miss.bits = hit.bits;
        }
        if !told(NEXT_TABLES) {
            miss.next = hit.next.clone();
        }
        for (actions, set_fields, miss, hit) in [
            (WRITE_ACTIONS, WRITE_SETFIELD, &mut miss.write, &hit.write),
            (APPLY_ACTIONS, APPLY_SETFIELD, &mut miss.apply, &hit.apply),
        ] {
            if !told(actions) {
                miss.names.clone_from(&hit.names);
            }
            if !told(set_fields) {
                miss.set_fields.clone_from(&hit.set_fields);
            }
        }
        self.wildcards.extend(&self.masked);
        Ok(())
    }

    fn read_property(&mut self, property: &Property<'_>) -> Result<(), Unreadable> {
        let r = &property.value;
        let Abilities { hit, miss, .. } = &mut self.abilities;
        let of = if property.kind & 1 == 0 { hit } else { miss };
        match property.kind & !1 {
            INSTRUCTIONS_PROPERTY => of.bits = bits(r)?,
            NEXT_TABLES => of.next = next_tables(r)?,
            WRITE_ACTIONS => of.write.names = table::action_names(bits(r)?, r.version()),
            APPLY_ACTIONS => of.apply.names = table::action_names(bits(r)?, r.version()),
            WRITE_SETFIELD => of.write.set_fields = exact(r)?,
            APPLY_SETFIELD => of.apply.set_fields = exact(r)?,
            MATCH if property.kind == MATCH => {
                let (exact, masked) = fields::read(r)?;
                self.abilities.matching = &exact | &masked;
                self.masked = masked;
            }
            WILDCARDS if property.kind == WILDCARDS => self.wildcards = exact(r)?,
            // Of others' properties, and of those to come, nothing is told.
            _ => {}
        }
        Ok(())
    }
}

/// The bits of numbered things that are listed; those beyond them are passed over.
fn bits(r: &Reader<'_>) -> Result<u32, Unreadable> {
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

fn next_tables(r: &Reader<'_>) -> Result<BTreeSet<u8>, Unreadable> {
    let next: BTreeSet<u8> = r.clone().rest().iter().copied().collect();
    if next.contains(&TableId::ALL.0) {
        return Err(r.fail(Refusal::PropertyBadValue).into());
    }
    Ok(next)
}

/// Fields none of which may be under a mask.
fn exact(r: &Reader<'_>) -> Result<Fields, Unreadable> {
    let (exact, masked) = fields::read(r)?;
    if masked.is_empty() {
        Ok(exact)
    } else {
        Err(r.fail(Refusal::MatchBadMask).into())
    }
}

impl Table {
    /// Writes a table, whose predecessor is `last`.
    pub(super) fn write(&self, last: Option<&Self>, text: &mut Text<'_>) {
        write!(text, "\n  table {}", self.id);
        if !self.name.is_empty() {
            write!(text, " (\"{}\")", self.name);
        }
        text.push(":");
        let abilities = &self.features.abilities;
        let before = last.map(|table| &table.features.abilities);
        let same = before == Some(abilities);
        if same && last.is_some_and(|last| last.counts == self.counts) {
            text.push(" ditto");
            return;
        }
        text.push("\n");
        if let Some((active, lookups, matched)) = self.counts {
            writeln!(
                text,
                "    active={active}, lookup={lookups}, matched={matched}"
            );
        }
        if !same {
            abilities.write(before, text);
            self.features.write_matching(before, text);
        } else if *abilities != Abilities::default() {
            text.push("    (same features)\n");
        }
    }
}

impl Abilities {
    fn write(&self, before: Option<&Self>, text: &mut Text<'_>) {
        let (matched, written) = self.metadata;
        if matched != 0 || written != 0 {
            let (matched, written) = (Hex(matched), Hex(written));
            writeln!(text, "    metadata: match={matched} write={written}");
        }
        if let Some(miss) = self.miss_config {
            writeln!(text, "    config={miss}");
        }
        if let Some((eviction, vacancy)) = self.eviction_and_vacancy {
            let not = |can| if can { "" } else { "not " };
            writeln!(text, "    eviction: {}supported", not(eviction));
            writeln!(text, "    vacancy events: {}supported", not(vacancy));
        }
        if self.entries_max != 0 {
            writeln!(text, "    max_entries={}", self.entries_max);
        }
        self.write_instructions(before, text);
    }

    fn write_instructions(&self, before: Option<&Self>, text: &mut Text<'_>) {
        let same = |before: &Self| before.hit == self.hit && before.miss == self.miss;
        if before.is_some_and(same) {
            if !self.hit.is_empty() {
                text.push("    (same instructions)\n");
            }
            return;
        }
        let hit = before.map(|before| &before.hit);
        if self.hit != self.miss {
            text.push("    instructions (other than table miss):\n");
            self.hit.write(hit, text);
            text.push("    instructions (table miss):\n");
            self.miss.write(before.map(|before| &before.miss), text);
        } else if !self.hit.is_empty() {
            text.push("    instructions (table miss and others):\n");
            self.hit.write(hit, text);
        }
    }
}

impl Instructions {
    fn write(&self, before: Option<&Self>, text: &mut Text<'_>) {
        if !self.next.is_empty() {
            writeln!(text, "      next tables: {}", ranges(&self.next));
        }
        if self.bits != 0 {
            if before.is_some_and(|before| before.bits == self.bits) {
                text.push("      (same instructions)\n");
            } else {
                let set = INSTRUCTIONS.iter().filter(|(bit, _)| self.bits & bit != 0);
                let names: Vec<_> = set.map(|(_, name)| *name).collect();
                writeln!(text, "      instructions: {}", names.join(" "));
            }
        }
        let same = |before: &Self| before.write == self.write && before.apply == self.apply;
        if before.is_some_and(same) && !self.write.set_fields.is_empty() {
            text.push("      (same actions)\n");
        } else if self.write != self.apply {
            text.push("      Write-Actions features:\n");
            self.write.write(text);
            text.push("      Apply-Actions features:\n");
            self.apply.write(text);
        } else if !self.write.is_empty() {
            text.push("      Write-Actions and Apply-Actions features:\n");
            self.write.write(text);
        }
    }
}

impl Actions {
    fn write(&self, text: &mut Text<'_>) {
        if !self.names.is_empty() {
            writeln!(text, "        actions: {}", self.names);
        }
        if !self.set_fields.is_empty() {
            let names = fields::names(&self.set_fields);
            writeln!(text, "        supported on Set-Field: {names}");
        }
    }
}

impl Features {
    fn write_matching(&self, before: Option<&Abilities>, text: &mut Text<'_>) {
        let matching = &self.abilities.matching;
        if matching.is_empty() {
            return;
        }
        if before.is_some_and(|before| before.matching == *matching) {
            text.push("    (same matching)\n");
            return;
        }
        text.push("    matching:\n");
        let wildcards = &(matching & &self.wildcards) - &self.masked;
        let exact = &(matching - &wildcards) - &self.masked;
        for (how, fields) in [
            ("arbitrary mask", &self.masked),
            ("exact match or wildcard", &wildcards),
            ("must exact match", &exact),
        ] {
            if !fields.is_empty() {
                writeln!(text, "      {how}: {}", fields::names(fields));
            }
        }
    }
}

/// Numbers, those that follow one another by the first and the last.
fn ranges(numbers: &BTreeSet<u8>) -> String {
    let mut told: Vec<(u8, u8)> = Vec::new();
    for number in numbers {
        match told.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => told.push((*number, *number)),
        }
    }
    let told = told.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    told.collect::<Vec<_>>().join(",")
}
