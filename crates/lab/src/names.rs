//! Names of experiments on the command line.

use std::fmt;
use std::str::FromStr;

use record::{Description, Family, UnknownName};

use crate::catalogue::{CATALOGUE, Catalogued};

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub fn about(self) -> &'static str {
        self.description().question
    }

    /// Its description.
    #[must_use]
    pub fn description(self) -> &'static Description {
        let found = CATALOGUE.find(self.name());
        found.expect("the catalogue describes every experiment")
    }

    /// Whether what the tester itself costs is measured and drawn beside it.
    #[must_use]
    pub fn is_calibrated(self) -> bool {
        let is_drawn = ["echo", "latency-vs-size", "latency-vs-load"].contains(&self.name());
        is_drawn || self.family() == Family::Calibration
    }

    /// Where it comes from.
    #[must_use]
    pub fn family(self) -> Family {
        self.description().family
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

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let known = || Self::all().map(Self::name);
        let unknown = || UnknownName::new("scenario", text, known());
        Self::all()
            .find(|one| one.name() == text)
            .ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for scenario in Scenario::all() {
            assert_eq!(scenario.to_string().parse(), Ok(scenario));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_all_that_are_known() {
        let told = "ecko".parse::<Scenario>().unwrap_err().to_string();
        let begins =
            "there is no scenario 'ecko' (did you mean 'echo'?): one of echo, tcp-throughput, ";
        assert!(told.starts_with(begins), "{told}");
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
