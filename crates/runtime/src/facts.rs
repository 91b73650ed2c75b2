//! The state of the bridges, as the control thread reports it.

use std::collections::BTreeMap;

use base::{DatapathId, PortNo};
use flow::{PortStats, Role};
use packet::MacAddr;
use ports::Status;

use config::{ListenAddress, SpanningTreeProtocol};
use l2::bfd::BfdStatus;
use l2::cfm::CfmStatus;
use l2::spanning_tree::{PriorityVector, TreeBridgeId, TreePortId, TreePortInfo};

/// The state of all bridges.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The bridges, by name.
    pub bridges: BTreeMap<String, BridgeFacts>,
    /// Bridges that could not be created, with the reason.
    pub failed: BTreeMap<String, String>,
    /// The capabilities of a datapath, by name (ovs-vswitchd.conf.db(5), `Datapath:capabilities`).
    pub capabilities: BTreeMap<String, String>,
}

/// The state of one bridge.
#[derive(Clone, Debug)]
pub struct BridgeFacts {
    /// The datapath id.
    pub datapath_id: DatapathId,
    /// The ports.
    pub ports: BTreeMap<PortNo, PortFacts>,
    /// Frames and bytes that each mirror has copied, by its key.
    pub mirrors: BTreeMap<String, (u64, u64)>,
    /// The controllers that the bridge connects to, by URI.
    pub controllers: BTreeMap<String, ControllerFacts>,
    /// The spanning tree, if enabled.
    pub tree: Option<TreeFacts>,
    /// Listeners that could not be opened, with the reason.
    pub not_listening: BTreeMap<ListenAddress, String>,
    /// The MAC address of the active member of each bond that has one, by port name.
    pub active_members: BTreeMap<String, MacAddr>,
}

/// The state of the spanning tree of a bridge.
#[derive(Clone, Debug)]
pub struct TreeFacts {
    /// STP or RSTP.
    pub protocol: SpanningTreeProtocol,
    /// The bridge identifier.
    pub id: TreeBridgeId,
    /// The root priority vector.
    pub root: PriorityVector,
    /// The root port; none if the bridge is the root.
    pub root_port: Option<TreePortId>,
    /// The ports by name, and for how many seconds each has been part of the tree.
    pub ports: BTreeMap<String, (TreePortInfo, u64)>,
}

/// The state of one port.
#[derive(Clone, Debug)]
pub struct PortFacts {
    /// The device's status, or the reason why it is not open.
    pub device: Result<Status, String>,
    /// The reason why a setting of the port could not be applied.
    pub complaint: Option<String>,
    /// Number of changes of the carrier.
    pub link_resets: u64,
    /// The port's counters.
    pub statistics: Option<PortStats>,
    /// The further counters of a dummy, which has only frames and bytes beside them.
    pub custom: Option<Vec<(String, u64)>>,
    /// True if LACP state is current; none if the port does not use LACP.
    pub lacp_current: Option<bool>,
    /// The BFD session, if the port has one.
    pub bfd: Option<BfdStatus>,
    /// The CFM maintenance point, if the port has one.
    pub cfm: Option<CfmStatus>,
}

/// The state of a controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerFacts {
    /// The role, while connected.
    pub role: Option<Role>,
    /// Seconds since the last connect, if any.
    pub since_connect: Option<u64>,
    /// Seconds since the last disconnect, if any.
    pub since_disconnect: Option<u64>,
    /// The reason for the last failure of the connection.
    pub last_error: Option<String>,
}
