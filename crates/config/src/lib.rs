//! What the operator wants: bridges, their ports, controllers and sockets, as a
//! plain value. The command line and the TOML file both end here, and every
//! string is parsed at this edge into a type that cannot be wrong.
//!
//! A value only: nothing is opened and nothing is started here. How one value
//! is turned into the next is [`reconcile`]'s business.

mod affinity;
mod auxiliary;
mod bond;
mod controller;
mod dummy;
mod exporters;
mod in_band;
mod interface;
mod mirror;
mod policing;
mod port;
pub mod reconcile;
mod remote;
mod spanning_tree;
mod switching;
mod table;
mod target;
mod tls;
mod tunnel;
mod vlan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base::{DatapathId, TableId};
use openflow::VersionSet;
use packet::MacAddr;
use serde::Deserialize;

pub use affinity::Affinity;
pub use affinity::parse_cores;
pub use auxiliary::AuxiliaryCount;
pub use bond::{
    BondConfig, BondMemberConfig, BondMode, LacpActivity, LacpConfig, LacpMemberConfig,
};
pub use controller::{ControllerConfig, ControllerOptions};
pub use dummy::DummyMode;
pub use exporters::parse_collector;
pub use exporters::{
    CollectorSet, Exporters, IpfixCache, IpfixConfig, NetflowConfig, NetflowSettings, SflowConfig,
};
pub use in_band::InBandSettings;
pub use interface::{EgressLimit, IngressLimit, InterfaceConfig, PolicerRate, qdisc_name};
pub use mirror::{MIRRORS_MAX, MirrorConfig, MirrorOutput};
pub use policing::{ControllerRate, Policing};
pub use policing::{PacketInRate, PacketRate};
pub use port::{PORT_NUMBER_MAX, parse_peer};
pub use port::{PortKind, PortSpec, number_ports};
pub use remote::DatabaseRemote;
pub use spanning_tree::{SpanningTreeConfig, SpanningTreePort, SpanningTreeProtocol};
pub use switching::{AGEING_TIME, FDB_SIZE};
pub use switching::{LogicalPort, MulticastPort, SnoopingConfig, SwitchingConfig};
pub use table::TableConfig;
pub use target::{ControllerTarget, ListenAddress};
pub use tls::Tls;
pub use tunnel::TYPES as TUNNEL_TYPES;
pub use tunnel::{OuterField, TunnelConfig, TunnelEndpoint, TunnelKey};
pub use vlan::{PortVlans, PriorityTags, TagType, VID_MAX, VlanLimit, VlanMode, VlanSet};

/// Longest name of a Linux interface, and so of a bridge, in bytes.
pub const NAME_LEN_MAX: usize = 15;

/// Longest name of a port that is no interface of the system, in bytes: some managers make
/// them of two other names and more.
pub const PORT_NAME_LEN_MAX: usize = 255;

/// What is wrong with a configuration, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {problem}")]
pub struct ConfigError {
    /// The option or key at fault, as the user wrote it.
    pub option: String,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

impl ConfigError {
    /// An error about `option`.
    pub fn new(option: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            option: option.into(),
            problem: problem.into(),
        }
    }
}

/// What a bridge does while no controller is connected (OF 1.3.5, 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailMode {
    /// It forwards as an ordinary learning switch.
    #[default]
    Standalone,
    /// It does what its rules say and nothing else.
    Secure,
}

impl std::fmt::Display for FailMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Standalone => "standalone",
            Self::Secure => "secure",
        })
    }
}

impl std::str::FromStr for FailMode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "standalone" => Ok(Self::Standalone),
            "secure" => Ok(Self::Secure),
            _ => Err(ConfigError::new(
                "--fail-mode",
                format!("'{text}' is not a fail mode: use standalone or secure"),
            )),
        }
    }
}

/// What Ethernet address a bridge's own interface has, and so what datapath id the
/// bridge has, if nobody gives it another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BridgeAddress {
    /// The lowest of its ports', or one made from its name if it has none.
    #[default]
    Ports,
    /// One made from the machine's and its own name: the same whatever ports it has.
    Name,
    /// This one.
    Given(MacAddr),
}

/// One bridge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BridgeConfig {
    /// Its name, which is also that of its `LOCAL` interface.
    pub name: String,
    /// Its ports, in the user's order.
    #[serde(default)]
    pub ports: Vec<PortSpec>,
    /// Controllers it connects to.
    #[serde(default)]
    pub controllers: Vec<ControllerConfig>,
    /// Where it listens for controllers and tools, beside its management socket.
    #[serde(default)]
    pub listen: Vec<ListenAddress>,
    /// What it does without a controller.
    #[serde(default)]
    pub fail_mode: FailMode,
    /// Its datapath id; derived from its Ethernet addresses if absent.
    #[serde(default, deserialize_with = "datapath_id_from_text")]
    pub datapath_id: Option<DatapathId>,
    /// Whether its own interface is a dummy.
    #[serde(skip)]
    pub is_dummy: bool,
    /// Its own interface's address.
    #[serde(skip)]
    pub address: BridgeAddress,
    /// The versions of OpenFlow it speaks; all, if nobody says otherwise.
    #[serde(default = "all_versions", deserialize_with = "protocols_from_list")]
    pub protocols: VersionSet,
    /// How many connections it has to each controller beside the main one.
    #[serde(default)]
    pub auxiliary: AuxiliaryCount,
    /// What interfaces are given beside, by their names; nothing, those that are not named.
    #[serde(skip)]
    pub interfaces: BTreeMap<String, InterfaceConfig>,
    /// What is said of tables.
    #[serde(skip)]
    pub tables: BTreeMap<TableId, TableConfig>,
    /// Tables that may have fewer rules than others.
    #[serde(default)]
    pub flow_limits: Vec<FlowLimit>,
    /// How many frames of each port go to controllers.
    #[serde(default)]
    pub packet_in_rate: PacketInRate,
    /// How many frames a second go to each controller; as many as there are, if absent.
    #[serde(default)]
    pub controller_rate_limit: Option<u32>,
    /// How many of them at once after a pause; a quarter of a second's, if absent.
    #[serde(default)]
    pub controller_burst_limit: Option<u32>,
    /// Which workers take the frames of a port; all, of ports that are not named.
    #[serde(default)]
    pub affinity: Vec<Affinity>,
    /// What its ordinary switching is to do.
    #[serde(skip)]
    pub switching: SwitchingConfig,
    /// What of its frames is copied, and where to.
    #[serde(skip)]
    pub mirrors: Vec<MirrorConfig>,
    /// Its spanning tree, if it has one.
    #[serde(skip)]
    pub spanning: Option<SpanningTreeConfig>,
    /// What it tells of its frames, and to whom.
    #[serde(skip)]
    pub exporters: Exporters,
    /// What passes through it whatever rules say.
    #[serde(skip)]
    pub in_band: InBandSettings,
}

/// How many rules a table may have: `TABLE=RULES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FlowLimit {
    /// The table.
    pub table: TableId,
    /// The most rules.
    pub rules: usize,
}

impl std::str::FromStr for FlowLimit {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let parsed = text.split_once('=').and_then(|(table, rules)| {
            let table = TableId(table.parse().ok()?);
            let rules = rules.parse().ok()?;
            (table <= TableId::LAST).then_some(Self { table, rules })
        });
        parsed.ok_or_else(|| {
            let problem = format!(
                "'{text}' is no limit of a table: use TABLE=RULES with a table from 0 to {}, as in 0=1000",
                TableId::LAST
            );
            ConfigError::new("--flow-limit", problem)
        })
    }
}

impl TryFrom<String> for FlowLimit {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl BridgeConfig {
    /// A bridge of this name without anything else.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ports: Vec::new(),
            controllers: Vec::new(),
            listen: Vec::new(),
            fail_mode: FailMode::default(),
            datapath_id: None,
            is_dummy: false,
            address: BridgeAddress::default(),
            protocols: VersionSet::ALL,
            auxiliary: AuxiliaryCount::default(),
            interfaces: BTreeMap::new(),
            tables: BTreeMap::new(),
            flow_limits: Vec::new(),
            packet_in_rate: PacketInRate::default(),
            controller_rate_limit: None,
            controller_burst_limit: None,
            affinity: Vec::new(),
            switching: SwitchingConfig::default(),
            mirrors: Vec::new(),
            spanning: None,
            exporters: Exporters::default(),
            in_band: InBandSettings::default(),
        }
    }

    /// How many frames may go to controllers. The configuration was checked.
    pub fn policing(&self) -> Policing {
        Policing {
            port: self.packet_in_rate.rate(),
            controller: self.controller_rate().ok().flatten(),
        }
    }

    /// Each port is there, and named once; the cores are workers', as far as that can be
    /// told: without `--cores` the last core is chosen when the switch starts.
    fn check_affinity(&self, cores: &[usize]) -> Result<(), ConfigError> {
        let wrong = |problem| Err(ConfigError::new("--affinity", problem));
        let mut named = BTreeSet::new();
        for affinity in &self.affinity {
            let name = &affinity.port;
            if !self.ports.iter().any(|port| port.name == *name) {
                return wrong(format!("'{affinity}': {} has no port {name}", self.name));
            }
            if !named.insert(name) {
                return wrong(format!("'{affinity}': the port is named twice"));
            }
            let strange = affinity.cores.iter().find(|core| !cores.contains(core));
            if let (Some(core), false) = (strange, cores.is_empty()) {
                return wrong(format!(
                    "'{affinity}': no worker runs on core {core}: add it to --cores"
                ));
            }
        }
        Ok(())
    }

    fn controller_rate(&self) -> Result<Option<PacketRate>, ConfigError> {
        let (limit, burst) = (self.controller_rate_limit, self.controller_burst_limit);
        ControllerRate { limit, burst }.rate()
    }
}

/// All that one process is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Where sockets are made; `OVS_RUNDIR` or Open vSwitch's if absent.
    #[serde(default)]
    pub rundir: Option<PathBuf>,
    /// The cores that workers run on, one worker each; the last core if empty.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// What peers are shown that it speaks TLS with.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Whether rules are still to be restored: until they are, no frame is forwarded and no
    /// controller is gone to. It has a meaning at the start only.
    #[serde(skip)]
    pub flow_restore_wait: bool,
    /// Which interfaces of the database's are dummies.
    #[serde(skip)]
    pub dummies: DummyMode,
    /// The directory that sockets of the database's controllers must be in, if in any.
    #[serde(skip)]
    pub unix_socket_dir: Option<PathBuf>,
    /// The bridges.
    #[serde(default, rename = "bridge")]
    pub bridges: Vec<BridgeConfig>,
}

impl Config {
    /// Reads the TOML form.
    ///
    /// # Errors
    /// The text is not TOML, or not of this shape; the error names the place.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)
            .map_err(|error| ConfigError::new("--config", error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// Reads a file with the TOML form.
    ///
    /// # Errors
    /// It cannot be read, or as for [`Config::from_toml`].
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let problem = format!("cannot read {}: {error}", path.display());
            ConfigError::new("--config", problem)
        })?;
        Self::from_toml(&text)
    }

    /// Checks what no single option can: names and numbers that clash.
    ///
    /// # Errors
    /// Names the option at fault and what would be right.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.bridges.is_empty() {
            return Err(ConfigError::new(
                "--bridge",
                "give at least one bridge, as in --bridge br0",
            ));
        }
        let mut names = BTreeSet::new();
        for bridge in &self.bridges {
            check_name("--bridge", &bridge.name)?;
            claim(&mut names, "--bridge", &bridge.name)?;
            for port in &bridge.ports {
                port.kind.check_name("--port", &port.name)?;
                claim(&mut names, "--port", &port.name)?;
            }
            number_ports(&bridge.ports)?;
            bridge.controller_rate()?;
            bridge.check_affinity(&self.cores)?;
        }
        let distinct: BTreeSet<_> = self.cores.iter().collect();
        if distinct.len() != self.cores.len() {
            return Err(ConfigError::new(
                "--cores",
                "a core is given twice: give each core once",
            ));
        }
        Ok(())
    }
}

fn claim<'a>(
    names: &mut BTreeSet<&'a str>,
    option: &str,
    name: &'a str,
) -> Result<(), ConfigError> {
    if names.insert(name) {
        return Ok(());
    }
    let problem = format!("'{name}' is used twice: an interface belongs to one bridge, once");
    Err(ConfigError::new(option, problem))
}

/// Checks the name of a Linux interface. `option` is the option that the error names.
///
/// # Errors
/// The name is empty, too long, or contains a character that Linux refuses.
pub fn check_name(option: &str, name: &str) -> Result<(), ConfigError> {
    let legal = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    let problem = if name.is_empty() {
        "an interface needs a name".to_owned()
    } else if name.len() > NAME_LEN_MAX {
        format!("'{name}' is longer than the {NAME_LEN_MAX} bytes that Linux allows")
    } else if !name.chars().all(legal) || name == "." || name == ".." {
        format!("'{name}' is no interface name: no spaces, slashes or colons are allowed")
    } else {
        return Ok(());
    };
    Err(ConfigError::new(option, problem))
}

/// Checks the name of a port that has no interface of the system: it may be longer
/// (ovs-vswitchd.conf.db(5), `Interface:name`).
pub(crate) fn check_inner_name(option: &str, name: &str) -> Result<(), ConfigError> {
    let legal = |c: char| c.is_ascii_graphic() && c != '/';
    let problem = if name.is_empty() {
        "a port needs a name"
    } else if name.len() > PORT_NAME_LEN_MAX {
        "the name is longer than any port's"
    } else if !name.chars().all(legal) {
        "no spaces and slashes are allowed in a port's name"
    } else {
        return Ok(());
    };
    Err(ConfigError::new(option, format!("'{name}': {problem}")))
}

/// Reads a datapath id: sixteen hexadecimal digits, or fewer behind `0x`.
///
/// # Errors
/// The text is something else, or zero.
pub fn parse_datapath_id(text: &str) -> Result<DatapathId, ConfigError> {
    let digits = match text.strip_prefix("0x") {
        Some(digits) => Some(digits).filter(|digits| (1..=16).contains(&digits.len())),
        None => Some(text).filter(|digits| digits.len() == 16),
    };
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .filter(|id| *id != 0)
        .map(DatapathId)
        .ok_or_else(|| {
            let problem = format!(
                "'{text}' is not a datapath id: sixteen hexadecimal digits, not all zero, as in 0000000000000001"
            );
            ConfigError::new("--datapath-id", problem)
        })
}

/// Reads names of versions between commas, as `ovs-vsctl` writes them.
///
/// # Errors
/// There is none, or one is no version.
pub fn parse_protocols(text: &str) -> Result<VersionSet, ConfigError> {
    text.parse().map_err(|_| {
        let problem = format!(
            "'{text}' is not a list of versions: use some of OpenFlow10 to OpenFlow15, as in OpenFlow10,OpenFlow13"
        );
        ConfigError::new("--protocols", problem)
    })
}

fn all_versions() -> VersionSet {
    VersionSet::ALL
}

fn protocols_from_list<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<VersionSet, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    parse_protocols(&names.join(",")).map_err(serde::de::Error::custom)
}

fn datapath_id_from_text<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<DatapathId>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_datapath_id(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests;
