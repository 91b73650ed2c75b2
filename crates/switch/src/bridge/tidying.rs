//! Compiled tables are made tidy when rules have not changed for a while: what came bit by
//! bit is compiled together then, and lookups cost less.

use std::time::Duration;

use base::Instant;

use super::Bridge;

/// How long nothing must have changed at least: longer than it takes until somebody who sends
/// flow-mods, and waits for each, sends the next.
const QUIET_MIN: Duration = Duration::from_millis(100);

/// And for each rule of tables that are made tidy: several times as long as that takes, since
/// the control thread does it, and a flow-mod would wait.
const QUIET_A_RULE: Duration = Duration::from_micros(20);

/// When it is next asked whether all is quiet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tidying {
    due: Instant,
    /// How often tables had changed when this was written.
    changes: u64,
}

/// How long it is waited before tables of so many rules are made tidy.
pub(super) fn quiet(rules: usize) -> Duration {
    let rules = u32::try_from(rules).unwrap_or(u32::MAX);
    QUIET_MIN.max(QUIET_A_RULE.saturating_mul(rules))
}

impl Bridge {
    /// Has tables made tidy if nothing has changed since this was asked a while ago.
    pub(super) fn tidy_when_quiet(&mut self, now: Instant) {
        let rules = self.compiled.rules_to_compact();
        if rules == 0 {
            self.tidying = None;
            return;
        }
        let changes = self.compiled.change_count();
        let due = now + quiet(rules);
        match self.tidying {
            Some(tidying) if now < tidying.due => {}
            Some(tidying) if tidying.changes == changes => {
                self.compiled.request_compaction();
                self.unpublished = true;
                self.tidying = None;
            }
            _ => self.tidying = Some(Tidying { due, changes }),
        }
    }

    /// When it is to be asked again.
    pub(super) fn next_tidying(&self) -> Option<Instant> {
        self.tidying.map(|tidying| tidying.due)
    }
}
