//! The words in which a user asks for things and a record tells them: scenarios,
//! match sets, probers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogued, Family};

/// The text names nothing of that kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} '{text}'{hint}: one of {known} is wanted")]
pub struct UnknownName {
    kind: &'static str,
    text: String,
    hint: String,
    known: String,
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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
    /// One of the catalogue.
    Catalogued(Catalogued),
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
    /// Those that have records and a section of their own.
    pub(crate) const OWN: [Self; 7] = [
        Self::Echo,
        Self::TcpThroughput,
        Self::ForwardingRate,
        Self::FlowTable,
        Self::Meters,
        Self::Changes,
        Self::TcpRequests,
    ];

    /// Every scenario, in the order of reports.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let catalogued = Catalogued::all().map(Self::Catalogued);
        Self::OWN.into_iter().chain(catalogued)
    }

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
            Self::Catalogued(one) => one.name(),
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
            Self::Catalogued(one) => one.experiment().question,
        }
    }

    /// Whether what the tester itself costs is measured and drawn beside it.
    #[must_use]
    pub fn is_calibrated(self) -> bool {
        let is_drawn = ["echo", "latency-vs-size", "latency-vs-load"].contains(&self.name());
        is_drawn || self.family() == Family::Calibration
    }

    /// Where it comes from.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::Echo => Family::DataPlanes,
            Self::TcpThroughput => Family::UserspaceSwitch,
            Self::ForwardingRate | Self::TcpRequests | Self::Meters => Family::Robustness,
            Self::FlowTable | Self::Changes => Family::Oflops,
            Self::Catalogued(one) => one.experiment().family,
        }
    }
}

/// What a word of a command asks for: one scenario, all of a family, or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked(pub Vec<Scenario>);

impl FromStr for Asked {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let family = Family::ALL.into_iter().find(|family| family.name() == text);
        let all = Scenario::all();
        Ok(Self(match (text, family) {
            ("all", _) => all.collect(),
            (_, Some(family)) => all.filter(|one| one.family() == family).collect(),
            (_, None) => vec![text.parse()?],
        }))
    }
}

impl From<Scenario> for String {
    fn from(scenario: Scenario) -> Self {
        scenario.name().to_owned()
    }
}

impl TryFrom<String> for Scenario {
    type Error = UnknownName;

    fn try_from(text: String) -> Result<Self, UnknownName> {
        text.parse()
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
        find("scenario", text, &Self::all().collect::<Vec<_>>())
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
    let names: Vec<String> = known.iter().map(T::to_string).collect();
    let position = names.iter().position(|name| name == text);
    position
        .map(|index| known[index])
        .ok_or_else(|| UnknownName {
            kind,
            text: text.to_owned(),
            hint: nearest(text, names.iter().map(String::as_str)),
            known: names.join(", "),
        })
}

/// How near a name must be to be meant: so many letters put in, left out or exchanged.
const SLIPS_MAX: usize = 3;

/// `, did you mean 'x'?` with the nearest of `known`, if any is near enough to `text`.
pub(crate) fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distances = known.into_iter().map(|name| (slips(text, name), name));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    let near = |distance: usize| distance <= SLIPS_MAX && distance < text.len();
    match nearest {
        Some((distance, name)) if near(distance) => format!(" (did you mean '{name}'?)"),
        _ => String::new(),
    }
}

/// The least number of letters to put in, leave out or exchange between two words
/// (Levenshtein, 1965).
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, candidate) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(*candidate != letter);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for scenario in Scenario::all() {
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
        for scenario in Scenario::all() {
            let json = serde_json::to_string(&scenario).unwrap();
            assert_eq!(json, format!("\"{scenario}\""));
        }
        for set in MatchSet::ALL {
            assert_eq!(serde_json::to_string(&set).unwrap(), format!("\"{set}\""));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_all_that_are_known() {
        let told = "ecko".parse::<Scenario>().unwrap_err().to_string();
        let begins =
            "there is no scenario 'ecko' (did you mean 'echo'?): one of echo, tcp-throughput, ";
        assert!(told.starts_with(begins), "{told}");
        let told = "xyz".parse::<Prober>().unwrap_err().to_string();
        assert_eq!(
            told,
            "there is no prober 'xyz': one of solo, pair is wanted"
        );
    }

    #[test]
    fn slips_are_counted() {
        assert_eq!(slips("echo", "echo"), 0);
        assert_eq!(slips("ecko", "echo"), 1);
        assert_eq!(slips("", "echo"), 4);
        assert_eq!(slips("kitten", "sitting"), 3);
    }

    #[test]
    fn families_and_all_are_asked_for_at_once() {
        let asked = |text: &str| text.parse::<Asked>().map(|asked| asked.0);
        let all: Vec<Scenario> = Scenario::all().collect();
        assert_eq!(asked("all").unwrap(), all);
        assert_eq!(asked("echo").unwrap(), [Scenario::Echo]);
        let b = asked("experiment-b").unwrap();
        assert!(b.contains(&Scenario::TcpThroughput), "{b:?}");
        assert!(asked("experiment-z").is_err());
    }
}
