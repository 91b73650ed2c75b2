//! What is searched for: goals, and those that standards and others use.

use serde::{Deserialize, Serialize};

/// A search that makes no sense; the text says what would.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadSearch {
    /// Nothing is searched for.
    #[error("a search has one goal at least")]
    NoGoal,
    /// Loads from here to there.
    #[error("loads from {0} to {1}: the least is above 0 and no more than the greatest")]
    Range(u64, u64),
    /// A goal's attribute, and what it should be.
    #[error("goal {goal}: {wanted}")]
    Goal {
        /// Which.
        goal: String,
        /// What would make sense.
        wanted: &'static str,
    },
}

/// What is searched for (RFC 9971, Search Goal). Durations are in seconds, ratios from
/// 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Its name, for people.
    pub name: String,
    /// Trials this long judge a load by themselves.
    pub final_trial_seconds: f64,
    /// Trials of this much time together decide.
    pub duration_sum_seconds: f64,
    /// A trial that loses more of its frames exceeds.
    pub loss_ratio: f64,
    /// The share of time in trials that exceed up to which a load is a lower bound.
    pub exceed_ratio: f64,
    /// The distance of the bounds, as a share of the upper, that is close enough.
    pub width: f64,
    /// The search begins with trials this long; the same as the final ones for none shorter.
    pub initial_trial_seconds: f64,
}

/// Trials before those that count for a goal with long ones are of this length, in seconds.
const INITIAL_SECONDS: f64 = 1.0;

impl Goal {
    /// RFC 2544's throughput (section 26.1): no loss in a trial of 60 s.
    #[must_use]
    pub fn rfc2544() -> Self {
        Self::new("RFC 2544", [60.0, 60.0], [0.0, 0.0], 0.005)
    }

    /// The binary search with loss verification of ETSI GS NFV-TST 009 (12.3.3): a trial that
    /// lost may be repeated once.
    #[must_use]
    pub fn tst009() -> Self {
        Self::new("TST 009", [60.0, 120.0], [0.0, 0.5], 0.005)
    }

    /// The non-drop rate, as FD.io's CSIT has it.
    #[must_use]
    pub fn ndr() -> Self {
        Self::new("NDR", [1.0, 21.0], [0.0, 0.5], 0.005)
    }

    /// The partial drop rate, as FD.io's CSIT has it: half a per cent may be lost.
    #[must_use]
    pub fn pdr() -> Self {
        Self::new("PDR", [1.0, 21.0], [0.005, 0.5], 0.005)
    }

    /// A first look at the non-drop rate.
    #[must_use]
    pub fn quick_ndr() -> Self {
        Self::new("NDR, short trials", [0.25, 0.5], [0.0, 0.5], 0.05)
    }

    /// A first look at the partial drop rate.
    #[must_use]
    pub fn quick_pdr() -> Self {
        Self::new("PDR, short trials", [0.25, 0.5], [0.005, 0.5], 0.05)
    }

    fn new(name: &str, [last, sum]: [f64; 2], [loss, exceed]: [f64; 2], width: f64) -> Self {
        Self {
            name: name.to_owned(),
            final_trial_seconds: last,
            duration_sum_seconds: sum,
            loss_ratio: loss,
            exceed_ratio: exceed,
            width,
            initial_trial_seconds: last.min(INITIAL_SECONDS),
        }
    }

    /// Checks that it can be reached.
    pub(super) fn check(&self) -> Result<(), BadSearch> {
        let length = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        let rules = [
            (
                length(self.final_trial_seconds) && length(self.initial_trial_seconds),
                "trials take some time",
            ),
            (
                self.initial_trial_seconds <= self.final_trial_seconds,
                "first trials are no longer than those that count",
            ),
            (
                length(self.duration_sum_seconds)
                    && self.duration_sum_seconds >= self.final_trial_seconds,
                "the sum of durations is no less than a trial's",
            ),
            (
                (0.0..1.0).contains(&self.loss_ratio) && (0.0..1.0).contains(&self.exceed_ratio),
                "ratios are from 0 to less than 1",
            ),
            (
                self.width > 0.0 && self.width < 1.0,
                "the width is between 0 and 1",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, wanted)) => Err(BadSearch::Goal {
                goal: self.name.clone(),
                wanted,
            }),
            None => Ok(()),
        }
    }
}
