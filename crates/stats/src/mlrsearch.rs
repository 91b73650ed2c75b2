//! MLRsearch: the search for the loads of several loss ratios in one sequence of trials (RFC 9971,
//! M. Konstantynowicz, V. Polak).
//!
//! A software device neither forwards every load below its limit nor drops at every load above it:
//! the result of one trial is noisy. A load is therefore judged by all of its trials together. A
//! [`Goal`] sets the duration of a full trial, the total duration of trials at a load, the loss
//! ratio that a trial may have, and the share of that duration in which trials may exceed it. By
//! these, a load is a lower bound, an upper bound or undecided:
//!
//! ```text
//!   loss ratio                                   o        o   one trial
//!    goal  - - - - - - - - - - - - - -o- - - - - - -
//!      0   o----o----o---------o---o----------------------> load
//!          lower bounds        |   |   upper bounds
//!                              +---+
//!                              width: the relevant bounds
//! ```
//!
//! The throughput is between the smallest upper bound and the largest lower bound below it. The
//! searches of RFC 2544 and ETSI GS NFV-TST 009 are special goals. A search costs about log2(range
//! / width) loads for each goal, most of them with one short trial, since shorter targets narrow
//! the range first.
//!
//! The search is a state machine without I/O and clock ([`Search::next`], [`Search::handle`]);
//! [`search`] runs it with a function for trials. The unit of loads is arbitrary: frames per
//! second, or frames of a burst.
//!
//! A trial in which the generator offered less than intended says nothing about the device. It is
//! recorded, judges no load, and if it is repeated, the search does not exceed the offered load.
//!
//! # Examples
//!
//! ```
//! use stats::mlrsearch::{Goal, LoadRange, Search, TrialInput, TrialOutput, search};
//!
//! // A device that forwards 500,000 frames/s.
//! let trial = |input: TrialInput| {
//!     let offered = (input.load as f64 * input.seconds) as u64;
//!     let forwarded = (500_000.0 * input.seconds) as u64;
//!     Ok::<_, std::convert::Infallible>(TrialOutput {
//!         intended: offered,
//!         offered,
//!         lost: offered.saturating_sub(forwarded),
//!         seconds: input.seconds,
//!     })
//! };
//! let range = LoadRange { min: 1_000, max: 10_000_000 };
//! let search_state = Search::new(vec![Goal::quick_ndr()], range).unwrap();
//! let outcome = search(search_state, trial).unwrap();
//! let result = &outcome.results[0];
//! assert!(result.lower.unwrap() <= 500_000 && result.upper.unwrap() > 500_000);
//! ```

mod choose;
mod classify;
mod goal;

use serde::{Deserialize, Serialize};

pub use classify::{Bound, classify, conditional_throughput};
pub use goal::{BadSearch, Goal};

use choose::{Bounds, Choice, View, first_target};

/// The range of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRange {
    /// Minimum load, at least a frame in the shortest trial.
    pub min: u64,
    /// Maximum load, usually that of the link.
    pub max: u64,
}

/// The parameters of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialInput {
    /// Load to offer.
    pub load: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialOutput {
    /// Frames that the generator was to send (intended load).
    pub intended: u64,
    /// Frames that it sent (offered load).
    pub offered: u64,
    /// Frames of these that did not arrive.
    pub lost: u64,
    /// Duration in seconds, which counts towards a goal's duration sum.
    pub seconds: f64,
}

/// A trial of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchTrial {
    /// Intended load.
    pub load: u64,
    /// Intended duration in seconds.
    pub intended_seconds: f64,
    /// Duration in seconds, which counts towards a goal's duration sum.
    pub seconds: f64,
    /// Frames that were to be sent.
    pub intended: u64,
    /// Frames that were sent.
    pub offered: u64,
    /// Frames of these that did not arrive.
    pub lost: u64,
    /// True if the generator offered too little, so that the trial judges no load.
    pub generator_limited: bool,
}

impl SearchTrial {
    /// Returns the loss ratio; 1 if no frame was sent.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        if self.offered == 0 {
            1.0
        } else {
            self.lost as f64 / self.offered as f64
        }
    }
}

/// The reason for which the search for a goal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// The bounds are as close as the goal requires: the only regular result.
    #[serde(rename = "found")]
    Converged,
    /// The maximum load of the range is a lower bound.
    AboveRange,
    /// The maximum load of the generator is a lower bound.
    AboveGenerator,
    /// The minimum load of the range is an upper bound.
    BelowRange,
    /// The generator does not reach the minimum load.
    NoLoad,
    /// [`TRIALS_MAX`] trials did not suffice.
    TooManyTrials,
    /// The search was stopped: a trial failed, or the user interrupted it.
    Stopped,
}

/// The result for a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// The reason for which its search ended.
    pub end: SearchEnd,
    /// The relevant lower bound: the largest below the relevant upper bound, or the largest if
    /// there is none.
    pub lower: Option<u64>,
    /// The relevant upper bound: the smallest.
    pub upper: Option<u64>,
    /// Forwarding rate at the lower bound, by the goal's quantile of its trials.
    pub conditional_throughput: Option<f64>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// The result for each goal, in the order of the goals.
    #[serde(rename = "found")]
    pub results: Vec<GoalResult>,
    /// All trials, in their order.
    pub trials: Vec<SearchTrial>,
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// A trial.
    Measure(TrialInput),
    /// None: the search is complete.
    Done,
}

/// Maximum number of trials: more than a search needs if the device is at all reproducible; with
/// those of RFC 2544 they would take most of a day.
pub const TRIALS_MAX: usize = 1_000;

/// Maximum shortfall of the generator, as a share of the intended load.
pub const SHORTFALL_MAX: f64 = 0.001;

/// Number of trials at a load in which the generator must fall short before it counts as its limit;
/// single ones are caused by the machine.
const SHORT_TRIALS_MAX: usize = 2;

/// Share of the offered load with which the search continues then: exactly at its limit the
/// generator would fall short again.
const REACHED: f64 = 0.99;

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    goals: Vec<Goal>,
    range: LoadRange,
    /// Assumed maximum load of the generator.
    reach: u64,
    trials: Vec<SearchTrial>,
}

impl Search {
    /// Creates a search for `goals` in `range`.
    ///
    /// # Errors
    /// A goal or the range is invalid.
    pub fn new(goals: Vec<Goal>, range: LoadRange) -> Result<Self, BadSearch> {
        if goals.is_empty() {
            return Err(BadSearch::NoGoal);
        }
        goals.iter().try_for_each(Goal::check)?;
        if range.min == 0 || range.min > range.max {
            return Err(BadSearch::Range(range.min, range.max));
        }
        let reach = range.max;
        Ok(Self {
            goals,
            range,
            reach,
            trials: Vec::new(),
        })
    }

    /// Returns the next step, the same until its result is handled.
    #[must_use]
    pub fn next(&self) -> SearchStep {
        if self.trials.len() >= TRIALS_MAX {
            return SearchStep::Done;
        }
        let wanted = self.goals.iter().find_map(|goal| match self.choose(goal) {
            Choice::Measure(input) => Some(input),
            Choice::End(_) => None,
        });
        wanted.map_or(SearchStep::Done, SearchStep::Measure)
    }

    /// Handles the result of the trial `input`.
    pub fn handle(&mut self, input: TrialInput, output: TrialOutput) {
        let wanted = output.intended as f64 * (1.0 - SHORTFALL_MAX);
        let generator_limited = output.offered == 0 || (output.offered as f64) < wanted;
        // A clock that stops slightly early must not cost another trial.
        let nearly = input.seconds * (1.0 - SHORTFALL_MAX)..input.seconds;
        let seconds = if nearly.contains(&output.seconds) {
            input.seconds
        } else {
            output.seconds.max(0.0)
        };
        self.trials.push(SearchTrial {
            load: input.load,
            intended_seconds: input.seconds,
            seconds,
            intended: output.intended,
            offered: output.offered,
            lost: output.lost.min(output.offered),
            generator_limited,
        });
        if generator_limited {
            self.lower_reach(input.load);
        }
    }

    /// Ends a search, complete or not.
    #[must_use]
    pub fn finish(self) -> SearchOutcome {
        let results = self.goals.iter().map(|goal| self.result_of(goal)).collect();
        SearchOutcome {
            results,
            trials: self.trials,
        }
    }

    fn lower_reach(&mut self, load: u64) {
        let trials = self.trials.iter();
        let short = trials.filter(|trial| trial.generator_limited && trial.load == load);
        let shares = short.map(|trial| trial.offered as f64 / trial.intended.max(1) as f64);
        let shares: Vec<f64> = shares.collect();
        if shares.len() >= SHORT_TRIALS_MAX {
            let best = shares.into_iter().fold(0.0, f64::max).min(1.0);
            let offered = choose::whole(load as f64 * best * REACHED);
            self.reach = self.reach.min(offered).min(load.saturating_sub(1));
        }
    }

    fn choose(&self, goal: &Goal) -> Choice {
        if self.reach < self.range.min {
            return Choice::End(SearchEnd::NoLoad);
        }
        let mut hint = Bounds::default();
        if let Some(target) = first_target(goal) {
            let view = self.view(&target, hint);
            match view.choose() {
                Choice::End(_) => hint = view.bounds(),
                measure @ Choice::Measure(_) => return measure,
            }
        }
        self.named(self.view(goal, hint).choose())
    }

    fn view<'a>(&'a self, goal: &'a Goal, hint: Bounds) -> View<'a> {
        let min = self.range.min;
        let max = self.reach.max(min);
        View::new(&self.trials, goal, LoadRange { min, max }, hint)
    }

    /// Distinguishes the limit of the generator from that of the range.
    fn named(&self, choice: Choice) -> Choice {
        match choice {
            Choice::End(SearchEnd::AboveRange) if self.reach < self.range.max => {
                Choice::End(SearchEnd::AboveGenerator)
            }
            choice => choice,
        }
    }

    fn result_of(&self, goal: &Goal) -> GoalResult {
        let view = self.view(goal, Bounds::default());
        let bounds = view.bounds();
        let end = match self.choose(goal) {
            Choice::End(end) => end,
            Choice::Measure(_) if self.trials.len() >= TRIALS_MAX => SearchEnd::TooManyTrials,
            Choice::Measure(_) => SearchEnd::Stopped,
        };
        GoalResult {
            goal: goal.clone(),
            end,
            lower: bounds.lower,
            upper: bounds.upper,
            conditional_throughput: bounds
                .lower
                .and_then(|load| conditional_throughput(goal, load, view.at(load))),
        }
    }
}

/// A failed trial, with the results until then.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedSearch<E> {
    /// The reason.
    pub reason: E,
    /// The results.
    pub outcome: SearchOutcome,
}

/// Searches for `goals`, with `measure` for trials.
///
/// # Errors
/// A trial failed; the results until then accompany the reason.
pub fn search<E>(
    mut search: Search,
    mut measure: impl FnMut(TrialInput) -> Result<TrialOutput, E>,
) -> Result<SearchOutcome, FailedSearch<E>> {
    while let SearchStep::Measure(input) = search.next() {
        match measure(input) {
            Ok(output) => search.handle(input, output),
            Err(reason) => {
                return Err(FailedSearch {
                    reason,
                    outcome: search.finish(),
                });
            }
        }
    }
    Ok(search.finish())
}

#[cfg(test)]
mod tests;
