//! Extension actions of Nicira and Open vSwitch, in every OpenFlow version alike (`ovs-actions(7)`
//! of Open vSwitch 3.1).
//!
//! | group | actions |
//! |---|---|
//! | lookup | `resubmit`, also by the connection's original direction, `clone`, `exit` |
//! | registers | `load`, `move`, `push`, `pop`, `check_pkt_larger`, `delete_field` |
//! | output | `output` to a subfield or truncated, `controller`, `pop_queue`, `multipath`, `bundle`, `bundle_load` |
//! | rules | `learn`, `fin_timeout`, `conjunction` |
//! | headers | `encap`, `decap`, `dec_ttl` with controller ids, `dec_nsh_ttl` |
//! | connections | `ct`, `nat`, `ct_clear` |
//! | other | `note`, `sample` |
//! | tests | `debug_slow`, `debug_recirc` |
//!
//! - `learn` adds a rule built from the frame: each [`LearnSpec`] matches, loads or outputs a [`Subfield`], taken from the frame or constant. Typical use: MAC learning.
//! - `conjunction(id, k/n)` makes its rule the clause `k` of a conjunctive match with `n` dimensions: if one rule of every clause matches, `conj_id=id` matches. A rule set of size `a + b` then represents `a * b` combinations.
//! - `bundle` and `multipath` select a port or a link by a hash of the frame ([`HashFields`]).
//! - `clone` executes actions on a copy of the frame and its pipeline fields.
//!
//! - `debug_slow` and `debug_recirc` exercise the slow path and the recirculation of Open vSwitch; they have no effect on the packet.
//!
//! ```
//! use flow::{Action, Extension};
//!
//! let actions = flow::text::parse_actions("move:NXM_OF_ETH_SRC[]->NXM_NX_REG0[0..31]");
//! assert!(actions.is_err(), "48 bits do not fit 32 bits");
//!
//! let actions = flow::text::parse_actions("conjunction(7,1/2)").unwrap();
//! let clause = Extension::Conjunction { id: 7, clause: 0, clauses: 2 };
//! assert_eq!(actions, [Action::Extended(clause)]);
//! ```

mod conntrack;
mod encap;
mod hash;
mod learn;
mod sample;
mod subfield;

use std::sync::Arc;

use base::{MeterId, PortNo, TableId};

use crate::action::{Action, MaxLen};
use crate::event::PacketInReason;
use crate::field::Field;
use crate::options::OptionTerm;

pub use conntrack::{
    ConntrackAction, ConntrackFlags, ConntrackZone, NatAction, NatAddresses, NatFlags,
    writes_connection,
};
pub use encap::{Encap, NshProperty, PacketType};
pub use hash::{BundleAction, BundleAlgorithm, HashFields, Multipath, MultipathAlgorithm};
pub use learn::{Learn, LearnFlags, LearnSource, LearnSpec};
pub use sample::{SampleAction, SampleDirection, SampleId};
pub use subfield::Subfield;

/// Extension action.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extension {
    /// Look up the frame as if it had arrived by `port`, execute the result, then continue.
    Resubmit {
        /// The port of arrival for the lookup; [`PortNo::IN_PORT`] leaves it.
        port: PortNo,
        /// Table, or `None` for the current one.
        table: Option<TableId>,
    },
    /// Look up the frame with the addresses, ports and protocol of its connection's original
    /// direction, execute the result, then continue.
    ResubmitConnection {
        /// The port of arrival for the lookup; [`PortNo::IN_PORT`] leaves it.
        port: PortNo,
        /// Table, or `None` for the current one.
        table: Option<TableId>,
    },
    /// Write a number into bits of a field.
    Load {
        /// Destination.
        to: Subfield,
        /// The number; it fits.
        value: u64,
    },
    /// Copy bits to a subfield of the same width.
    Move {
        /// Source.
        from: Subfield,
        /// Destination.
        to: Subfield,
    },
    /// Put bits on the stack.
    Push(Subfield),
    /// Pop bits from the stack: the lower ones, if there are more than fit.
    Pop(Subfield),
    /// Send a copy out of the port whose number is in a subfield.
    OutputReg {
        /// The bits.
        from: Subfield,
        /// Number of bytes to send, if the port is the controller.
        max_len: MaxLen,
    },
    /// Send the beginning of a copy out of `port`.
    OutputTruncated {
        /// The port.
        port: PortNo,
        /// Number of bytes, at least fourteen.
        max_len: u32,
    },
    /// Send a copy to controllers of one id.
    Controller(Arc<ControllerAction>),
    /// Decrement the IP TTL or hop limit; at zero, notify controllers with these ids.
    DecTtl(Arc<[u16]>),
    /// Restore the egress queue that the frame had on arrival.
    PopQueue,
    /// No effect: bytes for the controller's own use.
    Note(Arc<[u8]>),
    /// Stop processing, including the tables that resubmitted the frame.
    Exit,
    /// Execute the actions on a copy of the frame and its pipeline fields.
    Clone(Arc<[Action]>),
    /// Add a rule made of the frame's own fields.
    Learn(Arc<Learn>),
    /// Shorten the rule's timeouts if the frame ends a TCP connection.
    FinTimeout {
        /// Upper limit of the idle timeout in seconds; zero for no change.
        idle_s: u16,
        /// Upper limit of the hard timeout in seconds; zero for no change.
        hard_s: u16,
    },
    /// Select a link by a hash and write its number into a subfield.
    Multipath(Multipath),
    /// Select a port by liveness or hash; output to it, or write its number into a subfield.
    Bundle(Arc<BundleAction>),
    /// Make the rule a clause of a conjunctive match.
    Conjunction {
        /// Value of the field `conj_id` if all clauses match.
        id: u32,
        /// Number of this clause, from zero.
        clause: u8,
        /// Number of clauses, at least two.
        clauses: u8,
    },
    /// Write one bit: whether the frame is longer than this.
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
        /// Type of the remaining packet, if the removed header does not identify it.
        left: Option<PacketType>,
    },
    /// Write masked bits of a tunnel option; other fields have [`Action::SetField`].
    SetOption(Arc<OptionTerm>),
    /// Remove a tunnel option: its field becomes zero.
    DeleteField(Field),
    /// Decrement the TTL of the network service header; at zero the packet is invalid.
    DecNshTtl,
    /// Report some frames to a collector of flow records.
    Sample(SampleAction),
    /// Send the frame through the connection tracker.
    Conntrack(Arc<ConntrackAction>),
    /// Translate the addresses of the connection; only in [`Extension::Conntrack`].
    Nat(Arc<NatAction>),
    /// Make the frame untracked.
    ConntrackClear,
    /// No effect: process the frame in the slow path.
    DebugSlow,
    /// No effect: Open vSwitch recirculates the frame and continues with the next action.
    DebugRecirc,
}

/// Parameters of the action `controller`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerAction {
    /// Number of bytes of the frame to send.
    pub max_len: MaxLen,
    /// Id of the receiving controllers; zero is their default.
    pub controller: u16,
    /// Reason in the message.
    pub reason: PacketInReason,
    /// Bytes to send along.
    pub userdata: Vec<u8>,
    /// The meter that must let it pass.
    pub meter: Option<MeterId>,
    /// True to pause the frame, with a continuation in the message.
    pub pause: bool,
}

impl Default for ControllerAction {
    /// The whole frame to controllers with the default id, with the reason "action".
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

impl Extension {
    /// Returns the nesting depth of the actions inside this one.
    #[must_use]
    pub fn nesting(&self) -> usize {
        match self {
            Self::Clone(actions) => 1 + actions.iter().map(Action::nesting).max().unwrap_or(0),
            Self::Conntrack(ct) => 1 + ct.actions.iter().map(Action::nesting).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Largest nesting depth of actions that a reader accepts: more than any controller needs, and
/// small enough for every stack.
pub const NESTING_MAX: usize = 16;
