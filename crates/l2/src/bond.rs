//! Bonds: which of the interfaces that are one logical port carry which frames
//! (ovs-vswitchd.conf.db(5), "Bonding Configuration").
//!
//! Pure: carriers, what LACP has come to, loads and the time go in; who is active, who carries
//! which frames and what is taken from whom come out. How a frame is sent or dropped is
//! `NORMAL`'s business, what is said between the two ends is `lacp`'s.

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

/// Frames are told apart by so many values of a hash, as Open vSwitch has it.
pub const BUCKETS: usize = 256;

/// Default interval between two rebalancings
/// (ovs-vswitchd.conf.db(5), `other_config:bond-rebalance-interval`).
pub const REBALANCE_INTERVAL: Duration = Duration::from_secs(10);
/// Shortest interval between two rebalancings (the same).
pub const REBALANCE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// What is asked of a bond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BondSettings {
    /// How frames are shared.
    pub mode: BondMode,
    /// How long a carrier must have been there before its member is used.
    pub updelay: Duration,
    /// How long it must have been away before its member is given up.
    pub downdelay: Duration,
    /// How often frames are shared anew; never, if absent.
    pub rebalance_interval: Option<Duration>,
    /// What hashes begin with.
    pub hash_basis: u32,
    /// Who is active whenever it can be, where one member carries all.
    pub primary: Option<PortNo>,
    /// Whether every member takes frames to many, where the other end knows nothing of the bond.
    pub all_members_active: bool,
    /// Whether one member carries all while LACP has no partner; none does, otherwise.
    pub lacp_fallback: bool,
}

#[cfg(test)]
mod tests;
