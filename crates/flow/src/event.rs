//! Asynchronous messages of the switch to controllers: packet-in and flow-removed.

use std::time::Duration;

use base::{Cookie, TableId};

use crate::matching::Match;
use crate::pipeline_fields::PipelineFields;

/// Reason of a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketInReason {
    /// The frame matched no rule, or the table-miss rule.
    NoMatch,
    /// An action sent the frame; until OpenFlow 1.3, in any context.
    Action,
    /// The TTL could not be decremented.
    InvalidTtl,
    /// An action of the action set sent it (1.4).
    ActionSet,
    /// An action of a group's bucket sent it (1.4).
    Group,
    /// An action of a packet-out sent it (1.4).
    PacketOut,
}

/// Frame sent to the controller (OF 1.3.5, 7.4.1). The switch does not buffer frames, so there is
/// no buffer id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn {
    /// Reason.
    pub reason: PacketInReason,
    /// The table it was looked up in last.
    pub table: TableId,
    /// Cookie of the rule that sent the frame; [`Cookie::NONE`] without one.
    pub cookie: Cookie,
    /// Pipeline fields of the frame, among them the ingress port. OpenFlow 1.0 and 1.1 transmit
    /// only the port; no version transmits the conjunction and the output of the action set.
    pub registers: PipelineFields,
    /// Bytes of the whole frame.
    pub total_len: u16,
    /// The frame, or its beginning.
    pub data: Vec<u8>,
    /// Data that the rule adds (Nicira's second form only).
    pub userdata: Vec<u8>,
    /// Continuation of a paused frame, opaque to the controller (Nicira's second form only).
    pub continuation: Vec<u8>,
}

/// Reason of the removal of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowRemovedReason {
    /// The rule matched no frame for its idle timeout.
    IdleTimeout,
    /// The hard timeout expired.
    HardTimeout,
    /// A flow-mod deleted it.
    Delete,
    /// The group of the rule was deleted.
    GroupDelete,
    /// The meter of the rule was deleted (1.4).
    MeterDelete,
    /// The rule was evicted from a full table (1.4).
    Eviction,
}

/// Removal of a rule, with its final counters (OF 1.3.5, 7.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The rule's match.
    pub matching: Match,
    /// Cookie.
    pub cookie: Cookie,
    /// Priority.
    pub priority: u16,
    /// Reason of the removal.
    pub reason: FlowRemovedReason,
    /// The table it was in.
    pub table: TableId,
    /// Lifetime of the rule.
    pub duration: Duration,
    /// Idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Frames it matched.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
}
