//! The address of a database: `unix:PATH`, `tcp:HOST[:PORT]` or `ssl:HOST[:PORT]`, in the notation
//! of Open vSwitch.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::ConfigError;
use super::target::{split_host, tell_host};

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
        const RIGHT: &str =
            "use unix:PATH, tcp:HOST[:PORT] or ssl:HOST[:PORT], as in tcp:127.0.0.1:6640";
        let wrong = |what: &str| ConfigError::new("DATABASE", format!("'{text}' {what}: {RIGHT}"));
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some((scheme @ ("tcp" | "ssl"), rest)) => {
                let place = split_host(rest, OVSDB_PORT);
                let (host, port) = place.ok_or_else(|| wrong("has no usable host and port"))?;
                Ok(match scheme {
                    "ssl" => Self::Ssl { host, port },
                    _ => Self::Tcp { host, port },
                })
            }
            Some(("ptcp" | "punix" | "pssl", _)) => {
                Err(wrong("listens for a database instead of connecting"))
            }
            _ => Err(wrong("is not a database address")),
        }
    }
}

impl fmt::Display for DatabaseRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => tell_host(f, "tcp", host, *port),
            Self::Ssl { host, port } => tell_host(f, "ssl", host, *port),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_parse_in_the_notation_of_open_vswitch() {
        for (text, told) in [
            ("unix:/run/db.sock", "unix:/run/db.sock"),
            ("unix:db.sock", "unix:db.sock"),
            ("tcp:127.0.0.1:6641", "tcp:127.0.0.1:6641"),
            ("tcp:[::1]", "tcp:[::1]:6640"),
            ("ssl:ovsdb.example", "ssl:ovsdb.example:6640"),
        ] {
            let remote: DatabaseRemote = text.parse().expect(text);
            assert_eq!(remote.to_string(), told);
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
