//! The classification of a load by its trials (RFC 9971, appendices A and B).

use super::{Goal, SearchTrial};

/// The classification of a load for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Satisfies the goal, whatever further trials show.
    Lower,
    /// Fails the goal, whatever further trials show.
    Upper,
    /// Further trials decide.
    Undecided,
}

/// Durations of the trials of a load in seconds, by length and loss.
#[derive(Clone, Copy, Debug, Default)]
struct TrialDurations {
    full_low: f64,
    full_high: f64,
    short_low: f64,
    short_high: f64,
}

impl TrialDurations {
    fn of<'a>(goal: &Goal, trials: impl Iterator<Item = &'a SearchTrial>) -> Self {
        let mut durations = Self::default();
        for trial in trials.filter(|trial| !trial.generator_limited) {
            let low = trial.loss_ratio() <= goal.loss_ratio;
            let sum = match (is_full(goal, trial), low) {
                (true, true) => &mut durations.full_low,
                (true, false) => &mut durations.full_high,
                (false, true) => &mut durations.short_low,
                (false, false) => &mut durations.short_high,
            };
            *sum += trial.seconds;
        }
        durations
    }
}

/// Classifies the load of `trials`, which are all of one load, for `goal`.
///
/// Short trials can make it an upper bound, never a lower bound. Those with high loss only count as
/// far as those with low loss do not compensate for them.
#[must_use]
pub fn classify<'a>(goal: &Goal, trials: impl Iterator<Item = &'a SearchTrial>) -> Bound {
    let durations = TrialDurations::of(goal, trials);
    let balance = durations.short_low * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
    let high = durations.full_high + (durations.short_high - balance).max(0.0);
    // The missing duration is assumed to be good, and to be bad.
    let whole = (durations.full_low + high).max(goal.duration_sum_seconds);
    let allowed = whole * goal.exceed_ratio;
    let at_worst = whole - durations.full_low;
    match (high <= allowed, at_worst <= allowed) {
        (true, true) => Bound::Lower,
        (true, false) => Bound::Undecided,
        (false, _) => Bound::Upper,
    }
}

/// Returns the forwarding rate of `load` in the worst of the trials that the goal does not permit
/// to exceed; all trials are of that load. Returns `None` without a full-length trial.
///
/// If the goal's duration is not reached, the rest counts as lost, except that at least one trial
/// counts.
#[must_use]
pub fn conditional_throughput<'a>(
    goal: &Goal,
    load: u64,
    trials: impl Iterator<Item = &'a SearchTrial>,
) -> Option<f64> {
    let counts = |trial: &&SearchTrial| !trial.generator_limited && is_full(goal, trial);
    let mut trials: Vec<&SearchTrial> = trials.filter(counts).collect();
    trials.sort_by(|a, b| a.loss_ratio().total_cmp(&b.loss_ratio()));
    let durations: f64 = trials.iter().map(|trial| trial.seconds).sum();
    let mut remaining = durations.max(goal.duration_sum_seconds) * (1.0 - goal.exceed_ratio);
    let mut loss = trials.first()?.loss_ratio();
    for trial in trials {
        if remaining <= 0.0 {
            break;
        }
        loss = trial.loss_ratio();
        remaining -= trial.seconds;
    }
    if remaining > 0.0 {
        loss = 1.0;
    }
    Some(load as f64 * (1.0 - loss))
}

fn is_full(goal: &Goal, trial: &SearchTrial) -> bool {
    trial.intended_seconds >= goal.final_trial_seconds
}
