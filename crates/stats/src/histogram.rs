//! Histograms of delays: small, mergeable, and exact to a thousandth however long the
//! tail is (HdrHistogram, three digits).
//!
//! In a record a histogram is the text that other tools of that family read: V2,
//! deflated, base64. One that comes from outside is checked before it is unpacked.

use std::fmt::Write as _;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::supports_quantile;

/// Decimal digits that a value keeps.
const DIGITS: u8 = 3;

/// What is longer counts as this: 100 s, in nanoseconds.
const VALUE_MAX: u64 = 100_000_000_000;

/// The cookies of V2, deflated and not, as `HistogramLogReader` of HdrHistogram knows them.
const DEFLATED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

/// The header of V2 behind its cookie: length, offset, digits, least, greatest, ratio.
const HEADER: usize = 40;

/// More than a histogram of three digits and all of 64 bits can take: 55,296 counts of nine bytes.
const UNPACKED_MAX: u64 = 1 << 19;

/// A text that is no histogram of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a histogram: {0}")]
pub struct BadHistogram(&'static str);

/// Counts of values from 0 to 100 s in nanoseconds; what is above counts as 100 s.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(Hdr<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self(Hdr::new_with_bounds(1, VALUE_MAX, DIGITS).expect("the bounds make sense"))
    }
}

impl From<&hdrhistogram::Histogram<u64>> for Histogram {
    fn from(other: &hdrhistogram::Histogram<u64>) -> Self {
        let mut all = Self::default();
        for step in other.iter_recorded() {
            let value = step.value_iterated_to();
            all.0.saturating_record_n(value, step.count_at_value());
        }
        all
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

    /// Counts `value`. It takes no memory.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The mean; 0 of nothing, as are those that follow.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The standard deviation.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.0.stdev()
    }

    /// The least value.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.0.min()
    }

    /// The greatest value.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.0.max()
    }

    /// The least value that this share of all, from 0 to 1, does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// Whether a quantile is more than the luck of a few values ([`supports_quantile`]).
    #[must_use]
    pub fn supports(&self, share: f64) -> bool {
        supports_quantile(self.count(), share)
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for step in other.0.iter_recorded() {
            let count = step.count_since_last_iteration();
            self.0.saturating_record_n(step.value_iterated_to(), count);
        }
    }

    /// Values in ascending order, each with the share of all that do not exceed it.
    #[must_use]
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let mut sum = 0;
        let steps = self.0.iter_recorded().map(|step| {
            sum += step.count_since_last_iteration();
            (step.value_iterated_to(), sum as f64 / self.count() as f64)
        });
        steps.collect()
    }

    /// The same, thinned to `points` with both ends.
    #[must_use]
    pub fn curve(&self, points: usize) -> Vec<(u64, f64)> {
        let all = self.shares();
        let points = points.max(2);
        if all.len() <= points {
            return all;
        }
        let last = all.len() - 1;
        (0..points)
            .map(|point| all[point * last / (points - 1)])
            .collect()
    }

    /// The percentiles as HdrHistogram's plotters read them (`.hgrm`), `scale` units of what was
    /// counted being one of what is shown: 1,000 for microseconds.
    #[must_use]
    pub fn percentile_text(&self, scale: f64) -> String {
        let mut text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n".to_owned();
        let mut sum = 0;
        for step in self.0.iter_quantiles(5) {
            sum += step.count_since_last_iteration();
            let (value, share) = (
                step.value_iterated_to() as f64 / scale,
                step.quantile_iterated_to(),
            );
            let line = write!(text, "{value:12.3} {share:.12} {sum:10}");
            let end = if share < 1.0 {
                writeln!(text, " {:14.2}", 1.0 / (1.0 - share))
            } else {
                writeln!(text)
            };
            line.and(end).expect("a string takes what is written");
        }
        let [mean, deviation, max] = [self.0.mean(), self.0.stdev(), self.0.max() as f64];
        let _ = writeln!(
            text,
            "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]",
            mean / scale,
            deviation / scale,
            max / scale,
            self.count()
        );
        text
    }

    /// As text: HdrHistogram's form V2, deflated, in base64, which its other tools read.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("memory takes what is written");
        STANDARD.encode(bytes)
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// It is not of that form, or of more digits than ours.
    pub fn decode(text: &str) -> Result<Self, BadHistogram> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| BadHistogram("it is not base64"))?;
        let plain = inflate(&bytes)?;
        check(&plain)?;
        Deserializer::new()
            .deserialize(&mut plain.as_slice())
            .map(Self)
            .map_err(|_| BadHistogram("its counts do not fit its bounds"))
    }
}

/// What is deflated in `bytes`, with the cookie of what is not: no more than a histogram takes.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, BadHistogram> {
    let cookie = bytes
        .first_chunk()
        .map(|cookie| u32::from_be_bytes(*cookie));
    if cookie != Some(DEFLATED) || bytes.len() < 8 {
        return Err(BadHistogram("it is not of the form V2, deflated"));
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(&bytes[8..])
        .take(UNPACKED_MAX + 1)
        .read_to_end(&mut plain)
        .map_err(|_| BadHistogram("it cannot be inflated"))?;
    if plain.len() as u64 > UNPACKED_MAX {
        return Err(BadHistogram("it is larger than any of three digits"));
    }
    Ok(plain)
}

/// That `plain` can be unpacked with no more memory than it deserves, and its counts added up.
fn check(plain: &[u8]) -> Result<(), BadHistogram> {
    let word =
        |at: usize| -> Option<u32> { Some(u32::from_be_bytes(*plain.get(at..)?.first_chunk()?)) };
    let length = word(4).and_then(|length| usize::try_from(length).ok());
    let header = word(0) == Some(PLAIN) && word(12) == Some(DIGITS.into());
    if !header || length.map(|length| length + HEADER) != Some(plain.len()) {
        return Err(BadHistogram("its header does not tell what it is"));
    }
    let mut rest = &plain[HEADER..];
    let (mut index, mut sum) = (0_u64, 0_u64);
    while !rest.is_empty() {
        let number = take_zig_zag(&mut rest).ok_or(BadHistogram("a count is cut short"))?;
        let next = if number < 0 {
            index.checked_add(number.unsigned_abs())
        } else {
            index.checked_add(1)
        };
        let total = sum.checked_add(number.max(0).unsigned_abs());
        let (Some(next), Some(total)) = (next.filter(|next| *next <= UNPACKED_MAX), total) else {
            return Err(BadHistogram("it has more counts than there can be"));
        };
        (index, sum) = (next, total);
    }
    Ok(())
}

/// The next number of the form ZigZag LEB128-64b9B, whose ninth byte is whole.
fn take_zig_zag(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for place in 0..9 {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        let last = place == 8;
        let bits = if last { *byte } else { byte & 0x7f };
        value |= u64::from(bits) << (7 * place);
        if last || byte & 0x80 == 0 {
            break;
        }
    }
    let sign = -(value & 1).cast_signed();
    Some((value >> 1).cast_signed() ^ sign)
}

#[cfg(test)]
mod tests;
