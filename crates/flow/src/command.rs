//! What a controller asks the switch to do.

use std::num::NonZeroU16;

use base::{BufferId, Cookie, GroupId, PortNo, TableId};
use packet::MacAddr;

use crate::action::{Action, Instructions};
use crate::matching::Match;
use crate::pipeline_fields::PipelineFields;
use crate::port::PortConfig;

/// What a flow-mod does with the rules it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowModCommand {
    /// Add, or replace the rule with the same match and priority.
    Add,
    /// Change the instructions of all rules that the match covers.
    Modify,
    /// Change those of the one rule with this match and priority.
    ModifyStrict,
    /// Delete all rules that the match covers.
    Delete,
    /// Delete the one rule with this match and priority.
    DeleteStrict,
}

impl FlowModCommand {
    /// Whether it deletes, strictly or not.
    #[must_use]
    pub const fn is_deletion(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteStrict)
    }
}

/// `OFPFF_*` flags of a rule, in OpenFlow 1.3's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowFlags(pub u16);

impl FlowFlags {
    /// Tell the controller when the rule goes.
    pub const SEND_FLOW_REMOVED: Self = Self(1 << 0);
    /// Refuse the rule if one of the same priority overlaps.
    pub const CHECK_OVERLAP: Self = Self(1 << 1);
    /// Set the counters back to zero.
    pub const RESET_COUNTS: Self = Self(1 << 2);
    /// Packets need not be counted.
    pub const NO_PACKET_COUNTS: Self = Self(1 << 3);
    /// Bytes need not be counted.
    pub const NO_BYTE_COUNTS: Self = Self(1 << 4);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Whether actions must fit the match beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// An action that needs a header is refused unless the match, or an action
    /// before it, says that there is one: OpenFlow 1.1 and later.
    #[default]
    Required,
    /// Any action may stand beside any match, and does nothing to a frame that it
    /// does not fit: OpenFlow 1.0, with Nicira's extensions. Set-field is judged
    /// all the same.
    Waived,
}

/// A change to the flow tables (OF 1.3.5, 7.3.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    /// What to do.
    pub command: FlowModCommand,
    /// Where; [`TableId::ALL`] in a deletion means every table, and so it does
    /// in a modification that OpenFlow 1.0 sends, which has no word for a table.
    pub table: TableId,
    /// Which rule wins where several match: the higher.
    pub priority: u16,
    /// The controller's mark on the rule.
    pub cookie: Cookie,
    /// Which bits of the cookie must be `cookie`'s for a rule to be changed or
    /// deleted; zero asks nothing.
    pub cookie_mask: u64,
    /// What a modification sets the cookie to: OpenFlow 1.0 only. From 1.1 on a
    /// modification leaves it alone.
    pub new_cookie: Option<Cookie>,
    /// Which frames.
    pub matching: Match,
    /// What to do with them.
    pub instructions: Instructions,
    /// Seconds without a frame after which the rule goes; zero for never.
    pub idle_timeout_s: u16,
    /// Seconds after which the rule goes; zero for never.
    pub hard_timeout_s: u16,
    /// Which rules make room first where a full table evicts: the lower (1.4).
    pub importance: u16,
    /// A kept frame to send through the tables afterwards.
    pub buffer: Option<BufferId>,
    /// Delete only rules that output here; [`PortNo::ANY`] asks nothing.
    pub out_port: PortNo,
    /// Delete only rules that use this group; [`GroupId::ANY`] asks nothing.
    pub out_group: GroupId,
    /// Flags.
    pub flags: FlowFlags,
    /// Whether the actions must fit the match.
    pub consistency: Consistency,
    /// What a modification does that gives no new cookie and finds no rule.
    pub missing: MissingRule,
}

impl FlowMod {
    /// A flow-mod with nothing optional in it: table 0, no cookie, no timeouts.
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

    /// The cookie of the rule that a modification adds if it finds none, in the first
    /// table if it names none; nothing if it adds none. In OpenFlow 1.0 and 1.1 it does
    /// (OF 1.0.1, 4.6; OF 1.1.0, A.3.4.1), but not if it asks for rules with a certain
    /// cookie, as Open vSwitch has it; later it never does (OF 1.2, 6.4).
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

/// What a modification does where it finds no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingRule {
    /// Nothing.
    #[default]
    Ignore,
    /// It adds the rule, with its own cookie, though those that it finds keep theirs:
    /// OpenFlow 1.1.
    Add,
}

/// A frame that the controller sends out (OF 1.3.5, 7.3.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The kept frame to send, in place of `data`.
    pub buffer: Option<BufferId>,
    /// The port it counts as having come in by, [`PortNo::CONTROLLER`] for none, and what
    /// else goes with it; before 1.5, only the port.
    pub registers: PipelineFields,
    /// What to do with it.
    pub actions: Vec<Action>,
    /// The frame.
    pub data: Vec<u8>,
}

/// A frame that waited and is to go on (Nicira's `NXT_RESUME`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// What goes with it, as the controller wants it.
    pub registers: PipelineFields,
    /// The frame, as the controller wants it.
    pub data: Vec<u8>,
    /// How to go on, as the packet-in said.
    pub continuation: Vec<u8>,
}

/// A change to a port's behaviour (OF 1.3.5, 7.3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The port.
    pub port: PortNo,
    /// Its hardware address, as a check that both speak of the same one.
    pub hw_addr: MacAddr,
    /// The wanted configuration.
    pub config: PortConfig,
    /// Which bits of it to change.
    pub mask: PortConfig,
    /// SwitchFeatures to advertise; zero changes nothing.
    pub advertise: u32,
}

/// How a switch treats IP fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FragmentHandling {
    /// Through the tables like everything else.
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
    /// What becomes of fragments.
    pub fragments: FragmentHandling,
    /// Bytes of a frame that a packet-in by table-miss carries (OpenFlow 1.0),
    /// if the switch kept the rest.
    pub miss_send_len: u16,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            fragments: FragmentHandling::Normal,
            miss_send_len: 128,
        }
    }
}

/// A controller's standing with the switch (OF 1.3.5, 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Full access, beside others.
    #[default]
    Equal,
    /// Full access; there is one at most.
    Master,
    /// May look but not touch.
    Slave,
}

/// The number by which a controller is known to the others (OF 1.5.1, 7.3.9).
/// `OFPCID_UNDEFINED`, which is zero, is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShortId(NonZeroU16);

impl ShortId {
    /// The id with this number; none for zero.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        NonZeroU16::new(number).map(Self)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0.get()
    }
}

/// A request to take on a role, or merely to be told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleRequest {
    /// The role wanted; none asks for the present one.
    pub role: Option<Role>,
    /// Which election the controllers are at; older ones are refused.
    pub generation: Option<u64>,
    /// The number wanted (1.5); none leaves it as it is.
    pub short_id: Option<ShortId>,
}
