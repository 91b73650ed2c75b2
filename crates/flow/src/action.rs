//! What is done to a frame: actions, and the instructions that order them.

use base::{GroupId, MeterId, PortNo, QueueId, TableId};
use packet::MacAddr;

use crate::extension::Extension;
use crate::field::Field;

/// How much of a frame goes to the controller, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaxLen(pub u16);

impl MaxLen {
    /// All of it (`OFPCML_NO_BUFFER`).
    pub const WHOLE: Self = Self(0xffff);
}

/// One action. It does nothing to a frame that lacks the header it changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a copy out of `port`.
    Output {
        /// The port, real or reserved.
        port: PortNo,
        /// How much to send, if `port` is the controller; without a meaning otherwise.
        max_len: MaxLen,
    },
    /// Send a copy out of `port` by way of `queue` (OpenFlow 1.0 only).
    Enqueue {
        /// The port.
        port: PortNo,
        /// Its queue.
        queue: QueueId,
    },
    /// Name the queue for later outputs.
    SetQueue(QueueId),
    /// Hand the frame to a group.
    Group(GroupId),
    /// Write the masked bits of a field. The match must imply the field's prerequisites.
    SetField {
        /// The field; none of a tunnel option, which has [`Extension::SetOption`].
        field: Field,
        /// The bits; none outside the mask.
        value: u128,
        /// Which bits to write; all of them, before OpenFlow 1.5.
        mask: u128,
    },
    /// Set the VLAN id, pushing a tag if there is none (OpenFlow 1.0).
    SetVlanVid(u16),
    /// Set the VLAN priority, pushing a tag if there is none (OpenFlow 1.0).
    SetVlanPcp(u8),
    /// Set the IPv4 source, if there is one (OpenFlow 1.0).
    SetNwSrc(u32),
    /// Set the IPv4 destination, if there is one (OpenFlow 1.0).
    SetNwDst(u32),
    /// Set the six upper bits of the ToS byte, if there is one (OpenFlow 1.0). The value is the byte.
    SetNwTos(u8),
    /// Set the TCP, UDP or SCTP source port, if there is one (OpenFlow 1.0).
    SetTpSrc(u16),
    /// Set the TCP, UDP or SCTP destination port, if there is one (OpenFlow 1.0).
    SetTpDst(u16),
    /// Push a tag of this type, a copy of the outermost one or else zero.
    PushVlan(u16),
    /// Take the outermost tag off, if there is one.
    PopVlan,
    /// Push an MPLS entry of this type.
    PushMpls(u16),
    /// Take the outermost MPLS entry off; the frame's type becomes this.
    PopMpls(u16),
    /// Put the frame behind a header of provider backbone bridging, of this type.
    PushPbb(u16),
    /// Take the outermost header of provider backbone bridging off.
    PopPbb,
    /// Set the TTL of the outermost MPLS entry.
    SetMplsTtl(u8),
    /// Lower the TTL of the outermost MPLS entry; at zero the frame is invalid.
    DecMplsTtl,
    /// Set the IP TTL or hop limit.
    SetIpTtl(u8),
    /// Lower the IP TTL or hop limit; at zero the frame is invalid.
    DecIpTtl,
    /// Copy the TTL from the next-to-outermost header that has one to the outermost.
    CopyTtlOut,
    /// Copy the TTL from the outermost header that has one to the next.
    CopyTtlIn,
    /// Submit the frame to a meter, wherever the action stands (1.5); before all others
    /// it is [`Instructions::meter`].
    Meter(MeterId),
    /// One of Nicira's.
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

    /// How deep other actions are nested in it.
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

/// Bits of the metadata register and which of them to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataWrite {
    /// The bits; those outside the mask do not matter.
    pub value: u64,
    /// Which to write.
    pub mask: u64,
}

/// A rule's instructions: at most one of each kind, done in the order of the
/// members here (OF 1.3.5, 5.9). OpenFlow 1.0's action list is `apply`.
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
    /// Go on in a later table; without it the action set is executed now.
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
