//! The lookup of a packet in a table: by the engine, or by a search where the engine knows only some
//! rules or none.

use base::TableId;
use flow::Field;
use packet::{Headers, Packet};

use super::{Execution, conjunction};
use crate::lookup::LookupResult;
use crate::pipeline::TableMiss;
use crate::rules::Rule;

impl<'a> Execution<'a> {
    /// Looks the packet up in the current table, and after a miss in the next ones, if the tables
    /// are configured so. A resubmission looks up in its table only, as in Open vSwitch.
    pub(crate) fn look_up_onward(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        let mut found = self.look_up(packet);
        while found.is_none()
            && self.pipeline.any_table_continues()
            && self.pipeline.table_miss(self.table) == TableMiss::Continue
            && self.table < TableId::LAST
        {
            self.table = TableId(self.table.0 + 1);
            found = self.look_up(packet);
        }
        found
    }

    /// Returns the rule of the current table that the packet matches.
    pub(crate) fn look_up(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        self.clear_conjunction();
        self.sync_registers();
        let lookup = self.lookup;
        let hidden = packet.headers().for_lookup(self.pipeline.fragment_ports());
        let headers = hidden.as_ref().unwrap_or_else(|| packet.headers());
        // Engines look up Ethernet frames only.
        let found = match self.registers.need_interpreter() {
            true => LookupResult::Unknown,
            false => lookup.look_up(self.table, headers, &self.registers),
        };
        let found = match found {
            LookupResult::Rule(found) => found,
            LookupResult::Conjunction(rule, id) => {
                self.set_conjunction(id);
                Some(rule)
            }
            LookupResult::Partial {
                compiled,
                uncompiled,
            } => {
                self.fill_search_key(packet, hidden.as_ref());
                let mut before = uncompiled
                    .iter()
                    .take_while(|rule| compiled.is_none_or(|compiled| rule.precedes(compiled)));
                let found = before.find(|rule| rule.matching().accepts(self.key));
                found.map(AsRef::as_ref).or(compiled)
            }
            LookupResult::Unknown => self.search(packet, hidden.as_ref()),
        };
        let (looked_up, matched) = self.pipeline.table_counters(self.table);
        looked_up.add(self.writer, self.weight, self.now);
        if let Some(rule) = found {
            matched.add(self.writer, self.weight, self.now);
            rule.counters.add(self.writer, self.weight, self.now);
        }
        self.trace.on_lookup(self.table, found);
        found
    }

    /// Searches the table in priority order, by the headers of a lookup where they differ from
    /// those of the packet.
    fn search(&mut self, packet: &Packet<'_>, hidden: Option<&Headers>) -> Option<&'a Rule> {
        self.fill_search_key(packet, hidden);
        let table = self.pipeline.table(self.table)?;
        let found = if table.has_clauses() {
            let (found, conjunction) = conjunction::look_up(table, self.key);
            self.set_conjunction(conjunction);
            found
        } else {
            table.lookup(self.key)
        };
        found.map(AsRef::as_ref)
    }

    /// Fills the key with the headers of a lookup.
    fn fill_search_key(&mut self, packet: &Packet<'_>, hidden: Option<&Headers>) {
        self.refresh(packet);
        if let Some(headers) = hidden {
            self.key.fill(headers, &self.registers);
            self.key_is_stale = true;
        }
        self.trace.on_search(self.table, self.key);
    }

    fn set_conjunction(&mut self, id: u32) {
        self.registers.conjunction = id;
        self.key.set(Field::ConjId, id.into());
    }

    /// Clears the conjunction of the previous lookup.
    fn clear_conjunction(&mut self) {
        if self.registers.conjunction != 0 {
            self.set_conjunction(0);
        }
    }
}
