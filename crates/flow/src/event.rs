//! What the switch tells controllers unasked.

use std::time::Duration;

use base::{Cookie, TableId};

use crate::matching::Match;
use crate::pipeline_fields::PipelineFields;

/// Why a frame came to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketInReason {
    /// It matched nothing, or the table-miss rule.
    NoMatch,
    /// An action sent it; until OpenFlow 1.3, wherever it stood.
    Action,
    /// Its TTL could not be lowered.
    InvalidTtl,
    /// An action of the action set sent it (1.4).
    ActionSet,
    /// An action of a group's bucket sent it (1.4).
    Group,
    /// An action of a packet-out sent it (1.4).
    PacketOut,
}

/// A frame for the controller (OF 1.3.5, 7.4.1). The switch keeps no frames, so
/// there is no buffer id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn {
    /// Why.
    pub reason: PacketInReason,
    /// The table it was looked up in last.
    pub table: TableId,
    /// The cookie of the rule that sent it; [`Cookie::NONE`] if none did.
    pub cookie: Cookie,
    /// The port it came in by, and what else goes with it. OpenFlow 1.0 and 1.1 tell
    /// the port only, and no version the conjunction and the set's output.
    pub registers: PipelineFields,
    /// Bytes of the whole frame.
    pub total_len: u16,
    /// The frame, or its beginning.
    pub data: Vec<u8>,
    /// What the rule sends along (Nicira's second form only).
    pub userdata: Vec<u8>,
    /// How to go on, if the frame waits for that: bytes that mean something to the
    /// switch alone (Nicira's second form only).
    pub continuation: Vec<u8>,
}

/// Why a rule is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowRemovedReason {
    /// No frame for its idle timeout.
    IdleTimeout,
    /// Its hard timeout is over.
    HardTimeout,
    /// A flow-mod deleted it.
    Delete,
    /// Its group was deleted.
    GroupDelete,
    /// Its meter was deleted (1.4).
    MeterDelete,
    /// It had to make room for another (1.4).
    Eviction,
}

/// The end of a rule, with its final counts (OF 1.3.5, 7.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The rule's match.
    pub matching: Match,
    /// Its cookie.
    pub cookie: Cookie,
    /// Its priority.
    pub priority: u16,
    /// Why it is gone.
    pub reason: FlowRemovedReason,
    /// The table it was in.
    pub table: TableId,
    /// How long it lived.
    pub duration: Duration,
    /// Its idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Its hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Frames it matched.
    pub packets: u64,
    /// Bytes of those frames.
    pub bytes: u64,
}
