//! The configuration of `NORMAL`: bonds, VLANs, ageing, multicast snooping
//! (ovs-vswitchd.conf.db(5), the tables `Port` and `Bridge`).
//!
//! Ports are identified by their numbers, which are final when this configuration is built.

use std::time::Duration;

use base::PortNo;

use super::bond::BondConfig;
use super::vlan::{PortVlans, VlanLimit, VlanSet};

/// Default ageing time of stations, as in Open vSwitch and 802.1D.
pub const AGEING_TIME: Duration = Duration::from_secs(300);

/// Default size of the forwarding database, as in Open vSwitch.
pub const FDB_SIZE: usize = 8192;

/// Default number of multicast groups, as in Open vSwitch.
const GROUPS_MAX: usize = 2048;

/// The configuration of `NORMAL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchingConfig {
    /// Ports with settings other than the default (a single interface that carries all VLANs), in
    /// the order of their names.
    pub ports: Vec<LogicalPort>,
    /// VLANs without learning, in which every frame is flooded (`flood_vlans`).
    pub flood_vlans: VlanSet,
    /// Maximum number of learned stations (`other_config:mac-table-size`).
    pub fdb_size: usize,
    /// Ageing time of stations (`other_config:mac-aging-time`).
    pub ageing: Duration,
    /// Forwards frames to the reserved bridge addresses (`other_config:forward-bpdu`).
    pub forward_bpdu: bool,
    /// Number of VLAN tags that `NORMAL` parses (`Open_vSwitch`, `other_config:vlan-limit`).
    pub vlan_limit: VlanLimit,
    /// Multicast snooping, if enabled (`mcast_snooping_enable`).
    pub snooping: Option<SnoopingConfig>,
}

/// The configuration of multicast snooping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnoopingConfig {
    /// Maximum number of groups (`other_config:mcast-snooping-table-size`).
    pub groups_max: usize,
    /// Ageing time of memberships (`other_config:mcast-snooping-aging-time`).
    pub ageing: Duration,
    /// Floods frames of groups without members
    /// (`other_config:mcast-snooping-disable-flood-unregistered` disables it).
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

/// Multicast settings of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MulticastPort {
    /// The port receives the frames of all groups (`other_config:mcast-snooping-flood`).
    pub flood: bool,
    /// The port receives all membership reports (`other_config:mcast-snooping-flood-reports`).
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

/// A logical port: a row of the table `Port`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogicalPort {
    /// The name.
    pub name: String,
    /// The numbers of its interfaces, in order.
    pub members: Vec<PortNo>,
    /// The VLANs.
    pub vlans: PortVlans,
    /// The port does not forward to other protected ports.
    pub is_protected: bool,
    /// The bond settings of a port with several interfaces.
    pub bond: Option<BondConfig>,
    /// The multicast settings.
    pub multicast: MulticastPort,
}

impl LogicalPort {
    /// Returns whether all settings are the default.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.members.len() < 2
            && self.bond.is_none()
            && self.vlans.is_plain()
            && !self.is_protected
            && self.multicast == MulticastPort::default()
    }
}
