//! Tables of the display: rounded on the screen, exact as text.

use std::cmp::Ordering;

use super::rates;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SheetCell {
    /// A text.
    Word(String),
    /// A counter.
    Count(u64),
    /// A rate per second; none if unknown.
    Rate(Option<f64>),
    /// A fraction from 0 to 1; none if the denominator is zero.
    Share(Option<f64>),
    /// A quotient; none if the denominator is zero.
    Mean(Option<f64>),
}

/// The text of an unknown value.
const NOTHING: &str = "-";

impl SheetCell {
    pub(super) fn word(text: impl Into<String>) -> Self {
        Self::Word(text.into())
    }

    /// Formats the value with about three digits.
    pub(super) fn short(&self) -> String {
        match self {
            Self::Count(count) => short(*count as f64),
            Self::Rate(Some(rate)) => short(*rate),
            Self::Share(Some(share)) => format!("{:.1}%", share * 100.0),
            _ => self.exact(),
        }
    }

    /// Formats the exact value.
    pub(super) fn exact(&self) -> String {
        match self {
            Self::Word(text) if text.is_empty() => NOTHING.to_owned(),
            Self::Word(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Rate(Some(number)) | Self::Mean(Some(number)) => format!("{number:.1}"),
            Self::Share(Some(share)) => format!("{:.1}", share * 100.0),
            Self::Rate(None) | Self::Share(None) | Self::Mean(None) => NOTHING.to_owned(),
        }
    }

    /// Compares texts in ascending and numbers in descending order, with unknown values last.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Word(one), Self::Word(other)) => one.cmp(other),
            (Self::Count(one), Self::Count(other)) => other.cmp(one),
            _ => other.number().total_cmp(&self.number()),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Self::Rate(number) | Self::Share(number) | Self::Mean(number) => {
                number.unwrap_or(f64::NEG_INFINITY)
            }
            Self::Word(_) | Self::Count(_) => f64::NEG_INFINITY,
        }
    }
}

/// Formats a number with about three digits and an SI prefix.
pub(super) fn short(number: f64) -> String {
    const LETTERS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut scaled = number;
    let mut letters = LETTERS.iter();
    let mut letter = letters.next();
    // A number that would round to 1000 takes the next prefix.
    while scaled >= 999.5 {
        let Some(next) = letters.next() else { break };
        scaled /= 1000.0;
        letter = Some(next);
    }
    let letter = letter.copied().unwrap_or_default();
    let digits = match scaled {
        _ if letter.is_empty() && number.fract() == 0.0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{letter}")
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: &'static str,
    /// True for numbers, which are aligned to the right.
    pub(super) is_number: bool,
}

/// A table of the display.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    /// Its title.
    pub(super) title: &'static str,
    /// Its columns.
    pub(super) columns: &'static [Column],
    /// Its rows, each with a cell for every column.
    pub(super) rows: Vec<Vec<SheetCell>>,
}

impl Sheet {
    /// Sorts the rows, if the table has the column. The sort is stable.
    pub(super) fn sort(&mut self, order: RowOrder) {
        let column = self.columns.iter().position(|of| of.name == order.column);
        if let Some(column) = column {
            self.rows.sort_by(|one, other| {
                let found = one[column].compare(&other[column]);
                if order.reversed {
                    found.reverse()
                } else {
                    found
                }
            });
        }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowOrder {
    /// The column.
    pub(super) column: &'static str,
    /// True for the reverse order.
    pub(super) reversed: bool,
}

impl RowOrder {
    /// Returns the order by the column of this name, or none if no table has it.
    pub(super) fn by(name: &str) -> Option<Self> {
        let known = rates::column_names();
        let column = known
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(name))?;
        Some(Self {
            column,
            reversed: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_with_three_digits_and_si_prefix() {
        let cases = [
            (0.0, "0"),
            (7.0, "7"),
            (0.25, "0.25"),
            (999.0, "999"),
            (999.7, "1.00k"),
            (1234.0, "1.23k"),
            (12_345.0, "12.3k"),
            (999_499.0, "999k"),
            (999_600.0, "1.00M"),
            (1e9, "1.00G"),
            (3.2e16, "32000T"),
        ];
        for (number, wanted) in cases {
            assert_eq!(short(number), wanted);
        }
    }

    #[test]
    fn rows_sort_by_rate_with_unknown_last() {
        const COLUMNS: &[Column] = &[Column {
            name: "OUT/S",
            is_number: true,
        }];
        let row = |rate| vec![SheetCell::Rate(rate)];
        let mut sheet = Sheet {
            title: "",
            columns: COLUMNS,
            rows: vec![row(None), row(Some(1.0)), row(Some(30.0))],
        };
        let order = RowOrder::by("out/s").expect("there is such a column");
        sheet.sort(order);
        assert_eq!(sheet.rows, [row(Some(30.0)), row(Some(1.0)), row(None)]);
        sheet.sort(RowOrder {
            reversed: true,
            ..order
        });
        assert_eq!(sheet.rows, [row(None), row(Some(1.0)), row(Some(30.0))]);
        assert_eq!(RowOrder::by("outside"), None);
    }
}
