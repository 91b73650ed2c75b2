//! Bonds: several interfaces as one logical port, and the assignment of frames to these members
//! (ovs-vswitchd.conf.db(5), "Bonding Configuration").
//!
//! Pure: inputs are carriers, the LACP status, loads and the time; outputs are the active member,
//! the member for each frame, and the verdict on received frames. `NORMAL` sends and drops the
//! frames; `lacp` negotiates with the other end.

mod engine;
mod member;
mod share;
mod view;

pub use engine::Bond;
pub use member::BondMember;
pub use view::{BondEgress, BondVerdict, BondView, bucket, hash_source, hash_words};

use std::time::Duration;

use base::PortNo;

pub use config::BondMode;

/// Number of hash buckets of a bond, as in Open vSwitch.
pub const BUCKETS: usize = 256;

/// Default interval between two rebalancings
/// (ovs-vswitchd.conf.db(5), `other_config:bond-rebalance-interval`).
pub const REBALANCE_INTERVAL: Duration = Duration::from_secs(10);
/// Shortest interval between two rebalancings (the same source).
pub const REBALANCE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Configuration of a bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BondSettings {
    /// The balancing mode.
    pub mode: BondMode,
    /// Time that a carrier must be up before its member is enabled.
    pub updelay: Duration,
    /// Time that a carrier must be down before its member is disabled.
    pub downdelay: Duration,
    /// Interval between two rebalancings; `None` disables rebalancing.
    pub rebalance_interval: Option<Duration>,
    /// The seed of the hash.
    pub hash_basis: u32,
    /// The preferred active member in active-backup mode.
    pub primary: Option<PortNo>,
    /// In balance-slb, every member accepts multicast and broadcast frames, not only the active
    /// one. The other end does not know of the bond in this mode.
    pub all_members_active: bool,
    /// One member carries all frames while LACP has no partner; without this flag none does.
    pub lacp_fallback: bool,
}

#[cfg(test)]
mod tests;
