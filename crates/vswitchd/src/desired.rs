//! What the rows of the database ask for: a configuration, and what of it cannot be, with
//! the reason. A pure function of the rows, and of the numbers that ports have already.
//!
//! What is asked for and not honoured is never left out in silence: an interface that
//! would forward what it must not is refused, with the reason; one that only lacks something
//! is opened and says what it lacks.

mod bond;
mod bridge;
mod controller;
mod equipment;
mod exporters;
mod interface;
pub(super) mod mirrors;
mod numbers;
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
use config::{Config, ControllerTarget, ListenAddress, PortKind, Tls};

/// How often statistics are written when nobody says otherwise, and the most often
/// (ovs-vswitchd.conf.db(5), `other_config:stats-update-interval`).
const STATISTICS_INTERVAL: Duration = Duration::from_secs(5);

/// Keys of `other_config` of the row above all that something comes of.
const HEEDED: [&str; 4] = [
    "enable-statistics",
    "flow-restore-wait",
    "stats-update-interval",
    "vlan-limit",
];

/// What the database asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Desired {
    /// The configuration. Every port has its number.
    pub(crate) config: Config,
    /// The number that the database gave to all this.
    pub(crate) next_cfg: Option<i64>,
    /// What becomes of each bridge.
    pub(crate) bridges: BTreeMap<Uuid, BridgeFate>,
    /// The bridge and the name of each port.
    pub(crate) ports: BTreeMap<Uuid, (String, String)>,
    /// What becomes of each interface.
    pub(crate) interfaces: BTreeMap<Uuid, InterfaceFate>,
    /// What becomes of each controller.
    pub(crate) controllers: BTreeMap<Uuid, ControllerFate>,
    /// The mirrors that are there, each with its bridge.
    pub(crate) mirrors: BTreeMap<Uuid, String>,
    /// How often statistics are written.
    pub(crate) statistics_interval: Duration,
    /// Whether they tell of the host, too.
    pub(crate) tells_of_host: bool,
    /// Keys of `other_config` of the row above all that nothing comes of: it has no column to
    /// say so.
    pub(crate) unheeded: BTreeSet<String>,
}

impl Default for Desired {
    fn default() -> Self {
        Self {
            config: Config::default(),
            next_cfg: None,
            bridges: BTreeMap::new(),
            ports: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            controllers: BTreeMap::new(),
            mirrors: BTreeMap::new(),
            statistics_interval: STATISTICS_INTERVAL,
            tells_of_host: false,
            unheeded: BTreeSet::new(),
        }
    }
}

/// What becomes of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BridgeFate {
    /// Its name.
    pub(crate) name: String,
    /// Why it is not made at all.
    pub(crate) refused: Option<String>,
    /// What of it is not honoured, by column, and why.
    pub(crate) notes: BTreeMap<String, String>,
}

/// What becomes of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InterfaceFate {
    /// It is a port.
    Port {
        /// Of this bridge.
        bridge: String,
        /// With this number.
        number: PortNo,
        /// What of it is not honoured, and why.
        notes: Vec<String>,
    },
    /// It is none, and why.
    Refused(String),
}

impl Desired {
    /// Nothing is asked for; what `current` has from the command line stays.
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

/// What becomes of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControllerFate {
    /// Its bridge.
    pub(crate) bridge: String,
    /// How it is met, or why it is not.
    pub(crate) place: Result<Place, String>,
    /// What of it is not honoured, and why.
    pub(crate) notes: Vec<String>,
}

/// How a controller is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The bridge goes there.
    Target(ControllerTarget),
    /// The bridge waits there.
    Listen(ListenAddress),
}

/// Names that are taken: an interface is a port of one bridge, once.
struct Claims<'a> {
    names: BTreeSet<&'a str>,
    rows: BTreeSet<Uuid>,
}

impl<'a> Claims<'a> {
    /// Takes an interface and the name of its device.
    ///
    /// # Errors
    /// Another has it.
    fn claim(&mut self, uuid: Uuid, name: &'a str) -> Result<(), String> {
        let free = self.rows.insert(uuid) & self.names.insert(name);
        let taken = || format!("{name}: an interface belongs to one bridge, once");
        free.then_some(()).ok_or_else(taken)
    }
}

/// What the rows ask for. Ports that `current` has keep their numbers.
pub(crate) fn desire(database: &Database, current: &Config) -> Desired {
    let mut desired = Desired::nothing(current);
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
    let unheeded = keys.filter(|key| !HEEDED.contains(key));
    desired.unheeded = unheeded.map(str::to_owned).collect();
    let told = root.map("other_config").get("enable-statistics").copied();
    desired.tells_of_host = told == Some("true");
    let wait = root.map("other_config").get("flow-restore-wait").copied();
    desired.config.flow_restore_wait = wait == Some("true");
    desired.config.tls = root.named_by(database, "ssl", "SSL").next().map(secrets);
    let mut rows: Vec<_> = root.named_by(database, "bridges", "Bridge").collect();
    rows.sort_by_key(|row| (row.text("name"), row.uuid));
    let mut claims = Claims {
        // The interface of each bridge comes first: no port may have its name.
        names: rows.iter().filter_map(|row| row.text("name")).collect(),
        rows: BTreeSet::new(),
    };
    for row in rows {
        read_bridge(database, row, current, &mut claims, &mut desired);
    }
    for bridge in &mut desired.config.bridges {
        bridge.switching.vlan_limit = switching::read_vlan_limit(root);
    }
    tunnel::refuse_twins(&mut desired);
    note_unpaired(&mut desired);
    desired
}

/// A row of the table `SSL`.
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

/// Says of patch ports why they are joined with nothing, where they are.
fn note_unpaired(desired: &mut Desired) {
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
    let said: BTreeMap<(&str, Option<PortNo>), String> = desired
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
    for fate in desired.interfaces.values_mut() {
        if let InterfaceFate::Port {
            bridge,
            number,
            notes,
        } = fate
        {
            notes.extend(said.get(&(bridge.as_str(), Some(*number))).cloned());
        }
    }
}

/// A row by its name, for those that are to be looked at in a lasting order.
fn by_name(mut rows: Vec<Record<'_>>) -> Vec<Record<'_>> {
    rows.sort_by_key(|row| (row.text("name"), row.uuid));
    rows
}
