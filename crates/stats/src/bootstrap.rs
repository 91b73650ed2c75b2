//! Confidence intervals by resampling runs: the bootstrap (B. Efron, "Bootstrap methods: another
//! look at the jackknife", Annals of Statistics 7, 1979), for statistics without a formula, for
//! instance a percentile of all packets of all runs.
//!
//! ```text
//!   runs      A B C D E F G            statistic = s
//!   resample  C A G G B E A            s1
//!             B D A F F C E            s2        interval: the middle 99 % of s1 ... s2000
//!             ...                      ...
//! ```
//!
//! A run is drawn as a whole, with all correlation in it. The cost is 2,000 evaluations of the
//! statistic.

use base::SplitMix64;

use super::Interval;

/// Number of resamples. The ends of a 99 % interval are the tenth values from either end.
pub const RESAMPLES: usize = 2_000;

/// Minimum number of runs. With fewer, the ends of the interval are the runs themselves, and it
/// holds the true value less often than it claims: with seven, in 97 of 100 cases or fewer.
pub const BOOTSTRAP_RUNS_MIN: usize = 7;

/// Returns the `statistic` of `runs`, and its percentile interval (Efron and Tibshirani, 1993,
/// 13.3). Equal seeds give equal intervals.
///
/// Returns `None` for fewer than [`BOOTSTRAP_RUNS_MIN`] runs.
#[must_use]
pub fn bootstrap_runs<T>(
    runs: &[T],
    confidence: f64,
    seed: u64,
    statistic: impl Fn(&[&T]) -> f64,
) -> Option<Interval> {
    if runs.len() < BOOTSTRAP_RUNS_MIN {
        return None;
    }
    let mut random = SplitMix64::new(seed);
    let mut drawn: Vec<&T> = Vec::with_capacity(runs.len());
    let mut values: Vec<f64> = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        drawn.clear();
        drawn.extend((0..runs.len()).map(|_| &runs[random.below(runs.len())]));
        values.push(statistic(&drawn));
    }
    drawn.clear();
    drawn.extend(runs);
    let (low, high) = ends(&mut values, confidence)?;
    Some(Interval {
        mean: statistic(&drawn),
        low,
        high,
        runs: runs.len(),
    })
}

/// Returns the quantiles that exclude half of the remaining probability on either side.
pub(super) fn ends(values: &mut [f64], confidence: f64) -> Option<(f64, f64)> {
    let last = values.len().checked_sub(1)?;
    values.sort_unstable_by(f64::total_cmp);
    let beyond = whole(values.len() as f64 * (1.0 - confidence) / 2.0).min(last / 2);
    Some((values[beyond], values[last - beyond]))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length is positive and fits"
)]
pub(super) fn whole(value: f64) -> usize {
    value.floor() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONFIDENCE;

    fn median(values: &[&f64]) -> f64 {
        let mut sorted: Vec<f64> = values.iter().map(|value| **value).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    #[test]
    fn interval_is_reproducible_and_holds_the_statistic() {
        let runs: Vec<f64> = (0..20).map(f64::from).collect();
        let first = bootstrap_runs(&runs, CONFIDENCE, 1, median).unwrap();
        assert_eq!(Some(first), bootstrap_runs(&runs, CONFIDENCE, 1, median));
        assert!(first.low < first.mean && first.mean < first.high);
        assert!((first.mean - 10.0).abs() < 1e-12);
    }

    #[test]
    fn runs_that_are_alike_leave_no_doubt() {
        let same = bootstrap_runs(&[5.0; 9], CONFIDENCE, 3, median).unwrap();
        assert!((same.low - 5.0).abs() < 1e-12 && (same.high - 5.0).abs() < 1e-12);
    }

    #[test]
    fn bootstrap_needs_enough_runs() {
        assert_eq!(bootstrap_runs(&[1.0; 6], CONFIDENCE, 1, median), None);
        assert_eq!(ends(&mut [], CONFIDENCE), None);
    }
}
