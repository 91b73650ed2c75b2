//! The assignment of ports to workers: `PORT=CORE[,CORE]..`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;

/// The workers that receive from a port, identified by their cores. All workers send to it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Affinity {
    /// The name of the port's interface.
    pub port: String,
    /// The cores: at least one, without duplicates.
    pub cores: Vec<usize>,
}

impl FromStr for Affinity {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let parsed = text.split_once('=').and_then(|(port, cores)| {
            let cores = parse_cores(cores)?;
            let port = port.to_owned();
            Some(Self { port, cores })
        });
        parsed.ok_or_else(|| {
            let problem = format!(
                "'{text}' is not an affinity: use PORT=CORE[,CORE].., \
                 each core once, as in eth1=1 or eth2=2,3"
            );
            ConfigError::new("--affinity", problem)
        })
    }
}

/// Parses comma-separated cores. Returns `None` for duplicates and for text of another form.
pub fn parse_cores(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for word in text.split(',') {
        let core = word.parse().ok()?;
        if cores.contains(&core) {
            return None;
        }
        cores.push(core);
    }
    Some(cores)
}

impl TryFrom<String> for Affinity {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: Vec<_> = self.cores.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.port, cores.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_a_list_of_distinct_cores() {
        for text in ["eth1=0", "tap-1=3,1", "p=63"] {
            assert_eq!(text.parse::<Affinity>().expect(text).to_string(), text);
        }
        for text in ["eth1", "eth1=", "eth1=1,1", "eth1=1,", "eth1=-1", "eth1=a"] {
            let error = text.parse::<Affinity>().expect_err(text).to_string();
            assert!(
                error.contains(text) && error.contains("--affinity"),
                "{error}"
            );
        }
    }
}
