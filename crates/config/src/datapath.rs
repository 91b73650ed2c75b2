//! The configuration of a datapath: zones of connection tracking (ovs-vswitchd.conf.db(5), the
//! tables `Datapath`, `CT_Zone` and `CT_Timeout_Policy`).

use std::collections::BTreeMap;

/// A datapath. The default is an unconfigured one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatapathConfig {
    /// The zones that have a configuration.
    pub zones: BTreeMap<u16, ZoneConfig>,
    /// Limit of the connections of zones without one of their own.
    pub zone_limit: Option<u32>,
}

/// A zone of connection tracking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneConfig {
    /// Timeouts in seconds, by the name of the database's key; the default for others.
    pub timeouts: BTreeMap<String, u32>,
    /// Limit of connections.
    pub limit: Option<u32>,
}
