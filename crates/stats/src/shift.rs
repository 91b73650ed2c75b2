//! How two distributions differ, without assuming what either is like. These describe;
//! what is certain is a matter of runs.

/// How far `second` lies above `first`: the median of all differences between a value of one and
/// one of the other (Hodges and Lehmann, 1963). A few wild values do not move it. It
/// takes memory for each pair: it is meant for runs, not for packets.
///
/// None if either is empty.
#[must_use]
pub fn hodges_lehmann(first: &[f64], second: &[f64]) -> Option<f64> {
    let differences = second.iter().flat_map(|b| first.iter().map(move |a| b - a));
    let mut differences: Vec<f64> = differences.collect();
    median(&mut differences)
}

/// The median of `values`, which it puts in order; the mean of the two in the middle of an
/// even number.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(values[middle - 1], upper))
}

/// How much oftener a value of `second` exceeds one of `first` than the other way round, from
/// -1 (never) to 1 (always); 0 for distributions that lie alike (Cliff, 1993).
///
/// None if either is empty.
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

/// The greatest distance between the two curves of shares (Kolmogorov and Smirnov), from 0
/// to 1. A probability for it would be fiction where values correlate, as packets do.
///
/// None if either is empty.
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
    fn a_shift_is_found_whatever_a_wild_value_does() {
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
        // Of nine pairs four exceed, two are equal, three fall short.
        is(cliffs_delta(&[1.0, 2.0, 3.0], &[2.0, 3.0, 1.5]), 1.0 / 9.0);
        assert_eq!(cliffs_delta(&[], &[1.0]), None);
    }

    #[test]
    fn the_greatest_distance_of_two_curves_is_found() {
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
