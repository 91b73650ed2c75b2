//! What a bridge's ordinary switching (`NORMAL`) is told beside its ports: which interfaces
//! are one logical port, in which VLANs, and how many stations are remembered how long
//! (ovs-vswitchd.conf.db(5), the tables `Port` and `Bridge`).
//!
//! Ports are named by their numbers, which are settled where the configuration is made.

use std::time::Duration;

use base::PortNo;

use super::bond::BondConfig;
use super::vlan::{PortVlans, VlanLimit, VlanSet};

/// How long a silent station is remembered, as for Open vSwitch and 802.1D.
pub const AGEING_TIME: Duration = Duration::from_secs(300);

/// Stations remembered by a bridge: Open vSwitch's default.
pub const FDB_SIZE: usize = 8192;

/// Multicast groups remembered by a bridge: Open vSwitch's default.
const GROUPS_MAX: usize = 2048;

/// What a bridge's ordinary switching is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchingConfig {
    /// Ports of which more is to be said than that they are one interface that carries every
    /// VLAN; in the order of their names.
    pub ports: Vec<LogicalPort>,
    /// VLANs in which no station is learned, and so every frame is flooded (`flood_vlans`).
    pub flood_vlans: VlanSet,
    /// How many stations are remembered (`other_config:mac-table-size`).
    pub fdb_size: usize,
    /// How long one that is silent is remembered (`other_config:mac-aging-time`).
    pub ageing: Duration,
    /// Whether frames that are for bridges go on (`other_config:forward-bpdu`).
    pub forward_bpdu: bool,
    /// How many tags of a frame are looked at (`Open_vSwitch`, `other_config:vlan-limit`).
    pub vlan_limit: VlanLimit,
    /// How the bridge listens in to who wants which groups' frames, if it does
    /// (`mcast_snooping_enable`).
    pub snooping: Option<SnoopingConfig>,
}

/// How a bridge listens in to who wants which multicast groups' frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnoopingConfig {
    /// How many groups are remembered (`other_config:mcast-snooping-table-size`).
    pub groups_max: usize,
    /// How long a member that is silent is remembered (`other_config:mcast-snooping-aging-time`).
    pub ageing: Duration,
    /// Whether frames of groups that nobody is in go to all
    /// (`other_config:mcast-snooping-disable-flood-unregistered` says no).
    pub flood_unregistered: bool,
}

impl Default for SnoopingConfig {
    fn default() -> Self {
        Self {
            groups_max: GROUPS_MAX,
            ageing: AGEING_TIME,
            flood_unregistered: true,
        }
    }
}

/// What leaves by a port of a bridge that listens in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MulticastPort {
    /// All groups' frames, whoever has joined them (`other_config:mcast-snooping-flood`).
    pub flood: bool,
    /// What hosts say of groups (`other_config:mcast-snooping-flood-reports`).
    pub flood_reports: bool,
}

impl Default for SwitchingConfig {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            flood_vlans: VlanSet::none(),
            fdb_size: FDB_SIZE,
            ageing: AGEING_TIME,
            forward_bpdu: false,
            vlan_limit: VlanLimit::One,
            snooping: None,
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
    /// How its interfaces carry its frames together, if they are several.
    pub bond: Option<BondConfig>,
    /// What of multicast leaves by it.
    pub multicast: MulticastPort,
}

impl LogicalPort {
    /// Whether nothing need be said of it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.members.len() < 2
            && self.bond.is_none()
            && self.vlans.is_plain()
            && !self.is_protected
            && self.multicast == MulticastPort::default()
    }
}
