//! One interface of a bond: enabled or not, and the delay of a change.

use std::time::Duration;

use base::Instant;

/// A member of a bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BondMember {
    /// The interface has a carrier.
    pub(super) carrier: bool,
    /// LACP permits the member; always `true` without LACP.
    pub(super) lacp_allows: bool,
    /// The member is enabled.
    pub(super) enabled: bool,
    /// The time of the pending change, unless the state reverts before.
    pub(super) delay_expires: Option<Instant>,
    /// The state set by command, until the carrier changes.
    pub(super) admin_enabled: Option<bool>,
}

impl BondMember {
    /// Returns whether the member is enabled.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns whether the member may be enabled.
    pub fn may_enable(&self) -> bool {
        self.admin_enabled
            .unwrap_or(self.carrier && self.lacp_allows)
    }

    /// Returns the time at which the member will be enabled or disabled.
    pub const fn delay_expires(&self) -> Option<Instant> {
        self.delay_expires
    }

    /// Applies the current state after its delay. Returns whether the member was enabled or
    /// disabled.
    pub(super) fn update(&mut self, delays: (Duration, Duration), now: Instant) -> bool {
        let desired = self.may_enable();
        if desired == self.enabled {
            self.delay_expires = None;
            return false;
        }
        let (updelay, downdelay) = delays;
        let delay = match (self.admin_enabled, desired) {
            (Some(_), _) => Duration::ZERO,
            (None, true) => updelay,
            (None, false) => downdelay,
        };
        let due = *self.delay_expires.get_or_insert(now + delay);
        let changes = due <= now;
        if changes {
            self.set_enabled(desired);
        }
        changes
    }

    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.delay_expires = None;
    }
}
