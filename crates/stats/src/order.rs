//! Intervals of quantiles by rank, without an assumption about the distribution.

use statrs::distribution::{Binomial, DiscreteCDF};

/// Minimum number of values beyond a quantile; with fewer it depends on single values.
const BEYOND_MIN: f64 = 20.0;

/// True if `count` values support the quantile `share` (from 0 to 1): at least twenty are expected
/// beyond it. The 99.9th percentile needs 20,000 values.
#[must_use]
pub fn supports_quantile(count: u64, share: f64) -> bool {
    // A share like 0.999 is no binary fraction; the rounding error is no value.
    count as f64 * (1.0 - share) >= BEYOND_MIN - 1e-6
}

/// Returns the ranks, from 0, between which the true quantile `share` is with at least this
/// confidence, for `count` independent values (David and Nagaraja, Order Statistics, 7.1).
///
/// Returns `None` if there are too few values.
#[must_use]
pub fn quantile_interval(count: u64, share: f64, confidence: f64) -> Option<(u64, u64)> {
    let below = Binomial::new(share, count).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    // The value of rank r, from 0, exceeds the quantile if at most r values are below it.
    let low = last_where(count, |rank| below.cdf(rank) <= tail)?;
    let high = first_where(count, |rank| below.sf(rank) <= tail)?;
    Some((low, high))
}

/// Returns the largest number below `count` for which the monotone predicate `holds`.
fn last_where(count: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    first_where(count, |rank| !holds(rank))
        .unwrap_or(count)
        .checked_sub(1)
}

/// Returns the smallest number below `count` for which the monotone predicate `holds`.
fn first_where(count: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low < count).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONFIDENCE;
    use base::SplitMix64;

    #[test]
    fn ranks_follow_the_binomial_distribution() {
        // Of ten values, the second and the ninth hold the median with 97.85 %: 1 - 2 (1 + 10) /
        // 1024.
        assert_eq!(quantile_interval(10, 0.5, 0.978), Some((1, 8)));
        assert_eq!(quantile_interval(10, 0.5, 0.979), Some((0, 9)));
        // The first and the last of six hold it with 1 - 2/64 = 96.9 %, which is the maximum.
        assert_eq!(quantile_interval(6, 0.5, 0.96), Some((0, 5)));
        assert_eq!(quantile_interval(6, 0.5, CONFIDENCE), None);
        assert_eq!(quantile_interval(0, 0.5, CONFIDENCE), None);
    }

    #[test]
    fn quantile_interval_has_the_stated_coverage() {
        let mut random = SplitMix64::new(11);
        let (trials, count, share) = (2_000, 1_000_u64, 0.95);
        let (low, high) = quantile_interval(count, share, CONFIDENCE).unwrap();
        let held = (0..trials).filter(|_| {
            let mut values: Vec<u64> = (0..count).map(|_| random.next_u64()).collect();
            values.sort_unstable();
            let truth = share * u64::MAX as f64;
            let at = |rank: u64| values[usize::try_from(rank).unwrap()] as f64;
            at(low) <= truth && truth <= at(high)
        });
        let held = held.count();
        assert!((1_975..=1_999).contains(&held), "{held} of {trials}");
    }

    #[test]
    fn tails_want_values() {
        assert!(supports_quantile(20_000, 0.999) && !supports_quantile(19_999, 0.999));
        assert!(supports_quantile(200_000, 0.9999) && !supports_quantile(199_000, 0.9999));
        assert_eq!(quantile_interval(500, 0.999, CONFIDENCE), None);
    }
}
