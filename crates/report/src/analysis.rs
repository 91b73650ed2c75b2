//! From records to the numbers that a report shows: one number a run, and what
//! the runs together say.

use record::{Conditions, EchoOutcome, MatchSet, Results, Trial};
use stats::{
    CONFIDENCE, Distribution, Interval, effective_size, inter_packet_variations, mean_interval,
    packet_delay_variations, ratio_interval,
};

/// With fewer runs no interval is told: for two, Student's quantile is 64, and the
/// interval says nothing that one would believe.
pub(crate) const RUNS_MIN: usize = 3;

/// A number for each run that has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByRun(Vec<(u32, f64)>);

impl ByRun {
    /// The numbers of these runs.
    pub(crate) fn new(values: impl IntoIterator<Item = (u32, f64)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// The numbers alone.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.0.iter().map(|(_, value)| *value).collect()
    }

    /// The numbers of the runs, in the order of [`values`](Self::values).
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.0.iter().map(|(run, _)| *run).collect()
    }

    /// Their mean; none if there are none.
    pub(crate) fn mean(&self) -> Option<f64> {
        let values = self.values();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.0.len()
    }

    /// Their mean and its interval, for [`RUNS_MIN`] runs or more. What is measured
    /// here cannot be negative, so the interval is not either.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let interval = mean_interval(&self.values(), CONFIDENCE)?;
        (interval.runs >= RUNS_MIN).then(|| Interval {
            low: interval.low.max(0.0),
            ..interval
        })
    }

    /// What `self` is of `other`, run by run, for [`RUNS_MIN`] runs or more.
    pub(crate) fn ratio_to(&self, other: &Self) -> Option<Interval> {
        let interval = ratio_interval(&self.pairs(other), CONFIDENCE)?;
        (interval.runs >= RUNS_MIN).then_some(interval)
    }

    /// What `self` is above `other`, run by run.
    pub(crate) fn above(&self, other: &Self) -> Self {
        let pairs = self.0.iter().filter_map(|&(run, value)| {
            let base = other.of_run(run)?;
            Some((run, value - base))
        });
        Self::new(pairs)
    }

    /// The runs that both have, each with both numbers.
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

/// The echoes of one run, in order and sorted.
pub(crate) struct EchoRun<'a> {
    /// Which run.
    pub(crate) run: u32,
    /// What was recorded.
    pub(crate) outcome: &'a EchoOutcome,
    /// Round trips in nanoseconds.
    pub(crate) delays: Distribution,
    /// Absolute differences of consecutive round trips in nanoseconds; none for one echo.
    pub(crate) jitter: Option<Distribution>,
}

impl EchoRun<'_> {
    /// The range of delays that all but one per cent of echoes stay within.
    pub(crate) fn variation_p99(&self) -> f64 {
        let variations = packet_delay_variations(&self.outcome.round_trip_ns);
        Distribution::new(variations).map_or(0.0, |all| all.quantile(990).into())
    }

    /// Echoes that would say as much if they were independent, as a share of all.
    pub(crate) fn effective_share(&self) -> f64 {
        effective_size(&self.outcome.round_trip_ns) / self.delays.count() as f64
    }

    /// Echoes that did not come back.
    pub(crate) fn lost(&self) -> usize {
        self.outcome.round_trip_ns.len() - self.delays.count()
    }
}

/// The valid runs of an echo test in which anything came back.
pub(crate) fn echo_runs<'a>(
    results: &'a Results,
    device: &'a str,
    set: MatchSet,
    frame_bytes: u16,
) -> Vec<EchoRun<'a>> {
    let trials = results.echoes(device, set, frame_bytes);
    trials
        .filter_map(|(trial, outcome)| {
            let returned = outcome.round_trip_ns.iter().flatten().copied();
            Some(EchoRun {
                run: trial.run,
                outcome,
                delays: Distribution::new(returned)?,
                jitter: Distribution::new(inter_packet_variations(&outcome.round_trip_ns)),
            })
        })
        .collect()
}

/// `number` of each run.
pub(crate) fn by_run<'a>(runs: &[EchoRun<'a>], number: impl Fn(&EchoRun<'a>) -> f64) -> ByRun {
    ByRun::new(runs.iter().map(|run| (run.run, number(run))))
}

/// The values of all runs together, for a curve.
pub(crate) fn together<'a>(
    distributions: impl Iterator<Item = &'a Distribution>,
) -> Option<Distribution> {
    Distribution::new(distributions.flat_map(|one| one.values().iter().copied()))
}

/// Per cent of one core that the device's process used in user code and in the kernel.
pub(crate) fn process_percent(trial: &Trial) -> Option<(f64, f64)> {
    let conditions: &Conditions = trial.conditions.as_ref()?;
    let used = conditions.process?;
    let percent = |seconds: f64| seconds / conditions.seconds * 100.0;
    Some((percent(used.user_seconds), percent(used.system_seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture;

    #[test]
    fn runs_are_paired_by_their_number() {
        let ours = ByRun::new([(1, 2.0), (2, 4.0), (4, 9.0), (5, 6.0)]);
        let theirs = ByRun::new([(1, 1.0), (2, 2.0), (3, 5.0), (5, 3.0)]);
        assert_eq!(ours.pairs(&theirs), [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]);
        let above = ByRun::new([(1, 1.0), (2, 2.0), (5, 3.0)]);
        assert_eq!(ours.above(&theirs), above);
        assert!((ours.ratio_to(&theirs).unwrap().mean - 2.0).abs() < 1e-12);
        assert_eq!(ByRun::default().mean(), None);
    }

    #[test]
    fn two_runs_make_no_interval_and_none_is_negative() {
        assert_eq!(ByRun::new([(1, 1.0), (2, 2.0)]).interval(), None);
        let wide = ByRun::new([(1, 1.0), (2, 2.0), (3, 30.0)]);
        assert_eq!(wide.interval().map(|interval| interval.low), Some(0.0));
    }

    #[test]
    fn void_runs_do_not_count() {
        let results = fixture::results(fixture::entries());
        let runs = echo_runs(&results, "comporta", MatchSet::Mac, 64);
        let numbers: Vec<u32> = runs.iter().map(|run| run.run).collect();
        assert_eq!(numbers, [1, 3]);
    }

    #[test]
    fn lost_echoes_are_counted() {
        let results = fixture::results(fixture::entries());
        let runs = echo_runs(&results, "ovs", MatchSet::Ip, 64);
        assert_eq!(runs.iter().map(EchoRun::lost).sum::<usize>(), 3);
    }
}
