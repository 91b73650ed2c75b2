//! Outliers among runs. They are marked, never removed: a switch that is slow in one of ten runs is
//! slow in one of ten runs.

use super::shift::median;

/// Score beyond which a value is an outlier (Iglewicz and Hoaglin, 1993).
pub const OUTLIER_SCORE: f64 = 3.5;

/// Returns the modified z-score of each value: its distance from the median in units of the median
/// absolute deviation, `0.6745 (x - median) / MAD`, scaled to standard deviations of normal values
/// (Iglewicz and Hoaglin, 1993). If more than half of the values are equal, the mean absolute
/// deviation replaces the median's: `(x - median) / (1.2533 mean deviation)`.
#[must_use]
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let Some(centre) = median(&mut values.to_vec()) else {
        return Vec::new();
    };
    let mut distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let unit = match median(&mut distances) {
        Some(deviation) if deviation > 0.0 => deviation / 0.6745,
        _ => mean * 1.2533,
    };
    let score = |value: &f64| {
        if unit > 0.0 {
            (value - centre) / unit
        } else {
            0.0
        }
    };
    values.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outliers(values: &[f64]) -> Vec<usize> {
        let scores = modified_z_scores(values);
        let beyond = |&index: &usize| scores[index].abs() > OUTLIER_SCORE;
        (0..values.len()).filter(beyond).collect()
    }

    #[test]
    fn outliers_have_large_scores() {
        assert_eq!(outliers(&[10.0, 10.2, 9.9, 10.1, 14.0, 9.8]), [4]);
        assert!(outliers(&[10.0, 10.2, 9.9, 10.1, 10.3, 9.8]).is_empty());
        // The median is 3, the median deviation 1: (9 - 3) * 0.6745.
        let scores = modified_z_scores(&[1.0, 2.0, 3.0, 4.0, 9.0]);
        assert!((scores[4] - 4.047).abs() < 1e-9, "{scores:?}");
    }

    #[test]
    fn equal_values_do_not_hide_the_one_that_differs() {
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 50.0]), [6]);
        assert!(outliers(&[5.0; 4]).is_empty() && modified_z_scores(&[]).is_empty());
    }
}
