//! What a controller asks to know, and the answers.

use std::time::Duration;

use base::{Cookie, DatapathId, GroupId, PortNo, QueueId, TableId};

use crate::action::Instructions;
use crate::command::FlowFlags;
use crate::matching::Match;

/// Which rules a statistics request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatsRequest {
    /// The table, or [`TableId::ALL`].
    pub table: TableId,
    /// Only rules that output here; [`PortNo::ANY`] asks nothing.
    pub out_port: PortNo,
    /// Only rules that use this group; [`GroupId::ANY`] asks nothing.
    pub out_group: GroupId,
    /// Only rules whose cookie has these bits,
    pub cookie: Cookie,
    /// where this mask has ones.
    pub cookie_mask: u64,
    /// Only rules that this match covers.
    pub matching: Match,
}

impl FlowStatsRequest {
    /// The request for all rules of all tables.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            table: TableId::ALL,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            cookie: Cookie(0),
            cookie_mask: 0,
            matching: Match::any(),
        }
    }
}

/// One rule and its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// The table it is in.
    pub table: TableId,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Its match.
    pub matching: Match,
    /// Its instructions.
    pub instructions: Instructions,
    /// Its idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Its hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Its importance to eviction (told by 1.4 and later).
    pub importance: u16,
    /// Its flags.
    pub flags: FlowFlags,
    /// How long it has lived.
    pub duration: Duration,
    /// Time since its last frame; told in the Nicira form only.
    pub idle_age: Duration,
    /// Time since it was added or last modified; told in the Nicira form only.
    pub hard_age: Duration,
    /// Frames it matched.
    pub packets: u64,
    /// Bytes of those frames.
    pub bytes: u64,
}

/// The sums over several rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateStats {
    /// Frames matched.
    pub packets: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// How many rules.
    pub flows: u32,
}

/// The counts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// The table.
    pub table: TableId,
    /// Rules it may hold (told by OpenFlow 1.0).
    pub flows_max: u32,
    /// Rules in it.
    pub active: u32,
    /// Frames looked up.
    pub lookups: u64,
    /// Frames that found a rule.
    pub matched: u64,
}

/// The counts of a port. What a port cannot know is all ones on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStats {
    /// The port.
    pub port: PortNo,
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames lost before they were received, for want of room.
    pub rx_dropped: u64,
    /// Frames that were not sent.
    pub tx_dropped: u64,
    /// Frames received but unusable.
    pub rx_errors: u64,
    /// Frames that the interface refused.
    pub tx_errors: u64,
    /// Alignment errors, if the port can know.
    pub rx_frame_errors: Option<u64>,
    /// Overruns, if the port can know.
    pub rx_over_errors: Option<u64>,
    /// Checksum errors, if the port can know.
    pub rx_crc_errors: Option<u64>,
    /// Collisions, if the port can know.
    pub collisions: Option<u64>,
    /// How long the port has existed (told by 1.3).
    pub duration: Duration,
}

/// The counts of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// The port.
    pub port: PortNo,
    /// Its queue.
    pub queue: QueueId,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames lost to overrun.
    pub tx_errors: u64,
    /// How long the queue has existed (told by 1.3).
    pub duration: Duration,
}

/// Who made the switch (OF 1.3.5, 7.3.5.1). Cut to the wire's lengths when sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchDescription {
    /// The manufacturer.
    pub manufacturer: String,
    /// The hardware.
    pub hardware: String,
    /// The software and its version.
    pub software: String,
    /// The serial number.
    pub serial_number: String,
    /// A name for this datapath that a person would use.
    pub datapath: String,
}

/// What the switch is and can (OF 1.3.5, 7.3.1). Its capabilities and, in 1.0,
/// its actions are constants of the codec: they say what the code can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchFeatures {
    /// The switch's name.
    pub datapath_id: DatapathId,
    /// Frames it can keep for the controller.
    pub buffers: u32,
    /// How many tables it has.
    pub tables: u8,
    /// Which auxiliary connection this is; zero for the main one.
    pub auxiliary_id: u8,
    /// `OFPC_*` bits in OpenFlow 1.3's places, and 1.0's `ARP_MATCH_IP`.
    pub capabilities: Capabilities,
}

/// `OFPC_*` bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Flow statistics.
    pub const FLOW_STATS: Self = Self(1 << 0);
    /// Table statistics.
    pub const TABLE_STATS: Self = Self(1 << 1);
    /// Port statistics.
    pub const PORT_STATS: Self = Self(1 << 2);
    /// Group statistics (1.1 and later).
    pub const GROUP_STATS: Self = Self(1 << 3);
    /// Can put IP fragments together.
    pub const IP_REASM: Self = Self(1 << 5);
    /// Queue statistics.
    pub const QUEUE_STATS: Self = Self(1 << 6);
    /// Can match addresses in ARP (OpenFlow 1.0).
    pub const ARP_MATCH_IP: Self = Self(1 << 7);
    /// Will block looping ports (1.1 and later).
    pub const PORT_BLOCKED: Self = Self(1 << 8);

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Of what IPFIX tells (`NXST_IPFIX_BRIDGE` and `NXST_IPFIX_FLOW`; `nicira-ext.h` of Open
/// vSwitch 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpfixScope {
    /// Of all frames of the bridge.
    Bridge,
    /// Of those that `sample` actions gave to sets of collectors.
    Collectors,
}

/// What IPFIX has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpfixStats {
    /// Flows, ever.
    pub flows: u64,
    /// Flows that there are.
    pub flows_now: u64,
    /// Packets that were sampled: all, of IPv4, of IPv6.
    pub sampled: [u64; 3],
    /// Packets that could not be: all, of IPv4, of IPv6.
    pub failed: [u64; 3],
    /// Packets sent to collectors.
    pub sent: u64,
    /// Packets that could not be sent.
    pub send_failed: u64,
    /// To which set of collectors; zero for the bridge's.
    pub collectors: u32,
}
