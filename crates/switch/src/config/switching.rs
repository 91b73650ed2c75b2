//! What a bridge's ordinary switching (`NORMAL`) is told beside its ports: which interfaces
//! are one logical port, in which VLANs, and how many stations are remembered how long
//! (ovs-vswitchd.conf.db(5), the tables `Port` and `Bridge`).
//!
//! Ports are named by their numbers, which are settled where the configuration is made.

use std::time::Duration;

use base::PortNo;

use super::vlan::{PortVlans, VlanSet};

/// How long a silent station is remembered, as for Open vSwitch and 802.1D.
pub(crate) const AGEING: Duration = Duration::from_secs(300);

/// Stations remembered by a bridge: Open vSwitch's default.
pub(crate) const STATIONS_MAX: usize = 8192;

/// What a bridge's ordinary switching is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switching {
    /// Ports of which more is to be said than that they are one interface that carries every
    /// VLAN; in the order of their names.
    pub ports: Vec<LogicalPort>,
    /// VLANs in which no station is learned, and so every frame is flooded (`flood_vlans`).
    pub flood_vlans: VlanSet,
    /// How many stations are remembered (`other_config:mac-table-size`).
    pub stations_max: usize,
    /// How long one that is silent is remembered (`other_config:mac-aging-time`).
    pub ageing: Duration,
    /// Whether frames that are for bridges go on (`other_config:forward-bpdu`).
    pub forward_bpdu: bool,
}

impl Default for Switching {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            flood_vlans: VlanSet::none(),
            stations_max: STATIONS_MAX,
            ageing: AGEING,
            forward_bpdu: false,
        }
    }
}

/// What a switch knows as one port: a row of the table `Port`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogicalPort {
    /// Its name.
    pub name: String,
    /// The interfaces behind it, by number, in order.
    pub members: Vec<PortNo>,
    /// Its VLANs.
    pub vlans: PortVlans,
    /// Whether frames do not go from it to another that is protected, too.
    pub is_protected: bool,
}

impl LogicalPort {
    /// Whether nothing need be said of it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.members.len() < 2 && self.vlans.is_plain() && !self.is_protected
    }
}
