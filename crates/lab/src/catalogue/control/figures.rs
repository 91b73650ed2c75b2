//! Shared figures, and the conversion of times to numbers.

use std::time::Duration;

use record::Reading;
use stats::Histogram;

use crate::catalogue::prelude::*;

/// Returns a figure for a time; lower values are better.
pub(super) const fn time(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure::new(name, title, unit, Better::Lower)
}

/// Returns a figure for a rate; higher values are better.
pub(super) const fn rate(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure::new(name, title, unit, Better::Higher)
}

/// Returns a figure for a count of errors or losses; lower values are better.
pub(super) const fn bad(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, title, "", Better::Lower)
}

/// Returns a figure that is neither good nor bad.
pub(super) const fn plain(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure::new(name, title, unit, Better::Neither)
}

/// Returns a time in nanoseconds.
pub(super) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns a time in milliseconds.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Adds the mean, the median, the 99th percentile and the maximum of these times in microseconds,
/// in the order of `names`, and their histogram. Without times, adds the reason `absence`.
pub(super) fn put_times(
    reading: &mut Reading,
    names: [&str; 4],
    histogram: &str,
    times_ns: &[u64],
    absence: &str,
) {
    if times_ns.is_empty() {
        for name in names {
            reading.lack(name, absence);
        }
        return;
    }
    let mean = times_ns.iter().map(|&ns| ns as f64).sum::<f64>() / times_ns.len() as f64;
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    let quantile = |thousandths: usize| {
        let index = (sorted.len() * thousandths).div_ceil(1000).max(1) - 1;
        sorted[index] as f64
    };
    let values = [mean, quantile(500), quantile(990), quantile(1000)];
    for (name, value) in names.into_iter().zip(values) {
        reading.put(name, value / 1e3);
    }
    let all = Histogram::of(times_ns.iter().copied());
    reading
        .histograms
        .insert(histogram.to_owned(), all.encode());
}

/// Marks all of these figures as absent for the same reason.
pub(super) fn lack_all(reading: &mut Reading, figures: &[Figure], reason: &str) {
    for figure in figures {
        reading.lack(figure.name, reason);
    }
}
