//! What a load's trials say of it (RFC 9971, appendices A and B). Nothing here
//! chooses a load.

use super::{Goal, SearchTrial};

/// What a load is to a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It upholds the goal, whatever further trials show.
    Lower,
    /// It fails the goal, whatever further trials show.
    Upper,
    /// Further trials decide.
    Undecided,
}

/// Time spent in trials of a load, in seconds, by what they are to a goal.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    full_low: f64,
    full_high: f64,
    short_low: f64,
    short_high: f64,
}

impl Spent {
    fn of<'a>(goal: &Goal, trials: impl Iterator<Item = &'a SearchTrial>) -> Self {
        let mut spent = Self::default();
        for trial in trials.filter(|trial| !trial.generator_limited) {
            let low = trial.loss_ratio() <= goal.loss_ratio;
            let sum = match (is_full(goal, trial), low) {
                (true, true) => &mut spent.full_low,
                (true, false) => &mut spent.full_high,
                (false, true) => &mut spent.short_low,
                (false, false) => &mut spent.short_high,
            };
            *sum += trial.seconds;
        }
        spent
    }
}

/// What the load of `trials`, all of one load, is to `goal`.
///
/// Short trials can make it an upper bound, never a lower one. Those among them that lost
/// much count only as far as those that did not do not make up for them.
#[must_use]
pub fn classify<'a>(goal: &Goal, trials: impl Iterator<Item = &'a SearchTrial>) -> Bound {
    let spent = Spent::of(goal, trials);
    let balance = spent.short_low * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
    let high = spent.full_high + (spent.short_high - balance).max(0.0);
    // What is missing until the sum is taken for good, and for bad.
    let whole = (spent.full_low + high).max(goal.duration_sum_seconds);
    let allowed = whole * goal.exceed_ratio;
    let at_worst = whole - spent.full_low;
    match (high <= allowed, at_worst <= allowed) {
        (true, true) => Bound::Lower,
        (true, false) => Bound::Undecided,
        (false, _) => Bound::Upper,
    }
}

/// What is forwarded of `load` in the worst of the trials that the goal does not
/// let exceed, all being of that load; none without a trial of full length.
///
/// If the goal's time was not spent, the rest counts as lost, except that one
/// trial at least is believed.
#[must_use]
pub fn conditional_throughput<'a>(
    goal: &Goal,
    load: u64,
    trials: impl Iterator<Item = &'a SearchTrial>,
) -> Option<f64> {
    let counts = |trial: &&SearchTrial| !trial.generator_limited && is_full(goal, trial);
    let mut trials: Vec<&SearchTrial> = trials.filter(counts).collect();
    trials.sort_by(|a, b| a.loss_ratio().total_cmp(&b.loss_ratio()));
    let spent: f64 = trials.iter().map(|trial| trial.seconds).sum();
    let mut remaining = spent.max(goal.duration_sum_seconds) * (1.0 - goal.exceed_ratio);
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
