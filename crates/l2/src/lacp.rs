//! LACP: with the other end of a bond's cables it is found out which of them may carry
//! frames together (IEEE 802.1AX-2014, clause 6).
//!
//! One group of ports, one aggregator: all ports of a bond that have the same partner, a system
//! and a key of its, are attached to it, others wait. Ports join as soon as they are
//! selected (`WaitWhile` of the standard is for systems that choose among aggregators), and
//! collecting and distributing go together.
//!
//! Pure: messages and the time come in, messages and the state of ports go out.

mod group;
mod port;

pub use group::{LacpGroup, LacpStatus};
pub use port::{LacpPort, LacpPortSettings, ReceiveState};

use std::time::Duration;

use packet::wire::slow::LacpSystem;

pub use config::LacpActivity;

/// How often a port sends if its partner wants to hear each second, and otherwise
/// (802.1AX-2014, 6.4.4, `Fast_Periodic_Time` and `Slow_Periodic_Time`).
const FAST_PERIODIC: Duration = Duration::from_secs(1);
const SLOW_PERIODIC: Duration = Duration::from_secs(30);

/// After how long in silence a partner is given up (`Short_Timeout_Time` and
/// `Long_Timeout_Time`).
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);
const LONG_TIMEOUT: Duration = Duration::from_secs(90);

/// The most that a port sends in each `FAST_PERIODIC` (6.4.16).
const SENT_MAX: usize = 3;

/// How a group is to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpSettings {
    /// Who begins.
    pub activity: LacpActivity,
    /// Whether the partner is to send each second.
    pub is_fast: bool,
    /// Who it is.
    pub system: LacpSystem,
    /// Whether ports without a partner may carry frames as long as none has one.
    pub lacp_fallback: bool,
    /// Whether its ports may be one: a port that is alone is individual (802.1AX-2014, 6.4.6).
    pub aggregates: bool,
}

#[cfg(test)]
mod tests;
