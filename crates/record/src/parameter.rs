//! What of an experiment can be set, to what, and what it is if nobody sets it.

use std::ops::RangeInclusive;

use crate::{Profile, Value};

/// Something of an experiment that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, as `--set` takes it.
    pub name: &'static str,
    /// What it is, with its unit.
    pub about: &'static str,
    /// What it does to the plan.
    pub role: Role,
    /// The values it has and may have.
    pub values: Values,
}

/// What a parameter does to the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A test for each of its values, in combination with those of the other axes.
    Axis,
    /// One value for all tests.
    Constant,
}

/// Values by profile, and the bounds of what may be set.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Whole numbers.
    Numbers {
        /// A quick look.
        quick: &'static [u64],
        /// As published.
        paper: &'static [u64],
        /// As the standards want it.
        rfc: &'static [u64],
        /// What may be set.
        bound: Bound,
    },
    /// Words out of a fixed list.
    Words {
        /// A quick look.
        quick: &'static [&'static str],
        /// Everything else, and what may be set.
        all: &'static [&'static str],
    },
    /// One word out of a fixed list.
    Choice {
        /// A quick look.
        quick: &'static str,
        /// As published.
        paper: &'static str,
        /// As the standards want it.
        rfc: &'static str,
        /// What may be set.
        all: &'static [&'static str],
    },
}

impl Values {
    /// Whole numbers for each profile, and the least and the most of them.
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
}

/// The least and the most that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Bound {
    /// The whole numbers within.
    #[must_use]
    pub const fn range(self) -> RangeInclusive<u64> {
        self.least..=self.most
    }
}

impl Parameter {
    /// Whole numbers that a test is done for each.
    #[must_use]
    pub const fn axis(name: &'static str, about: &'static str, values: Values) -> Self {
        Self {
            name,
            about,
            role: Role::Axis,
            values,
        }
    }

    /// One number for all tests.
    #[must_use]
    pub const fn constant(name: &'static str, about: &'static str, values: Values) -> Self {
        Self {
            name,
            about,
            role: Role::Constant,
            values,
        }
    }

    /// What it is if nobody sets it.
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

    /// Reads a value that somebody set, or says what would do.
    ///
    /// # Errors
    /// What is wanted, in words.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        match self.values {
            Values::Numbers { bound, .. } => {
                let number = text.parse().ok();
                let number = number.filter(|number| bound.range().contains(number));
                let wanted = || format!("a whole number from {} to {}", bound.least, bound.most);
                number.map(Value::Number).ok_or_else(wanted)
            }
            Values::Words { all, .. } | Values::Choice { all, .. } => {
                let known = all.iter().find(|word| **word == text);
                let wanted = || format!("one of {}", all.join(", "));
                known.map(|word| Value::word(word)).ok_or_else(wanted)
            }
        }
    }
}
