//! The result of one packet: destinations, the states in which it leaves, drops, and learn
//! requests.

use base::{Cookie, PortNo, Priority, TableId};
use flow::{Continuation, FlowMod, MaxLen, PacketInReason, PipelineFields, SampleAction};
use packet::{Frame, Malformed, Pool};

use crate::limits::OUTPUTS_PER_FRAME_MAX;
use crate::rules::Rule;

/// The result of one packet. One verdict is reused for many packets.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The packet in each state in which it leaves, mostly one.
    pub frames: Vec<Frame>,
    /// The outputs, in the order of the actions.
    pub egress: Vec<Egress>,
    /// The reason of each output that was dropped, and one for the packet if it has no result.
    pub drops: Vec<DropReason>,
    /// The requests to change the tables.
    pub learn_requests: Vec<LearnRequest>,
    /// Number of fragments that `ct` holds, each without an output. Those whose packet is complete
    /// continue afterwards, and have outputs of their own.
    pub held_fragments: usize,
    /// True if a result was omitted because there were [`OUTPUTS_PER_FRAME_MAX`] of its kind: the
    /// packet is dropped whole.
    pub is_over_limit: bool,
}

/// A change of the tables that a packet requests (`learn`, `fin_timeout`). Only the control thread
/// changes tables.
#[derive(Debug)]
pub enum LearnRequest {
    /// Add a rule.
    Rule {
        /// The rule.
        command: FlowMod,
        /// Maximum number of rules with its cookie in its table; zero for no limit.
        limit: u32,
    },
    /// Shorten the timeouts of a rule, because its TCP connection ended.
    Timeouts {
        /// The rule as the packet found it.
        rule: Box<Rule>,
        /// Idle timeout in seconds; zero keeps it.
        idle_s: u16,
        /// Hard timeout in seconds; zero keeps it.
        hard_s: u16,
    },
}

impl Verdict {
    /// Empties the verdict for the next packet. Frames that remain in it are dropped.
    #[inline]
    pub fn clear(&mut self) {
        self.frames.clear();
        self.egress.clear();
        self.drops.clear();
        self.learn_requests.clear();
        self.held_fragments = 0;
        self.is_over_limit = false;
    }

    /// True if nothing was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames.is_empty()
            && self.egress.is_empty()
            && self.drops.is_empty()
            && self.learn_requests.is_empty()
            && self.held_fragments == 0
            && !self.is_over_limit
    }

    /// Adds an output, up to the limit.
    #[inline]
    pub fn push_egress(&mut self, egress: Egress) {
        if self.egress.len() < OUTPUTS_PER_FRAME_MAX {
            self.egress.push(egress);
        } else {
            self.is_over_limit = true;
        }
    }

    /// Adds a drop, up to the limit. The drop for the limit itself is always added.
    #[inline]
    pub fn push_drop(&mut self, reason: DropReason) {
        let has_room = self.drops.len() < OUTPUTS_PER_FRAME_MAX;
        if has_room || reason == DropReason::TooManyOutputs {
            self.drops.push(reason);
        } else {
            self.is_over_limit = true;
        }
    }

    /// Adds a request to change the tables, up to the limit.
    pub(crate) fn push_learn_request(&mut self, request: LearnRequest) {
        if self.learn_requests.len() < OUTPUTS_PER_FRAME_MAX {
            self.learn_requests.push(request);
        } else {
            self.is_over_limit = true;
        }
    }

    /// Discards all outputs. Their frames return to the pool; drops and learn requests remain.
    pub fn discard_outputs(&mut self, pool: &mut Pool) {
        self.egress.clear();
        self.frames.drain(..).for_each(|frame| pool.put(frame));
    }

    /// Creates an empty verdict.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            frames: Vec::new(),
            egress: Vec::new(),
            drops: Vec::new(),
            learn_requests: Vec::new(),
            held_fragments: 0,
            is_over_limit: false,
        }
    }

    /// True if the packet was output, held, or dropped with a reason. Samples and side effects do
    /// not count.
    #[must_use]
    pub fn has_result(&self) -> bool {
        let mut egress = self.egress.iter();
        egress.any(|egress| !egress.to.is_sample())
            || self.drops.iter().any(|drop| !drop.is_side_effect())
            || self.held_fragments > 0
    }

    /// Number of results that [`Self::has_result`] counts.
    pub(crate) fn results(&self) -> usize {
        let egress = self.egress.iter();
        let drops = self.drops.iter();
        egress.filter(|egress| !egress.to.is_sample()).count()
            + drops.filter(|drop| !drop.is_side_effect()).count()
            + self.held_fragments
    }
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Index in [`Verdict::frames`].
    pub frame: usize,
    /// Destination.
    pub to: Destination,
    /// Class of the port's queueing discipline.
    pub priority: Priority,
    /// Pipeline fields, if the packet may be sent by a tunnel and they differ from those that it
    /// was received with.
    pub registers: Option<Box<PipelineFields>>,
}

impl Egress {
    /// Creates an output with the pipeline fields that the packet was received with, and no queue.
    #[must_use]
    pub const fn new(frame: usize, to: Destination) -> Self {
        Self {
            frame,
            to,
            priority: Priority::NONE,
            registers: None,
        }
    }
}

/// The destination of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A port that exists and forwards.
    Port(PortNo),
    /// Forwarding as a learning switch.
    Normal,
    /// The controllers with one id.
    Controller(Box<PacketInMeta>),
    /// A collector set, for a share of the packets. The caller draws the sample.
    Collectors(Box<SampleAction>),
}

impl Destination {
    /// True for a sample, which is no result of a packet by itself.
    #[must_use]
    pub const fn is_sample(&self) -> bool {
        matches!(self, Self::Collectors(_))
    }
}

/// Metadata of a packet-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketInMeta {
    /// The cause.
    pub cause: Cause,
    /// The table of the last lookup.
    pub table: TableId,
    /// Cookie of the rule, or [`Cookie::NONE`].
    pub cookie: Cookie,
    /// Ingress port and other pipeline fields.
    pub registers: PipelineFields,
    /// Id of the controllers, zero by default.
    pub controller: u16,
    /// User data of the rule's action.
    pub userdata: Vec<u8>,
    /// Continuation, if the packet is paused.
    pub continuation: Option<Continuation>,
    /// Maximum length of the excerpt; `None` for the configured `miss_send_len`.
    pub max_len: Option<MaxLen>,
}

/// The cause of a packet-in, finer than the message's reason: versions and controllers filter
/// differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No rule matched, and the policy is to send the packet to the controller.
    Miss,
    /// An action of the table-miss rule. OpenFlow 1.0 has no such rule; there it is an action.
    MissRule,
    /// An action of a rule's `apply_actions`.
    Action,
    /// An action of the action set.
    ActionSet,
    /// An action of a packet-out.
    PacketOut,
    /// An action of a group's bucket.
    Group,
    /// The TTL is too low to be decremented.
    InvalidTtl,
    /// An action with an explicit reason (`ovs-actions(7)`, controller: reason).
    Explicit(PacketInReason),
}

impl Cause {
    /// Returns the reason of OpenFlow 1.4; older versions have one reason for all actions.
    #[must_use]
    pub const fn reason(self) -> PacketInReason {
        match self {
            Self::Miss | Self::MissRule => PacketInReason::NoMatch,
            Self::Action => PacketInReason::Action,
            Self::ActionSet => PacketInReason::ActionSet,
            Self::PacketOut => PacketInReason::PacketOut,
            Self::Group => PacketInReason::Group,
            Self::InvalidTtl => PacketInReason::InvalidTtl,
            Self::Explicit(reason) => reason,
        }
    }
}

/// The reason for which a packet, or one of its copies, was dropped. `docs/counters.md` describes
/// the counter of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// A header that the rules read is malformed.
    Malformed(Malformed),
    /// The ingress port does not exist, is down, or does not receive.
    IngressClosed,
    /// The packet is a fragment, and the switch drops fragments.
    Fragment,
    /// No rule matched.
    NoMatch,
    /// No rule matched, and the ingress port permits no packet-ins.
    NoPacketIn,
    /// The rules have no output.
    NoOutput,
    /// The TTL is too low to be decremented.
    InvalidTtl,
    /// No buffer was free for a copy to be modified.
    NoBuffer,
    /// The buffer has no space for another tag or header.
    NoRoom,
    /// The output names the ingress port.
    OutputToIngress,
    /// The output names a port that does not exist.
    OutputNoPort,
    /// The output names a port that is down or does not forward.
    OutputClosed,
    /// The output names a port that the spanning tree blocks.
    OutputShut,
    /// The output leads from a protected port to a protected port.
    OutputProtected,
    /// The group has no bucket, or no live one.
    NoBucket,
    /// The packet exceeds [`BUCKETS_PER_FRAME_MAX`](crate::BUCKETS_PER_FRAME_MAX).
    GroupLimit,
    /// The packet exceeds the rate of its rule's meter.
    Metered,
    /// The packet exceeds the rate of the controller meter.
    ControllerMetered,
    /// The continuation of the paused packet exceeds one message.
    ContinuationTooLong,
    /// Resubmissions are nested too deep.
    RecursionTooDeep,
    /// The packet was resubmitted too often.
    TooManyResubmits,
    /// The packet has more outputs than [`OUTPUTS_PER_FRAME_MAX`](crate::OUTPUTS_PER_FRAME_MAX).
    TooManyOutputs,
    /// The rules and buckets of the packet have too many actions together.
    TooManyActions,
    /// The stack is full.
    StackTooDeep,
    /// The packet has as many MPLS labels as Open vSwitch supports, and one more was to be added.
    TooManyMplsLabels,
    /// The action set is full.
    ActionSetTooLong,
    /// A rule was not learned: the limit of its cookie is reached.
    LearnLimit,
    /// The packet's type does not permit the header to be added or removed.
    UnsupportedPacketType,
    /// The sample has no collector.
    NoCollector,
    /// The actions track the packet's connection, and the bridge has no tracker.
    NoConntrack,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = OTHERS.len() + Malformed::ALL.len();

    /// Returns all reasons, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        let malformed = Malformed::ALL.into_iter().map(Self::Malformed);
        OTHERS
            .into_iter()
            .map(|(reason, _)| reason)
            .chain(malformed)
    }

    /// Returns the reason's number, below [`DropReason::COUNT`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Malformed(reason) => OTHERS.len() + reason.index(),
            other => OTHERS
                .iter()
                .position(|(reason, _)| *reason == other)
                .expect("every other reason is in the table"),
        }
    }

    /// True for a limit of one packet and all of its copies together.
    #[must_use]
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::GroupLimit
                | Self::RecursionTooDeep
                | Self::TooManyResubmits
                | Self::TooManyOutputs
                | Self::TooManyActions
                | Self::StackTooDeep
        )
    }

    /// True for an error of the rules by which a packet is dropped with everything that was output
    /// before: otherwise rules that resubmit in circles would multiply packets. The errors are
    /// those of Open vSwitch (`ovs-actions(7)`, "Error handling").
    #[must_use]
    pub const fn drops_all(self) -> bool {
        self.is_limit() || matches!(self, Self::TooManyMplsLabels | Self::UnsupportedPacketType)
    }

    /// True if only a side effect was dropped and the packet continues.
    pub(crate) const fn is_side_effect(self) -> bool {
        matches!(self, Self::LearnLimit)
    }

    /// Returns the name of the reason's counter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed(reason) => reason.name(),
            other => OTHERS[other.index()].1,
        }
    }
}

#[rustfmt::skip]
const OTHERS: [(DropReason, &str); 29] = [
    (DropReason::IngressClosed,   "ingress_closed"),
    (DropReason::Fragment,        "fragment"),
    (DropReason::NoMatch,         "no_match"),
    (DropReason::NoPacketIn,      "no_packet_in"),
    (DropReason::NoOutput,        "no_output"),
    (DropReason::InvalidTtl,      "invalid_ttl"),
    (DropReason::NoBuffer,        "no_buffer"),
    (DropReason::NoRoom,          "no_room"),
    (DropReason::OutputToIngress, "output_to_ingress"),
    (DropReason::OutputNoPort,    "output_no_port"),
    (DropReason::OutputClosed,    "output_closed"),
    (DropReason::OutputShut,      "output_shut"),
    (DropReason::OutputProtected, "output_protected"),
    (DropReason::NoBucket,        "no_bucket"),
    (DropReason::GroupLimit,      "group_limit"),
    (DropReason::Metered,         "metered"),
    (DropReason::ControllerMetered, "controller_metered"),
    (DropReason::ContinuationTooLong, "continuation_too_long"),
    (DropReason::RecursionTooDeep, "recursion_too_deep"),
    (DropReason::TooManyResubmits, "too_many_resubmits"),
    (DropReason::TooManyOutputs,  "too_many_outputs"),
    (DropReason::TooManyActions,  "too_many_actions"),
    (DropReason::StackTooDeep,    "stack_too_deep"),
    (DropReason::TooManyMplsLabels, "too_many_mpls_labels"),
    (DropReason::ActionSetTooLong, "action_set_too_long"),
    (DropReason::LearnLimit,      "learn_limit"),
    (DropReason::UnsupportedPacketType, "unsupported_packet_type"),
    (DropReason::NoCollector,     "no_collector"),
    (DropReason::NoConntrack,     "no_conntrack"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_numbers_and_names_of_their_own() {
        let mut names = Vec::new();
        for (index, reason) in DropReason::all().enumerate() {
            assert_eq!(reason.index(), index);
            assert!(!names.contains(&reason.name()), "{}", reason.name());
            names.push(reason.name());
        }
        assert_eq!(names.len(), DropReason::COUNT);
    }
}
