//! Statistics: requests of controllers, and the replies.

use std::time::Duration;

use base::{Cookie, DatapathId, GroupId, PortNo, QueueId, TableId};

use crate::action::Instructions;
use crate::command::FlowFlags;
use crate::matching::Match;

/// Selection of rules in a statistics request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatsRequest {
    /// Table, or [`TableId::ALL`].
    pub table: TableId,
    /// Only rules that output here; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Only rules that use this group; [`GroupId::ANY`] for no restriction.
    pub out_group: GroupId,
    /// Only rules with these cookie bits.
    pub cookie: Cookie,
    /// Mask of the cookie bits that are compared.
    pub cookie_mask: u64,
    /// Only rules that this match covers.
    pub matching: Match,
}

impl FlowStatsRequest {
    /// Returns the selection of all rules of all tables.
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

/// Rule with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// The table it is in.
    pub table: TableId,
    /// Priority.
    pub priority: u16,
    /// Cookie.
    pub cookie: Cookie,
    /// Match.
    pub matching: Match,
    /// Instructions.
    pub instructions: Instructions,
    /// Idle timeout in seconds; zero for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds; zero for none.
    pub hard_timeout_s: u16,
    /// Importance for eviction (1.4 and later).
    pub importance: u16,
    /// Flags.
    pub flags: FlowFlags,
    /// Lifetime of the rule.
    pub duration: Duration,
    /// Time since the last packet; only in the Nicira form.
    pub idle_age: Duration,
    /// Time since the rule was added or last modified; only in the Nicira form.
    pub hard_age: Duration,
    /// Frames it matched.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
}

/// Sums over several rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateStats {
    /// Frames matched.
    pub packets: u64,
    /// Number of bytes in these frames.
    pub bytes: u64,
    /// Number of rules.
    pub flows: u32,
}

/// The counts of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// The table.
    pub table: TableId,
    /// Its name, at most 31 bytes on the wire (until OpenFlow 1.2); empty if it has none.
    pub name: String,
    /// Largest number of rules (OpenFlow 1.0).
    pub flows_max: u32,
    /// Number of rules.
    pub active: u32,
    /// Number of lookups.
    pub lookups: u64,
    /// Number of lookups that found a rule.
    pub matched: u64,
}

/// A counter that the switch does not have, as on the wire.
pub const UNAVAILABLE: u64 = u64::MAX;

/// Counters of a port. Unavailable counters are all ones on the wire ([`UNAVAILABLE`]).
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Frames dropped before reception, because of a full queue.
    pub rx_dropped: u64,
    /// Frames that were not sent.
    pub tx_dropped: u64,
    /// Frames received but unusable.
    pub rx_errors: u64,
    /// Frames that the interface refused.
    pub tx_errors: u64,
    /// Alignment errors, if available.
    pub rx_frame_errors: Option<u64>,
    /// Overruns, if available.
    pub rx_over_errors: Option<u64>,
    /// Checksum errors, if available.
    pub rx_crc_errors: Option<u64>,
    /// Collisions, if available.
    pub collisions: Option<u64>,
    /// Counters by name (an experimenter's property of 1.4 and later).
    pub custom: Vec<(String, u64)>,
    /// Lifetime of the port (1.3).
    pub duration: Duration,
}

/// The counts of a queue. Unavailable ones are all ones on the wire ([`UNAVAILABLE`]); an
/// unavailable duration is longer than any that the wire format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// The port.
    pub port: PortNo,
    /// Queue.
    pub queue: QueueId,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames lost to overrun.
    pub tx_errors: u64,
    /// Lifetime of the queue (1.3).
    pub duration: Duration,
}

/// Description of the switch (OF 1.3.5, 7.3.5.1). Truncated to the lengths of the wire format when
/// sent.
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
    /// Description of this datapath for humans.
    pub datapath: String,
}

/// Features of the switch (OF 1.3.5, 7.3.1). The capabilities, and the actions of 1.0, are
/// constants of the codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchFeatures {
    /// The switch's name.
    pub datapath_id: DatapathId,
    /// Frames it can keep for the controller.
    pub buffers: u32,
    /// Number of tables.
    pub tables: u8,
    /// Number of the auxiliary connection; zero for the main one.
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
    /// Executes bundles (1.4 and later).
    pub const BUNDLES: Self = Self(1 << 9);

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Scope of IPFIX statistics (`NXST_IPFIX_BRIDGE` and `NXST_IPFIX_FLOW`; `nicira-ext.h` of Open
/// vSwitch 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpfixScope {
    /// All frames of the bridge.
    Bridge,
    /// Frames that `sample` actions export to collector sets.
    Collectors,
}

/// Statistics of an IPFIX exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpfixStats {
    /// Number of flows since the start.
    pub flows: u64,
    /// Number of current flows.
    pub flows_now: u64,
    /// Sampled packets: all, IPv4, IPv6.
    pub sampled: [u64; 3],
    /// Packets that could not be sampled: all, IPv4, IPv6.
    pub failed: [u64; 3],
    /// Packets sent to collectors.
    pub sent: u64,
    /// Packets that could not be sent.
    pub send_failed: u64,
    /// Id of the collector set; zero for the bridge's.
    pub collectors: u32,
}
