//! Description file of an external switch:
//!
//! ```toml
//! brand = "Acme"
//! model = "Edge 24"
//! firmware = "1.2.3"
//! price = 499.0
//! currency = "USD"
//! port_count = 24
//! ports = ["enp3s0f0", "mynamespace:enp3s0f1"]  # network cards connected to its ports 1 and 2
//! offloads = true               # checksum and segmentation offloads of these cards
//!
//! [controller]
//! listen = "192.0.2.1:6653"     # address of the controller
//! namespace = "management"      # namespace of that address, if it is another
//!
//! [snmp]
//! agent = "192.0.2.10:161"
//! community = "public"
//! interfaces = ["1", "2"]       # the agent's names of the ports
//!
//! [modes]
//! openflow = ["./set-mode", "openflow"]
//! legacy = ["./set-mode", "legacy"]
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use record::InventoryRecord;
use serde::Deserialize;
use testbed::{External, HOSTS_MAX, Mode, NicName};

use super::strict::{self, BadDescription, KnownKeys};

const KNOWN: KnownKeys = KnownKeys {
    keys: &[
        "brand",
        "model",
        "firmware",
        "price",
        "currency",
        "port_count",
        "ports",
        "offloads",
    ],
    tables: &[
        (
            "controller",
            KnownKeys {
                keys: &["listen", "namespace"],
                tables: &[],
            },
        ),
        (
            "snmp",
            KnownKeys {
                keys: &["agent", "community", "interfaces", "namespace"],
                tables: &[],
            },
        ),
        (
            "modes",
            KnownKeys {
                keys: &["openflow", "legacy"],
                tables: &[],
            },
        ),
    ],
};

/// Greatest length of a community: it fits an SNMP request beside everything else.
const COMMUNITY_MAX: usize = 255;

/// File as it is written.
#[derive(Debug, Deserialize)]
struct DescriptionFile {
    brand: String,
    model: String,
    firmware: Option<String>,
    price: Option<f64>,
    currency: Option<String>,
    port_count: Option<u32>,
    ports: Vec<String>,
    offloads: Option<bool>,
    controller: Option<ControllerTable>,
    snmp: Option<AgentTable>,
    #[serde(default)]
    modes: ModesTable,
}

#[derive(Debug, Deserialize)]
struct ControllerTable {
    listen: SocketAddr,
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
struct AgentTable {
    agent: SocketAddr,
    community: String,
    #[serde(default)]
    interfaces: Vec<String>,
    namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ModesTable {
    openflow: Option<Vec<String>>,
    legacy: Option<Vec<String>>,
}

/// Address of the controller for the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerBinding {
    /// Address.
    pub listen: SocketAddr,
    /// File of the namespace with the address; the lab's own if `None`.
    pub namespace: Option<PathBuf>,
}

/// SNMP agent of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Address.
    pub address: SocketAddr,
    /// Community with read access.
    pub community: String,
    /// Agent's names of the ports, in the order of the lab's.
    pub interfaces: Vec<String>,
    /// File of the namespace that reaches the agent; the lab's own if `None`.
    pub namespace: Option<PathBuf>,
}

/// Description of an external switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Inventory data for reports.
    pub inventory: InventoryRecord,
    /// Settings for a bench.
    pub external: External,
    /// Controller; without one the switch has no mode `openflow`.
    pub controller: Option<ControllerBinding>,
    /// SNMP agent, if there is one.
    pub snmp: Option<Agent>,
}

impl Description {
    /// Parses the text of `file`.
    ///
    /// # Errors
    /// The text is not TOML, or has unknown keys or invalid values.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BadDescription> {
        let bad = |problem: String| BadDescription::new(file, problem);
        let written: DescriptionFile = strict::parse(text, file, KNOWN)?;
        let ports = ports(&written.ports).map_err(bad)?;
        if written.price.is_some() != written.currency.is_some() {
            return Err(bad("price and currency require each other".to_owned()));
        }
        if written
            .price
            .is_some_and(|price| !price.is_finite() || price < 0.0)
        {
            return Err(bad("price: expected a number, 0 or greater".to_owned()));
        }
        if let Some(agent) = written.snmp.as_ref() {
            check_agent(agent, ports.len()).map_err(bad)?;
        }
        let command = |name: &str, words: Option<Vec<String>>| match words {
            Some(words) if words.is_empty() => Err(bad(format!(
                "modes.{name}: expected a program and its arguments"
            ))),
            words => Ok(words.unwrap_or_default()),
        };
        let inventory = InventoryRecord {
            brand: written.brand,
            model: written.model,
            firmware: written.firmware,
            price: written.price,
            currency: written.currency,
            ports: written.port_count,
        };
        Ok(Self {
            external: External {
                version: inventory.to_string(),
                ports,
                offloads: written.offloads.unwrap_or(true),
                to_openflow: command("openflow", written.modes.openflow)?,
                to_legacy: command("legacy", written.modes.legacy)?,
            },
            inventory,
            controller: written.controller.map(|written| ControllerBinding {
                listen: written.listen,
                namespace: namespace(written.namespace),
            }),
            snmp: written.snmp.map(|written| Agent {
                address: written.agent,
                community: written.community,
                interfaces: written.interfaces,
                namespace: namespace(written.namespace),
            }),
        })
    }

    /// Returns the modes of the switch, the default first.
    #[must_use]
    pub const fn modes(&self) -> &'static [Mode] {
        match self.controller {
            Some(_) => &Mode::ALL,
            None => &[Mode::Legacy],
        }
    }
}

fn ports(written: &[String]) -> Result<Vec<NicName>, String> {
    if !(2..=HOSTS_MAX).contains(&written.len()) {
        let count = written.len();
        return Err(format!(
            "ports: {count} network cards: expected 2 to {HOSTS_MAX}"
        ));
    }
    let mut ports: Vec<NicName> = Vec::new();
    for text in written {
        let port: NicName = text.parse().map_err(|bad| format!("ports: {bad}"))?;
        if ports.contains(&port) {
            return Err(format!("ports: '{text}' is listed twice"));
        }
        ports.push(port);
    }
    Ok(ports)
}

fn check_agent(agent: &AgentTable, ports: usize) -> Result<(), String> {
    let (named, most) = (agent.interfaces.len(), COMMUNITY_MAX);
    if agent.community.is_empty() || agent.community.len() > most {
        return Err(format!("snmp.community: expected 1 to {most} bytes"));
    }
    if named > 0 && named != ports {
        return Err(format!("snmp.interfaces: {named} names for {ports} ports"));
    }
    Ok(())
}

/// Returns the file of a namespace from its name or path.
fn namespace(name: Option<String>) -> Option<PathBuf> {
    name.map(|name| Path::new("/run/netns").join(name))
}

#[cfg(test)]
mod tests;
