//! Values of runs, and their summary over runs.

use record::{Conditions, Trial};
use stats::{CONFIDENCE, Interval, mean_interval, ratio_interval};

/// Least number of runs for an interval: for two, Student's quantile is 64, and the interval is too
/// wide to be of use.
pub(crate) const RUNS_MIN: usize = 3;

/// One value for each run that has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByRun(Vec<(u32, f64)>);

impl ByRun {
    /// Creates the values from pairs of a run's number and its value.
    pub(crate) fn new(values: impl IntoIterator<Item = (u32, f64)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// Returns the values.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.0.iter().map(|(_, value)| *value).collect()
    }

    /// Returns the numbers of the runs, in the order of [`values`](Self::values).
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.0.iter().map(|(run, _)| *run).collect()
    }

    /// Returns the mean of the values; `None` if there are none.
    pub(crate) fn mean(&self) -> Option<f64> {
        let values = self.values();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.0.len()
    }

    /// Returns the mean and its interval; `None` for fewer than [`RUNS_MIN`] runs. The interval of
    /// values that are not negative is not negative either.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let values = self.values();
        let interval = mean_interval(&values, CONFIDENCE)?;
        let floor = match values.iter().all(|value| *value >= 0.0) {
            true => 0.0,
            false => f64::NEG_INFINITY,
        };
        (interval.runs >= RUNS_MIN).then(|| Interval {
            low: interval.low.max(floor),
            ..interval
        })
    }

    /// Returns the ratio of `self` to `other`, run by run; `None` for fewer than [`RUNS_MIN`] runs.
    pub(crate) fn ratio_to(&self, other: &Self) -> Option<Interval> {
        let interval = ratio_interval(&self.pairs(other), CONFIDENCE)?;
        (interval.runs >= RUNS_MIN).then_some(interval)
    }

    /// Returns the difference of `self` and `other`, run by run.
    pub(crate) fn above(&self, other: &Self) -> Self {
        let pairs = self.paired_with(other).into_iter();
        Self::new(pairs.map(|(run, value, base)| (run, value - base)))
    }

    /// Returns the runs that both have, each with both values.
    pub(crate) fn paired_with(&self, other: &Self) -> Vec<(u32, f64, f64)> {
        let pairs = self.0.iter();
        pairs
            .filter_map(|&(run, value)| Some((run, value, other.of_run(run)?)))
            .collect()
    }

    fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let pairs = self.paired_with(other).into_iter();
        pairs.map(|(_, ours, theirs)| (ours, theirs)).collect()
    }

    fn of_run(&self, run: u32) -> Option<f64> {
        let found = self.0.iter().find(|(number, _)| *number == run);
        found.map(|(_, value)| *value)
    }
}

/// Returns the percentage of one core that the device's process used in a trial.
pub(crate) fn process_percent(trial: &Trial) -> Option<f64> {
    let conditions: &Conditions = trial.conditions.as_ref()?;
    let used = conditions.process?;
    Some((used.user_seconds + used.system_seconds) / conditions.seconds * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_paired_by_number() {
        let ours = ByRun::new([(1, 2.0), (2, 4.0), (4, 9.0), (5, 6.0)]);
        let theirs = ByRun::new([(1, 1.0), (2, 2.0), (3, 5.0), (5, 3.0)]);
        assert_eq!(ours.pairs(&theirs), [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]);
        let above = ByRun::new([(1, 1.0), (2, 2.0), (5, 3.0)]);
        assert_eq!(ours.above(&theirs), above);
        assert!((ours.ratio_to(&theirs).unwrap().mean - 2.0).abs() < 1e-12);
        assert_eq!(ByRun::default().mean(), None);
    }

    #[test]
    fn interval_needs_three_runs() {
        assert_eq!(ByRun::new([(1, 1.0), (2, 2.0)]).interval(), None);
        assert!(
            ByRun::new([(1, 1.0), (2, 2.0), (3, 3.0)])
                .interval()
                .is_some()
        );
    }

    #[test]
    fn interval_is_negative_only_if_a_value_is() {
        let wide = ByRun::new([(1, 1.0), (2, 2.0), (3, 30.0)]);
        assert_eq!(wide.interval().map(|interval| interval.low), Some(0.0));
        let mixed = ByRun::new([(1, -1.0), (2, 2.0), (3, 30.0)]);
        assert!(mixed.interval().unwrap().low < -1.0);
    }
}
