//! Names of experiments on the command line.

use std::fmt;
use std::str::FromStr;

use record::{Description, Family, UnknownName};

use crate::catalogue::{EXPERIMENTS, Experiment};

/// Experiment, by its position in the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExperimentId(usize);

impl ExperimentId {
    /// Returns every experiment, in the order of reports.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        (0..EXPERIMENTS.len()).map(Self)
    }

    /// Returns the experiment.
    #[must_use]
    pub const fn experiment(self) -> &'static Experiment {
        EXPERIMENTS[self.0]
    }

    /// Returns the description of the experiment.
    #[must_use]
    pub const fn description(self) -> &'static Description {
        &self.experiment().description
    }

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// Returns the family of the experiment.
    #[must_use]
    pub const fn family(self) -> Family {
        self.description().family
    }

    /// Returns true if the bare link is measured beside the devices.
    #[must_use]
    pub fn is_calibrated(self) -> bool {
        self.experiment().is_calibrated || self.family() == Family::Calibration
    }
}

impl fmt::Debug for ExperimentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ExperimentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ExperimentId {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let known = || Self::all().map(Self::name);
        let unknown = || UnknownName::new("experiment", text, known());
        Self::all()
            .find(|one| one.name() == text)
            .ok_or_else(unknown)
    }
}

/// Experiments that one word of a command selects: one, all of a family, or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(pub Vec<ExperimentId>);

impl FromStr for Selection {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let family = Family::ALL.into_iter().find(|family| family.name() == text);
        let all = ExperimentId::all();
        Ok(Self(match (text, family) {
            ("all", _) => all.collect(),
            (_, Some(family)) => all.filter(|one| one.family() == family).collect(),
            (_, None) => vec![text.parse()?],
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiment_names_parse_as_they_are_printed() {
        for experiment in ExperimentId::all() {
            assert_eq!(experiment.to_string().parse(), Ok(experiment));
        }
    }

    #[test]
    fn unknown_name_error_suggests_the_nearest_and_lists_all() {
        let error = "ecko".parse::<ExperimentId>().unwrap_err().to_string();
        let expected = "unknown experiment 'ecko' (did you mean 'echo'?): expected one of ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn selection_is_an_experiment_a_family_or_all() {
        let selected = |text: &str| text.parse::<Selection>().map(|selection| selection.0);
        let all: Vec<ExperimentId> = ExperimentId::all().collect();
        assert_eq!(selected("all").unwrap(), all);
        assert_eq!(selected("echo").unwrap(), ["echo".parse().unwrap()]);
        let b = selected("experiment-b").unwrap();
        assert!(b.contains(&"tcp-throughput".parse().unwrap()), "{b:?}");
        assert!(selected("experiment-z").is_err());
    }
}
