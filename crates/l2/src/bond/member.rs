//! One interface of a bond: used or not, and when that changes.

use std::time::Duration;

use base::Instant;

/// One interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Whether it has a carrier.
    pub(super) carrier: bool,
    /// Whether LACP lets it be used; always, where LACP is not spoken.
    pub(super) is_let: bool,
    /// Whether it is used.
    pub(super) enabled: bool,
    /// When that is to change, if things stay as they are.
    pub(super) changes_at: Option<Instant>,
    /// What somebody said by hand, until its carrier comes or goes.
    pub(super) forced: Option<bool>,
}

impl Member {
    /// Whether it is used.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether it may be used.
    pub fn may_enable(&self) -> bool {
        self.forced.unwrap_or(self.carrier && self.is_let)
    }

    /// When it will be used, or given up, and no earlier.
    pub const fn changes_at(&self) -> Option<Instant> {
        self.changes_at
    }

    /// Takes note of what is so. Tells whether it is used or given up from now on.
    pub(super) fn look(&mut self, delays: (Duration, Duration), now: Instant) -> bool {
        let wanted = self.may_enable();
        if wanted == self.enabled {
            self.changes_at = None;
            return false;
        }
        let (updelay, downdelay) = delays;
        let delay = match (self.forced, wanted) {
            (Some(_), _) => Duration::ZERO,
            (None, true) => updelay,
            (None, false) => downdelay,
        };
        let due = *self.changes_at.get_or_insert(now + delay);
        let changes = due <= now;
        if changes {
            self.set_enabled(wanted);
        }
        changes
    }

    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.changes_at = None;
    }
}
