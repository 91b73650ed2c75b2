//! Delay variation against the fastest frame (RFC 5481, 4.2), read from a histogram of delays.

use hdrhistogram::Histogram;

/// By how many nanoseconds more than the least so large a share of frames are delayed at most:
/// RFC 8219 takes 0.999.
#[must_use]
pub fn pdv_ns(delays: &Histogram<u64>, quantile: f64) -> u64 {
    // Both as the lower bound of what a histogram takes for the same.
    let value = delays.lowest_equivalent(delays.value_at_quantile(quantile));
    value.saturating_sub(delays.min())
}
