//! LACP: negotiates with the partner which links of a bond form one aggregate (IEEE 802.1AX-2014,
//! clause 6).
//!
//! A group of ports has one aggregator. All ports with the same partner (a system and one of its
//! keys) attach to it, others wait. Ports attach as soon as they are selected (`WaitWhile` of the
//! standard is for systems that choose among aggregators), even while they expect a partner, and
//! announce collecting and distributing from then on, as in Open vSwitch. Both start together, when
//! the partner is in synchronization.
//!
//! Pure: inputs are LACPDUs and the time; outputs are LACPDUs and port states.

mod group;
mod port;

pub use group::{LacpGroup, LacpStatus};
pub use port::{LacpPort, LacpPortSettings, ReceiveState};

use std::time::Duration;

use packet::wire::slow::LacpSystem;

pub use config::LacpActivity;

/// Transmission intervals: fast if the partner requested it, and slow (802.1AX-2014, 6.4.4,
/// `Fast_Periodic_Time` and `Slow_Periodic_Time`).
const FAST_PERIODIC: Duration = Duration::from_secs(1);
const SLOW_PERIODIC: Duration = Duration::from_secs(30);

/// Times without LACPDUs after which the partner expires (`Short_Timeout_Time` and
/// `Long_Timeout_Time`).
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);
const LONG_TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum number of LACPDUs that a port sends in each `FAST_PERIODIC` (6.4.16).
const SENT_MAX: usize = 3;

/// Configuration of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpSettings {
    /// Active ports start the protocol, passive ones wait for the partner.
    pub activity: LacpActivity,
    /// Requests LACPDUs every second from the partner.
    pub is_fast: bool,
    /// The identity of this system.
    pub system: LacpSystem,
    /// Ports without a partner may carry frames while no port has one.
    pub lacp_fallback: bool,
    /// Ports may be aggregated; a single port is individual (802.1AX-2014, 6.4.6).
    pub aggregates: bool,
}

#[cfg(test)]
mod tests;
