//! Configured speed and faults of the simulated switch.

use std::time::Duration;

use flow::FlowMod;

use super::PortReports;

/// Speed and faults of the switch.
#[derive(Clone, Debug)]
pub(in crate::catalogue) struct SwitchFaults {
    /// Processing time of a message.
    pub(in crate::catalogue) per_message: Duration,
    /// Additional processing time of a flow-mod for each rule in the table.
    pub(in crate::catalogue) per_rule: Duration,
    /// Time from the processing of a flow-mod until it is in force.
    pub(in crate::catalogue) apply: Duration,
    /// True if barrier replies do not wait until changes are in force.
    pub(in crate::catalogue) replies_early: bool,
    /// True if every second change is in force at once, and so before earlier ones.
    pub(in crate::catalogue) reorders: bool,
    /// Time for which frames are dropped when their rule is modified.
    pub(in crate::catalogue) gap: Duration,
    /// Capacity of the table in rules.
    pub(in crate::catalogue) capacity: usize,
    /// Condition for the rules that the switch rejects.
    pub(in crate::catalogue) refuses: fn(&FlowMod) -> bool,
    /// Every nth rule is accepted and listed, but has no effect.
    pub(in crate::catalogue) forgets_one_in: u64,
    /// Every nth flow-mod has no effect.
    pub(in crate::catalogue) ignores_one_in: u64,
    /// Number of rules that a deletion of all rules leaves.
    pub(in crate::catalogue) undeletable: usize,
    /// Memory of a rule, and the part of it that remains after its deletion.
    pub(in crate::catalogue) rule_bytes: u64,
    pub(in crate::catalogue) kept_bytes: u64,
    /// Processing time of an echo request, of a statistics request, of a frame, and of a packet-in.
    pub(in crate::catalogue) echo: Duration,
    pub(in crate::catalogue) statistics: Duration,
    pub(in crate::catalogue) forward: Duration,
    pub(in crate::catalogue) packet_in_delay: Duration,
    /// Least time between two forwarded frames; earlier frames wait in a queue.
    pub(in crate::catalogue) per_frame: Duration,
    /// Every nth frame is lost.
    pub(in crate::catalogue) loses_one_in: u64,
    /// Only every nth frame is sent to the controller.
    pub(in crate::catalogue) packet_in_one_in: u64,
    /// Only every nth packet-out is executed.
    pub(in crate::catalogue) packet_out_one_in: u64,
    /// Delay of timeouts.
    pub(in crate::catalogue) timer_late: Duration,
    /// Number of messages after which the switch sends no more replies.
    pub(in crate::catalogue) silent_after: u64,
    /// Number of messages after which the switch closes the connection.
    pub(in crate::catalogue) closes_after: u64,
    /// Number of rules that are missing in statistics.
    pub(in crate::catalogue) unlisted: u32,
    /// Number of messages after which the switch reads no more.
    pub(in crate::catalogue) reads: u64,
    pub(in crate::catalogue) port_reports: PortReports,
}

impl Default for SwitchFaults {
    fn default() -> Self {
        Self {
            per_message: Duration::from_micros(5),
            per_rule: Duration::ZERO,
            apply: Duration::ZERO,
            replies_early: false,
            reorders: false,
            gap: Duration::ZERO,
            capacity: usize::MAX,
            refuses: |_| false,
            forgets_one_in: u64::MAX,
            ignores_one_in: u64::MAX,
            undeletable: 0,
            rule_bytes: 0,
            kept_bytes: 0,
            echo: Duration::ZERO,
            statistics: Duration::ZERO,
            forward: Duration::from_micros(10),
            packet_in_delay: Duration::from_micros(50),
            per_frame: Duration::ZERO,
            loses_one_in: u64::MAX,
            packet_in_one_in: 1,
            packet_out_one_in: 1,
            timer_late: Duration::ZERO,
            silent_after: u64::MAX,
            closes_after: u64::MAX,
            unlisted: 0,
            reads: u64::MAX,
            port_reports: PortReports::default(),
        }
    }
}
