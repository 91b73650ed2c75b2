//! What was published of one number: the number, an interval, or a side of it.

use serde::Deserialize;

use crate::format::{decimal, decimals};

/// Both ends of a number, of which one may not have been told.
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
            (None, None) => Err("a number without both ends is none".to_owned()),
            (Some(low), Some(high)) if low > high => Err(format!("{low} is more than {high}")),
            _ => Ok(Self { low, high }),
        }
    }
}

impl Range {
    /// The lower end; none if it is only known to be less than the upper.
    #[must_use]
    pub const fn low(&self) -> Option<f64> {
        self.low
    }

    /// The upper end; none if it is only known to be more than the lower.
    #[must_use]
    pub const fn high(&self) -> Option<f64> {
        self.high
    }

    /// The ends that there are.
    pub(crate) fn ends(&self) -> impl Iterator<Item = f64> {
        self.low.into_iter().chain(self.high)
    }

    /// `30 – 90`, `< 10` or `157`.
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
    fn ends_that_were_not_told_are_not_made_up() {
        let told = ["[30, 90]", "[157, 157]", "[null, 10]", "[10, null]"];
        let texts = told.map(|text| read(text).unwrap().text());
        assert_eq!(texts, ["30 – 90", "157", "< 10", "> 10"]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        assert_eq!(read("[null, null]"), None);
        assert_eq!(read("[2, 1]"), None);
    }
}
