//! The spanning tree of a bridge and its ports (ovs-vswitchd.conf.db(5), the tables `Bridge` and
//! `Port`, "Spanning Tree").
//!
//! Ports are identified by their numbers, which are final when this configuration is built.

use std::collections::BTreeMap;

use base::PortNo;
use packet::MacAddr;

/// The protocol, as the database selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanningTreeProtocol {
    /// STP, 802.1D-1998.
    Stp,
    /// RSTP, 802.1D-2004.
    Rstp,
}

/// The spanning tree of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTreeConfig {
    /// The protocol.
    pub protocol: SpanningTreeProtocol,
    /// RSTP sends STP BPDUs (`rstp-force-protocol-version`).
    pub force_stp: bool,
    /// The address in the bridge identifier; that of the bridge if absent.
    pub address: Option<MacAddr>,
    /// The bridge priority: the lowest value becomes the root.
    pub priority: u16,
    /// Interval between BPDUs, in seconds.
    pub hello_time: u16,
    /// Lifetime of announced information, in seconds.
    pub max_age: u16,
    /// Delay before a port forwards, in seconds.
    pub forward_delay: u16,
    /// Maximum number of BPDUs that a port sends per second.
    pub transmit_hold_count: u32,
    /// The participating ports.
    pub ports: BTreeMap<PortNo, SpanningTreePort>,
}

/// A port of a spanning tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTreePort {
    /// The name in the table `Port`.
    pub name: String,
    /// The port number in the tree.
    pub number: u16,
    /// The port priority: lower values are preferred.
    pub priority: u8,
    /// The path cost; derived from the link speed if absent.
    pub path_cost: Option<u32>,
    /// The port is an edge port from the start: it connects a host.
    pub admin_edge: bool,
    /// The port becomes an edge port if no BPDU arrives.
    pub auto_edge: bool,
    /// Restarts the detection of the neighbour's protocol version (`rstp-port-mcheck`).
    pub mcheck: bool,
    /// The protection against foreign bridges.
    pub guards: TreeGuards,
}

/// The protection of a port against bridges that do not belong to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeGuards {
    /// BPDU guard: the port is shut down by the first BPDU that it receives.
    pub bpdu: bool,
    /// Time after which a port that BPDU guard shut down is opened again, in seconds; it stays shut
    /// if absent.
    pub recovery_seconds: Option<u32>,
    /// Root guard: the port is never the root port, and is blocked while it receives superior BPDUs
    /// (`restrictedRole`, IEEE 802.1Q-2014, 13.27.64).
    pub root: bool,
}

impl SpanningTreeConfig {
    /// Returns the recommended values of the standards, without ports.
    #[must_use]
    pub const fn new(protocol: SpanningTreeProtocol) -> Self {
        Self {
            protocol,
            force_stp: false,
            address: None,
            priority: 0x8000,
            hello_time: 2,
            max_age: 20,
            forward_delay: 15,
            transmit_hold_count: 6,
            ports: BTreeMap::new(),
        }
    }
}

impl SpanningTreePort {
    /// Returns the recommended values of the standards for a port.
    #[must_use]
    pub const fn new(name: String, number: u16) -> Self {
        Self {
            name,
            number,
            priority: 0x80,
            path_cost: None,
            admin_edge: false,
            auto_edge: true,
            mcheck: false,
            guards: TreeGuards {
                bpdu: false,
                recovery_seconds: None,
                root: false,
            },
        }
    }
}
