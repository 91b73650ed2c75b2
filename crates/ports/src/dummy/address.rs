//! The connection of a dummy to another one: `stream` (active) and `pstream` (passive) of Open
//! vSwitch's `netdev-dummy`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a stream socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAddress {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

/// The connection of a dummy, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DummyConnection {
    /// The dummy connects to the address: `unix:PATH` or `tcp:IP:PORT`.
    Active(StreamAddress),
    /// The dummy accepts connections at the address: `punix:PATH` or `ptcp:PORT[:IP]`.
    Passive(StreamAddress),
}

/// The text of a connection is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use unix:PATH or tcp:IP:PORT to connect, punix:PATH or ptcp:PORT[:IP] to accept")]
pub struct BadConnection;

impl FromStr for DummyConnection {
    type Err = BadConnection;

    fn from_str(text: &str) -> Result<Self, BadConnection> {
        let (scheme, rest) = text.split_once(':').ok_or(BadConnection)?;
        if rest.is_empty() {
            return Err(BadConnection);
        }
        match scheme {
            "unix" => Ok(Self::Active(StreamAddress::Unix(rest.into()))),
            "punix" => Ok(Self::Passive(StreamAddress::Unix(rest.into()))),
            "tcp" => {
                let address = rest.parse().map_err(|_| BadConnection)?;
                Ok(Self::Active(StreamAddress::Tcp(address)))
            }
            "ptcp" => {
                let (port, host) = match rest.split_once(':') {
                    Some((port, host)) => (port, parse_host(host)?),
                    None => (rest, Ipv4Addr::UNSPECIFIED.into()),
                };
                let port = port.parse().map_err(|_| BadConnection)?;
                let address = SocketAddr::new(host, port);
                Ok(Self::Passive(StreamAddress::Tcp(address)))
            }
            _ => Err(BadConnection),
        }
    }
}

/// Parses an IP address; IPv6 may be in brackets.
fn parse_host(text: &str) -> Result<IpAddr, BadConnection> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inner.unwrap_or(text).parse().map_err(|_| BadConnection)
}

impl fmt::Display for DummyConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active(StreamAddress::Unix(path)) => write!(f, "unix:{}", path.display()),
            Self::Active(StreamAddress::Tcp(address)) => write!(f, "tcp:{address}"),
            Self::Passive(StreamAddress::Unix(path)) => write!(f, "punix:{}", path.display()),
            Self::Passive(StreamAddress::Tcp(address)) if address.is_ipv6() => {
                write!(f, "ptcp:{}:[{}]", address.port(), address.ip())
            }
            Self::Passive(StreamAddress::Tcp(address)) => {
                write!(f, "ptcp:{}:{}", address.port(), address.ip())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_text_is_parsed_and_printed() {
        let same = [
            "unix:/tmp/p1.sock",
            "punix:/tmp/p1.sock",
            "tcp:127.0.0.1:99",
            "tcp:[::1]:99",
            "ptcp:99:127.0.0.1",
            "ptcp:99:[::1]",
        ];
        for text in same {
            let parsed: DummyConnection = text.parse().expect(text);
            assert_eq!(parsed.to_string(), text);
        }
        let any: DummyConnection = "ptcp:99".parse().expect("no host");
        assert_eq!(any.to_string(), "ptcp:99:0.0.0.0");
        for text in [
            "",
            "unix",
            "unix:",
            "tcp:localhost:1",
            "tcp:1.2.3.4",
            "ssl:a",
            "ptcp:x",
        ] {
            assert_eq!(
                text.parse::<DummyConnection>(),
                Err(BadConnection),
                "{text}"
            );
        }
    }
}
