//! The actions that Nicira and Open vSwitch added to OpenFlow's own, in every
//! version alike (`ovs-actions(7)` of Open vSwitch 3.1).
//!
//! Not here: connection tracking and translation of addresses; their actions are
//! refused where they are read.

mod encap;
mod hash;
mod learn;
mod subfield;

use std::sync::Arc;

use base::{MeterId, PortNo, TableId};

use crate::action::{Action, MaxLen};
use crate::event::PacketInReason;
use crate::field::Field;
use crate::options::OptionTerm;

pub use encap::{Encap, NshProperty, PacketType};
pub use hash::{BundleAction, BundleAlgorithm, HashFields, Multipath, MultipathAlgorithm};
pub use learn::{Learn, LearnFlags, LearnSource, LearnSpec};
pub use subfield::Subfield;

/// One of Nicira's actions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extension {
    /// Look the frame up again, as if it had come in by `port`, and do what is
    /// found; then go on.
    Resubmit {
        /// The port of arrival for the lookup; [`PortNo::IN_PORT`] leaves it.
        port: PortNo,
        /// The table; none is the one that is being looked up in.
        table: Option<TableId>,
    },
    /// Write a number into bits of a field.
    Load {
        /// Where.
        to: Subfield,
        /// The number; it fits.
        value: u64,
    },
    /// Copy bits from one place to another of the same width.
    Move {
        /// Where from.
        from: Subfield,
        /// Where to.
        to: Subfield,
    },
    /// Put bits on the stack.
    Push(Subfield),
    /// Take bits off the stack: the lower ones, if there are more than fit.
    Pop(Subfield),
    /// Send a copy out of the port that bits of a field name.
    OutputReg {
        /// The bits.
        from: Subfield,
        /// How much to send, if it is the controller.
        max_len: MaxLen,
    },
    /// Send the beginning of a copy out of `port`.
    OutputTruncated {
        /// The port.
        port: PortNo,
        /// How many bytes of it, fourteen at least.
        max_len: u32,
    },
    /// Send a copy to controllers of one id.
    Controller(Arc<ControllerAction>),
    /// Lower the IP TTL or hop limit; at zero these controllers are told.
    DecTtl(Arc<[u16]>),
    /// Later outputs go by the queue that the frame came with.
    PopQueue,
    /// Nothing: bytes for the controller's own use.
    Note(Arc<[u8]>),
    /// Do no more with the frame, here or where it was resubmitted from.
    Exit,
    /// Do the actions on a copy of the frame and of all that goes with it.
    Clone(Arc<[Action]>),
    /// Add a rule made of the frame's own fields.
    Learn(Arc<Learn>),
    /// A frame that ends a TCP connection shortens the rule's timeouts.
    FinTimeout {
        /// At most this idle timeout in seconds; zero leaves it.
        idle_s: u16,
        /// At most this hard timeout in seconds; zero leaves it.
        hard_s: u16,
    },
    /// Write the number of a link, chosen by a hash, into bits of a field.
    Multipath(Multipath),
    /// Send out of one of several ports, or write its number into a field.
    Bundle(Arc<BundleAction>),
    /// The match is one clause of several that must hold together.
    Conjunction {
        /// What the field `conj_id` holds when all clauses do.
        id: u32,
        /// Which clause this is, from zero.
        clause: u8,
        /// How many clauses there are, two at least.
        clauses: u8,
    },
    /// Write whether the frame is longer than this into one bit.
    CheckPacketLarger {
        /// Bytes of the frame, without the frame check sequence.
        bytes: u16,
        /// The bit.
        to: Subfield,
    },
    /// Put a header around the packet.
    Encap(Encap),
    /// Take the outermost header off the packet.
    Decap {
        /// What is left behind it, where the header does not tell.
        left: Option<PacketType>,
    },
    /// Write the masked bits of a tunnel option; what other fields have is
    /// [`Action::SetField`].
    SetOption(Arc<OptionTerm>),
    /// Take a tunnel option away: its field is zero then.
    DeleteField(Field),
    /// Lower the TTL of the network service header; at zero the packet is invalid.
    DecNshTtl,
    /// Report some frames to a collector of flow records.
    Sample(SampleAction),
}

/// What a frame for the controllers is sent with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerAction {
    /// How much of the frame to send.
    pub max_len: MaxLen,
    /// Which controllers: those that have given themselves this id; zero at first.
    pub controller: u16,
    /// Why, as the message shall tell.
    pub reason: PacketInReason,
    /// Bytes to send along.
    pub userdata: Vec<u8>,
    /// The meter that must let it pass.
    pub meter: Option<MeterId>,
    /// Whether the controller shall say how to go on.
    pub pause: bool,
}

impl Default for ControllerAction {
    /// To controllers that gave themselves no id, whole, because of an action.
    fn default() -> Self {
        Self {
            max_len: MaxLen::WHOLE,
            controller: 0,
            reason: PacketInReason::Action,
            userdata: Vec::new(),
            meter: None,
            pause: false,
        }
    }
}

/// Which frames to report to a collector, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleAction {
    /// How many of 65,535 frames; one at least.
    pub probability: u16,
    /// The set of collectors.
    pub collectors: u32,
    /// IPFIX's observation domain.
    pub domain: u32,
    /// IPFIX's observation point.
    pub point: u32,
    /// The port that the report is about, if it is about one.
    pub port: Option<PortNo>,
    /// Which way the frame goes there.
    pub direction: SampleDirection,
}

/// Which way a sampled frame goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleDirection {
    /// Nobody says.
    #[default]
    Unspecified,
    /// In.
    Ingress,
    /// Out.
    Egress,
}

impl Extension {
    /// How deep actions are nested in this one.
    #[must_use]
    pub fn nesting(&self) -> usize {
        match self {
            Self::Clone(actions) => 1 + actions.iter().map(Action::nesting).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// How deep actions may be nested in one another where they are read: more than
/// any controller has use for, and few enough for every stack.
pub const NESTING_MAX: usize = 16;
