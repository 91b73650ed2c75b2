//! The example of RFC 9971, appendix C: one load of a million frames per second, four goals, and
//! trials that are added in six steps; the classification for each goal after each step, and the
//! conditional throughput at the end.
//!
//! The appendix contradicts itself in one place. For its last goal, whose exceed ratio is 20 %, it
//! prints "Lower Bound" at points 5 and 6 for exceed ratios of 42.857 % and 27.273 %. By the code
//! of appendix A, this load is an upper bound there; the test expects that.

use crate::mlrsearch::*;

const LOAD: u64 = 1_000_000;

fn goals() -> [Goal; 4] {
    let goal = |name: &str, [last, sum]: [f64; 2], [loss, exceed]: [f64; 2]| Goal {
        name: name.to_owned(),
        final_trial_seconds: last,
        duration_sum_seconds: sum,
        loss_ratio: loss,
        exceed_ratio: exceed,
        width: 0.005,
        initial_trial_seconds: last.min(1.0),
    };
    [
        goal("RFC2544", [60.0, 60.0], [0.0, 0.0]),
        goal("TST009", [60.0, 120.0], [0.0, 0.5]),
        goal("1s final", [1.0, 120.0], [0.005, 0.5]),
        goal("20% exceed", [60.0, 60.0], [0.005, 0.2]),
    ]
}

/// For each step, the number of trials added, their duration in seconds, and their loss in
/// thousandths.
const STEPS: [(usize, u64, u64); 6] = [
    (59, 1, 0),
    (1, 1, 10),
    (59, 1, 10),
    (1, 1, 0),
    (1, 60, 1),
    (1, 60, 0),
];

fn trials(steps: usize) -> Vec<SearchTrial> {
    let trial = |seconds: u64, thousandths: u64| SearchTrial {
        load: LOAD,
        intended_seconds: seconds as f64,
        seconds: seconds as f64,
        intended: LOAD * seconds,
        offered: LOAD * seconds,
        lost: LOAD * seconds / 1_000 * thousandths,
        generator_limited: false,
    };
    let steps = STEPS[..steps].iter();
    steps
        .flat_map(|&(count, seconds, loss)| vec![trial(seconds, loss); count])
        .collect()
}

#[test]
fn example_of_the_rfc_is_classified_as_published() {
    use Bound::{Lower, Undecided, Upper};
    let published = [
        [Undecided, Undecided, Undecided, Undecided],
        [Upper, Undecided, Undecided, Undecided],
        [Upper, Undecided, Undecided, Upper],
        [Upper, Undecided, Lower, Upper],
        [Upper, Undecided, Lower, Upper],
        [Upper, Lower, Lower, Upper],
    ];
    for (step, wanted) in (1..).zip(published) {
        let trials = trials(step);
        let found = goals().map(|goal| classify(&goal, trials.iter()));
        assert_eq!(found, wanted, "point {step}");
    }
}

#[test]
fn example_of_the_rfc_has_the_published_conditional_throughputs() {
    let trials = trials(6);
    let [_, tst009, one_second, exceed] =
        goals().map(|goal| conditional_throughput(&goal, LOAD, trials.iter()));
    assert_eq!(tst009, Some(1_000_000.0));
    assert_eq!(one_second, Some(1_000_000.0));
    assert_eq!(exceed, Some(999_000.0));
}

#[test]
fn time_that_was_not_spent_counts_as_lost() {
    // A single second of the required 120.
    let [_, _, goal, _] = goals();
    let trials = trials(1);
    let one = conditional_throughput(&goal, LOAD, trials[..1].iter());
    assert_eq!(one, Some(0.0));
    // No full-length trial: no result.
    let [rfc2544, ..] = goals();
    assert_eq!(conditional_throughput(&rfc2544, LOAD, trials.iter()), None);
}

#[test]
fn load_without_trials_is_undecided() {
    for goal in goals() {
        assert_eq!(classify(&goal, [].iter()), Bound::Undecided);
    }
}

#[test]
fn trials_in_which_the_generator_fell_short_judge_nothing() {
    let [rfc2544, ..] = goals();
    let mut trials = trials(2);
    let lossy = trials.last_mut().unwrap();
    lossy.generator_limited = true;
    assert_eq!(classify(&rfc2544, trials.iter()), Bound::Undecided);
}
