//! What of a bridge's frames is copied, and where to (ovs-vswitchd.conf.db(5), the table `MirrorConfig`).
//!
//! Ports are named by their numbers, which are settled where the configuration is made.

use base::PortNo;

use super::vlan::VlanSet;

/// How many mirrors a bridge may have: Open vSwitch's bound.
pub const MIRRORS_MAX: usize = 32;

/// One mirror of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorConfig {
    /// By what it is known while it changes.
    pub key: String,
    /// Whether it takes what comes and goes by any port.
    pub all: bool,
    /// The ports of which it takes what comes in.
    pub ingress_ports: Vec<PortNo>,
    /// The ports of which it takes what leaves.
    pub egress_ports: Vec<PortNo>,
    /// The VLANs of which it takes frames; none for all.
    pub vlans: Option<VlanSet>,
    /// Where the copies go.
    pub output: MirrorOutput,
    /// The most bytes of a copy; none if each is whole.
    pub snaplen: Option<u16>,
}

/// Where copies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorOutput {
    /// Out of a port, by the first of its interfaces that may send. It is the mirror's alone.
    Port(Vec<PortNo>),
    /// Out of all ports that carry this VLAN, with its tag.
    Vlan(u16),
}
