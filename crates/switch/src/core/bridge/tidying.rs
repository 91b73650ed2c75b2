//! Compiled tables are made tidy when rules have not changed for a while: what came bit by
//! bit is compiled together then, and lookups cost less.

use std::time::Duration;

use base::Instant;

use super::Bridge;

/// How long nothing must have changed: the control thread makes large tables tidy, and a
/// flow-mod would wait for that.
const QUIET: Duration = Duration::from_secs(1);

/// When it is next asked whether all is quiet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tidying {
    due: Instant,
    /// How often tables had changed when this was written.
    changes: u64,
}

impl Bridge {
    /// Has tables made tidy if nothing has changed since this was asked a while ago.
    pub(super) fn tidy_when_quiet(&mut self, now: Instant) {
        if !self.compiled.is_untidy() {
            self.tidying = None;
            return;
        }
        let changes = self.compiled.changes();
        let due = now + QUIET;
        match self.tidying {
            Some(tidying) if now < tidying.due => {}
            Some(tidying) if tidying.changes == changes => {
                self.compiled.tidy();
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
