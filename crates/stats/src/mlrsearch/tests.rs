//! Searches on formulas in place of devices, and the example of RFC 9971.

use base::SplitMix64;

use super::*;

mod example;

const RANGE: LoadRange = LoadRange {
    min: 1_000,
    max: 1_488_095,
};

/// Searches on a device with this loss ratio for a load and duration, and a generator without a
/// limit.
fn run(
    goals: &[Goal],
    mut loss: impl FnMut(f64, f64, &[SearchTrial]) -> f64,
) -> Result<SearchOutcome, BadSearch> {
    let mut search = Search::new(goals.to_vec(), RANGE)?;
    while let SearchStep::Measure(input) = search.next() {
        let intended = choose::whole((input.load as f64 * input.seconds).max(1.0));
        let share = loss(input.load as f64, input.seconds, &search.trials);
        let output = TrialOutput {
            intended,
            offered: intended,
            lost: choose::whole((intended as f64 * share).ceil()),
            seconds: input.seconds,
        };
        search.handle(input, output);
    }
    Ok(search.finish())
}

fn found(
    goal: Goal,
    loss: impl Fn(f64, f64, &[SearchTrial]) -> f64,
) -> (GoalResult, Vec<SearchTrial>) {
    let outcome = run(&[goal], loss).unwrap();
    (outcome.results[0].clone(), outcome.trials)
}

/// True if the result is regular and holds `truth`, and its width is that of the goal.
fn holds(found: &GoalResult, truth: f64) -> bool {
    let (Some(lower), Some(upper)) = (found.lower, found.upper) else {
        return false;
    };
    let width = (upper - lower) as f64 / upper as f64;
    found.end == SearchEnd::Converged
        && width <= found.goal.width
        && lower as f64 <= truth
        && truth <= upper as f64
}

fn presets() -> [Goal; 6] {
    [
        Goal::rfc2544(),
        Goal::tst009(),
        Goal::ndr(),
        Goal::pdr(),
        Goal::quick_ndr(),
        Goal::quick_pdr(),
    ]
}

#[test]
fn sharp_edge_is_found_by_all_goals() {
    for goal in presets() {
        for edge in [2_345.0, 100_000.0, 733_000.0, 1_480_000.0] {
            let beyond = |load: f64, _: f64, _: &[SearchTrial]| (1.0 - edge / load).max(0.0);
            let (found, trials) = found(goal.clone(), beyond);
            let allowed = edge / (1.0 - goal.loss_ratio);
            assert!(holds(&found, allowed), "{found:?} of {edge}");
            let judged = found.conditional_throughput.unwrap();
            assert!(
                judged <= edge && judged >= edge * (0.98 - goal.width),
                "{judged} {edge}"
            );
            assert!(trials.len() < 120, "{} trials", trials.len());
        }
    }
}

#[test]
fn long_trials_are_few_where_short_ones_tell_the_same() {
    let edge = |load: f64, _: f64, _: &[SearchTrial]| if load > 500_000.0 { 0.01 } else { 0.0 };
    let (_, trials) = found(Goal::rfc2544(), edge);
    let long = trials.iter().filter(|trial| trial.intended_seconds >= 60.0);
    assert_eq!(
        long.count(),
        1,
        "the lower bound's; the upper fell to a short one"
    );
}

#[test]
fn buffering_device_is_judged_by_long_trials() {
    // Sustains 400,000 frames/s, and buffers half a million frames.
    let buffered = |load: f64, seconds: f64, _: &[SearchTrial]| {
        let excess = (load - 400_000.0) * seconds - 500_000.0;
        (excess / (load * seconds)).max(0.0)
    };
    let (found, _) = found(Goal::rfc2544(), buffered);
    assert!(holds(&found, 400_000.0 + 500_000.0 / 60.0), "{found:?}");
}

#[test]
fn loss_that_grows_slowly_is_held_against_the_goals_ratio() {
    // A sigmoid: the loss ratio is 0.5 % where exp((load - 1e6) / 2e4) = 0.005 / 0.995.
    let sigmoid = |load: f64, _: f64, _: &[SearchTrial]| {
        1.0 / (1.0 + (-(load - 1_000_000.0) / 20_000.0).exp())
    };
    let truth = 1_000_000.0 + 20_000.0 * (0.005_f64 / 0.995).ln();
    let (found, _) = found(Goal::pdr(), sigmoid);
    assert!(holds(&found, truth), "{found:?} {truth}");
}

#[test]
fn lossy_device_has_only_a_partial_drop_rate() {
    let leak = |load: f64, _: f64, _: &[SearchTrial]| (1.0 - 600_000.0 / load).max(0.000_2);
    let outcome = run(&[Goal::ndr(), Goal::pdr()], leak).unwrap();
    let [ndr, pdr] = &outcome.results[..] else {
        panic!("two goals")
    };
    assert_eq!((ndr.end, ndr.lower), (SearchEnd::BelowRange, None));
    assert!(holds(pdr, 600_000.0 / 0.995), "{pdr:?}");
    assert_eq!(
        pdr.conditional_throughput.map(f64::round),
        Some({
            let lower = pdr.lower.unwrap() as f64;
            (lower * (1.0 - outcome_loss(&outcome, pdr.lower.unwrap()))).round()
        })
    );
}

fn outcome_loss(outcome: &SearchOutcome, load: u64) -> f64 {
    let at = outcome.trials.iter().filter(|trial| trial.load == load);
    at.map(SearchTrial::loss_ratio).fold(0.0, f64::max)
}

#[test]
fn search_with_noisy_trials_finds_the_load_that_half_of_them_pass() {
    // A trial has loss with a probability that grows around 800,000, where it is a half.
    let results: Vec<f64> = (1..=20)
        .map(|seed| {
            let mut random = SplitMix64::new(seed);
            let noisy = |load: f64, _: f64, _: &[SearchTrial]| {
                let passes = random.normal() * 8_000.0 + 800_000.0;
                if load > passes { 0.01 } else { 0.0 }
            };
            let outcome = run(&[Goal::ndr()], noisy).unwrap();
            let found = &outcome.results[0];
            assert_eq!(found.end, SearchEnd::Converged, "seed {seed}: {found:?}");
            found.lower.unwrap() as f64
        })
        .collect();
    for (seed, lower) in (1..).zip(&results) {
        assert!(
            (780_000.0..=808_000.0).contains(lower),
            "seed {seed}: {lower}"
        );
    }
}

#[test]
fn degrading_device_is_judged_by_its_losses() {
    // The device loses a thousandth of its rate with each trial.
    let tired = |load: f64, _: f64, trials: &[SearchTrial]| {
        let now = 900_000.0 * 0.999_f64.powi(i32::try_from(trials.len()).unwrap());
        (1.0 - now / load).max(0.0)
    };
    let (found, trials) = found(Goal::quick_ndr(), tired);
    assert_eq!(found.end, SearchEnd::Converged);
    let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
    assert!(lower < upper && upper <= 900_000, "{found:?}");
    let lossy = trials.iter().filter(|trial| trial.lost > 0);
    assert!(lossy.map(|trial| trial.load).min().unwrap() <= upper);
}

#[test]
fn range_limits_are_reported() {
    let (above, _) = found(Goal::ndr(), |_, _, _| 0.0);
    assert_eq!((above.end, above.upper), (SearchEnd::AboveRange, None));
    assert_eq!(above.lower, Some(RANGE.max));
    assert_eq!(above.conditional_throughput, Some(RANGE.max as f64));
    let (below, trials) = found(Goal::ndr(), |_, _, _| 1.0);
    assert_eq!((below.end, below.lower), (SearchEnd::BelowRange, None));
    assert_eq!(below.upper, Some(RANGE.min));
    assert!(trials.len() < 40, "{} trials", trials.len());
}

/// Searches with a generator of this maximum rate and a device without loss.
fn limited(max_pps: f64) -> SearchOutcome {
    let search = Search::new(vec![Goal::quick_ndr()], RANGE).unwrap();
    let done = super::search(search, |input| {
        let intended = input.load as f64 * input.seconds;
        Ok::<_, String>(TrialOutput {
            intended: choose::whole(intended),
            offered: choose::whole(intended.min(max_pps * input.seconds)),
            lost: 0,
            seconds: input.seconds,
        })
    });
    done.unwrap()
}

#[test]
fn generator_limit_is_not_reported_as_loss() {
    let outcome = limited(700_000.0);
    let found = &outcome.results[0];
    assert_eq!((found.end, found.upper), (SearchEnd::AboveGenerator, None));
    let lower = found.lower.unwrap();
    assert!((650_000..=700_000).contains(&lower), "{lower}");
    let limited = outcome
        .trials
        .iter()
        .filter(|trial| trial.generator_limited);
    assert!(limited.clone().count() >= 2);
    assert!(limited.clone().all(|trial| trial.load > 700_000));
    assert_eq!(self::limited(10.0).results[0].end, SearchEnd::NoLoad);
}

#[test]
fn failed_trial_keeps_earlier_results() {
    let search = Search::new(vec![Goal::quick_ndr()], RANGE).unwrap();
    let mut left = 5;
    let done = super::search(search, |input| {
        left -= 1;
        if left == 0 {
            return Err("the device died");
        }
        let offered = choose::whole(input.load as f64 * input.seconds);
        Ok(TrialOutput {
            intended: offered,
            offered,
            lost: if input.load > 90_000 { offered / 2 } else { 0 },
            seconds: input.seconds,
        })
    });
    let failed = done.unwrap_err();
    assert_eq!(failed.reason, "the device died");
    assert_eq!(failed.outcome.trials.len(), 4);
    assert_eq!(failed.outcome.results[0].end, SearchEnd::Stopped);
}

#[test]
fn search_ends_for_an_unsteady_device() {
    // Trials without duration never reach a goal's sum.
    let mut search = Search::new(vec![Goal::ndr()], RANGE).unwrap();
    while let SearchStep::Measure(input) = search.next() {
        let output = TrialOutput {
            intended: 1,
            offered: 1,
            lost: 0,
            seconds: 0.0,
        };
        search.handle(input, output);
    }
    let outcome = search.finish();
    assert_eq!(outcome.trials.len(), TRIALS_MAX);
    assert_eq!(outcome.results[0].end, SearchEnd::TooManyTrials);
}

#[test]
fn search_ends_with_ordered_bounds_for_any_device() {
    for seed in 1..=100 {
        let mut random = SplitMix64::new(seed);
        let edge = 1_000.0 * 1_500_f64.powf(random.below(1_000) as f64 / 1_000.0);
        let moody = |load: f64, _: f64, _: &[SearchTrial]| match random.below(4) {
            // Sometimes all frames are lost, or none, or a random share.
            0 => [0.0, 1.0, 0.004, 0.5][random.below(4)],
            _ => (1.0 - edge / load).max(0.0),
        };
        let outcome = run(&presets(), moody).unwrap();
        for found in &outcome.results {
            let inside =
                |load: Option<u64>| load.is_none_or(|load| (RANGE.min..=RANGE.max).contains(&load));
            assert!(
                inside(found.lower) && inside(found.upper),
                "seed {seed}: {found:?}"
            );
            if let (Some(lower), Some(upper)) = (found.lower, found.upper) {
                assert!(lower < upper, "seed {seed}: {found:?}");
            }
            assert_ne!(found.end, SearchEnd::Stopped, "seed {seed}: {found:?}");
        }
        assert!(outcome.trials.len() <= TRIALS_MAX);
    }
}

#[test]
fn invalid_search_is_refused_with_the_permitted_values() {
    let told = |goals, range| Search::new(goals, range).map(drop).unwrap_err().to_string();
    assert_eq!(told(vec![], RANGE), "a search has one goal at least");
    let backwards = LoadRange { min: 5, max: 4 };
    assert_eq!(
        told(vec![Goal::ndr()], backwards),
        "loads from 5 to 4: the least is above 0 and no more than the greatest"
    );
    let edit = |edit: fn(&mut Goal)| {
        let mut goal = Goal::ndr();
        edit(&mut goal);
        told(vec![goal], RANGE)
    };
    assert_eq!(
        edit(|goal| goal.width = 0.0),
        "goal NDR: the width is between 0 and 1"
    );
    assert_eq!(
        edit(|goal| goal.exceed_ratio = 1.0),
        "goal NDR: ratios are from 0 to less than 1"
    );
    assert_eq!(
        edit(|goal| goal.final_trial_seconds = f64::NAN),
        "goal NDR: trials take some time"
    );
}
