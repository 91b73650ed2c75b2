//! Points: a value for each parameter of an experiment.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Description, Role};

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Number(u64),
    /// A word.
    Word(String),
}

impl Value {
    /// Returns a word.
    #[must_use]
    pub fn word(text: &str) -> Self {
        Self::Word(text.to_owned())
    }

    /// Returns the number, or `None` for a word.
    #[must_use]
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.pad(word),
        }
    }
}

/// Value for each parameter of an experiment: one trial of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(BTreeMap<String, Value>);

impl Point {
    /// Returns the point with `value` for the parameter `name`.
    #[must_use]
    pub fn with(&self, name: &str, value: Value) -> Self {
        let mut all = self.0.clone();
        all.insert(name.to_owned(), value);
        Self(all)
    }

    /// Returns the value of the parameter `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns all names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of a parameter that the experiment declares.
    ///
    /// # Panics
    /// The experiment does not declare it as a number.
    pub fn number(&self, name: &str) -> u64 {
        let number = self.get(name).and_then(Value::number);
        number.unwrap_or_else(|| panic!("the experiment declares no number '{name}'"))
    }

    /// Returns a number that the experiment's bounds keep within 32 bits.
    ///
    /// # Panics
    /// The experiment does not declare it as such a number.
    pub fn small(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).expect("the experiment's bounds are below 2^32")
    }

    /// Returns the word of a parameter that the experiment declares.
    ///
    /// # Panics
    /// The experiment does not declare it as a word.
    pub fn word(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Word(word)) => word,
            _ => panic!("the experiment declares no word '{name}'"),
        }
    }

    /// Returns the axes alone, in the order in which `experiment` declares them:
    /// `size=64/load=50`.
    #[must_use]
    pub fn label(&self, experiment: &Description) -> String {
        let axes = experiment.parameters.iter();
        let axes = axes.filter(|parameter| parameter.role == Role::Axis);
        let parts = axes.filter_map(|parameter| {
            let value = self.get(parameter.name)?;
            Some(format!("{}={value}", parameter.name))
        });
        parts.collect::<Vec<_>>().join("/")
    }
}
