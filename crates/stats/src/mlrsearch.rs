//! What throughput means, and how it is found: the search for multiple loss
//! ratios (MLRsearch, RFC 9971).
//!
//! A device that is a program does not carry every load below its limit, nor lose
//! at every load above: what a trial shows is noisy. So a load is judged by all its
//! trials together. A goal says how long a trial must be, how much time must be
//! spent at a load, which share of frames a trial may lose, and which share of that
//! time may lose more. By these a load is a lower bound, an upper bound, or undecided;
//! the throughput lies between the smallest upper bound and the largest
//! lower bound below that. RFC 2544's search and that of ETSI GS NFV-TST 009 are
//! goals like others.
//!
//! The search asks and is told ([`Search::next`], [`Search::handle`]): it does no I/O
//! and reads no clock. [`search`] carries it out with a function for trials. What a
//! load is, is up to that: frames a second, or the frames of a burst.
//!
//! A trial in which the generator fell short says nothing of the device. It is kept,
//! judges no load, and if it comes again the search goes no higher than what was
//! offered.

mod choose;
mod classify;
mod goal;

use serde::{Deserialize, Serialize};

pub use classify::{Bound, classify, conditional_throughput};
pub use goal::{BadSearch, Goal};

use choose::{Bounds, Choice, View, first_target};

/// The loads among which is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRange {
    /// The least load. It should be large enough for a frame in the shortest trial.
    pub min: u64,
    /// The greatest load: what the link carries, as a rule.
    pub max: u64,
}

/// What a trial is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialInput {
    /// The load to offer.
    pub load: u64,
    /// For how long, in seconds.
    pub seconds: f64,
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialOutput {
    /// Frames that the generator was to send.
    pub intended: u64,
    /// Frames that it did send.
    pub offered: u64,
    /// Frames among those that did not come out.
    pub lost: u64,
    /// What the trial took, in seconds: what counts towards a goal's duration sum.
    pub seconds: f64,
}

/// A trial of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchTrial {
    /// The load that was to be offered.
    pub load: u64,
    /// For how long it was to be, in seconds.
    pub intended_seconds: f64,
    /// What counts of it towards a goal's duration sum, in seconds.
    pub seconds: f64,
    /// Frames that were to be sent.
    pub intended: u64,
    /// Frames that were.
    pub offered: u64,
    /// Frames among those that did not come out.
    pub lost: u64,
    /// Whether the generator fell short, so that the trial judges no load.
    pub generator_limited: bool,
}

impl SearchTrial {
    /// The share of frames that did not come out; all, if there were none.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        if self.offered == 0 {
            1.0
        } else {
            self.lost as f64 / self.offered as f64
        }
    }
}

/// Why the search for a goal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The bounds are as close as the goal wants: the only regular result.
    Found,
    /// The greatest load of the range is a lower bound.
    AboveRange,
    /// The greatest load that the generator offers is a lower bound.
    AboveGenerator,
    /// The least load of the range is an upper bound.
    BelowRange,
    /// The generator does not offer even the least load.
    NoLoad,
    /// [`TRIALS_MAX`] trials did not suffice.
    TooManyTrials,
    /// It was stopped: a trial failed, or the user did not want to wait.
    Stopped,
}

/// What was found for a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The goal.
    pub goal: Goal,
    /// Why the search ended.
    pub end: End,
    /// The relevant lower bound: the largest below the relevant upper bound, or, if there is
    /// none of those, the largest.
    pub lower: Option<u64>,
    /// The relevant upper bound: the smallest.
    pub upper: Option<u64>,
    /// What is forwarded at the lower bound, by the goal's quantile of its trials.
    pub conditional_throughput: Option<f64>,
}

/// What a search has come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// For each goal, in the order in which they were given.
    pub found: Vec<Found>,
    /// All trials, in the order in which they were made.
    pub trials: Vec<SearchTrial>,
}

/// What a search wants next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// A trial.
    Measure(TrialInput),
    /// Nothing.
    Done,
}

/// More trials than any search of a device that is at all the same from trial to
/// trial takes; with those of RFC 2544 they would last for most of a day.
pub const TRIALS_MAX: usize = 1_000;

/// Shortfall of the generator that is still the load that was asked for, as a share
/// of that.
pub const SHORTFALL_MAX: f64 = 0.001;

/// A generator falls short now and then because the machine does: it is believed to be at
/// its limit when it did so this often at a load.
const SHORT_TRIALS_MAX: usize = 2;

/// What is then gone on with, as a share of what it did offer: at its very limit it would
/// fall short again and again.
const REACHED: f64 = 0.99;

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    goals: Vec<Goal>,
    range: LoadRange,
    /// The greatest load that the generator is believed to offer.
    reach: u64,
    trials: Vec<SearchTrial>,
}

impl Search {
    /// A search for `goals` among the loads of `range`.
    ///
    /// # Errors
    /// A goal or the range makes no sense.
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

    /// What is wanted next: the same until it is told of.
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

    /// Takes what came of `input`.
    pub fn handle(&mut self, input: TrialInput, output: TrialOutput) {
        let wanted = output.intended as f64 * (1.0 - SHORTFALL_MAX);
        let generator_limited = output.offered == 0 || (output.offered as f64) < wanted;
        // A clock that stops a hair early must not cost another trial.
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

    /// Ends a search, whether or not it is done.
    #[must_use]
    pub fn finish(self) -> SearchOutcome {
        let found = self.goals.iter().map(|goal| self.found(goal)).collect();
        SearchOutcome {
            found,
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
            return Choice::End(End::NoLoad);
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

    /// An end at the generator's limit is not one at the range's.
    fn named(&self, choice: Choice) -> Choice {
        match choice {
            Choice::End(End::AboveRange) if self.reach < self.range.max => {
                Choice::End(End::AboveGenerator)
            }
            choice => choice,
        }
    }

    fn found(&self, goal: &Goal) -> Found {
        let view = self.view(goal, Bounds::default());
        let bounds = view.bounds();
        let end = match self.choose(goal) {
            Choice::End(end) => end,
            Choice::Measure(_) if self.trials.len() >= TRIALS_MAX => End::TooManyTrials,
            Choice::Measure(_) => End::Stopped,
        };
        Found {
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

/// A trial failed; what was found until then is not lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed<E> {
    /// The reason.
    pub reason: E,
    /// What there is.
    pub outcome: SearchOutcome,
}

/// Searches for `goals` with `measure` for trials.
///
/// # Errors
/// A trial could not be made; the goals' bounds so far come with the reason.
pub fn search<E>(
    mut search: Search,
    mut measure: impl FnMut(TrialInput) -> Result<TrialOutput, E>,
) -> Result<SearchOutcome, Failed<E>> {
    while let SearchStep::Measure(input) = search.next() {
        match measure(input) {
            Ok(output) => search.handle(input, output),
            Err(reason) => {
                return Err(Failed {
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
