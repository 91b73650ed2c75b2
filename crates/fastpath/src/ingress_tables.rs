//! Ingress tables: the first tables of a pipeline, as far as their rules match nothing but the
//! ingress port. They have the same result for all packets of a batch, so they are looked up once
//! a batch, as long as that result is a `goto_table` without other effects. Their statistics are
//! added at the end of the batch, as if each packet had been looked up.
//!
//! ```text
//!   table 0   in_port=1 -> goto_table:1       looked up once a batch
//!   table 1   * -> goto_table:2               looked up once a batch
//!   table 2   eth_dst=... -> ...              packets start here
//! ```

use base::{PortNo, TableId};
use pipeline::{Rule, Totals};

use crate::action_program::InlineProgram;
use crate::batch_stats::{BatchStats, TableBatchStats};
use crate::classifier::View;
use crate::match_result::{MatchResult, look_up};
use crate::packed_key::PackedKey;

/// Most ingress tables.
const TABLES_MAX: usize = 16;

/// Common lookups of all packets of a batch.
#[derive(Debug)]
pub(crate) struct IngressTables<'a> {
    /// Table and rule of each lookup.
    rules: [Option<(TableId, &'a Rule)>; TABLES_MAX],
    len: usize,
    /// Sum of the packets that passed.
    weight: Totals,
    /// The table in which packets continue.
    pub(crate) next_table: TableId,
    /// Result of that table, if it is common to all packets too.
    pub(crate) result: Option<MatchResult<'a>>,
}

impl<'a> IngressTables<'a> {
    /// Looks up packets of `in_port`. `key` is overwritten.
    pub(crate) fn of(view: &'a View, in_port: PortNo, key: &mut PackedKey) -> Self {
        let mut tables = Self::none();
        key.set_in_port(in_port);
        while let Some(result) = common_result(view, tables.next_table, key) {
            if let MatchResult::Rule(Some(rule)) = result
                && let InlineProgram::Goto(next) =
                    InlineProgram::decode(rule.instructions.program_slot().inline_program())
                && tables.len < TABLES_MAX
            {
                tables.rules[tables.len] = Some((tables.next_table, rule));
                tables.len += 1;
                tables.next_table = next;
            } else {
                tables.result = Some(result);
                break;
            }
        }
        tables
    }

    /// No ingress tables: packets start in the first table.
    pub(crate) const fn none() -> Self {
        Self {
            rules: [None; TABLES_MAX],
            len: 0,
            weight: Totals {
                packets: 0,
                bytes: 0,
            },
            next_table: TableId::FIRST,
            result: None,
        }
    }

    /// Number of lookups that each packet is spared.
    #[inline]
    pub(crate) fn len(&self) -> u16 {
        self.len.try_into().expect("there are at most 16")
    }

    /// Counts packets that pass the tables.
    #[inline]
    pub(crate) const fn count(&mut self, weight: Totals) {
        self.weight.packets = self.weight.packets.wrapping_add(weight.packets);
        self.weight.bytes = self.weight.bytes.wrapping_add(weight.bytes);
    }

    /// Adds the packets to the statistics of rules and tables.
    pub(crate) fn flush(&self, tables: &mut TableBatchStats, stats: &mut BatchStats<'a>) {
        if self.weight.packets == 0 {
            return;
        }
        for (table, rule) in self.rules[..self.len].iter().flatten() {
            stats.count_match(*table, rule, self.weight, tables);
        }
    }
}

/// Returns the result of a table that is common to all packets of an ingress port, or `None` if the
/// table reads more of a packet.
fn common_result<'a>(view: &'a View, table: TableId, key: &PackedKey) -> Option<MatchResult<'a>> {
    let table = view.table(table);
    let reads_packet = table.is_some_and(|table| table.parts.is_any() || table.fallback.is_some());
    (!reads_packet).then(|| look_up(view, table, key, true))
}
