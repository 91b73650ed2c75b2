//! The state of the bridges, as the control thread reports it.

use std::collections::BTreeMap;

use base::{DatapathId, PortNo};
use flow::{PortStats, Role};
use packet::MacAddr;
use ports::Status;

use config::{ListenAddress, SpanningTreeProtocol};
use l2::spanning_tree::{PriorityVector, TreeBridgeId, TreePortId, TreePortInfo};

/// How all bridges are.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Those that are there.
    pub bridges: BTreeMap<String, BridgeFacts>,
    /// Those that could not be made, and why.
    pub failed: BTreeMap<String, String>,
}

/// How one bridge is.
#[derive(Clone, Debug)]
pub struct BridgeFacts {
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// Its ports.
    pub ports: BTreeMap<PortNo, PortFacts>,
    /// What its mirrors have copied, by their keys: frames and bytes.
    pub mirrors: BTreeMap<String, (u64, u64)>,
    /// The controllers that it goes to, by where they are met.
    pub controllers: BTreeMap<String, ControllerFacts>,
    /// Its spanning tree, if it has one.
    pub tree: Option<TreeFacts>,
    /// Where it was to wait for controllers and could not, and why.
    pub not_listening: BTreeMap<ListenAddress, String>,
    /// The address of the active member of each bond that has one, by the names of their ports.
    pub active_members: BTreeMap<String, MacAddr>,
}

/// How the spanning tree of a bridge is.
#[derive(Clone, Debug)]
pub struct TreeFacts {
    /// Which it is.
    pub protocol: SpanningTreeProtocol,
    /// The bridge.
    pub id: TreeBridgeId,
    /// What is known of the root.
    pub root: PriorityVector,
    /// The port towards it; none if the bridge is it.
    pub root_port: Option<TreePortId>,
    /// Its ports, by name, and for how many seconds they have been in it.
    pub ports: BTreeMap<String, (TreePortInfo, u64)>,
}

/// How one port is.
#[derive(Clone, Debug)]
pub struct PortFacts {
    /// How its device is; why it is not open, otherwise.
    pub device: Result<Status, String>,
    /// What it was to be given and could not be, and why.
    pub complaint: Option<String>,
    /// How often something came to its other end, or went.
    pub link_resets: u64,
    /// What it has counted.
    pub statistics: Option<PortStats>,
    /// Whether it has heard its partner, if it speaks LACP.
    pub lacp_current: Option<bool>,
}

/// How a controller is.
#[derive(Clone, Debug, Default)]
pub struct ControllerFacts {
    /// Its role, while it is connected.
    pub role: Option<Role>,
    /// Seconds since it came, if it ever did.
    pub since_connect: Option<u64>,
    /// Seconds since it went, if it ever did.
    pub since_disconnect: Option<u64>,
    /// Why it is not there, or was not the last time.
    pub last_error: Option<String>,
}
