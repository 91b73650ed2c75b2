//! What a controller may ask about the tables (OF 1.3.5, 7.3.5).

use std::sync::Arc;

use base::{Instant, TableId};
use flow::{AggregateStats, FlowStats, FlowStatsRequest, Refusal, TableStats};

use crate::flow_mod::RuleFilter;
use crate::pipeline::Pipeline;
use crate::rule::Rule;

impl Pipeline {
    /// What statistics tell of the rules that `request` asks for.
    ///
    /// # Errors
    /// There is no such table.
    pub fn flow_stats<'a>(
        &'a self,
        request: &'a FlowStatsRequest,
        now: Instant,
    ) -> Result<impl Iterator<Item = FlowStats> + 'a, Refusal> {
        let rules = self.rules_selected(request, None)?;
        Ok(rules.map(move |rule| rule.statistics(now)))
    }

    /// The sums over the rules that `request` asks for.
    ///
    /// # Errors
    /// There is no such table.
    pub fn aggregate_stats(&self, request: &FlowStatsRequest) -> Result<AggregateStats, Refusal> {
        let mut sums = AggregateStats::default();
        for rule in self.rules_selected(request, None)? {
            let totals = rule.counters.totals();
            sums.packets += totals.packets;
            sums.bytes += totals.bytes;
            sums.flows += 1;
        }
        Ok(sums)
    }

    /// The rules that `request` asks for, in the order of tables and of lookup; of
    /// those only what comes behind `last`, so that a reader may stop and go on: what
    /// statistics tell of all rules may be a gigabyte. (A clone of the pipeline keeps
    /// the rules while the tables move on.)
    ///
    /// # Errors
    /// There is no such table.
    pub fn rules_selected<'a>(
        &'a self,
        request: &'a FlowStatsRequest,
        last: Option<&Rule>,
    ) -> Result<impl Iterator<Item = &'a Arc<Rule>> + use<'a>, Refusal> {
        if request.table > TableId::LAST && request.table != TableId::ALL {
            return Err(Refusal::RequestBadTable);
        }
        let filter = RuleFilter::of_request(request);
        let rules = self.rules_behind(request.table, last);
        Ok(rules.filter(move |rule| filter.takes(rule)))
    }

    /// The counts of every table.
    pub fn table_stats(&self) -> impl Iterator<Item = TableStats> + '_ {
        (0..=TableId::LAST.0).map(TableId).map(move |table| {
            let (looked_up, matched) = self.table_counters(table);
            let active = self.table(table).map_or(0, |table| table.len());
            TableStats {
                table,
                flows_max: u32::try_from(self.flows_max(table)).unwrap_or(u32::MAX),
                active: u32::try_from(active).unwrap_or(u32::MAX),
                lookups: looked_up.totals().packets,
                matched: matched.totals().packets,
            }
        })
    }
}
