//! Commands of a controller: messages that change tables or ports, or send a frame.

use std::num::NonZeroU16;

use base::{BufferId, Cookie, GroupId, PortNo, TableId};
use packet::MacAddr;

use crate::action::{Action, Instructions};
use crate::matching::Match;
use crate::pipeline_fields::PipelineFields;
use crate::port::PortConfig;

/// Command of a flow-mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowModCommand {
    /// Add a rule, or replace the one with the same match and priority.
    Add,
    /// Change the instructions of all rules that the match covers.
    Modify,
    /// Change the instructions of the rule with this match and priority.
    ModifyStrict,
    /// Delete all rules that the match covers.
    Delete,
    /// Delete the one rule with this match and priority.
    DeleteStrict,
}

impl FlowModCommand {
    /// True for both deletions.
    #[must_use]
    pub const fn is_deletion(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteStrict)
    }
}

/// `OFPFF_*` flags of a rule, in OpenFlow 1.3's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowFlags(pub u16);

impl FlowFlags {
    /// Notify the controller when the rule is removed.
    pub const SEND_FLOW_REMOVED: Self = Self(1 << 0);
    /// Refuse the rule if another of the same priority overlaps.
    pub const CHECK_OVERLAP: Self = Self(1 << 1);
    /// Set the counters back to zero.
    pub const RESET_COUNTS: Self = Self(1 << 2);
    /// Packets need not be counted.
    pub const NO_PACKET_COUNTS: Self = Self(1 << 3);
    /// Bytes need not be counted.
    pub const NO_BYTE_COUNTS: Self = Self(1 << 4);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Relation between the actions of a rule and its match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// An action that changes a header is refused unless the match, or an earlier action, implies
    /// that header: OpenFlow 1.1 and later.
    #[default]
    Required,
    /// Actions need not fit the match, and have no effect on a frame that they do not fit: OpenFlow
    /// 1.0, with Nicira's extensions. Set-field is checked nevertheless.
    Waived,
}

/// A change to the flow tables (OF 1.3.5, 7.3.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// Command.
    pub command: FlowModCommand,
    /// Table. [`TableId::ALL`] selects all tables in a deletion, and in a modification of OpenFlow
    /// 1.0, whose message has no table.
    pub table: TableId,
    /// Priority: of several rules that match, the one with the highest applies.
    pub priority: u16,
    /// The controller's mark on the rule.
    pub cookie: Cookie,
    /// Cookie bits that must equal those of `cookie` in a rule to be changed or deleted; zero
    /// matches all rules.
    pub cookie_mask: u64,
    /// New cookie of modified rules: OpenFlow 1.0 only. Since 1.1 a modification keeps the cookie.
    pub new_cookie: Option<Cookie>,
    /// Match.
    pub matching: Match,
    /// Instructions.
    pub instructions: Instructions,
    /// Idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Importance: a full table evicts rules with the lowest first (1.4).
    pub importance: u16,
    /// Buffered frame to send through the tables afterwards.
    pub buffer: Option<BufferId>,
    /// Delete only rules that output here; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Delete only rules that use this group; [`GroupId::ANY`] for no restriction.
    pub out_group: GroupId,
    /// Flags.
    pub flags: FlowFlags,
    /// Relation between the actions and the match.
    pub consistency: Consistency,
    /// Effect of a modification without a new cookie that finds no rule.
    pub missing: MissingRule,
}

impl FlowMod {
    /// Returns a flow-mod without optional parts: table 0, no cookie, no timeouts.
    #[must_use]
    pub fn new(
        command: FlowModCommand,
        priority: u16,
        matching: Match,
        instructions: Instructions,
    ) -> Self {
        Self {
            command,
            table: TableId::FIRST,
            priority,
            cookie: Cookie(0),
            cookie_mask: 0,
            new_cookie: None,
            matching,
            instructions,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            importance: 0,
            buffer: None,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: FlowFlags::default(),
            consistency: Consistency::default(),
            missing: MissingRule::default(),
        }
    }

    /// Returns the cookie of the rule that a modification adds if it finds none (in the first
    /// table, unless it names one), or `None` if it adds none. In OpenFlow 1.0 and 1.1 a
    /// modification adds a rule (OF 1.0.1, 4.6; OF 1.1.0, A.3.4.1), except, as in Open vSwitch, one
    /// that selects rules by cookie; later versions never do (OF 1.2, 6.4).
    #[must_use]
    pub const fn cookie_if_added(&self) -> Option<Cookie> {
        match (self.cookie_mask, self.new_cookie) {
            (0, None) => match self.missing {
                MissingRule::Add => Some(self.cookie),
                MissingRule::Ignore => None,
            },
            (0, Some(cookie)) => Some(cookie),
            _ => None,
        }
    }
}

/// Effect of a modification that finds no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingRule {
    /// No effect.
    #[default]
    Ignore,
    /// The modification adds the rule with its own cookie; rules that it finds keep theirs:
    /// OpenFlow 1.1.
    Add,
}

/// A frame that the controller sends out (OF 1.3.5, 7.3.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// Buffered frame to send instead of `data`.
    pub buffer: Option<BufferId>,
    /// Pipeline fields of the frame, among them the ingress port ([`PortNo::CONTROLLER`] for none).
    /// Before 1.5, only the port.
    pub registers: PipelineFields,
    /// Actions to execute.
    pub actions: Vec<Action>,
    /// The frame.
    pub data: Vec<u8>,
}

/// Resumption of a paused frame (Nicira's `NXT_RESUME`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Pipeline fields, as changed by the controller.
    pub registers: PipelineFields,
    /// Frame, as changed by the controller.
    pub data: Vec<u8>,
    /// Continuation from the packet-in.
    pub continuation: Vec<u8>,
}

/// A change to a port's behaviour (OF 1.3.5, 7.3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The port.
    pub port: PortNo,
    /// Hardware address of the port, to verify its identity.
    pub hw_addr: MacAddr,
    /// Desired configuration.
    pub config: PortConfig,
    /// Mask of the configuration bits to change.
    pub mask: PortConfig,
    /// Features to advertise; zero changes nothing.
    pub advertise: u32,
}

/// Treatment of IP fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FragmentHandling {
    /// Through the tables like other frames.
    #[default]
    Normal,
    /// Not at all.
    Drop,
    /// Put together first.
    Reassemble,
    /// Through the tables, where `ip_frag` can be matched (Nicira).
    NxMatch,
}

/// The switch's own configuration (OF 1.3.5, 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Treatment of fragments.
    pub fragments: FragmentHandling,
    /// Number of bytes of a frame in a packet-in by table-miss (OpenFlow 1.0), if the switch
    /// buffers the rest.
    pub miss_send_len: u16,
    /// True if the controller receives packets with an invalid TTL (OpenFlow 1.0 to 1.2, where the
    /// asynchronous configuration does not say so; Open vSwitch accepts it in 1.0 too).
    pub invalid_ttl: bool,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            fragments: FragmentHandling::Normal,
            miss_send_len: 128,
            invalid_ttl: false,
        }
    }
}

/// Role of a controller (OF 1.3.5, 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Full access, shared with others.
    #[default]
    Equal,
    /// Full access; at most one controller has it.
    Master,
    /// May look but not touch.
    Slave,
}

/// Short id of a controller, visible to other controllers (OF 1.5.1, 7.3.9). Zero is
/// `OFPCID_UNDEFINED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortId(NonZeroU16);

impl ShortId {
    /// Returns the id, or `None` for zero.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        NonZeroU16::new(number).map(Self)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0.get()
    }
}

/// Request to change or report the role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleRequest {
    /// Desired role, or `None` to query the current one.
    pub role: Option<Role>,
    /// Generation id of the master election; older ones are refused.
    pub generation: Option<u64>,
    /// Desired short id (1.5), or `None` to keep it.
    pub short_id: Option<ShortId>,
}
