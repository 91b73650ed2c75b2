//! Histograms of delays: constant size, mergeable, and exact to three digits at any length of the
//! tail (HdrHistogram, G. Tene).
//!
//! ```text
//!   value     0 ... 2047 | 2048 ... 4095 | 4096 ... 8191 | ...
//!   buckets   1 wide     | 2 wide        | 4 wide        | ...      relative error < 0.1 %
//! ```
//!
//! To record a value costs a shift and an increment. A record stores a histogram as the text that
//! the tools of this family read: V2, deflated, base64. A text from outside is checked before it is
//! unpacked.

use std::fmt::Write as _;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::supports_quantile;

/// Significant decimal digits.
const DIGITS: u8 = 3;

/// Largest value: 100 s, in nanoseconds. Larger values count as this.
const VALUE_MAX: u64 = 100_000_000_000;

/// The cookies of V2, compressed and not, as HdrHistogram's `HistogramLogReader` expects them.
const DEFLATED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

/// Length of the V2 header after its cookie: length, offset, digits, minimum, maximum, ratio.
const HEADER: usize = 40;

/// Upper bound of a histogram of three digits over 64 bits: 55,296 counts of nine bytes.
const UNPACKED_MAX: u64 = 1 << 19;

/// The text is no valid histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a histogram: {0}")]
pub struct BadHistogram(&'static str);

/// Counts of values from 0 to 100 s in nanoseconds; larger values count as 100 s.
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
    /// Creates the histogram of `values`.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = u64>) -> Self {
        let mut all = Self::default();
        for value in values {
            all.record(value);
        }
        all
    }

    /// Counts `value`, without an allocation.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the mean. This and the following are 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// Returns the standard deviation.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.0.stdev()
    }

    /// Returns the smallest value.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.0.min()
    }

    /// Returns the largest value.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.0.max()
    }

    /// Returns the smallest value that this share of all values, from 0 to 1, does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// True if enough values are beyond the quantile ([`supports_quantile`]).
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

    /// Returns the values in ascending order, each with the share of all values that do not exceed
    /// it.
    #[must_use]
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let mut sum = 0;
        let steps = self.0.iter_recorded().map(|step| {
            sum += step.count_since_last_iteration();
            (step.value_iterated_to(), sum as f64 / self.count() as f64)
        });
        steps.collect()
    }

    /// Returns the same, reduced to `points` including both ends.
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

    /// Returns the percentiles in the format of HdrHistogram's plotters (`.hgrm`), divided by
    /// `scale`: 1,000 for microseconds.
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

    /// Returns the text form: HdrHistogram V2, compressed, in base64.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("memory takes what is written");
        STANDARD.encode(bytes)
    }

    /// Parses the text form.
    ///
    /// # Errors
    /// The text is not in this form, or has more digits.
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

/// Decompresses `bytes`, up to the size of a histogram, and prepends the cookie of the uncompressed
/// form.
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

/// Checks that `plain` can be unpacked in bounded memory, and that its counts do not overflow.
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

/// Returns the next number in ZigZag LEB128-64b9B, whose ninth byte has eight bits.
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
