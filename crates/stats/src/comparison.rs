//! Two sets of runs held against each other: what the difference is, how sure that
//! is, and what may be said of it in a word.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Interval;

/// A difference of means, what it may be, and how likely one so great is by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The second mean less the first.
    pub interval: Interval,
    /// The probability, if there were no difference, of one at least as great.
    pub p: f64,
}

/// The mean of `second` less that of `first`, whose runs have nothing to do with each
/// other: Welch's t (1947), which lets either vary as it does. None for fewer than
/// two runs of either.
#[must_use]
pub fn contrast(first: &[f64], second: &[f64], confidence: f64) -> Option<Contrast> {
    let (a, b) = (Sample::of(first)?, Sample::of(second)?);
    let (va, vb) = (a.variance / a.count, b.variance / b.count);
    let error = (va + vb).sqrt();
    let freedom = (va + vb).powi(2) / (va.powi(2) / (a.count - 1.0) + vb.powi(2) / (b.count - 1.0));
    let runs = first.len().min(second.len());
    student(b.mean - a.mean, error, freedom, runs, confidence)
}

/// The mean of the differences of `pairs`, second less first: what both have in common, the
/// hour and the machine's mood, falls out. None for fewer than two.
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
    // Counts are often the same in all runs: then there is no doubt.
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

/// What an interval says of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is less.
    Less,
    /// It is more.
    More,
    /// It is the same, as far as anybody cares.
    Equivalent,
    /// Nobody knows: more runs, or quieter ones, would tell.
    Inconclusive,
}

/// A difference that nobody cares for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Below no difference.
    pub low: f64,
    /// Above it.
    pub high: f64,
}

impl Margin {
    /// Of logarithms of ratios: a `share` up, and the inverse of that.
    #[must_use]
    pub fn of_ratio(share: f64) -> Self {
        let high = share.ln_1p();
        Self { low: -high, high }
    }

    /// As much in either direction.
    #[must_use]
    pub fn of_difference(most: f64) -> Self {
        Self {
            low: -most,
            high: most,
        }
    }
}

/// What `interval`, of a difference, says. Within the margin it is the same though there be a
/// proven difference; beyond, it must not include none.
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

/// The probabilities of a family of tests, corrected for their number (Holm, 1979): those
/// at or below a level are all true at once with that certainty.
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
        // By its formula t is 2.852955 with 27.8873 degrees of freedom; the area beyond under
        // the density, added up in 400,000 strips, is 0.0080719 on both sides together.
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
    fn a_verdict_follows_from_where_the_interval_lies() {
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
    fn many_tests_at_once_must_each_be_surer() {
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        // Holm's own steps: 4 times the least, 3 times the next, never falling.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        assert!(
            close(&corrected, &[0.03, 0.06, 0.06, 0.02]),
            "{corrected:?}"
        );
        assert!(close(&holm(&[0.5, 0.9]), &[1.0, 1.0]));
        assert!(holm(&[]).is_empty());
    }
}
