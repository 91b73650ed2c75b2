//! Statistics of rules and tables (OF 1.3.5, 7.3.5).

use std::sync::Arc;

use base::{Instant, TableId};
use flow::{AggregateStats, FlowStats, FlowStatsRequest, Refusal, TableStats};

use super::Pipeline;
use crate::rules::{Rule, RuleFilter};

impl Pipeline {
    /// Returns the statistics of the rules that `request` selects.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn flow_stats<'a>(
        &'a self,
        request: &'a FlowStatsRequest,
        now: Instant,
    ) -> Result<impl Iterator<Item = FlowStats> + 'a, Refusal> {
        let rules = self.rules_selected(request, None)?;
        Ok(rules.map(move |rule| rule.statistics(now)))
    }

    /// Returns the sums over the rules that `request` selects.
    ///
    /// # Errors
    /// The table does not exist.
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

    /// Returns the rules that `request` selects, in the order of tables and of lookup, but only
    /// those after `last`, so that a reader can pause: the statistics of all rules may be a
    /// gigabyte. (A clone of the pipeline keeps the rules while the tables change.)
    ///
    /// # Errors
    /// The table does not exist.
    pub fn rules_selected<'a>(
        &'a self,
        request: &'a FlowStatsRequest,
        last: Option<&Rule>,
    ) -> Result<impl Iterator<Item = &'a Arc<Rule>> + use<'a>, Refusal> {
        if request.table > TableId::LAST && request.table != TableId::ALL {
            return Err(Refusal::RequestBadTable);
        }
        let filter = RuleFilter::of_request(request);
        let rules = self.rules.rules_after(request.table, last);
        Ok(rules.filter(move |rule| filter.selects(rule)))
    }

    /// Returns the counters of every table.
    pub fn table_stats(&self) -> impl Iterator<Item = TableStats> + '_ {
        (0..=TableId::LAST.0).map(TableId).map(move |table| {
            let (looked_up, matched) = self.table_counters(table);
            let active = self.rules.len_of(table);
            TableStats {
                table,
                name: self.table_name(table),
                flows_max: self.reported_flows_max(table),
                active: u32::try_from(active).unwrap_or(u32::MAX),
                lookups: looked_up.totals().packets,
                matched: matched.totals().packets,
            }
        })
    }
}
