//! What becomes of a frame: where it goes, in which states, and what was lost.

use base::{Cookie, PortNo, Priority, TableId};
use flow::{Continuation, FlowMod, MaxLen, PacketInReason, PipelineFields, SampleAction};
use packet::{Frame, Malformed};

use crate::rules::Rule;

/// What the tables say about one frame. The same one serves frame after frame.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The frame, in each state in which it leaves. Most often one.
    pub frames: Vec<Frame>,
    /// Where it goes, in the order of the actions.
    pub egress: Vec<Egress>,
    /// What was not done: one entry for each output that could not be made, and
    /// one for the frame if nothing at all came of it.
    pub drops: Vec<DropReason>,
    /// What the frame wants of whoever writes the tables.
    pub learn_requests: Vec<LearnRequest>,
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
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            frames: Vec::new(),
            egress: Vec::new(),
            drops: Vec::new(),
            learn_requests: Vec::new(),
        }
    }

    /// Whether nothing has come of the frame, for which no reason is told.
    #[must_use]
    pub fn has_result(&self) -> bool {
        let mut egress = self.egress.iter();
        egress.any(|egress| !egress.to.is_sample())
            || self.drops.iter().any(|drop| !drop.is_side_effect())
    }
}

/// One way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Which of the verdict's frames.
    pub frame: usize,
    /// Where to.
    pub to: Destination,
    /// Which class of the port's queueing discipline it is for.
    pub priority: Priority,
    /// What goes with it, if it may leave by a tunnel; none if that is what it came with.
    pub registers: Option<Box<PipelineFields>>,
}

impl Egress {
    /// One with which nothing goes but what came with the frame, and by no queue that anybody
    /// has named.
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

/// Where a frame goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A port that exists and may send.
    Port(PortNo),
    /// Wherever an ordinary learning switch would send it.
    Normal,
    /// The controllers of one id.
    Controller(Box<PacketInMeta>),
    /// A set of collectors, of as many frames as the sample says; whoever carries it out draws.
    Collectors(Box<SampleAction>),
}

impl Destination {
    /// Whether a frame that goes there and nowhere else has come to nothing: it is only told of.
    #[must_use]
    pub const fn is_sample(&self) -> bool {
        matches!(self, Self::Collectors(_))
    }
}

/// What goes with a frame to the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketInMeta {
    /// Why.
    pub cause: Cause,
    /// The table it was looked up in last.
    pub table: TableId,
    /// The cookie of the rule that sent it; [`Cookie::NONE`] if none did.
    pub cookie: Cookie,
    /// Its port of arrival, and what else is known of it.
    pub registers: PipelineFields,
    /// To controllers that gave themselves this id; zero at first.
    pub controller: u16,
    /// What the rule sends along.
    pub userdata: Vec<u8>,
    /// What is left to be done with it, if it waits for a controller to say so.
    pub continuation: Option<Continuation>,
    /// How much of it is wanted; none for what the switch is configured to send
    /// (`miss_send_len`).
    pub max_len: Option<MaxLen>,
}

/// Why a frame goes to the controllers, finer than the message tells: versions
/// and controllers differ in what they want to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It matched nothing, and the policy is to ask.
    Miss,
    /// The table-miss rule sent it. OpenFlow 1.0 has no such rule; it knows an action.
    MissRule,
    /// An action that a rule applied sent it.
    Action,
    /// An action of the action set sent it.
    ActionSet,
    /// An action of a packet-out sent it.
    PacketOut,
    /// An action of a group's bucket sent it.
    Group,
    /// Its TTL could not be lowered.
    InvalidTtl,
    /// An action sent it that says itself why (`ovs-actions(7)`, controller: reason).
    Explicit(PacketInReason),
}

impl Cause {
    /// The reason, as OpenFlow 1.4 tells it; to older versions all actions are one.
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

/// Why a frame, or one of its copies, did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// A header that the rules look at is damaged.
    Malformed(Malformed),
    /// The port it came in by is gone, down, or barred from receiving.
    IngressClosed,
    /// It is a fragment, and the switch is configured to drop fragments.
    Fragment,
    /// It matched nothing.
    NoMatch,
    /// It matched nothing, and its port is barred from packet-ins.
    NoPacketIn,
    /// What it matched sends it nowhere.
    NoOutput,
    /// Its TTL could not be lowered.
    InvalidTtl,
    /// No buffer was left for a copy that was to be changed.
    NoBuffer,
    /// There was no room for another tag.
    NoRoom,
    /// An output would send it back where it came from.
    OutputToIngress,
    /// An output names a port that does not exist.
    OutputNoPort,
    /// An output names a port that is down or barred from sending.
    OutputClosed,
    /// An output names a port that a spanning tree keeps frames from leaving by.
    OutputShut,
    /// An output leads from a protected port to a protected port.
    OutputProtected,
    /// A group has no bucket for it, or none that is alive.
    NoBucket,
    /// It has met more buckets of groups than one frame may.
    GroupLimit,
    /// It exceeds the rate of its rule's meter.
    Metered,
    /// It exceeds the rate of the meter of frames for the controllers.
    ControllerMetered,
    /// It was to wait for a controller, and what is left to be done with it is more
    /// than one message holds.
    ContinuationTooLong,
    /// Resubmissions lie too deep in one another.
    RecursionTooDeep,
    /// It has been resubmitted too often.
    TooManyResubmits,
    /// More has been pushed on its stack than the stack holds.
    StackTooDeep,
    /// Its action set has grown beyond what one holds.
    ActionSetTooLong,
    /// A rule was not learned: there are as many of its cookie as there may be.
    LearnLimit,
    /// A header was to be put around it, or taken off it, that cannot be of a packet like it.
    UnsupportedPacketType,
    /// It was not reported to a collector of samples: there is none.
    NoCollector,
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = OTHERS.len() + Malformed::ALL.len();

    /// All reasons, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        let malformed = Malformed::ALL.into_iter().map(Self::Malformed);
        OTHERS
            .into_iter()
            .map(|(reason, _)| reason)
            .chain(malformed)
    }

    /// The reason's number, below [`DropReason::COUNT`].
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

    /// Whether it is a limit on what one frame may ask for, all its copies together.
    pub(crate) const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::GroupLimit | Self::RecursionTooDeep | Self::TooManyResubmits
        )
    }

    /// Whether something was left undone beside the frame's way, which goes on.
    pub(crate) const fn is_side_effect(self) -> bool {
        matches!(self, Self::LearnLimit)
    }

    /// The reason's name, as a counter bears it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed(reason) => reason.name(),
            other => OTHERS[other.index()].1,
        }
    }
}

#[rustfmt::skip]
const OTHERS: [(DropReason, &str); 25] = [
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
    (DropReason::StackTooDeep,    "stack_too_deep"),
    (DropReason::ActionSetTooLong, "action_set_too_long"),
    (DropReason::LearnLimit,      "learn_limit"),
    (DropReason::UnsupportedPacketType, "unsupported_packet_type"),
    (DropReason::NoCollector,     "no_collector"),
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
