//! Batch lookup in a table of few rules: each rule is compared with all packets.

use super::{BatchLookup, NextTables, PacketGroup, RuleHits};
use crate::compiled_set::CompiledSet;
use crate::linear::LinearSearch;
use crate::match_result::MatchResult;

impl<'a> BatchLookup<'a> {
    /// Looks up a group in a linear form. Returns the packets that continue.
    pub(super) fn look_up_linear(
        &mut self,
        group: PacketGroup,
        (compiled, linear): (&'a CompiledSet, &'a LinearSearch),
    ) -> NextTables {
        let (mut result, mut remaining) = (self.table_result(group), group.packets);
        let mut columns = None;
        for (rank, rule) in compiled.visible_rules(self.state.context.view.epoch()) {
            let keys = &self.state.memory.keys;
            let packets = linear.matching_packets(rank, keys, remaining, &mut columns);
            if !packets.is_empty() {
                self.apply_hits(RuleHits { rule, packets }, &mut result);
                remaining = remaining.difference(packets);
                if remaining.is_empty() {
                    break;
                }
            }
        }
        self.stop(remaining, MatchResult::MISS, &group);
        self.finish_table(result)
    }
}
