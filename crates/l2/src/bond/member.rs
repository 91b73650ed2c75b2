//! One interface of a bond: used or not, and when that changes.

use std::time::Duration;

use base::Instant;

/// One interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BondMember {
    /// Whether it has a carrier.
    pub(super) carrier: bool,
    /// Whether LACP lets it be used; always, where LACP is not spoken.
    pub(super) lacp_allows: bool,
    /// Whether it is used.
    pub(super) enabled: bool,
    /// When that is to change, if things stay as they are.
    pub(super) delay_expires: Option<Instant>,
    /// What somebody said by hand, until its carrier comes or goes.
    pub(super) admin_enabled: Option<bool>,
}

impl BondMember {
    /// Whether it is used.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether it may be used.
    pub fn may_enable(&self) -> bool {
        self.admin_enabled
            .unwrap_or(self.carrier && self.lacp_allows)
    }

    /// When it will be used, or given up, and no earlier.
    pub const fn delay_expires(&self) -> Option<Instant> {
        self.delay_expires
    }

    /// Takes note of what is so. Tells whether it is used or given up from now on.
    pub(super) fn update(&mut self, delays: (Duration, Duration), now: Instant) -> bool {
        let wanted = self.may_enable();
        if wanted == self.enabled {
            self.delay_expires = None;
            return false;
        }
        let (updelay, downdelay) = delays;
        let delay = match (self.admin_enabled, wanted) {
            (Some(_), _) => Duration::ZERO,
            (None, true) => updelay,
            (None, false) => downdelay,
        };
        let due = *self.delay_expires.get_or_insert(now + delay);
        let changes = due <= now;
        if changes {
            self.set_enabled(wanted);
        }
        changes
    }

    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.delay_expires = None;
    }
}
