//! A port as the user writes it: `eth1`, `eth2=7`, `tap:vm1=3`.

use std::fmt;
use std::str::FromStr;

use base::PortNo;
use serde::Deserialize;

use super::ConfigError;

/// What lies behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// An interface that exists already, by `AF_PACKET`.
    Interface,
    /// A TAP interface that the switch makes and takes away again.
    Tap,
}

/// One port of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PortSpec {
    /// What lies behind it.
    pub kind: PortKind,
    /// The interface's name.
    pub name: String,
    /// The number that the user asked for.
    pub number: Option<PortNo>,
}

/// The highest number a user may give: what OpenFlow 1.0 can say.
const NUMBER_MAX: u32 = PortNo::MAX_V10.0 - 1;

impl FromStr for PortSpec {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let (kind, rest) = match text.split_once(':') {
            None => (PortKind::Interface, text),
            Some(("tap", rest)) => (PortKind::Tap, rest),
            Some((other, _)) => {
                let problem = format!(
                    "'{other}:' is no kind of port: use INTERFACE[=NUMBER] or tap:NAME[=NUMBER]"
                );
                return Err(ConfigError::new("--port", problem));
            }
        };
        let (name, number) = match rest.split_once('=') {
            None => (rest, None),
            Some((name, number)) => (name, Some(parse_number(text, number)?)),
        };
        super::check_name("--port", name)?;
        Ok(Self {
            kind,
            name: name.to_owned(),
            number,
        })
    }
}

fn parse_number(text: &str, number: &str) -> Result<PortNo, ConfigError> {
    number
        .parse()
        .ok()
        .filter(|number| (1..=NUMBER_MAX).contains(number))
        .map(PortNo)
        .ok_or_else(|| {
            let problem = format!(
                "'{text}': '{number}' is not a port number: use 1 to {NUMBER_MAX}, as in eth1=7"
            );
            ConfigError::new("--port", problem)
        })
}

impl TryFrom<String> for PortSpec {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == PortKind::Tap {
            f.write_str("tap:")?;
        }
        f.write_str(&self.name)?;
        self.number.map_or(Ok(()), |number| write!(f, "={number}"))
    }
}

/// Gives every port its number: the one asked for, or else the lowest from 1
/// that nobody asked for, in the user's order. The same list always gets the
/// same numbers, so they outlive a restart.
///
/// # Errors
/// A number is asked for twice, or there are more ports than numbers.
pub fn number_ports(ports: &[PortSpec]) -> Result<Vec<PortNo>, ConfigError> {
    let mut taken = std::collections::BTreeSet::new();
    for number in ports.iter().filter_map(|port| port.number) {
        if !taken.insert(number) {
            let problem = format!("number {number} is asked for twice: give each port its own");
            return Err(ConfigError::new("--port", problem));
        }
    }
    let mut free = (1..=NUMBER_MAX)
        .map(PortNo)
        .filter(|number| !taken.contains(number));
    ports
        .iter()
        .map(|port| port.number.or_else(|| free.next()))
        .collect::<Option<_>>()
        .ok_or_else(|| {
            ConfigError::new(
                "--port",
                format!("a bridge has {NUMBER_MAX} port numbers at most"),
            )
        })
}
