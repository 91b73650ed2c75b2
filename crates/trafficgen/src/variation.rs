//! Delay variation against the fastest frame (RFC 5481, 4.2), read from a histogram of delays.

use hdrhistogram::Histogram;

/// The delay at a quantile less the minimum delay, in nanoseconds. RFC 8219 uses the quantile
/// 0.999.
#[must_use]
pub fn pdv_ns(delays: &Histogram<u64>, quantile: f64) -> u64 {
    // Both values are the lower bounds of their histogram buckets.
    let value = delays.lowest_equivalent(delays.value_at_quantile(quantile));
    value.saturating_sub(delays.min())
}
