//! Confidence intervals of means over runs (Student, "The probable error of a mean", Biometrika 6,
//! 1908).
//!
//! ```text
//!   mean +- t(confidence, n - 1) * s / sqrt(n)        s: standard deviation of the n run means
//! ```
//!
//! With a confidence of 99 %, 99 of 100 intervals hold the true mean, if the run means are
//! independent and about normal; `docs/measuring.md` shows the coverage by simulation.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of the lab's intervals, as in the published tables.
pub const CONFIDENCE: f64 = 0.99;

/// A mean and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of runs.
    pub runs: usize,
}

impl Interval {
    /// Returns the larger distance from the mean to an end.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.mean).max(self.mean - self.low)
    }
}

/// Returns the mean of `values`, one from each run, with Student's t interval, or `None` for fewer
/// than two runs.
///
/// # Examples
/// ```
/// let interval = stats::mean_interval(&[9.0, 10.0, 11.0], 0.95).unwrap();
/// assert_eq!(interval.mean, 10.0);
/// // 4.303 standard errors of 0.577.
/// assert!((interval.half_width() - 2.484).abs() < 0.001);
/// ```
#[must_use]
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let runs = values.len();
    let mean = values.iter().sum::<f64>() / runs as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (runs as f64 - 1.0)).sqrt();
    let half_width = half_width(deviation, runs, confidence)?;
    Some(Interval {
        mean,
        low: mean - half_width,
        high: mean + half_width,
        runs,
    })
}

/// Returns the geometric mean of `numerators / denominators`, run by run, with its interval:
/// Student's t on the logarithms, so that a ratio and its inverse agree.
///
/// Returns `None` for fewer than two runs, or values that are not positive.
#[must_use]
pub fn ratio_interval(pairs: &[(f64, f64)], confidence: f64) -> Option<Interval> {
    let positive = |&(a, b): &(f64, f64)| a > 0.0 && b > 0.0;
    if !pairs.iter().all(positive) {
        return None;
    }
    let logarithms: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
    let interval = mean_interval(&logarithms, confidence)?;
    Some(Interval {
        mean: interval.mean.exp(),
        low: interval.low.exp(),
        high: interval.high.exp(),
        runs: interval.runs,
    })
}

fn half_width(deviation: f64, count: usize, confidence: f64) -> Option<f64> {
    if count < 2 {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, count as f64 - 1.0).ok()?;
    let quantile = t.inverse_cdf(f64::midpoint(1.0, confidence));
    Some(quantile * deviation / (count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SplitMix64;

    #[test]
    fn interval_reproduces_the_example_of_nist() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2: 195 values with a
        // deviation of 0.02278881 about 9.261460 give 9.258242 to 9.264679 at 95 %.
        let half = half_width(0.022_788_81, 195, 0.95).unwrap();
        assert!((9.261_460 - half - 9.258_242).abs() < 1e-6);
        assert!((9.261_460 + half - 9.264_679).abs() < 1e-6);
    }

    #[test]
    fn twenty_runs_use_the_tabulated_quantile() {
        let half = half_width(1.0, 20, 0.99).unwrap();
        assert!((half * 20_f64.sqrt() - 2.8609).abs() < 1e-4);
    }

    #[test]
    fn interval_needs_two_runs() {
        assert_eq!(mean_interval(&[1.0], CONFIDENCE), None);
        assert_eq!(mean_interval(&[], CONFIDENCE), None);
        assert_eq!(ratio_interval(&[(1.0, 2.0)], CONFIDENCE), None);
    }

    #[test]
    fn ratio_and_its_inverse_agree() {
        let pairs = [(2.0, 1.0), (2.2, 1.0), (1.8, 1.0)];
        let inverse = pairs.map(|(a, b)| (b, a));
        let (there, back) = (
            ratio_interval(&pairs, CONFIDENCE).unwrap(),
            ratio_interval(&inverse, CONFIDENCE).unwrap(),
        );
        assert!((there.mean * back.mean - 1.0).abs() < 1e-12);
        assert!((there.low * back.high - 1.0).abs() < 1e-12);
        assert_eq!(ratio_interval(&[(1.0, 0.0), (1.0, 1.0)], CONFIDENCE), None);
    }

    #[test]
    fn intervals_over_runs_hold_the_truth_as_often_as_they_say() {
        // Runs have their own means, and packets are correlated within a run.
        let mut random = SplitMix64::new(7);
        let trials = 2_000;
        let covered = (0..trials)
            .filter(|_| {
                let runs: Vec<f64> = (0..8).map(|_| simulated_run(&mut random, 50)).collect();
                let interval = mean_interval(&runs, CONFIDENCE).unwrap();
                interval.low <= 100.0 && 100.0 <= interval.high
            })
            .count();
        let coverage = covered as f64 / f64::from(trials);
        assert!((0.98..=0.998).contains(&coverage), "{coverage}");
    }

    /// Returns the mean of packets that follow an AR(1) process around the run's own level.
    fn simulated_run(random: &mut SplitMix64, packets: u32) -> f64 {
        let level = 100.0 + 5.0 * random.normal();
        let mut noise = 0.0;
        let mut sum = 0.0;
        for _ in 0..packets {
            noise = 0.7 * noise + random.normal();
            sum += level + noise;
        }
        sum / f64::from(packets)
    }
}
