//! What one run says of itself: how far its mean is known though its packets
//! correlate, and whether it was the same at its end as at its beginning. It says nothing
//! of another run.

use base::SplitMix64;

use super::bootstrap::{RESAMPLES, ends};
use super::{CONFIDENCE, Contrast, Interval, contrast, mean_interval};

/// Batches of a run. With 30, Student's t is near to the normal and batches are still long.
const BATCHES: usize = 30;

/// Values in the shortest batch that is believed to be independent of its neighbours.
const BATCH_MIN: usize = 10;

/// The mean of one run and its interval by batch means: `values`, in their order, are cut into
/// 30 batches, whose means are nearly independent however packets correlate within them
/// (Law, Simulation Modeling and Analysis, 9.5.3). What is left over at the
/// end, 29 values at most, is left out.
///
/// None for fewer than 300 values.
#[must_use]
pub fn batch_means_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let interval = mean_interval(&batch_means(values, BATCHES)?, confidence)?;
    Some(Interval {
        runs: 1,
        ..interval
    })
}

/// The mean of one run and its interval by moving blocks (Künsch, 1989): as many
/// blocks of neighbours as make up a run are drawn, again and again. A block is as long as
/// the square root of the run.
///
/// None for fewer than 300 values.
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

/// Whether a run was the same at its end as at its beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// What the last third's mean is of the first's.
    pub contrast: Contrast,
    /// Whether that is more than chance, at 99 %.
    pub proven: bool,
}

/// The mean of the last third of `values` held against that of the first, by batch means.
///
/// None for fewer than 300 values.
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
        // The variance of an AR(1) mean is greater by (1 + memory) / (1 - memory) about its
        // own variance, here 100 times in all: ten times the width.
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
    fn a_run_that_drifts_is_told_from_one_that_does_not() {
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
    fn a_run_without_noise_has_no_width() {
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
