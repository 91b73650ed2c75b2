//! Actions, and the instructions that contain them.

use base::{GroupId, MeterId, PortNo, QueueId, TableId};
use packet::MacAddr;

use crate::extension::Extension;
use crate::field::Field;

/// Number of bytes of a frame that are sent to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaxLen(pub u16);

impl MaxLen {
    /// All of it (`OFPCML_NO_BUFFER`).
    pub const WHOLE: Self = Self(0xffff);
}

/// Action. It has no effect on a frame that lacks the header it changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a copy out of `port`.
    Output {
        /// The port, real or reserved.
        port: PortNo,
        /// Number of bytes to send if `port` is the controller; otherwise without a meaning.
        max_len: MaxLen,
    },
    /// Send a copy out of `port` through `queue` (OpenFlow 1.0 only).
    Enqueue {
        /// The port.
        port: PortNo,
        /// Egress queue of the port.
        queue: QueueId,
    },
    /// Name the queue for later outputs.
    SetQueue(QueueId),
    /// Hand the frame to a group.
    Group(GroupId),
    /// Write the masked bits of a field. The match must imply the field's prerequisites.
    SetField {
        /// Field; not of a tunnel option, for which there is [`Extension::SetOption`].
        field: Field,
        /// Bits to write; none outside the mask.
        value: u128,
        /// Mask of the bits to write; all bits before OpenFlow 1.5.
        mask: u128,
    },
    /// Set the VLAN id, and push a tag if there is none (OpenFlow 1.0).
    SetVlanVid(u16),
    /// Set the VLAN priority, and push a tag if there is none (OpenFlow 1.0).
    SetVlanPcp(u8),
    /// Set the IPv4 source, if the frame has one (OpenFlow 1.0).
    SetNwSrc(u32),
    /// Set the IPv4 destination, if the frame has one (OpenFlow 1.0).
    SetNwDst(u32),
    /// Set the upper six bits of the ToS byte, if the frame has one (OpenFlow 1.0). The value is
    /// the whole byte.
    SetNwTos(u8),
    /// Set the TCP, UDP or SCTP source port, if the frame has one (OpenFlow 1.0).
    SetTpSrc(u16),
    /// Set the TCP, UDP or SCTP destination port, if the frame has one (OpenFlow 1.0).
    SetTpDst(u16),
    /// Push a tag with this EtherType, a copy of the outermost tag or else zero.
    PushVlan(u16),
    /// Pop the outermost tag, if any.
    PopVlan,
    /// Push an MPLS entry of this type.
    PushMpls(u16),
    /// Pop the outermost MPLS entry and set the EtherType to this.
    PopMpls(u16),
    /// Encapsulate the frame with a header of provider backbone bridging with this EtherType.
    PushPbb(u16),
    /// Take the outermost header of provider backbone bridging off.
    PopPbb,
    /// Set the TTL of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Decrement the TTL of the outermost MPLS entry; at zero the frame is invalid.
    DecMplsTtl,
    /// Set the IP TTL or hop limit.
    SetIpTtl(u8),
    /// Decrement the IP TTL or hop limit; at zero the frame is invalid.
    DecIpTtl,
    /// Copy the TTL from the second header with a TTL to the outermost.
    CopyTtlOut,
    /// Copy the TTL from the outermost header with a TTL to the second.
    CopyTtlIn,
    /// Submit the frame to a meter at this position in the list (1.5). A meter before all other
    /// actions is [`Instructions::meter`].
    Meter(MeterId),
    /// Extension action of Nicira or Open vSwitch.
    Extended(Extension),
}

impl Action {
    /// Output to `port`, whole if it is the controller.
    #[must_use]
    pub const fn output(port: PortNo) -> Self {
        let max_len = match port {
            PortNo::CONTROLLER => MaxLen::WHOLE,
            _ => MaxLen(0),
        };
        Self::Output { port, max_len }
    }

    /// Write all of `field`.
    #[must_use]
    pub fn set(field: Field, value: u128) -> Self {
        Self::SetField {
            field,
            value,
            mask: field.full_mask(),
        }
    }

    /// Returns the nesting depth of the actions inside this one.
    #[must_use]
    pub fn nesting(&self) -> usize {
        match self {
            Self::Extended(extension) => extension.nesting(),
            _ => 0,
        }
    }

    /// Write an Ethernet address field.
    #[must_use]
    pub fn set_mac(field: Field, mac: MacAddr) -> Self {
        Self::set(field, u128::from(mac.to_u64()))
    }
}

/// Masked write of the metadata register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataWrite {
    /// The bits; those outside the mask do not matter.
    pub value: u64,
    /// Mask of the bits to write.
    pub mask: u64,
}

/// Instructions of a rule: at most one of each kind, executed in the order of the fields (OF 1.3.5,
/// 5.9). OpenFlow 1.0's action list is `apply`.
///
/// ```
/// use flow::{Action, Instructions};
/// use base::PortNo;
///
/// let instructions: Instructions = "dec_ttl,output:2,goto_table:5".parse().unwrap();
/// assert_eq!(instructions.apply, [Action::DecIpTtl, Action::output(PortNo(2))]);
/// assert_eq!(instructions.goto, Some(base::TableId(5)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instructions {
    /// Submit the frame to a meter first.
    pub meter: Option<MeterId>,
    /// Do these now, in order.
    pub apply: Vec<Action>,
    /// Empty the action set.
    pub clear: bool,
    /// Merge these into the action set.
    pub write: Vec<Action>,
    /// Write the metadata register.
    pub metadata: Option<MetadataWrite>,
    /// Continue in a later table; without it, execute the action set now.
    pub goto: Option<TableId>,
}

impl Instructions {
    /// Instructions that only apply `actions`.
    #[must_use]
    pub fn apply(actions: Vec<Action>) -> Self {
        Self {
            apply: actions,
            ..Self::default()
        }
    }

    /// All actions, applied and written.
    pub fn actions(&self) -> impl Iterator<Item = &Action> + Clone {
        self.apply.iter().chain(&self.write)
    }
}
