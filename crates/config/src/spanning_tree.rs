//! The spanning tree of a bridge, and its ports in it (ovs-vswitchd.conf.db(5), the tables
//! `Bridge` and `Port`, "Spanning Tree").
//!
//! Ports are named by their numbers, which are settled where the configuration is made.

use std::collections::BTreeMap;

use base::PortNo;
use packet::MacAddr;

/// Which tree it is, as the database tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanningTreeProtocol {
    /// That of 802.1D-1998.
    Stp,
    /// That of 802.1D-2004.
    Rstp,
}

/// The spanning tree of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTreeConfig {
    /// Which.
    pub protocol: SpanningTreeProtocol,
    /// Whether the newer one is to speak as the older one (`rstp-force-protocol-version`).
    pub force_stp: bool,
    /// The address that the bridge is known by; its own, if there is none.
    pub address: Option<MacAddr>,
    /// How little it should be the root.
    pub priority: u16,
    /// How often it says something, in seconds.
    pub hello_time: u16,
    /// How long what it said lives, in seconds.
    pub max_age: u16,
    /// How long ports wait before they forward, in seconds.
    pub forward_delay: u16,
    /// How many messages a port sends in a second.
    pub transmit_hold_count: u32,
    /// The ports that take part.
    pub ports: BTreeMap<PortNo, SpanningTreePort>,
}

/// A port of a spanning tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTreePort {
    /// Its name: that of the row of the table `Port`.
    pub name: String,
    /// Its number in the tree.
    pub number: u16,
    /// How little it should be the way to the root.
    pub priority: u8,
    /// What a way through it costs; what its speed says, if that is not said.
    pub path_cost: Option<u32>,
    /// Whether a host is behind it.
    pub admin_edge: bool,
    /// Whether a host is taken to be behind it where no bridge speaks.
    pub auto_edge: bool,
    /// Whether it is to find out anew which protocol its neighbour speaks (`rstp-port-mcheck`).
    pub mcheck: bool,
}

impl SpanningTreeConfig {
    /// What the standards recommend, without ports.
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
    /// What the standards recommend of a port.
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
        }
    }
}
