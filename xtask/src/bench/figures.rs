//! What was measured, and what it comes to: medians, ranges, and bars that are reached or
//! not.

use std::collections::BTreeMap;

use super::rows::{Bar, Limit, Row, Value};

/// Samples of rows, by their names.
#[derive(Debug, Default)]
pub(super) struct Figures {
    rows: BTreeMap<String, Columns>,
    /// What could not be measured: a group's name or a row's, and why.
    pub(super) failures: Vec<(String, String)>,
}

/// Samples of columns, in the order in which they came first.
pub(super) type Columns = Vec<(String, Vec<f64>)>;

/// Several samples of one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    /// Of these; none if there are none.
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
    /// One more sample.
    pub(super) fn add(&mut self, row: &Row, column: &str, value: f64) {
        let columns = self.rows.entry(row.id()).or_default();
        match columns.iter_mut().find(|(name, _)| name == column) {
            Some((_, samples)) => samples.push(value),
            None => columns.push((column.to_owned(), vec![value])),
        }
    }

    /// Something could not be measured.
    pub(super) fn fail(&mut self, name: &str, reason: String) {
        println!("{name}: {reason}");
        self.failures.push((name.to_owned(), reason));
    }

    /// The columns of `row`.
    pub(super) fn of(&self, row: &Row) -> &[(String, Vec<f64>)] {
        self.rows.get(&row.id()).map_or(&[], Vec::as_slice)
    }

    /// The samples of a column.
    fn samples(&self, row: &Row, column: &str) -> &[f64] {
        let mut columns = self.of(row).iter();
        let found = columns.find(|(name, _)| name == column);
        found.map_or(&[], |(_, samples)| samples.as_slice())
    }

    /// What is held against `bar`; none if it was not measured.
    pub(super) fn value(&self, row: &Row, bar: &Bar) -> Option<f64> {
        match bar.value {
            Value::Median(column) => {
                Spread::of(self.samples(row, column)).map(|spread| spread.median)
            }
            Value::Ratio(one, other) => {
                let pairs = self.samples(row, one).iter().zip(self.samples(row, other));
                let ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
                Spread::of(&ratios).map(|spread| spread.median)
            }
        }
    }
}

impl Bar {
    /// Whether `value` reaches it.
    pub(super) fn is_reached_by(&self, value: f64) -> bool {
        match self.limit {
            Limit::AtMost(most) => value <= most,
            Limit::AtLeast(least) => value >= least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::{OURS, chosen};

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let spread = Spread::of(&[4.0, 1.0, 2.0, 10.0]);
        assert_eq!(
            spread.map(|spread| (spread.least, spread.median, spread.most)),
            Some((1.0, 3.0, 10.0))
        );
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_ratio_is_that_of_runs_and_not_of_medians() {
        let rows = chosen(&["workers/macs".to_owned()]).expect("it is there");
        let (row, bar) = (rows[0], &rows[0].bars[0]);
        let mut figures = Figures::default();
        for (one, two) in [(10.0, 19.0), (5.0, 9.5), (7.0, 7.0)] {
            figures.add(row, "one worker", one);
            figures.add(row, "two workers", two);
        }
        assert_eq!(figures.value(row, bar), Some(1.9));
    }

    #[test]
    fn a_bar_is_held_against_the_median() {
        let rows = chosen(&["forms/one-tcp-port".to_owned()]).expect("it is there");
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
