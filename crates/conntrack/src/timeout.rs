//! Timeouts of connections and the policies that set them (`CT_Timeout_Policy` rows).
//!
//! A table of policies is shared by all workers and read without a lock: each timeout is an atomic
//! number. A reader that sees the old timeout of a policy that changes uses it for one packet.

use std::time::Duration;

use base::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use crate::key::CtZone;

/// Timeouts that a policy sets, with the names of the database's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CtTimeout {
    /// `tcp_syn_sent`: after a connection's first segment.
    TcpSynSent,
    /// `tcp_syn_recv`: during the handshake.
    TcpSynReceived,
    /// `tcp_established`: both ends are established.
    TcpEstablished,
    /// `tcp_fin_wait`: one end is closing.
    TcpFinWait,
    /// `tcp_time_wait`: both ends are closing.
    TcpTimeWait,
    /// `tcp_close`: both ends are closed.
    TcpClose,
    /// `udp_first`: after the first packet of UDP and other protocols.
    UdpFirst,
    /// `udp_single`: several packets of one direction only.
    UdpSingle,
    /// `udp_multiple`: packets of both directions.
    UdpMultiple,
    /// `icmp_first`: queries without a reply.
    IcmpFirst,
    /// `icmp_reply`: after a reply.
    IcmpReply,
    /// An SCTP association before it is established. No key of the database sets it.
    SctpOpening,
    /// An established SCTP association. No key of the database sets it.
    SctpEstablished,
    /// An SCTP association that shuts down. No key of the database sets it.
    SctpClosing,
}

/// Number of timeouts.
const COUNT: usize = 14;

impl CtTimeout {
    /// All timeouts: the name of the database's key, and the default of Open vSwitch's userspace
    /// data path in seconds; for SCTP, those of the Linux kernel.
    pub const ALL: [(Self, &'static str, u32); COUNT] = [
        (Self::TcpSynSent, "tcp_syn_sent", 30),
        (Self::TcpSynReceived, "tcp_syn_recv", 30),
        (Self::TcpEstablished, "tcp_established", 24 * 60 * 60),
        (Self::TcpFinWait, "tcp_fin_wait", 15 * 60),
        (Self::TcpTimeWait, "tcp_time_wait", 45),
        (Self::TcpClose, "tcp_close", 30),
        (Self::UdpFirst, "udp_first", 60),
        (Self::UdpSingle, "udp_single", 60),
        (Self::UdpMultiple, "udp_multiple", 30),
        (Self::IcmpFirst, "icmp_first", 60),
        (Self::IcmpReply, "icmp_reply", 30),
        (Self::SctpOpening, "sctp_opening", 10),
        (Self::SctpEstablished, "sctp_established", 210),
        (Self::SctpClosing, "sctp_closing", 3),
    ];
}

/// Timeouts of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtTimeoutPolicy {
    seconds: [u32; COUNT],
}

impl Default for CtTimeoutPolicy {
    fn default() -> Self {
        Self {
            seconds: CtTimeout::ALL.map(|(_, _, seconds)| seconds),
        }
    }
}

impl CtTimeoutPolicy {
    /// Returns this policy with another timeout.
    #[must_use]
    pub const fn with(mut self, timeout: CtTimeout, seconds: u32) -> Self {
        self.seconds[timeout as usize] = seconds;
        self
    }

    /// Returns a timeout in seconds.
    #[must_use]
    pub const fn seconds(&self, timeout: CtTimeout) -> u32 {
        self.seconds[timeout as usize]
    }
}

/// The number of a policy. Zero is the default policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CtPolicyId(u16);

impl CtPolicyId {
    /// The default policy.
    pub const DEFAULT: Self = Self(0);
    /// Number of policies: each zone of a large cloud's chassis may have one of its own, and a
    /// policy takes 56 bytes.
    pub const COUNT: u16 = 4096;

    /// Returns the policy with this number, if there is one.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }

    pub(crate) const fn number(self) -> u16 {
        self.0
    }
}

/// Number of zones. Models have few.
const ZONES: usize = if cfg!(feature = "model") { 16 } else { 1 << 16 };

/// All policies, and the policy of each zone: 128 KiB, of which only pages of used zones are
/// touched.
#[derive(Debug)]
pub(crate) struct PolicyTable {
    policies: Box<[[AtomicU32; COUNT]]>,
    zones: Box<[AtomicU16]>,
}

impl PolicyTable {
    pub(crate) fn new() -> Self {
        let default = || CtTimeout::ALL.map(|(_, _, seconds)| AtomicU32::new(seconds));
        Self {
            policies: (0..CtPolicyId::COUNT).map(|_| default()).collect(),
            zones: (0..ZONES).map(|_| AtomicU16::new(0)).collect(),
        }
    }

    /// Sets the policy of a zone.
    pub(crate) fn set_zone(&self, zone: CtZone, id: CtPolicyId) {
        self.zones[usize::from(zone.0)].store(id.0, Ordering::Relaxed);
    }

    /// Returns the policy of a zone.
    pub(crate) fn of_zone(&self, zone: CtZone) -> CtPolicyId {
        CtPolicyId(self.zones[usize::from(zone.0)].load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, id: CtPolicyId, policy: &CtTimeoutPolicy) {
        let timeouts = &self.policies[usize::from(id.0)];
        for (timeout, seconds) in timeouts.iter().zip(policy.seconds) {
            timeout.store(seconds, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn duration(&self, id: CtPolicyId, timeout: CtTimeout) -> Duration {
        let seconds = &self.policies[usize::from(id.0)][timeout as usize];
        Duration::from_secs(u64::from(seconds.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_in_the_order_of_their_numbers() {
        for (number, (timeout, _, seconds)) in CtTimeout::ALL.into_iter().enumerate() {
            assert_eq!(timeout as usize, number);
            assert_eq!(CtTimeoutPolicy::default().seconds(timeout), seconds);
        }
    }

    #[test]
    fn policy_changes_one_timeout_of_one_policy() {
        let table = PolicyTable::new();
        let id = CtPolicyId::new(3).expect("below the count");
        table.set(id, &CtTimeoutPolicy::default().with(CtTimeout::UdpFirst, 7));
        let seconds = |id, timeout| table.duration(id, timeout).as_secs();
        assert_eq!(seconds(id, CtTimeout::UdpFirst), 7);
        assert_eq!(seconds(id, CtTimeout::UdpSingle), 60);
        assert_eq!(seconds(CtPolicyId::DEFAULT, CtTimeout::UdpFirst), 60);
        assert_eq!(CtPolicyId::new(CtPolicyId::COUNT), None);
        table.set_zone(CtZone(1), id);
        let policies = [CtZone(0), CtZone(1)].map(|zone| table.of_zone(zone));
        assert_eq!(policies, [CtPolicyId::DEFAULT, id]);
    }
}
