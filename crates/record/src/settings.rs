//! Settings of experiments: a profile, and the values that replace its defaults.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Description, Parameter, Point, Role, Value, nearest};

/// Extent of the measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Short trials that distinguish devices, too short to publish.
    Quick,
    /// The extent of the published experiments.
    #[default]
    Paper,
    /// The extent that the standards require: trials of 60 seconds, hours in total.
    Rfc,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Paper, Self::Rfc];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
            Self::Rfc => "rfc",
        }
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == text);
        let known = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("unknown profile '{text}': expected one of {}", known()))
    }
}

/// Profile, and the values that replace its defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Extent of the measurements.
    pub profile: Profile,
    /// Values as typed, by the name of the parameter, or by the names of the experiment and the
    /// parameter: `echo-rules.rules`.
    #[serde(default)]
    pub set: BTreeMap<String, Vec<String>>,
}

/// Invalid setting; the text names the valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl Settings {
    /// Parses and adds `name=value,...`, as typed.
    ///
    /// # Errors
    /// The text does not have this form.
    pub fn parse(&mut self, text: &str) -> Result<(), BadSetting> {
        let invalid = || BadSetting(format!("invalid setting '{text}': expected NAME=VALUE,..."));
        let (name, values) = text.split_once('=').ok_or_else(invalid)?;
        if name.is_empty() || values.is_empty() {
            return Err(invalid());
        }
        let values = values.split(',').map(str::to_owned).collect();
        self.set.insert(name.to_owned(), values);
        Ok(())
    }

    /// Sets a parameter of one experiment, unless it is set already.
    pub fn set_default(
        &mut self,
        experiment: &str,
        parameter: &str,
        values: impl IntoIterator<Item = String>,
    ) {
        let name = format!("{experiment}.{parameter}");
        let entry = self.set.entry(name);
        entry.or_insert_with(|| values.into_iter().collect());
    }

    /// Returns the points of `experiment`: all combinations of the values of its axes.
    ///
    /// # Errors
    /// A value is not permitted.
    pub fn points(&self, experiment: &Description) -> Result<Vec<Point>, BadSetting> {
        let mut points = vec![Point::default()];
        for parameter in experiment.parameters {
            let values = self.values(experiment, parameter)?;
            let with_each = |point: &Point| {
                let values = values.iter().cloned();
                let points = values.map(|value| point.with(parameter.name, value));
                points.collect::<Vec<_>>()
            };
            points = points.iter().flat_map(with_each).collect();
        }
        Ok(points)
    }

    /// Returns the values of the constants of `experiment`, which decide whether trials of two
    /// sessions belong to one run.
    ///
    /// # Errors
    /// A value is not permitted.
    pub fn constants(&self, experiment: &Description) -> Result<Point, BadSetting> {
        let parameters = experiment.parameters.iter();
        let mut constants = parameters.filter(|parameter| parameter.role == Role::Constant);
        constants.try_fold(Point::default(), |point, parameter| {
            let values = self.values(experiment, parameter)?;
            let add = |point: Point, value: Value| point.with(parameter.name, value);
            Ok(values.into_iter().fold(point, add))
        })
    }

    /// Returns the values of a parameter: those set, or the defaults of the profile.
    fn values(
        &self,
        experiment: &Description,
        parameter: &Parameter,
    ) -> Result<Vec<Value>, BadSetting> {
        let (name, of) = (parameter.name, experiment.name);
        let typed = self.set.get(&format!("{of}.{name}"));
        let Some(typed) = typed.or_else(|| self.set.get(name)) else {
            return Ok(parameter.defaults(self.profile));
        };
        if parameter.role == Role::Constant && typed.len() > 1 {
            let text = format!("{name} has one value in {of}");
            return Err(BadSetting(text));
        }
        let parse = |text: &String| {
            let invalid = |expected| {
                BadSetting(format!(
                    "invalid {name}={text} of {of}: expected {expected}"
                ))
            };
            parameter.parse(text).map_err(invalid)
        };
        typed.iter().map(parse).collect()
    }

    /// Checks the settings against `experiments`: each name must be a parameter of one of them,
    /// and each value must be permitted by all that have the parameter.
    ///
    /// # Errors
    /// A name is unknown, or a value is not permitted; the text suggests the nearest name.
    pub fn check(&self, experiments: &[&'static Description]) -> Result<(), BadSetting> {
        let experiments = || experiments.iter().copied();
        for name in self.set.keys() {
            let parts = name.split_once('.');
            let known = experiments().any(|experiment| match parts {
                None => experiment.parameter(name).is_some(),
                Some((of, parameter)) => {
                    experiment.name == of && experiment.parameter(parameter).is_some()
                }
            });
            if !known {
                let all = experiments().flat_map(|experiment| experiment.parameters);
                let hint = nearest(name, all.map(|parameter| parameter.name));
                return Err(BadSetting(format!(
                    "none of these experiments has a parameter '{name}'{hint}"
                )));
            }
        }
        for experiment in experiments() {
            self.points(experiment)?;
        }
        Ok(())
    }
}
