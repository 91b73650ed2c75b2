//! Many values in little room: a histogram whose steps are a thousandth of the value, so that
//! any quantile of millions of delays can still be told from a record.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Significant digits of a value.
const DIGITS: u8 = 3;
/// Greater values count as this: 100 seconds in nanoseconds.
const MOST: u64 = 100_000_000_000;

/// A histogram of whole numbers, nanoseconds as a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// A text that holds no histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no histogram: {0}")]
pub struct BadHistogram(String);

impl Default for Histogram {
    fn default() -> Self {
        let empty = hdrhistogram::Histogram::new_with_bounds(1, MOST, DIGITS);
        Self(empty.expect("the bounds make sense"))
    }
}

impl Histogram {
    /// The histogram of `values`.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = u64>) -> Self {
        let mut all = Self::default();
        for value in values {
            all.record(value);
        }
        all
    }

    /// Counts a value. Zero counts as 1, and what is too great as the greatest.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value.max(1));
    }

    /// Counts all of another's values.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The least value that this share of all, from 0 to 1, does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// The greatest value.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.0.max()
    }

    /// Values in ascending order, each with the share of all that do not exceed it.
    #[must_use]
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let total = self.count() as f64;
        let mut sum = 0;
        let steps = self.0.iter_recorded();
        steps
            .map(|step| {
                sum += step.count_at_value();
                (step.value_iterated_to(), sum as f64 / total)
            })
            .collect()
    }

    /// As text: HdrHistogram's form V2, deflated, in base64, which its other tools read.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("a vector takes all");
        STANDARD.encode(bytes)
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// It holds no histogram of ours.
    pub fn decode(text: &str) -> Result<Self, BadHistogram> {
        let bytes = STANDARD.decode(text);
        let bytes = bytes.map_err(|error| BadHistogram(error.to_string()))?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice());
        let read = read.map_err(|error| BadHistogram(error.to_string()))?;
        let mut all = Self::default();
        let added = all.0.add(&read);
        added.map_err(|error| BadHistogram(error.to_string()))?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_thousandth() {
        let all = Histogram::of((1..=100_000).map(|value| value * 10));
        assert_eq!(all.count(), 100_000);
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (0.9999, 999_900.0)] {
            let told = all.quantile(share) as f64;
            assert!((told / exact - 1.0).abs() <= 0.001, "{share}: {told}");
        }
        assert_eq!(Histogram::of([0, u64::MAX]).count(), 2);
    }

    #[test]
    fn a_record_keeps_all_of_it() {
        let all = Histogram::of([5, 5, 1_234_567, 9]);
        let again = Histogram::decode(&all.encode()).unwrap();
        assert_eq!(again.shares(), all.shares());
        assert_eq!(again.shares()[0], (5, 0.5));
        assert!(Histogram::decode("AAAA").is_err() && Histogram::decode("%").is_err());
    }
}
