//! The conversion of the database's rows to a configuration, with the reason for each setting that
//! cannot be applied. A pure function of the rows and of the existing port numbers.
//!
//! No unsupported setting is ignored silently: an interface that would forward frames contrary to
//! its settings is refused with the reason; one that merely lacks a feature is opened with a note.

mod bond;
mod bridge;
mod controller;
mod datapaths;
mod dummy;
mod exporters;
mod interface;
mod known_keys;
pub(super) mod mirrors;
mod monitoring;
mod numbers;
#[cfg(test)]
mod refusal_tests;
mod settings;
mod spanning;
mod switching;
mod tables;
#[cfg(test)]
mod tests;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::PortNo;
use ovsdb::{Database, Uuid};

use super::rows::{Record, root};
use bridge::read_bridge;
use config::{Config, ControllerTarget, ListenAddress, PMD_KEYS, PmdConfig, PortKind, Tls};
use known_keys::is_meant;

/// The default and the minimum interval of statistics (ovs-vswitchd.conf.db(5),
/// `other_config:stats-update-interval`).
const STATISTICS_INTERVAL: Duration = Duration::from_secs(5);

/// The supported keys of `Open_vSwitch` `other_config`.
const SUPPORTED_KEYS: [&str; 5] = [
    "bundle-idle-timeout",
    "enable-statistics",
    "flow-restore-wait",
    "stats-update-interval",
    "vlan-limit",
];

/// The configuration in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredState {
    /// The configuration. Every port has a number.
    pub(crate) config: Config,
    /// The database's number of this configuration (`next_cfg`).
    pub(crate) next_cfg: Option<i64>,
    /// The outcome for each bridge.
    pub(crate) bridges: BTreeMap<Uuid, BridgeOutcome>,
    /// The bridge and the name of each port.
    pub(crate) ports: BTreeMap<Uuid, (String, String)>,
    /// The outcome for each interface.
    pub(crate) interfaces: BTreeMap<Uuid, InterfaceOutcome>,
    /// The outcome for each controller.
    pub(crate) controllers: BTreeMap<Uuid, ControllerOutcome>,
    /// The rows of datapaths.
    pub(crate) datapaths: BTreeSet<Uuid>,
    /// The bridge of each active mirror.
    pub(crate) mirrors: BTreeMap<Uuid, String>,
    /// The interval of statistics.
    pub(crate) statistics_interval: Duration,
    /// True if statistics of the host are enabled.
    pub(crate) reports_host: bool,
    /// Lines to log once at level WARN, about rows that are refused.
    pub(crate) warnings: BTreeSet<String>,
    /// Lines to log once at level ERR.
    pub(crate) errors: BTreeSet<String>,
    /// Unsupported keys of `Open_vSwitch` `other_config`; the table has no column to report them.
    pub(crate) unsupported: BTreeSet<String>,
}

impl Default for DesiredState {
    fn default() -> Self {
        Self {
            config: Config::default(),
            next_cfg: None,
            bridges: BTreeMap::new(),
            ports: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            controllers: BTreeMap::new(),
            datapaths: BTreeSet::new(),
            mirrors: BTreeMap::new(),
            statistics_interval: STATISTICS_INTERVAL,
            reports_host: false,
            warnings: BTreeSet::new(),
            errors: BTreeSet::new(),
            unsupported: BTreeSet::new(),
        }
    }
}

/// The reason of a refusal that only the log has, as in Open vSwitch.
const ONLY_LOGGED: &str = "";

/// The outcome for a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BridgeOutcome {
    /// The name.
    pub(crate) name: String,
    /// The reason why the bridge is not created.
    pub(crate) refused: Option<String>,
    /// The reasons for settings that are not applied, by column.
    pub(crate) notes: BTreeMap<String, String>,
}

/// The outcome for an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InterfaceOutcome {
    /// The interface is a port.
    Port {
        /// The bridge.
        bridge: String,
        /// The OpenFlow number.
        number: PortNo,
        /// The reasons for settings that are not applied.
        notes: Vec<String>,
    },
    /// The interface is no port, for this reason; empty if only the log has the reason, as in Open
    /// vSwitch.
    Refused(String),
}

impl DesiredState {
    /// Returns an empty configuration; the command-line settings of `current` stay.
    pub(crate) fn nothing(current: &Config) -> Self {
        let mut nothing = Self::default();
        nothing.config.dummies = current.dummies;
        nothing
            .config
            .unix_socket_dir
            .clone_from(&current.unix_socket_dir);
        nothing
    }
}

/// The outcome for a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControllerOutcome {
    /// The bridge.
    pub(crate) bridge: String,
    /// The target, or the reason why there is no connection.
    pub(crate) endpoint: Result<ControllerEndpoint, String>,
    /// The reasons for settings that are not applied.
    pub(crate) notes: Vec<String>,
}

/// The target of a controller row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControllerEndpoint {
    /// The bridge connects to the controller (active connection).
    Target(ControllerTarget),
    /// The bridge listens for the controller (passive connection).
    Listen(ListenAddress),
}

/// Claimed interfaces and names: an interface is a port of one bridge, once.
struct Claims<'a> {
    names: BTreeSet<&'a str>,
    rows: BTreeSet<Uuid>,
}

impl<'a> Claims<'a> {
    /// Claims an interface and the name of its device.
    ///
    /// # Errors
    /// Another port has one of them, or Open vSwitch has the name for itself.
    fn claim(&mut self, uuid: Uuid, name: &'a str) -> Result<(), String> {
        if interface::is_reserved(name) {
            return Err(ONLY_LOGGED.to_owned());
        }
        let free = self.rows.insert(uuid) & self.names.insert(name);
        let taken = || format!("{name}: an interface belongs to one port of one bridge");
        free.then_some(()).ok_or_else(taken)
    }
}

/// Converts the rows. Ports of `current` keep their numbers.
pub(crate) fn convert_rows(database: &Database, current: &Config) -> DesiredState {
    let mut desired = DesiredState::nothing(current);
    let Some(root) = root(database) else {
        return desired;
    };
    desired.next_cfg = root.integer("next_cfg");
    let interval = root
        .map("other_config")
        .get("stats-update-interval")
        .copied();
    let interval = interval.and_then(|text| text.parse().ok());
    let interval = interval.map_or(STATISTICS_INTERVAL, Duration::from_millis);
    desired.statistics_interval = interval.max(STATISTICS_INTERVAL);
    let keys = root.map("other_config").into_keys();
    let has_pmds = current.dummies.is_enabled();
    if has_pmds {
        desired.config.pmd = PmdConfig::parse(&root.map("other_config"));
    }
    let unsupported = keys.filter(|key| {
        let is_pmd_key = has_pmds && PMD_KEYS.contains(key);
        let is_key = is_meant(key, &known_keys::OPEN_VSWITCH);
        !SUPPORTED_KEYS.contains(key) && !is_pmd_key && is_key
    });
    desired.unsupported = unsupported.map(str::to_owned).collect();
    let enabled = root.map("other_config").get("enable-statistics").copied();
    desired.reports_host = enabled == Some("true");
    let wait = root.map("other_config").get("flow-restore-wait").copied();
    desired.config.flow_restore_wait = wait == Some("true");
    desired.config.bundle_idle_timeout = read_bundle_timeout(root);
    desired.config.tls = root.named_by(database, "ssl", "SSL").next().map(secrets);
    datapaths::read_datapaths(database, root, &mut desired);
    let mut rows: Vec<_> = root.named_by(database, "bridges", "Bridge").collect();
    rows.sort_by_key(|row| (row.text("name"), row.uuid));
    let mut claims = Claims {
        // The names of the bridges' own interfaces are claimed first: no port may have one.
        names: rows.iter().filter_map(|row| row.text("name")).collect(),
        rows: BTreeSet::new(),
    };
    for row in rows {
        read_bridge(database, row, current, &mut claims, &mut desired);
    }
    for bridge in &mut desired.config.bridges {
        bridge.switching.vlan_limit = switching::read_vlan_limit(root);
    }
    tunnel::refuse_duplicates(&mut desired);
    note_patches_without_peer(&mut desired);
    desired
}

/// Reads the idle timeout of bundles, in seconds; zero means the default.
fn read_bundle_timeout(root: Record<'_>) -> Option<Duration> {
    let other_config = root.map("other_config");
    let seconds = other_config.get("bundle-idle-timeout")?.parse::<u32>();
    let seconds = seconds.ok().filter(|seconds| *seconds != 0);
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Converts a row of the table `SSL`.
fn secrets(row: Record<'_>) -> Tls {
    let path = |column| row.text(column).unwrap_or_default().into();
    Tls {
        private_key: path("private_key"),
        certificate: path("certificate"),
        ca_cert: path("ca_cert"),
        bootstrap: row.is_true("bootstrap_ca_cert"),
        peer_ca_cert: None,
    }
}

/// Adds a note to each patch port without a matching peer.
fn note_patches_without_peer(desired: &mut DesiredState) {
    let peers: BTreeMap<String, Arc<str>> = desired
        .config
        .bridges
        .iter()
        .flat_map(|bridge| &bridge.ports)
        .filter_map(|port| match &port.kind {
            PortKind::Patch(peer) => Some((port.name.clone(), Arc::clone(peer))),
            _ => None,
        })
        .collect();
    let problems: BTreeMap<(&str, Option<PortNo>), String> = desired
        .config
        .bridges
        .iter()
        .flat_map(|bridge| bridge.ports.iter().map(|port| (bridge.name.as_str(), port)))
        .filter_map(|(bridge, port)| {
            let peer = peers.get(&port.name)?;
            let why = match peers.get(&**peer) {
                Some(back) if **back == *port.name => return None,
                Some(back) => format!("peer: {peer} has {back} as its own peer"),
                None => format!("peer: there is no patch port {peer}"),
            };
            Some(((bridge, port.number), why))
        })
        .collect();
    for outcome in desired.interfaces.values_mut() {
        if let InterfaceOutcome::Port {
            bridge,
            number,
            notes,
        } = outcome
        {
            notes.extend(problems.get(&(bridge.as_str(), Some(*number))).cloned());
        }
    }
}

/// Sorts rows by name, for a stable order.
fn by_name(mut rows: Vec<Record<'_>>) -> Vec<Record<'_>> {
    rows.sort_by_key(|row| (row.text("name"), row.uuid));
    rows
}
