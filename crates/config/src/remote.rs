//! The address of a database: `unix:PATH`, `tcp:HOST[:PORT]` or `ssl:HOST[:PORT]`, in the notation
//! of Open vSwitch.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::ConfigError;
use super::target::{format_host, split_host};

/// The IANA port of OVSDB (RFC 7047, 6).
const OVSDB_PORT: u16 = 6640;

/// A database to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseRemote {
    /// Over TCP.
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
    /// Over a Unix socket; a relative path is in the run directory.
    Unix(PathBuf),
}

impl FromStr for DatabaseRemote {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        const SYNTAX: &str =
            "use unix:PATH, tcp:HOST[:PORT] or ssl:HOST[:PORT], as in tcp:127.0.0.1:6640";
        let invalid =
            |problem: &str| ConfigError::new("DATABASE", format!("'{text}' {problem}: {SYNTAX}"));
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some((scheme @ ("tcp" | "ssl"), rest)) => {
                let address = split_host(rest, OVSDB_PORT);
                let (host, port) = address.ok_or_else(|| invalid("has no usable host and port"))?;
                Ok(match scheme {
                    "ssl" => Self::Ssl { host, port },
                    _ => Self::Tcp { host, port },
                })
            }
            Some(("ptcp" | "punix" | "pssl", _)) => {
                Err(invalid("listens for a database instead of connecting"))
            }
            _ => Err(invalid("is not a database address")),
        }
    }
}

impl fmt::Display for DatabaseRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => format_host(f, "tcp", host, *port),
            Self::Ssl { host, port } => format_host(f, "ssl", host, *port),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_parse_in_the_notation_of_open_vswitch() {
        for (text, printed) in [
            ("unix:/run/db.sock", "unix:/run/db.sock"),
            ("unix:db.sock", "unix:db.sock"),
            ("tcp:127.0.0.1:6641", "tcp:127.0.0.1:6641"),
            ("tcp:[::1]", "tcp:[::1]:6640"),
            ("ssl:ovsdb.example", "ssl:ovsdb.example:6640"),
        ] {
            let remote: DatabaseRemote = text.parse().expect(text);
            assert_eq!(remote.to_string(), printed);
        }
        for (text, part) in [
            ("pssl:6640", "listens"),
            ("punix:db.sock", "listens"),
            ("unix:", "not a database"),
            ("db.sock", "not a database"),
            ("tcp:", "host"),
        ] {
            let error = text.parse::<DatabaseRemote>().expect_err(text);
            assert!(error.problem.contains(part), "{error}");
        }
    }
}
