//! Differences of two distributions without an assumption about their shape. They describe;
//! certainty is a matter of runs.

/// Returns the Hodges-Lehmann estimate of the shift from `first` to `second`: the median of all
/// pairwise differences (Hodges and Lehmann, 1963), which a few outliers do not move. It takes
/// memory for each pair: it is meant for runs, not for packets.
///
/// Returns `None` if either is empty.
#[must_use]
pub fn hodges_lehmann(first: &[f64], second: &[f64]) -> Option<f64> {
    let differences = second.iter().flat_map(|b| first.iter().map(move |a| b - a));
    let mut differences: Vec<f64> = differences.collect();
    median(&mut differences)
}

/// Returns the median of `values`, which it sorts; the mean of the middle two of an even number.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(values[middle - 1], upper))
}

/// Returns Cliff's delta (1993): the share of pairs in which `second` exceeds `first` minus the
/// share of the opposite, from -1 to 1; 0 for equal distributions.
///
/// Returns `None` if either is empty.
#[must_use]
pub fn cliffs_delta(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mut sorted = first.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let balance: f64 = second
        .iter()
        .map(|value| {
            let below = sorted.partition_point(|other| other < value);
            let above = sorted.len() - sorted.partition_point(|other| other <= value);
            below as f64 - above as f64
        })
        .sum();
    Some(balance / (first.len() as f64 * second.len() as f64))
}

/// Returns the largest distance between the two empirical distribution functions (Kolmogorov and
/// Smirnov), from 0 to 1. A probability would be meaningless for correlated values, as packets are.
///
/// Returns `None` if either is empty.
#[must_use]
pub fn kolmogorov_smirnov(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let (first, second) = (sorted(first), sorted(second));
    let share = |values: &[f64], at: f64| {
        values.partition_point(|value| *value <= at) as f64 / values.len() as f64
    };
    let steps = first.iter().chain(&second);
    let distances = steps.map(|&at| (share(&first, at) - share(&second, at)).abs());
    Some(distances.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(found: Option<f64>, wanted: f64) {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-12, "{found}, not {wanted}");
    }

    #[test]
    fn shift_is_robust_to_outliers() {
        let first = [1.0, 2.0, 3.0, 4.0, 5.0];
        is(hodges_lehmann(&first, &first.map(|value| value + 2.5)), 2.5);
        is(hodges_lehmann(&first, &[3.5, 4.5, 5.5, 6.5, 9e9]), 2.5);
        assert_eq!(hodges_lehmann(&first, &[]), None);
    }

    #[test]
    fn delta_counts_who_exceeds_whom() {
        is(cliffs_delta(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        is(cliffs_delta(&[3.0, 4.0], &[1.0, 2.0]), -1.0);
        is(cliffs_delta(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        // Of nine pairs, four are larger, two equal, three smaller.
        is(cliffs_delta(&[1.0, 2.0, 3.0], &[2.0, 3.0, 1.5]), 1.0 / 9.0);
        assert_eq!(cliffs_delta(&[], &[1.0]), None);
    }

    #[test]
    fn kolmogorov_smirnov_is_the_largest_distance() {
        is(kolmogorov_smirnov(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        is(
            kolmogorov_smirnov(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 4.0]),
            0.0,
        );
        is(
            kolmogorov_smirnov(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0]),
            0.5,
        );
        assert_eq!(kolmogorov_smirnov(&[1.0], &[]), None);
    }
}
