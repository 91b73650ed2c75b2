//! The choice of the next load and duration. It has no influence on the classification of a load,
//! which follows from the trials alone.
//!
//! A goal is approached by a target: single short trials with the same loss ratio. The goal begins
//! at the target's bounds, so most loads that are far off cost one short trial each.

use std::collections::BTreeSet;

use super::{Bound, Goal, LoadRange, SearchEnd, SearchTrial, TrialInput, classify};

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    /// A trial.
    Measure(TrialInput),
    /// No further trial.
    End(SearchEnd),
}

/// The relevant bounds, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The largest lower bound below the relevant upper bound.
    pub(super) lower: Option<u64>,
    /// The smallest upper bound.
    pub(super) upper: Option<u64>,
}

/// Returns the target before `goal`, or `None` if the goal's own trials are not longer.
pub(super) fn first_target(goal: &Goal) -> Option<Goal> {
    let first = Goal {
        final_trial_seconds: goal.initial_trial_seconds,
        duration_sum_seconds: goal.initial_trial_seconds,
        ..goal.clone()
    };
    (first.duration_sum_seconds < goal.duration_sum_seconds).then_some(first)
}

/// The trials so far, from the point of view of a goal or target.
pub(super) struct View<'a> {
    trials: &'a [SearchTrial],
    goal: &'a Goal,
    range: LoadRange,
    /// The bounds of an earlier target.
    hint: Bounds,
    uppers: BTreeSet<u64>,
    lowers: BTreeSet<u64>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        trials: &'a [SearchTrial],
        goal: &'a Goal,
        range: LoadRange,
        hint: Bounds,
    ) -> Self {
        let mut view = Self {
            trials,
            goal,
            range,
            hint,
            uppers: BTreeSet::new(),
            lowers: BTreeSet::new(),
        };
        let loads: BTreeSet<u64> = trials.iter().map(|trial| trial.load).collect();
        for load in loads {
            match classify(goal, view.at(load)) {
                Bound::Upper => drop(view.uppers.insert(load)),
                Bound::Lower => drop(view.lowers.insert(load)),
                Bound::Undecided => (),
            }
        }
        view
    }

    /// Returns the trials of `load`.
    pub(super) fn at(&self, load: u64) -> impl Iterator<Item = &'a SearchTrial> + use<'a> {
        self.trials.iter().filter(move |trial| trial.load == load)
    }

    pub(super) fn bounds(&self) -> Bounds {
        let upper = self.uppers.first().copied();
        let below = |load: &&u64| upper.is_none_or(|upper| **load < upper);
        Bounds {
            lower: self.lowers.iter().rfind(below).copied(),
            upper,
        }
    }

    pub(super) fn choose(&self) -> Choice {
        let LoadRange { min, max } = self.range;
        let load = match self.bounds() {
            Bounds {
                lower: None,
                upper: None,
            } => self.hint.lower.or(self.hint.upper).unwrap_or(max),
            Bounds {
                lower: None,
                upper: Some(upper),
            } if upper <= min => return Choice::End(SearchEnd::BelowRange),
            Bounds {
                lower: None,
                upper: Some(upper),
            } => self.below(upper),
            Bounds {
                lower: Some(lower),
                upper: None,
            } if lower >= max => return Choice::End(SearchEnd::AboveRange),
            Bounds {
                lower: Some(lower),
                upper: None,
            } => self.above(lower),
            Bounds {
                lower: Some(lower),
                upper: Some(upper),
            } if self.close(lower, upper) => return Choice::End(SearchEnd::Converged),
            Bounds {
                lower: Some(lower),
                upper: Some(upper),
            } => self.between(lower, upper),
        };
        let load = load.clamp(min, max);
        Choice::Measure(TrialInput {
            load,
            seconds: self.seconds(load),
        })
    }

    fn close(&self, lower: u64, upper: u64) -> bool {
        let apart = upper - lower;
        apart <= 1 || apart as f64 <= self.goal.width * upper as f64
    }

    /// If no loss is permitted, a short trial can save a long one, and is made first.
    fn seconds(&self, load: u64) -> f64 {
        let new = self.at(load).next().is_none();
        if new && self.goal.exceed_ratio <= 0.0 {
            self.goal.initial_trial_seconds
        } else {
            self.goal.final_trial_seconds
        }
    }

    /// Returns the forwarding rate at the upper bound, or less, the more loads have failed.
    fn below(&self, upper: u64) -> u64 {
        if let Some(hint) = self.hint.lower.filter(|&load| load < upper) {
            return hint;
        }
        let step = self.step(self.uppers.len());
        let stepped = whole(upper as f64 * (1.0 - step));
        let counted = self.at(upper).filter(|trial| !trial.generator_limited);
        let forwarded = counted.map(|trial| upper as f64 * (1.0 - trial.loss_ratio()));
        let forwarded = whole(forwarded.fold(upper as f64, f64::min));
        stepped.min(forwarded).min(upper - 1)
    }

    /// Returns a higher load, the higher the more loads were forwarded.
    fn above(&self, lower: u64) -> u64 {
        let hints = [self.hint.lower, self.hint.upper];
        if let Some(hint) = hints.into_iter().flatten().find(|&load| load > lower) {
            return hint;
        }
        let step = self.step(self.lowers.len());
        whole(lower as f64 * (1.0 + step)).max(lower + 1)
    }

    /// Returns a bound of the earlier target, or the middle: of the logarithms, if the bounds are
    /// far apart.
    fn between(&self, lower: u64, upper: u64) -> u64 {
        let hints = [self.hint.lower, self.hint.upper];
        let inside = |&load: &u64| lower < load && load < upper;
        if let Some(hint) = hints.into_iter().flatten().find(inside) {
            return hint;
        }
        let (low, high) = (lower as f64, upper as f64);
        let middle = if high > 2.0 * low {
            (low * high).sqrt()
        } else {
            f64::midpoint(low, high)
        };
        whole(middle).clamp(lower + 1, upper - 1)
    }

    /// Returns the goal's width, doubled with each load that was tried; at most half of the load.
    fn step(&self, tried: usize) -> f64 {
        let doublings = u32::try_from(tried.saturating_sub(1)).map_or(30, |tried| tried.min(30));
        (self.goal.width * f64::from(1_u32 << doublings)).min(0.5)
    }
}

/// Rounds to a load.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "loads are positive, and a cast of what is too great gives the greatest"
)]
pub(super) fn whole(load: f64) -> u64 {
    load as u64
}
