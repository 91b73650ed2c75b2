//! How things are, as the control thread tells it.

use std::collections::BTreeMap;

use base::{DatapathId, PortNo};
use flow::{PortStats, Role};
use packet::MacAddr;
use ports::Status;

use config::{Listen, TreeProtocol};
use l2::spanning::{BridgeId, Info, PortId, Priority};

/// How all bridges are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Those that are there.
    pub(crate) bridges: BTreeMap<String, BridgeFacts>,
    /// Those that could not be made, and why.
    pub(crate) failed: BTreeMap<String, String>,
    /// What the host has and uses, if that is wanted.
    pub(crate) host: BTreeMap<String, String>,
    /// What system it is, and which version of it, if it says.
    pub(crate) system: (Option<String>, Option<String>),
}

/// How one bridge is.
#[derive(Clone, Debug)]
pub(crate) struct BridgeFacts {
    /// Its datapath id.
    pub(crate) datapath_id: DatapathId,
    /// Its ports.
    pub(crate) ports: BTreeMap<PortNo, PortFacts>,
    /// What its mirrors have copied, by their keys: frames and bytes.
    pub(crate) mirrors: BTreeMap<String, (u64, u64)>,
    /// The controllers that it goes to, by where they are met.
    pub(crate) controllers: BTreeMap<String, ControllerFacts>,
    /// Its spanning tree, if it has one.
    pub(crate) tree: Option<TreeFacts>,
    /// Where it was to wait for controllers and could not, and why.
    pub(crate) not_listening: BTreeMap<Listen, String>,
    /// The address of the active member of each bond that has one, by the names of their ports.
    pub(crate) active_members: BTreeMap<String, MacAddr>,
}

/// How the spanning tree of a bridge is.
#[derive(Clone, Debug)]
pub(crate) struct TreeFacts {
    /// Which it is.
    pub(crate) protocol: TreeProtocol,
    /// The bridge.
    pub(crate) id: BridgeId,
    /// What is known of the root.
    pub(crate) root: Priority,
    /// The port towards it; none if the bridge is it.
    pub(crate) root_port: Option<PortId>,
    /// Its ports, by name, and for how many seconds they have been in it.
    pub(crate) ports: BTreeMap<String, (Info, u64)>,
}

/// How one port is.
#[derive(Clone, Debug)]
pub(crate) struct PortFacts {
    /// How its device is; why it is not open, otherwise.
    pub(crate) device: Result<Status, String>,
    /// What it was to be given and could not be, and why.
    pub(crate) complaint: Option<String>,
    /// How often something came to its other end, or went.
    pub(crate) link_resets: u64,
    /// What it has counted.
    pub(crate) statistics: Option<PortStats>,
    /// Whether it has heard its partner, if it speaks LACP.
    pub(crate) lacp_current: Option<bool>,
}

/// How a controller is.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControllerFacts {
    /// Its role, while it is connected.
    pub(crate) role: Option<Role>,
    /// Seconds since it came, if it ever did.
    pub(crate) since_connect: Option<u64>,
    /// Seconds since it went, if it ever did.
    pub(crate) since_disconnect: Option<u64>,
    /// Why it is not there, or was not the last time.
    pub(crate) last_error: Option<String>,
}
