//! Compaction of compiled tables after a quiet period: rules that were added one by one are
//! compiled together, so that lookups cost less.

use std::time::Duration;

use base::Instant;

use super::bridge_tables::BridgeTables;

/// The minimum quiet period: longer than the pause of a sender that waits for the reply to each
/// flow-mod.
const QUIET_MIN: Duration = Duration::from_millis(100);

/// The quiet period for each rule to compact: several times the duration of the compaction, because
/// the control thread does it and a flow-mod would wait.
const QUIET_A_RULE: Duration = Duration::from_micros(20);

/// The next check for a quiet period.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompactionTimer {
    due: Instant,
    /// The change count of the tables when the period began.
    changes: u64,
}

/// Returns the quiet period before the compaction of this number of rules.
pub(super) fn quiet_period(rules: usize) -> Duration {
    let rules = u32::try_from(rules).unwrap_or(u32::MAX);
    QUIET_MIN.max(QUIET_A_RULE.saturating_mul(rules))
}

impl BridgeTables {
    /// Requests a compaction if nothing has changed during the quiet period. Returns whether it
    /// did, so that the tables must be published.
    pub(super) fn compact_when_quiet(&mut self, now: Instant) -> bool {
        let rules = self.compiled.rules_to_compact();
        if rules == 0 {
            self.compaction = None;
            return false;
        }
        let changes = self.compiled.change_count();
        let due = now + quiet_period(rules);
        match self.compaction {
            Some(compaction) if now < compaction.due => {}
            Some(compaction) if compaction.changes == changes => {
                self.compiled.request_compaction();
                self.compaction = None;
                return true;
            }
            _ => self.compaction = Some(CompactionTimer { due, changes }),
        }
        false
    }

    /// Returns the time of the next check.
    pub(super) fn next_compaction(&self) -> Option<Instant> {
        self.compaction.map(|compaction| compaction.due)
    }
}
