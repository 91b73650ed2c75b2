//! The desired configuration: bridges, their ports, controllers and sockets, as a plain value. The
//! command line, the TOML file and the database all produce it, and every string is parsed here
//! into a type that cannot hold an invalid value.
//!
//! The crate holds values only: it opens and starts nothing. [`reconcile`] computes the steps from
//! one value to the next.

mod affinity;
mod auxiliary;
mod bond;
mod controller;
mod datapath;
mod dummy;
mod error;
mod exporters;
mod fail_mode;
mod in_band;
mod interface;
mod mirror;
mod monitoring;
mod numbering;
mod pmd;
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
use std::time::Duration;

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
pub use datapath::{DatapathConfig, ZoneConfig};
pub use dummy::DummyMode;
pub use error::ConfigError;
pub use exporters::parse_collector;
pub use exporters::{
    CollectorSet, Exporters, IpfixCache, IpfixConfig, NetflowConfig, NetflowSettings, SflowConfig,
};
pub use fail_mode::FailMode;
pub use in_band::InBandSettings;
pub use interface::{EgressLimit, IngressLimit, InterfaceConfig, PolicerRate, qdisc_name};
pub use mirror::{MIRRORS_MAX, MirrorConfig, MirrorOutput};
pub use monitoring::{BfdConfig, CcmVlan, CfmConfig, LldpConfig, MonitoringConfig};
pub use numbering::PortNumbering;
pub use pmd::{AutoBalance, CpuMask, DummyCores, PMD_KEYS, PmdConfig, RxqAffinity, RxqAlgorithm};
pub use policing::{ControllerRate, Policing};
pub use policing::{PacketInRate, PacketRate};
pub use port::{PORT_NUMBER_MAX, parse_peer};
pub use port::{PortKind, PortSpec, number_ports};
pub use remote::DatabaseRemote;
pub use spanning_tree::{SpanningTreeConfig, SpanningTreePort, SpanningTreeProtocol, TreeGuards};
pub use switching::{AGEING_TIME, FDB_SIZE};
pub use switching::{LogicalPort, MulticastPort, SnoopingConfig, SwitchingConfig};
pub use table::TableConfig;
pub use target::{ControllerTarget, ListenAddress};
pub use tls::Tls;
pub use tunnel::{
    ErspanConfig, ErspanOption, OuterField, PacketTypeMode, TunnelConfig, TunnelEndpoint,
    TunnelKey, TunnelType,
};
pub use vlan::{PortVlans, PriorityTags, TagType, VID_MAX, VlanLimit, VlanMode, VlanSet};

/// Maximum length of the name of a Linux interface, and so of a bridge, in bytes.
pub const NAME_LEN_MAX: usize = 15;

/// Maximum length of the name of a port without a system interface, in bytes. Some managers join
/// two other names and more to one.
pub const PORT_NAME_LEN_MAX: usize = 255;

/// The default time without a message after which a bundle expires, as in Open vSwitch.
pub const BUNDLE_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The source of the Ethernet address of a bridge's `LOCAL` interface, from which the default
/// datapath id follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BridgeAddress {
    /// The lowest address of the ports, or one derived from the name of a bridge without ports.
    #[default]
    Ports,
    /// A configured address, or one that the database gives.
    Given(MacAddr),
}

/// The configuration of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BridgeConfig {
    /// The name of the bridge and of its `LOCAL` interface.
    pub name: String,
    /// The ports, in the user's order.
    #[serde(default)]
    pub ports: Vec<PortSpec>,
    /// The chosen and released numbers of ports.
    #[serde(skip)]
    pub numbering: PortNumbering,
    /// The controllers to which the bridge connects.
    #[serde(default)]
    pub controllers: Vec<ControllerConfig>,
    /// Addresses on which the bridge accepts controllers and tools, in addition to its management
    /// socket.
    #[serde(default)]
    pub listen: Vec<ListenAddress>,
    /// The behaviour without a controller.
    #[serde(default)]
    pub fail_mode: FailMode,
    /// The datapath id; derived from the Ethernet address if absent.
    #[serde(default, deserialize_with = "datapath_id_from_text")]
    pub datapath_id: Option<DatapathId>,
    /// The `LOCAL` interface is a dummy port.
    #[serde(skip)]
    pub is_dummy: bool,
    /// The source of the address of the `LOCAL` interface.
    #[serde(skip)]
    pub address: BridgeAddress,
    /// The OpenFlow versions; all versions by default.
    #[serde(default = "all_versions", deserialize_with = "protocols_from_list")]
    pub protocols: VersionSet,
    /// Number of auxiliary connections to each controller.
    #[serde(default)]
    pub auxiliary: AuxiliaryCount,
    /// Settings of interfaces, by name; other interfaces remain unchanged.
    #[serde(skip)]
    pub interfaces: BTreeMap<String, InterfaceConfig>,
    /// Settings of tables.
    #[serde(skip)]
    pub tables: BTreeMap<TableId, TableConfig>,
    /// Limits of tables that may hold fewer rules than the maximum.
    #[serde(default)]
    pub flow_limits: Vec<FlowLimit>,
    /// Limit of the packet-ins of each port.
    #[serde(default)]
    pub packet_in_rate: PacketInRate,
    /// Limit of the packet-ins to each controller, in frames per second; no limit if absent.
    #[serde(default)]
    pub controller_rate_limit: Option<u32>,
    /// Burst of the packet-ins to each controller, in frames; those of a quarter of a second if
    /// absent.
    #[serde(default)]
    pub controller_burst_limit: Option<u32>,
    /// The workers that receive from a port; all workers for other ports.
    #[serde(default)]
    pub affinity: Vec<Affinity>,
    /// The configuration of `NORMAL`.
    #[serde(skip)]
    pub switching: SwitchingConfig,
    /// The mirrors.
    #[serde(skip)]
    pub mirrors: Vec<MirrorConfig>,
    /// The spanning tree, if enabled.
    #[serde(skip)]
    pub spanning: Option<SpanningTreeConfig>,
    /// Flow export and its collectors.
    #[serde(skip)]
    pub exporters: Exporters,
    /// In-band control: traffic that passes regardless of the rules.
    #[serde(skip)]
    pub in_band: InBandSettings,
}

/// The maximum number of rules in a table: `TABLE=RULES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FlowLimit {
    /// The table.
    pub table: TableId,
    /// The maximum number of rules.
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
                "'{text}' is not a table limit: use TABLE=RULES with a table from 0 to {}, as in 0=1000",
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
    /// Returns a bridge of this name with default settings.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ports: Vec::new(),
            numbering: PortNumbering::default(),
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

    /// Returns the limits of packet-ins. The configuration must have passed [`Config::check`].
    pub fn policing(&self) -> Policing {
        Policing {
            port: self.packet_in_rate.rate(),
            controller: self.controller_rate().ok().flatten(),
        }
    }

    /// Checks that each port exists and is named once, and that workers run on the cores, if these
    /// are known: without `--cores` the switch chooses the last core when it starts.
    fn check_affinity(&self, cores: &[usize]) -> Result<(), ConfigError> {
        let invalid = |problem| Err(ConfigError::new("--affinity", problem));
        let mut named = BTreeSet::new();
        for affinity in &self.affinity {
            let name = &affinity.port;
            if !self.ports.iter().any(|port| port.name == *name) {
                return invalid(format!("'{affinity}': {} has no port {name}", self.name));
            }
            if !named.insert(name) {
                return invalid(format!("'{affinity}': the port is named twice"));
            }
            let unknown = affinity.cores.iter().find(|core| !cores.contains(core));
            if let (Some(core), false) = (unknown, cores.is_empty()) {
                return invalid(format!(
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

/// The configuration of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The directory of the sockets; `OVS_RUNDIR` or Open vSwitch's default if absent.
    #[serde(default)]
    pub rundir: Option<PathBuf>,
    /// The cores of the workers, one worker each; the last core if empty.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Keys and certificates for TLS.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Rules are still to be restored: until then the switch forwards no frames and connects to no
    /// controller. The flag has an effect at the start only.
    #[serde(skip)]
    pub flow_restore_wait: bool,
    /// The time without a message after which a bundle expires; [`BUNDLE_IDLE_TIMEOUT`] if absent.
    #[serde(skip)]
    pub bundle_idle_timeout: Option<Duration>,
    /// The interfaces of the database that become dummy ports.
    #[serde(skip)]
    pub dummies: DummyMode,
    /// The PMD threads of dummies.
    #[serde(skip)]
    pub pmd: PmdConfig,
    /// Settings of datapaths, by type.
    #[serde(skip)]
    pub datapaths: BTreeMap<String, DatapathConfig>,
    /// The directory for sockets of the database's controllers; any directory if absent.
    #[serde(skip)]
    pub unix_socket_dir: Option<PathBuf>,
    /// The bridges.
    #[serde(default, rename = "bridge")]
    pub bridges: Vec<BridgeConfig>,
}

impl Config {
    /// Parses the TOML form.
    ///
    /// # Errors
    /// The text is not TOML, or does not have this structure; the error names the place.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config = Self::parse(text)?;
        config.check()?;
        Ok(config)
    }

    fn parse(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::new("--config", error.to_string()))
    }

    /// Reads a file in the TOML form.
    ///
    /// # Errors
    /// The file cannot be read, or as for [`Config::from_toml`].
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let problem = format!("cannot read {}: {error}", path.display());
            ConfigError::new("--config", problem)
        })?;
        let config = Self::parse(&text)?;
        if config.bridges.is_empty() {
            let problem = format!(
                "{} has no bridge: add [[bridge]] with name = \"br0\" and its ports",
                path.display()
            );
            return Err(ConfigError::new("--config", problem));
        }
        config.check()?;
        Ok(config)
    }

    /// Checks the consistency of several options: duplicate names and numbers.
    ///
    /// # Errors
    /// The error names the option at fault and the correct form.
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
        format!("'{name}' is not an interface name: spaces, slashes and colons are not allowed")
    } else {
        return Ok(());
    };
    Err(ConfigError::new(option, problem))
}

/// Checks the name of a port without a system interface, which may be longer
/// (ovs-vswitchd.conf.db(5), `Interface:name`).
pub(crate) fn check_inner_name(option: &str, name: &str) -> Result<(), ConfigError> {
    let legal = |c: char| c.is_ascii_graphic() && c != '/';
    let problem = if name.is_empty() {
        "a port needs a name"
    } else if name.len() > PORT_NAME_LEN_MAX {
        "the name is too long for a port"
    } else if !name.chars().all(legal) {
        "spaces and slashes are not allowed in a port's name"
    } else {
        return Ok(());
    };
    Err(ConfigError::new(option, format!("'{name}': {problem}")))
}

/// Parses a datapath id: sixteen hexadecimal digits, or up to sixteen after `0x`.
///
/// # Errors
/// The text has another form, or is zero.
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

/// Parses comma-separated version names, in the notation of `ovs-vsctl`.
///
/// # Errors
/// The list is empty, or a name is not a version.
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
