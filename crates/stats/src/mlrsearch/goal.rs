//! Search goals, and those of standards and other projects.

use serde::{Deserialize, Serialize};

/// An invalid search, and the permitted values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadSearch {
    /// There is no goal.
    #[error("a search has one goal at least")]
    NoGoal,
    /// The range of loads is invalid.
    #[error("loads from {0} to {1}: the least is above 0 and no more than the greatest")]
    Range(u64, u64),
    /// An attribute of a goal is invalid.
    #[error("goal {goal}: {wanted}")]
    Goal {
        /// The goal.
        goal: String,
        /// The permitted values.
        wanted: &'static str,
    },
}

/// A search goal (RFC 9971). Durations are in seconds, ratios from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Name.
    pub name: String,
    /// Duration of a full trial.
    pub final_trial_seconds: f64,
    /// Total duration of trials that decides.
    pub duration_sum_seconds: f64,
    /// Loss ratio above which a trial exceeds.
    pub loss_ratio: f64,
    /// Share of the duration in exceeding trials up to which a load is a lower bound.
    pub exceed_ratio: f64,
    /// Required distance of the bounds, as a share of the upper one.
    pub width: f64,
    /// Duration of the first trials; that of full trials if there are no shorter ones.
    pub initial_trial_seconds: f64,
}

/// Duration of short trials before long ones, in seconds.
const INITIAL_SECONDS: f64 = 1.0;

impl Goal {
    /// Returns RFC 2544's throughput (section 26.1): no loss in a trial of 60 s.
    #[must_use]
    pub fn rfc2544() -> Self {
        Self::new("RFC 2544", [60.0, 60.0], [0.0, 0.0], 0.005)
    }

    /// Returns the binary search with loss verification of ETSI GS NFV-TST 009 (12.3.3): a trial
    /// with loss may be repeated once.
    #[must_use]
    pub fn tst009() -> Self {
        Self::new("TST 009", [60.0, 120.0], [0.0, 0.5], 0.005)
    }

    /// Returns the non-drop rate of FD.io CSIT.
    #[must_use]
    pub fn ndr() -> Self {
        Self::new("NDR", [1.0, 21.0], [0.0, 0.5], 0.005)
    }

    /// Returns the partial drop rate of FD.io CSIT: a loss ratio of half a per cent is permitted.
    #[must_use]
    pub fn pdr() -> Self {
        Self::new("PDR", [1.0, 21.0], [0.005, 0.5], 0.005)
    }

    /// Returns a short estimate of the non-drop rate.
    #[must_use]
    pub fn quick_ndr() -> Self {
        Self::new("NDR, short trials", [0.25, 0.5], [0.0, 0.5], 0.05)
    }

    /// Returns a short estimate of the partial drop rate.
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

    /// Checks that the goal can be reached.
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
