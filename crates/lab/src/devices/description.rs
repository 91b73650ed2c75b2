//! A switch that its user has, as a file describes it:
//!
//! ```toml
//! brand = "Acme"
//! model = "Edge 24"
//! firmware = "1.2.3"
//! price = 499.0
//! currency = "USD"
//! port_count = 24
//! ports = ["enp3s0f0", "mynamespace:enp3s0f1"]  # cards that lead to its ports 1 and 2
//! offloads = true               # cards sum and cut frames by themselves
//!
//! [controller]
//! listen = "192.0.2.1:6653"     # where the switch calls
//! namespace = "management"      # the namespace of that address, if it is another
//!
//! [snmp]
//! agent = "192.0.2.10:161"
//! community = "public"
//! interfaces = ["1", "2"]       # what the agent calls the ports
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

use super::strict::{self, BadDescription, Known};

const KNOWN: Known = Known {
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
            Known {
                keys: &["listen", "namespace"],
                tables: &[],
            },
        ),
        (
            "snmp",
            Known {
                keys: &["agent", "community", "interfaces", "namespace"],
                tables: &[],
            },
        ),
        (
            "modes",
            Known {
                keys: &["openflow", "legacy"],
                tables: &[],
            },
        ),
    ],
};

/// The longest community: what fits a request of SNMP beside everything else.
const COMMUNITY_MAX: usize = 255;

/// The file as it is written.
#[derive(Debug, Deserialize)]
struct Written {
    brand: String,
    model: String,
    firmware: Option<String>,
    price: Option<f64>,
    currency: Option<String>,
    port_count: Option<u32>,
    ports: Vec<String>,
    offloads: Option<bool>,
    controller: Option<WrittenController>,
    snmp: Option<WrittenAgent>,
    #[serde(default)]
    modes: WrittenModes,
}

#[derive(Debug, Deserialize)]
struct WrittenController {
    listen: SocketAddr,
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WrittenAgent {
    agent: SocketAddr,
    community: String,
    #[serde(default)]
    interfaces: Vec<String>,
    namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct WrittenModes {
    openflow: Option<Vec<String>>,
    legacy: Option<Vec<String>>,
}

/// Where the switch calls its controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The address.
    pub listen: SocketAddr,
    /// The file of the namespace that has it; the lab's own, if there is none.
    pub namespace: Option<PathBuf>,
}

/// Where the switch answers SNMP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The address.
    pub address: SocketAddr,
    /// The community that may read.
    pub community: String,
    /// What it calls its ports, in the order of the lab's.
    pub interfaces: Vec<String>,
    /// The file of the namespace from which it can be asked; the lab's own, if there is none.
    pub namespace: Option<PathBuf>,
}

/// A switch that its user has.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What reports tell of it.
    pub inventory: InventoryRecord,
    /// What a bench must know.
    pub external: External,
    /// Where it calls; it has no mode `openflow`, if nowhere.
    pub controller: Option<Callee>,
    /// Where it answers SNMP, if it does.
    pub snmp: Option<Agent>,
}

impl Description {
    /// Reads the text of `file`.
    ///
    /// # Errors
    /// It is no TOML, it says what is not known, or what makes no sense.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BadDescription> {
        let bad = |problem: String| BadDescription::new(file, problem);
        let written: Written = strict::parse(text, file, KNOWN)?;
        let ports = ports(&written.ports).map_err(bad)?;
        if written.price.is_some() != written.currency.is_some() {
            return Err(bad("price and currency go together".to_owned()));
        }
        if written
            .price
            .is_some_and(|price| !price.is_finite() || price < 0.0)
        {
            return Err(bad("price: a number from 0 on is wanted".to_owned()));
        }
        if let Some(agent) = written.snmp.as_ref() {
            check_agent(agent, ports.len()).map_err(bad)?;
        }
        let command = |name: &str, words: Option<Vec<String>>| match words {
            Some(words) if words.is_empty() => Err(bad(format!(
                "modes.{name}: a program and its arguments are wanted"
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
            controller: written.controller.map(|written| Callee {
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

    /// The modes it can be in, the usual one first.
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
        return Err(format!("ports: {count} cards cannot be: 2 to {HOSTS_MAX}"));
    }
    let mut ports: Vec<NicName> = Vec::new();
    for text in written {
        let port: NicName = text.parse().map_err(|bad| format!("ports: {bad}"))?;
        if ports.contains(&port) {
            return Err(format!("ports: '{text}' is there twice"));
        }
        ports.push(port);
    }
    Ok(ports)
}

fn check_agent(agent: &WrittenAgent, ports: usize) -> Result<(), String> {
    let (named, most) = (agent.interfaces.len(), COMMUNITY_MAX);
    if agent.community.is_empty() || agent.community.len() > most {
        return Err(format!("snmp.community: 1 to {most} bytes are wanted"));
    }
    if named > 0 && named != ports {
        return Err(format!(
            "snmp.interfaces: {named} names, and there are {ports} ports"
        ));
    }
    Ok(())
}

/// The file of a namespace by its name, or by its path.
fn namespace(name: Option<String>) -> Option<PathBuf> {
    name.map(|name| Path::new("/run/netns").join(name))
}

#[cfg(test)]
mod tests;
