//! Statistics of a single run: the interval of its mean despite correlated packets, and its drift.
//! They say nothing about other runs.

use base::SplitMix64;

use super::bootstrap::{RESAMPLES, ends};
use super::{CONFIDENCE, Contrast, Interval, contrast, mean_interval};

/// Number of batches. With 30, Student's t is close to the normal distribution and batches are
/// still long.
const BATCHES: usize = 30;

/// Minimum length of a batch that is assumed to be independent of its neighbours.
const BATCH_MIN: usize = 10;

/// Returns the mean of one run and its interval by batch means: `values`, in their order, are cut
/// into 30 batches, whose means are nearly independent however packets correlate within them (Law,
/// Simulation Modeling and Analysis, 9.5.3). The remainder, at most 29 values, is ignored.
///
/// Returns `None` for fewer than 300 values.
#[must_use]
pub fn batch_means_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let interval = mean_interval(&batch_means(values, BATCHES)?, confidence)?;
    Some(Interval {
        runs: 1,
        ..interval
    })
}

/// Returns the mean of one run and its interval by the moving block bootstrap (Künsch, 1989): as
/// many blocks of consecutive values as make up a run are drawn, repeatedly. The length of a block
/// is the square root of the length of the run.
///
/// Returns `None` for fewer than 300 values.
#[must_use]
pub fn block_bootstrap_interval(values: &[f64], confidence: f64, seed: u64) -> Option<Interval> {
    let length = values.len().isqrt();
    let blocks = values.len().checked_div(length)?;
    if values.len() < BATCHES * BATCH_MIN {
        return None;
    }
    let mut before = vec![0.0];
    before.extend(values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    }));
    let mut random = SplitMix64::new(seed);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sum: f64 = (0..blocks)
                .map(|_| {
                    let start = random.below(values.len() - length + 1);
                    before[start + length] - before[start]
                })
                .sum();
            sum / (blocks * length) as f64
        })
        .collect();
    let (low, high) = ends(&mut means, confidence)?;
    Some(Interval {
        mean: before[values.len()] / values.len() as f64,
        low,
        high,
        runs: 1,
    })
}

/// The drift within a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The mean of the last third compared with that of the first.
    pub contrast: Contrast,
    /// True if the difference is significant at 99 %.
    pub proven: bool,
}

/// Compares the mean of the last third of `values` with that of the first, by batch means.
///
/// Returns `None` for fewer than 300 values.
#[must_use]
pub fn drift(values: &[f64]) -> Option<Drift> {
    let third = values.len() / 3;
    let batches = |part: &[f64]| batch_means(part, BATCHES / 3);
    let first = batches(&values[..third])?;
    let last = batches(&values[values.len() - third..])?;
    let contrast = contrast(&first, &last, CONFIDENCE)?;
    Some(Drift {
        contrast,
        proven: contrast.p < 1.0 - CONFIDENCE,
    })
}

fn batch_means(values: &[f64], batches: usize) -> Option<Vec<f64>> {
    let length = values.len() / batches;
    let means = values.chunks_exact(length.max(1)).take(batches);
    let means = means.map(|batch| batch.iter().sum::<f64>() / batch.len() as f64);
    (length >= BATCH_MIN).then(|| means.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, count: usize, memory: f64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut level = 0.0;
        let next = |_| {
            level = memory * level + random.normal();
            100.0 + level
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn correlation_widens_both_intervals() {
        let (independent, correlated) = (noise(1, 9_000, 0.0), noise(1, 9_000, 0.9));
        // The variance of an AR(1) mean is (1 + memory) / (1 - memory) times that of independent
        // values with the same variance, here 100 times in all: ten times the width.
        for interval in [
            |values: &[f64]| batch_means_interval(values, CONFIDENCE),
            |values: &[f64]| block_bootstrap_interval(values, CONFIDENCE, 1),
        ] {
            let [narrow, wide] =
                [&independent, &correlated].map(|values| interval(values).unwrap().half_width());
            assert!((5.0..20.0).contains(&(wide / narrow)), "{wide} {narrow}");
        }
    }

    #[test]
    fn drift_is_distinguished_from_noise() {
        let steady = noise(2, 3_000, 0.5);
        assert!(!drift(&steady).unwrap().proven);
        let drifting: Vec<f64> = steady
            .iter()
            .enumerate()
            .map(|(index, value)| value + index as f64 / 500.0)
            .collect();
        let found = drift(&drifting).unwrap();
        assert!(
            found.proven && found.contrast.interval.low > 0.0,
            "{found:?}"
        );
    }

    #[test]
    fn short_runs_say_nothing() {
        let few = noise(3, 299, 0.0);
        assert_eq!(batch_means_interval(&few, CONFIDENCE), None);
        assert_eq!(block_bootstrap_interval(&few, CONFIDENCE, 1), None);
        assert_eq!(block_bootstrap_interval(&[], CONFIDENCE, 1), None);
        assert_eq!(drift(&few), None);
    }

    #[test]
    fn interval_of_a_constant_run_has_no_width() {
        let flat = [7.0; 900];
        assert!(
            batch_means_interval(&flat, CONFIDENCE)
                .unwrap()
                .half_width()
                < 1e-9
        );
        assert!(!drift(&flat).unwrap().proven);
    }
}
