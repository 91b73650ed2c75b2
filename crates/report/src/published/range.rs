//! Published number: one value, an interval, or a bound.

use serde::Deserialize;

use crate::format::{decimal, decimals};

/// Interval with one or two known ends.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "[Option<f64>; 2]")]
pub struct Range {
    low: Option<f64>,
    high: Option<f64>,
}

impl TryFrom<[Option<f64>; 2]> for Range {
    type Error = String;

    fn try_from([low, high]: [Option<f64>; 2]) -> Result<Self, String> {
        match (low, high) {
            (None, None) => Err("a range needs an end".to_owned()),
            (Some(low), Some(high)) if low > high => Err(format!("{low} is greater than {high}")),
            _ => Ok(Self { low, high }),
        }
    }
}

impl Range {
    /// Returns the lower end; `None` if only an upper bound is known.
    #[must_use]
    pub const fn low(&self) -> Option<f64> {
        self.low
    }

    /// Returns the upper end; `None` if only a lower bound is known.
    #[must_use]
    pub const fn high(&self) -> Option<f64> {
        self.high
    }

    /// Returns the known ends.
    pub(crate) fn ends(&self) -> impl Iterator<Item = f64> {
        self.low.into_iter().chain(self.high)
    }

    /// Returns the range as text: `30 – 90`, `< 10` or `157`.
    pub(crate) fn text(&self) -> String {
        let whole = |value: f64| value.fract() == 0.0;
        let number = |value: f64| decimal(value, if whole(value) { 0 } else { decimals(value) });
        match (self.low, self.high) {
            (Some(low), Some(high)) if low < high => format!("{} – {}", number(low), number(high)),
            (Some(low), None) => format!("> {}", number(low)),
            (None, Some(high)) => format!("< {}", number(high)),
            (end, other) => end.or(other).map_or_else(String::new, number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Range> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn range_with_one_end_is_a_bound() {
        let ranges = ["[30, 90]", "[157, 157]", "[null, 10]", "[10, null]"];
        let texts = ranges.map(|text| read(text).unwrap().text());
        assert_eq!(texts, ["30 – 90", "157", "< 10", "> 10"]);
    }

    #[test]
    fn range_without_ends_or_with_swapped_ends_is_rejected() {
        assert_eq!(read("[null, null]"), None);
        assert_eq!(read("[2, 1]"), None);
    }
}
