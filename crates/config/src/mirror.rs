//! Mirrors of a bridge: the selection of frames and the output of their copies
//! (ovs-vswitchd.conf.db(5), the table `Mirror`).
//!
//! Ports are identified by their numbers, which are final when this configuration is built.

use base::PortNo;

use super::vlan::VlanSet;

/// Maximum number of mirrors of a bridge, as in Open vSwitch.
pub const MIRRORS_MAX: usize = 32;

/// A mirror of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorConfig {
    /// The identity of the mirror across changes.
    pub key: String,
    /// Selects all frames, received and sent by any port.
    pub all: bool,
    /// Ports of which received frames are selected.
    pub ingress_ports: Vec<PortNo>,
    /// Ports of which sent frames are selected.
    pub egress_ports: Vec<PortNo>,
    /// The selected VLANs; `None` for all.
    pub vlans: Option<VlanSet>,
    /// The output of the copies.
    pub output: MirrorOutput,
    /// The maximum length of a copy, in bytes; `None` for the whole frame.
    pub snaplen: Option<u16>,
}

/// The output of copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorOutput {
    /// A port that is reserved for the mirror; the first of its interfaces that may send is used.
    Port(Vec<PortNo>),
    /// All ports that carry this VLAN, with its tag.
    Vlan(u16),
}
