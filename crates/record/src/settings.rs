//! How an experiment is to be done: a profile, and what was set besides.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Description, Point, Role, nearest};

/// How thoroughly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// A quick look: enough to see the devices apart, too little to quote.
    Quick,
    /// As the experiments were published.
    #[default]
    Paper,
    /// As the standards want it: trials of 60 seconds, and hours in all.
    Rfc,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Paper, Self::Rfc];

    /// The name it is asked for by.
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
        found.ok_or_else(|| format!("there is no profile '{text}': one of {} is wanted", known()))
    }
}

/// A profile, and what was set besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How thoroughly.
    pub profile: Profile,
    /// Values as they were typed, by the parameter's name or by the experiment's and the
    /// parameter's, `echo-rules.rules`.
    #[serde(default)]
    pub set: BTreeMap<String, Vec<String>>,
}

/// A setting that makes no sense; the text says what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl Settings {
    /// Takes note of `name=value,...`, as typed.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn read(&mut self, text: &str) -> Result<(), BadSetting> {
        let wanted = || BadSetting(format!("'{text}' is no setting: NAME=VALUE,... is wanted"));
        let (name, values) = text.split_once('=').ok_or_else(wanted)?;
        if name.is_empty() || values.is_empty() {
            return Err(wanted());
        }
        let values = values.split(',').map(str::to_owned).collect();
        self.set.insert(name.to_owned(), values);
        Ok(())
    }

    /// Every test of `experiment`: all combinations of its axes' values.
    ///
    /// # Errors
    /// A value that was set makes no sense.
    pub fn points(&self, experiment: &Description) -> Result<Vec<Point>, BadSetting> {
        let mut points = vec![Point::default()];
        for parameter in experiment.parameters {
            let special = format!("{}.{}", experiment.name, parameter.name);
            let typed = self.set.get(&special);
            let typed = typed.or_else(|| self.set.get(parameter.name));
            let values = match typed {
                None => parameter.defaults(self.profile),
                Some(typed) => {
                    let read = |text: &String| {
                        parameter.read(text).map_err(|wanted| {
                            let name = parameter.name;
                            BadSetting(format!(
                                "{name}={text} makes no sense in {}: {wanted} is wanted",
                                experiment.name
                            ))
                        })
                    };
                    typed.iter().map(read).collect::<Result<_, _>>()?
                }
            };
            if parameter.role == Role::Constant && values.len() > 1 {
                return Err(BadSetting(format!(
                    "{} has one value in {}",
                    parameter.name, experiment.name
                )));
            }
            let with_each = |point: &Point| {
                let values = values.iter().cloned();
                let points = values.map(|value| point.with(parameter.name, value));
                points.collect::<Vec<_>>()
            };
            points = points.iter().flat_map(with_each).collect();
        }
        Ok(points)
    }

    /// Checks what was set against `experiments`: each name must mean something to one of
    /// them, and each value to all that know the name.
    ///
    /// # Errors
    /// The first that does not, with the nearest that would.
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
