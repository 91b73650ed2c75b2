//! Addresses of controllers: `tcp:`, `ssl:` and `unix:` connect, `ptcp:`, `pssl:` and `punix:`
//! listen, in the notation of Open vSwitch.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;

/// The IANA port of OpenFlow.
const OPENFLOW_PORT: u16 = 6653;

/// A controller to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum ControllerTarget {
    /// Over TCP; the host is an address or a name.
    Tcp {
        /// Address or name, without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// Over TLS.
    Ssl {
        /// Address or name, without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// Over a Unix socket.
    Unix(PathBuf),
}

/// A socket to listen on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum ListenAddress {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over TLS.
    Ssl(SocketAddr),
    /// Over a Unix socket.
    Unix(PathBuf),
}

impl FromStr for ControllerTarget {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        const SYNTAX: &str =
            "use tcp:HOST[:PORT] or ssl:HOST[:PORT], as in tcp:127.0.0.1:6653, or unix:PATH";
        let invalid = |problem: &str| {
            ConfigError::new("--controller", format!("'{text}' {problem}: {SYNTAX}"))
        };
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| invalid("is not a controller address"))?;
        match scheme {
            "tcp" | "ssl" => {
                let (host, port) = split_host(rest, OPENFLOW_PORT)
                    .ok_or_else(|| invalid("has no usable host and port"))?;
                Ok(match scheme {
                    "ssl" => Self::Ssl { host, port },
                    _ => Self::Tcp { host, port },
                })
            }
            "unix" if !rest.is_empty() => Ok(Self::Unix(rest.into())),
            "ptcp" | "punix" | "pssl" => {
                let problem = format!("'{text}' listens for controllers: use --listen {text}");
                Err(ConfigError::new("--controller", problem))
            }
            _ => Err(invalid("is not a controller address")),
        }
    }
}

/// Splits `HOST[:PORT]`; the host may be in brackets.
pub(super) fn split_host(text: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text
            .find(':')
            .map_or((text, ""), |colon| text.split_at(colon)),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        None => return None,
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
    };
    // The resolver decides about names, later.
    let legal = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '[' | ']');
    (!host.is_empty() && host.chars().all(legal)).then(|| (host.to_owned(), port))
}

impl FromStr for ListenAddress {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        const SYNTAX: &str =
            "use ptcp:[PORT][:ADDRESS] or pssl:[PORT][:ADDRESS], as in ptcp:6654, or punix:PATH";
        let invalid = || {
            ConfigError::new(
                "--listen",
                format!("'{text}' is not a listening address: {SYNTAX}"),
            )
        };
        let (scheme, rest) = text.split_once(':').ok_or_else(invalid)?;
        match scheme {
            "ptcp" => listen_address(rest).map(Self::Tcp).ok_or_else(invalid),
            "pssl" => listen_address(rest).map(Self::Ssl).ok_or_else(invalid),
            "punix" if !rest.is_empty() => Ok(Self::Unix(rest.into())),
            "tcp" | "ssl" | "unix" => {
                let problem = format!("'{text}' connects to a controller: use --controller {text}");
                Err(ConfigError::new("--listen", problem))
            }
            _ => Err(invalid()),
        }
    }
}

/// Parses `[PORT][:ADDRESS]`. With port 0 the system chooses.
fn listen_address(text: &str) -> Option<SocketAddr> {
    let (port, address) = text.split_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() {
        OPENFLOW_PORT
    } else {
        port.parse().ok()?
    };
    let address = address
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(address);
    let address = if address.is_empty() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        address.parse().ok()?
    };
    Some(SocketAddr::new(address, port))
}

impl TryFrom<String> for ControllerTarget {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl ControllerTarget {
    /// Returns whether the connection uses TLS.
    #[must_use]
    pub const fn is_secured(&self) -> bool {
        matches!(self, Self::Ssl { .. })
    }
}

impl fmt::Display for ControllerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => format_host(f, "tcp", host, *port),
            Self::Ssl { host, port } => format_host(f, "ssl", host, *port),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Formats a TCP address, with brackets around a host that contains colons.
pub(super) fn format_host(
    f: &mut fmt::Formatter<'_>,
    scheme: &str,
    host: &str,
    port: u16,
) -> fmt::Result {
    match host.contains(':') {
        true => write!(f, "{scheme}:[{host}]:{port}"),
        false => write!(f, "{scheme}:{host}:{port}"),
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, address) = match self {
            Self::Tcp(address) => ("ptcp", address),
            Self::Ssl(address) => ("pssl", address),
            Self::Unix(path) => return write!(f, "punix:{}", path.display()),
        };
        match address.is_ipv6() {
            true => write!(f, "{scheme}:{}:[{}]", address.port(), address.ip()),
            false => write!(f, "{scheme}:{}:{}", address.port(), address.ip()),
        }
    }
}
