//! Proportions of independent trials.

use statrs::distribution::{ContinuousCDF, Normal};

/// A proportion and its interval, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportion {
    /// The observed share.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Returns the share of `events` among `count` with the interval of Wilson (1927). Events must be
/// independent: frames that are lost together are not; use an interval over runs for those.
///
/// Returns `None` without trials, or for more events than trials.
#[must_use]
pub fn proportion_interval(events: u64, count: u64, confidence: f64) -> Option<Proportion> {
    if count == 0 || events > count {
        return None;
    }
    let z = Normal::standard().inverse_cdf(f64::midpoint(1.0, confidence));
    let (n, share) = (count as f64, events as f64 / count as f64);
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let spread = (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let half_width = z * spread / scale;
    let end = |value: f64, limit: f64, at_limit: bool| if at_limit { limit } else { value };
    Some(Proportion {
        share,
        low: end((centre - half_width).max(0.0), 0.0, events == 0),
        high: end((centre + half_width).min(1.0), 1.0, events == count),
    })
}

/// Returns the upper bound of the true share, with this confidence, if none of `count` independent
/// trials was an event: `-ln(1 - confidence) / count`, at 99 % 4.6 in `count`. No event is no proof
/// of never.
#[must_use]
pub fn zero_events_bound(count: u64, confidence: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    (-(-confidence).ln_1p() / count as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONFIDENCE;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    #[test]
    fn wilsons_interval_follows_its_formula() {
        // z = 1.959964: 10 of 50 give 0.112438 to 0.330371 (Newcombe, 1998, method 3, has
        // 81 of 263 at 0.2553 to 0.3662).
        let ten = proportion_interval(10, 50, 0.95).unwrap();
        assert!(
            close(ten.low, 0.11244) && close(ten.high, 0.33037),
            "{ten:?}"
        );
        let published = proportion_interval(81, 263, 0.95).unwrap();
        assert!(
            close(published.low, 0.2553) && close(published.high, 0.3662),
            "{published:?}"
        );
        let none = proportion_interval(0, 20, 0.95).unwrap();
        assert!(none.low <= 0.0 && close(none.high, 0.16113), "{none:?}");
        let all = proportion_interval(29, 29, 0.95).unwrap();
        assert!(close(all.low, 0.8830) && all.high >= 1.0, "{all:?}");
    }

    #[test]
    fn zero_events_have_an_upper_bound() {
        assert!(close(
            zero_events_bound(1_000, CONFIDENCE) * 1_000.0,
            4.60517
        ));
        assert!(zero_events_bound(2, CONFIDENCE) >= 1.0);
        assert!(zero_events_bound(0, CONFIDENCE) >= 1.0);
        // With that share, a thousand trials without an event happen once in a hundred times.
        let share = zero_events_bound(1_000, CONFIDENCE);
        assert!(((1.0 - share).powi(1_000) - 0.01).abs() < 2e-4);
    }

    #[test]
    fn invalid_share_has_no_interval() {
        assert_eq!(proportion_interval(0, 0, CONFIDENCE), None);
        assert_eq!(proportion_interval(3, 2, CONFIDENCE), None);
    }
}
