//! Comparisons of two sets of runs: the difference, its interval and its verdict.
//!
//! # Families of tests
//!
//! A report with many comparisons finds differences by chance: of 100 tests at 99 %, one. [`holm`]
//! corrects the probabilities of a family (S. Holm, "A simple sequentially rejective multiple test
//! procedure", Scandinavian Journal of Statistics 6, 1979): the smallest of *m* is multiplied by
//! *m*, the next by *m - 1*, and so on, never decreasing. All that remain below a level are true
//! together with that confidence, whatever the dependence between the tests.
//!
//! ```text
//!   sorted p     0.005   0.01   0.03   0.04
//!   factor           4      3      2      1
//!   corrected    0.02    0.03   0.06   0.06
//! ```

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Interval;

/// A difference of means, with its interval and probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The second mean minus the first.
    pub interval: Interval,
    /// Probability of a difference at least as large, if there were none.
    pub p: f64,
}

/// Returns the mean of `second` minus that of `first`, whose runs are independent: Welch's t
/// (1947), which permits different variances. Returns `None` for fewer than two runs of either.
#[must_use]
pub fn contrast(first: &[f64], second: &[f64], confidence: f64) -> Option<Contrast> {
    let (a, b) = (Sample::of(first)?, Sample::of(second)?);
    let (va, vb) = (a.variance / a.count, b.variance / b.count);
    let error = (va + vb).sqrt();
    let freedom = (va + vb).powi(2) / (va.powi(2) / (a.count - 1.0) + vb.powi(2) / (b.count - 1.0));
    let runs = first.len().min(second.len());
    student(b.mean - a.mean, error, freedom, runs, confidence)
}

/// Returns the mean of the differences of `pairs`, second minus first. Common influences, for
/// instance the load of the machine at that hour, cancel. Returns `None` for fewer than two pairs.
#[must_use]
pub fn paired_contrast(pairs: &[(f64, f64)], confidence: f64) -> Option<Contrast> {
    let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
    let sample = Sample::of(&differences)?;
    let error = (sample.variance / sample.count).sqrt();
    student(
        sample.mean,
        error,
        sample.count - 1.0,
        pairs.len(),
        confidence,
    )
}

fn student(mean: f64, error: f64, freedom: f64, runs: usize, confidence: f64) -> Option<Contrast> {
    // Counts are often equal in all runs: then the difference is certain.
    let certain = error <= mean.abs() * 1e-12;
    let (half_width, p) = if certain {
        (0.0, if mean == 0.0 { 1.0 } else { 0.0 })
    } else {
        let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let half_width = t.inverse_cdf(f64::midpoint(1.0, confidence)) * error;
        (half_width, 2.0 * t.sf((mean / error).abs()))
    };
    Some(Contrast {
        interval: Interval {
            mean,
            low: mean - half_width,
            high: mean + half_width,
            runs,
        },
        p: p.min(1.0),
    })
}

struct Sample {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Sample {
    fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            count,
            mean,
            variance: squares / (count - 1.0),
        })
    }
}

/// The interpretation of an interval of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Smaller.
    Less,
    /// Larger.
    More,
    /// Equal within the margin.
    Equivalent,
    /// Undecided: it takes more runs, or quieter ones.
    Inconclusive,
}

/// A difference without practical relevance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Lower limit, not above zero.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

impl Margin {
    /// Returns the margin of logarithms of ratios: a `share` up, and its inverse.
    #[must_use]
    pub fn of_ratio(share: f64) -> Self {
        let high = share.ln_1p();
        Self { low: -high, high }
    }

    /// Returns a symmetric margin.
    #[must_use]
    pub fn of_difference(most: f64) -> Self {
        Self {
            low: -most,
            high: most,
        }
    }
}

/// Interprets the interval of a difference. Within the margin it is equivalent, even if the
/// difference is significant; otherwise the interval must exclude zero.
#[must_use]
pub fn verdict(interval: &Interval, margin: Margin) -> Verdict {
    if margin.low <= interval.low && interval.high <= margin.high {
        Verdict::Equivalent
    } else if interval.high < 0.0 {
        Verdict::Less
    } else if interval.low > 0.0 {
        Verdict::More
    } else {
        Verdict::Inconclusive
    }
}

/// Returns the probabilities of a family of tests, corrected for their number (Holm, 1979).
///
/// # Examples
/// ```
/// let corrected = stats::holm(&[0.01, 0.04, 0.03, 0.005]);
/// assert_eq!(corrected, [0.03, 0.06, 0.06, 0.02]);
/// ```
#[must_use]
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut greatest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let times = (probabilities.len() - rank) as f64;
        greatest = greatest.max((probabilities[index] * times).min(1.0));
        corrected[index] = greatest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONFIDENCE;

    #[test]
    fn welchs_formula_is_followed() {
        // By the formula, t is 2.852955 with 27.8873 degrees of freedom; the area beyond it under
        // the density, summed in 400,000 strips, is 0.0080719 for both sides together.
        let a = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let b = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5,
            24.4,
        ];
        let found = contrast(&a, &b, 0.95).unwrap();
        assert!((found.p - 0.008_071_9).abs() < 1e-6, "{}", found.p);
        assert!((found.interval.mean - 2.833_333).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn pairs_see_through_what_both_have_in_common() {
        let pairs: Vec<(f64, f64)> = (0..8)
            .map(|run| {
                let mood = f64::from(run) * 10.0;
                (100.0 + mood, 103.0 + mood + f64::from(run % 2) * 0.2)
            })
            .collect();
        let paired = paired_contrast(&pairs, CONFIDENCE).unwrap();
        assert!(paired.interval.low > 2.0 && paired.p < 1e-6, "{paired:?}");
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let unpaired = contrast(&first, &second, CONFIDENCE).unwrap();
        assert!(
            unpaired.interval.low < 0.0 && unpaired.p > 0.5,
            "{unpaired:?}"
        );
    }

    #[test]
    fn numbers_that_never_vary_leave_no_doubt() {
        let same = contrast(&[5.0; 3], &[5.0; 3], CONFIDENCE).unwrap();
        assert_eq!(
            (same.interval.low, same.interval.high, same.p),
            (0.0, 0.0, 1.0)
        );
        let other = contrast(&[5.0; 3], &[6.0; 3], CONFIDENCE).unwrap();
        assert_eq!(
            (other.interval.low, other.interval.high, other.p),
            (1.0, 1.0, 0.0)
        );
        assert_eq!(contrast(&[5.0], &[6.0, 7.0], CONFIDENCE), None);
        assert_eq!(paired_contrast(&[(1.0, 2.0)], CONFIDENCE), None);
    }

    #[test]
    fn verdict_follows_from_interval_and_margin() {
        let of = |low: f64, high: f64| {
            let interval = Interval {
                mean: f64::midpoint(low, high),
                low,
                high,
                runs: 9,
            };
            verdict(&interval, Margin::of_ratio(0.02))
        };
        assert_eq!(of(-0.3, -0.1), Verdict::Less);
        assert_eq!(of(0.001, 0.1), Verdict::More);
        assert_eq!(
            of(0.001, 0.01),
            Verdict::Equivalent,
            "proven, and of no matter"
        );
        assert_eq!(of(-0.01, 0.01), Verdict::Equivalent);
        assert_eq!(of(-0.01, 0.05), Verdict::Inconclusive);
        // The margin of a ratio is the same from either side.
        let margin = Margin::of_ratio(0.25);
        assert!((margin.low.exp() - 0.8).abs() < 1e-12 && (margin.high.exp() - 1.25).abs() < 1e-12);
    }

    #[test]
    fn holm_corrects_for_the_number_of_tests() {
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        // Holm's steps: 4 times the smallest, 3 times the next, never decreasing.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        assert!(
            close(&corrected, &[0.03, 0.06, 0.06, 0.02]),
            "{corrected:?}"
        );
        assert!(close(&holm(&[0.5, 0.9]), &[1.0, 1.0]));
        assert!(holm(&[]).is_empty());
    }
}
