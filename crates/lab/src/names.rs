//! The words in which a user asks for things and a record tells them: scenarios,
//! match sets, probers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The text names nothing of that kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} '{text}': one of {known} is wanted")]
pub struct UnknownName {
    kind: &'static str,
    text: String,
    known: String,
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Round trips of UDP echoes, for each set of matched fields and frame size.
    Echo,
    /// One TCP stream, with the processor time that the device spends on it.
    TcpThroughput,
    /// Small frames, flat out and at set rates: how many come out at the other end.
    ForwardingRate,
    /// A large flow table: added, told and deleted by one controller.
    FlowTable,
    /// Meters of several rates, above which more is offered.
    Meters,
    /// Rules that change while frames move.
    Changes,
    /// Requests and replies over one TCP connection.
    TcpRequests,
}

/// Which fields the rules of an experiment match on (OpenFlow 1.0). Each set has
/// one rule for either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchSet {
    /// The ingress port.
    Port,
    /// Both Ethernet addresses.
    Mac,
    /// The Ethernet type and both IPv4 addresses.
    Ip,
    /// All of `Ip`, the protocol and both UDP ports.
    Udp,
    /// All twelve fields.
    Exact,
}

/// How echoes are sent and awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prober {
    /// One thread owns both ends and never sleeps: it sees the device, not the
    /// time that a sleeping process takes to wake.
    #[default]
    Solo,
    /// A client and a server that block in their sockets, each in its namespace,
    /// as the published experiment had them.
    Pair,
}

impl Scenario {
    /// Every scenario, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Echo,
        Self::TcpThroughput,
        Self::ForwardingRate,
        Self::FlowTable,
        Self::Meters,
        Self::Changes,
        Self::TcpRequests,
    ];

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::TcpThroughput => "tcp-throughput",
            Self::ForwardingRate => "forwarding-rate",
            Self::FlowTable => "flow-table",
            Self::Meters => "meters",
            Self::Changes => "changes",
            Self::TcpRequests => "tcp-requests",
        }
    }

    /// What it measures, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Echo => "round trip and jitter of UDP echoes, by match type and frame size",
            Self::TcpThroughput => "one TCP stream, and the processor time the device spends on it",
            Self::ForwardingRate => "small frames, flat out and at set rates: how many come out",
            Self::FlowTable => "many flows of twelve fields: added, kept, told, deleted",
            Self::Meters => "meters by packets and bits: how exactly each second's rate is kept",
            Self::TcpRequests => "requests and replies of one byte over one TCP connection",
            Self::Changes => "rules that change under traffic: time to effect, and frames lost",
        }
    }
}

impl MatchSet {
    /// Every set, in the order of the published table.
    pub const ALL: [Self; 5] = [Self::Port, Self::Mac, Self::Ip, Self::Udp, Self::Exact];

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Mac => "mac",
            Self::Ip => "ip",
            Self::Udp => "udp",
            Self::Exact => "exact",
        }
    }
}

impl Prober {
    /// Every prober.
    pub const ALL: [Self; 2] = [Self::Solo, Self::Pair];

    /// The name it is asked for by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Pair => "pair",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for MatchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find("scenario", text, &Self::ALL)
    }
}

impl FromStr for MatchSet {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find("match set", text, &Self::ALL)
    }
}

impl FromStr for Prober {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find("prober", text, &Self::ALL)
    }
}

fn find<T: Copy + fmt::Display>(
    kind: &'static str,
    text: &str,
    known: &[T],
) -> Result<T, UnknownName> {
    let names = || known.iter().map(T::to_string);
    let position = names().position(|name| name == text);
    position
        .map(|index| known[index])
        .ok_or_else(|| UnknownName {
            kind,
            text: text.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }
        for set in MatchSet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        for prober in Prober::ALL {
            assert_eq!(prober.to_string().parse(), Ok(prober));
        }
    }

    #[test]
    fn records_use_the_same_names() {
        for scenario in Scenario::ALL {
            let json = serde_json::to_string(&scenario).unwrap();
            assert_eq!(json, format!("\"{scenario}\""));
        }
        for set in MatchSet::ALL {
            assert_eq!(serde_json::to_string(&set).unwrap(), format!("\"{set}\""));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(
            "ecko".parse::<Scenario>().unwrap_err().to_string(),
            "there is no scenario 'ecko': one of echo, tcp-throughput, forwarding-rate, flow-table, meters, changes, tcp-requests is wanted"
        );
    }
}
