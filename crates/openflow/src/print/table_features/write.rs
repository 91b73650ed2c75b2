//! Formats the capabilities of tables. Capabilities that equal those of the previous table are not
//! repeated.

use std::collections::BTreeSet;

use base::TableId;

use super::super::field_names;
use super::super::text::{AlternateHex, PrintBuffer};
use super::{ActionFeatures, InstructionFeatures, PrintedTable, TableAbilities, TableFeatureSet};

/// Instructions by the bit of their number, in the order of the output.
const INSTRUCTIONS: [(u32, &str); 6] = [
    (1 << 6, "meter"),
    (1 << 4, "apply_actions"),
    (1 << 5, "clear_actions"),
    (1 << 3, "write_actions"),
    (1 << 2, "write_metadata"),
    (1 << 1, "goto_table"),
];

/// Writes tables in sequence.
#[derive(Default)]
pub(super) struct TablePrinter {
    last: Option<PrintedTable>,
    /// The range of unnamed tables that equal the one before them.
    same: Option<(TableId, TableId)>,
}

impl TablePrinter {
    pub(super) fn write(&mut self, table: PrintedTable, text: &mut PrintBuffer<'_>) {
        if self.last.as_ref().is_some_and(|last| table.equals(last)) && table.name.is_empty() {
            let first = self.same.map_or(table.id, |(first, _)| first);
            self.same = Some((first, table.id));
        } else {
            self.write_same(text);
            table.write(self.last.as_ref(), text);
        }
        self.last = Some(table);
    }

    pub(super) fn write_same(&mut self, text: &mut PrintBuffer<'_>) {
        match self.same.take() {
            None => {}
            Some((first, last)) if first == last => writeln!(text, "\n  table {first}: ditto"),
            Some((first, last)) => writeln!(text, "\n  tables {first}...{last}: ditto"),
        }
    }
}

impl PrintedTable {
    /// Returns true if the table has nothing to print in addition to `other`.
    fn equals(&self, other: &Self) -> bool {
        self.features.abilities == other.features.abilities && self.counts == other.counts
    }

    /// Writes a table after its predecessor `last`.
    fn write(&self, last: Option<&Self>, text: &mut PrintBuffer<'_>) {
        write!(text, "\n  table {}", self.id);
        if !self.name.is_empty() {
            write!(text, " (\"{}\")", self.name);
        }
        text.push(":");
        let abilities = &self.features.abilities;
        let before = last.map(|table| &table.features.abilities);
        if last.is_some_and(|last| self.equals(last)) {
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
        if before != Some(abilities) {
            abilities.write(before, text);
            self.features.write_matching(before, text);
        } else if *abilities != TableAbilities::default() {
            text.push("    (same features)\n");
        }
    }
}

impl TableAbilities {
    fn write(&self, before: Option<&Self>, text: &mut PrintBuffer<'_>) {
        let (matched, written) = self.metadata;
        if matched != 0 || written != 0 {
            let (matched, written) = (AlternateHex(matched), AlternateHex(written));
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

    fn write_instructions(&self, before: Option<&Self>, text: &mut PrintBuffer<'_>) {
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

impl InstructionFeatures {
    fn write(&self, before: Option<&Self>, text: &mut PrintBuffer<'_>) {
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

impl ActionFeatures {
    fn write(&self, text: &mut PrintBuffer<'_>) {
        if !self.names.is_empty() {
            writeln!(text, "        actions: {}", self.names);
        }
        if !self.set_fields.is_empty() {
            let names = field_names::names(&self.set_fields);
            writeln!(text, "        supported on Set-Field: {names}");
        }
    }
}

impl TableFeatureSet {
    fn write_matching(&self, before: Option<&TableAbilities>, text: &mut PrintBuffer<'_>) {
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
                writeln!(text, "      {how}: {}", field_names::names(fields));
            }
        }
    }
}

/// Formats numbers; consecutive ones as a range.
fn ranges(numbers: &BTreeSet<u8>) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let runs = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(",")
}
