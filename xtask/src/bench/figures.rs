//! Samples of the rows, their medians and ranges, and the targets that they meet.

use std::collections::BTreeMap;

use super::rows::{BenchRow, RowTarget, TargetBound, TargetFigure};

/// Samples by row and column.
#[derive(Debug, Default)]
pub(super) struct Figures {
    rows: BTreeMap<String, ColumnSamples>,
    /// Groups and rows that could not be measured, each with the reason.
    pub(super) failures: Vec<(String, String)>,
}

/// Samples by column, in the order of their first samples.
pub(super) type ColumnSamples = Vec<(String, Vec<f64>)>;

/// Median and range of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    /// Returns the spread of `samples`, or `None` without any.
    pub(super) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Some(Self {
            median,
            least,
            most,
        })
    }
}

impl Figures {
    /// Adds a sample.
    pub(super) fn add(&mut self, row: &BenchRow, column: &str, value: f64) {
        let columns = self.rows.entry(row.id()).or_default();
        match columns.iter_mut().find(|(name, _)| name == column) {
            Some((_, samples)) => samples.push(value),
            None => columns.push((column.to_owned(), vec![value])),
        }
    }

    /// Records that `name` could not be measured, and prints the reason.
    pub(super) fn fail(&mut self, name: &str, reason: String) {
        println!("{name}: {reason}");
        self.failures.push((name.to_owned(), reason));
    }

    /// Returns the columns of `row`.
    pub(super) fn of(&self, row: &BenchRow) -> &[(String, Vec<f64>)] {
        self.rows.get(&row.id()).map_or(&[], Vec::as_slice)
    }

    /// Returns the samples of a column.
    fn samples(&self, row: &BenchRow, column: &str) -> &[f64] {
        let mut columns = self.of(row).iter();
        let found = columns.find(|(name, _)| name == column);
        found.map_or(&[], |(_, samples)| samples.as_slice())
    }

    /// Returns the figure that `bar` limits, or `None` without samples.
    pub(super) fn value(&self, row: &BenchRow, bar: &RowTarget) -> Option<f64> {
        self.value_of(row, bar.value)
    }

    /// Returns one figure of `row`, or `None` without samples.
    pub(super) fn value_of(&self, row: &BenchRow, value: TargetFigure) -> Option<f64> {
        match value {
            TargetFigure::Median(column) => {
                Spread::of(self.samples(row, column)).map(|spread| spread.median)
            }
            TargetFigure::Ratio(one, other) => {
                let pairs = self.samples(row, one).iter().zip(self.samples(row, other));
                let ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
                Spread::of(&ratios).map(|spread| spread.median)
            }
        }
    }
}

impl RowTarget {
    /// True if `value` meets the target.
    pub(super) fn is_reached_by(&self, value: f64) -> bool {
        match self.limit {
            TargetBound::AtMost(most) => value <= most,
            TargetBound::AtLeast(least) => value >= least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::{OURS, chosen};

    #[test]
    fn median_of_an_even_count_is_the_mean_of_the_middle_two() {
        let spread = Spread::of(&[4.0, 1.0, 2.0, 10.0]);
        assert_eq!(
            spread.map(|spread| (spread.least, spread.median, spread.most)),
            Some((1.0, 3.0, 10.0))
        );
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn ratio_is_computed_run_by_run() {
        let rows = chosen(&["workers/macs".to_owned()]).expect("the row exists");
        let (row, bar) = (rows[0], &rows[0].bars[0]);
        let mut figures = Figures::default();
        for (one, two) in [(10.0, 19.0), (5.0, 9.5), (7.0, 7.0)] {
            figures.add(row, "one worker", one);
            figures.add(row, "two workers", two);
        }
        assert_eq!(figures.value(row, bar), Some(1.9));
    }

    #[test]
    fn target_is_compared_with_the_median() {
        let rows = chosen(&["forms/one-tcp-port".to_owned()]).expect("the row exists");
        let (row, bar) = (rows[0], &rows[0].bars[0]);
        let mut figures = Figures::default();
        assert_eq!(figures.value(row, bar), None);
        for value in [14.0, 90.0, 15.0] {
            figures.add(row, OURS, value);
        }
        assert_eq!(figures.value(row, bar), Some(15.0));
        assert!(bar.is_reached_by(15.0) && !bar.is_reached_by(15.1));
    }
}
