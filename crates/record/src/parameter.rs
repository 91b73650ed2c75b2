//! Parameters of experiments: their roles, permitted values, and values by profile.

use std::ops::RangeInclusive;

use crate::{Profile, Value};

/// Parameter of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name, as `--set` accepts it.
    pub name: &'static str,
    /// Meaning, with the unit.
    pub about: &'static str,
    /// Role in the plan.
    pub role: Role,
    /// Default and permitted values.
    pub values: Values,
}

/// Role of a parameter in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One trial for each value, in combination with the values of the other axes.
    Axis,
    /// One value for all trials.
    Constant,
}

/// Values of a parameter by profile, and the permitted values.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Whole numbers.
    Numbers {
        /// Values of the profile `quick`.
        quick: &'static [u64],
        /// Values of the profile `paper`.
        paper: &'static [u64],
        /// Values of the profile `rfc`.
        rfc: &'static [u64],
        /// Permitted values.
        bound: Bound,
    },
    /// Whole numbers, and one word that is always among the defaults: rates, and `flat-out`.
    NumbersAndWord {
        /// Numbers of the profile `quick`.
        quick: &'static [u64],
        /// Numbers of the profiles `paper` and `rfc`.
        paper: &'static [u64],
        /// Permitted numbers.
        bound: Bound,
        /// The word.
        word: &'static str,
    },
    /// Words of a fixed list.
    Words {
        /// Values of the profile `quick`.
        quick: &'static [&'static str],
        /// Values of the other profiles, and permitted values.
        all: &'static [&'static str],
    },
    /// One word of a fixed list.
    Choice {
        /// Value of the profile `quick`.
        quick: &'static str,
        /// Value of the profile `paper`.
        paper: &'static str,
        /// Value of the profile `rfc`.
        rfc: &'static str,
        /// Permitted values.
        all: &'static [&'static str],
    },
}

impl Values {
    /// Returns whole numbers for each profile, with the least and the greatest permitted number.
    #[must_use]
    pub const fn numbers(
        quick: &'static [u64],
        paper: &'static [u64],
        rfc: &'static [u64],
        [least, most]: [u64; 2],
    ) -> Self {
        let bound = Bound { least, most };
        Self::Numbers {
            quick,
            paper,
            rfc,
            bound,
        }
    }

    /// Returns words for the profile `quick`, and all permitted words for the others.
    #[must_use]
    pub const fn words(quick: &'static [&'static str], all: &'static [&'static str]) -> Self {
        Self::Words { quick, all }
    }
}

/// Least and greatest permitted number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Least permitted number.
    pub least: u64,
    /// Greatest permitted number.
    pub most: u64,
}

impl Bound {
    /// Returns the permitted numbers.
    #[must_use]
    pub const fn range(self) -> RangeInclusive<u64> {
        self.least..=self.most
    }

    /// Parses a permitted number.
    fn parse(self, text: &str) -> Option<Value> {
        let number = text.parse().ok();
        let number = number.filter(|number| self.range().contains(number));
        number.map(Value::Number)
    }
}

impl Parameter {
    /// Returns an axis.
    #[must_use]
    pub const fn axis(name: &'static str, about: &'static str, values: Values) -> Self {
        Self {
            name,
            about,
            role: Role::Axis,
            values,
        }
    }

    /// Returns a constant.
    #[must_use]
    pub const fn constant(name: &'static str, about: &'static str, values: Values) -> Self {
        Self {
            name,
            about,
            role: Role::Constant,
            values,
        }
    }

    /// Returns the default values of a profile.
    #[must_use]
    pub fn defaults(&self, profile: Profile) -> Vec<Value> {
        match self.values {
            Values::Numbers {
                quick, paper, rfc, ..
            } => {
                let numbers = match profile {
                    Profile::Quick => quick,
                    Profile::Paper => paper,
                    Profile::Rfc => rfc,
                };
                numbers.iter().copied().map(Value::Number).collect()
            }
            Values::NumbersAndWord {
                quick, paper, word, ..
            } => {
                let numbers = match profile {
                    Profile::Quick => quick,
                    Profile::Paper | Profile::Rfc => paper,
                };
                let numbers = numbers.iter().copied().map(Value::Number);
                numbers.chain([Value::word(word)]).collect()
            }
            Values::Words { quick, all } => {
                let words = match profile {
                    Profile::Quick => quick,
                    Profile::Paper | Profile::Rfc => all,
                };
                words.iter().map(|word| Value::word(word)).collect()
            }
            Values::Choice {
                quick, paper, rfc, ..
            } => vec![Value::word(match profile {
                Profile::Quick => quick,
                Profile::Paper => paper,
                Profile::Rfc => rfc,
            })],
        }
    }

    /// Parses a value.
    ///
    /// # Errors
    /// The value is not permitted; the error says which values are.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self.values {
            Values::Numbers { bound, .. } => {
                let Bound { least, most } = bound;
                let expected = || format!("a whole number from {least} to {most}");
                bound.parse(text).ok_or_else(expected)
            }
            Values::NumbersAndWord { word, .. } if word == text => Ok(Value::word(word)),
            Values::NumbersAndWord { bound, word, .. } => {
                let Bound { least, most } = bound;
                let expected = || format!("{word}, or a whole number from {least} to {most}");
                bound.parse(text).ok_or_else(expected)
            }
            Values::Words { all, .. } | Values::Choice { all, .. } => {
                let known = all.iter().find(|word| **word == text);
                let expected = || format!("one of {}", all.join(", "));
                known.map(|word| Value::word(word)).ok_or_else(expected)
            }
        }
    }
}
