//! Figures that experiments share, and how times become numbers.

use std::time::Duration;

use record::Reading;
use stats::Histogram;

use crate::catalogue::prelude::*;

/// A time, of which less is better.
pub(super) const fn time(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure::new(name, title, unit, Better::Lower)
}

/// A rate, of which more is better.
pub(super) const fn rate(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure::new(name, title, unit, Better::Higher)
}

/// A count of what should not be.
pub(super) const fn bad(name: &'static str, title: &'static str) -> Figure {
    Figure::new(name, title, "", Better::Lower)
}

/// A number that says what was.
pub(super) const fn plain(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure::new(name, title, unit, Better::Neither)
}

/// Nanoseconds of a time.
pub(super) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds of a time.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Puts the mean, the median, the 99th percentile and the greatest of these times, in
/// microseconds under these names, and their histogram. Without any, says why there are none.
pub(super) fn put_times(
    reading: &mut Reading,
    names: [&str; 4],
    histogram: &str,
    times_ns: &[u64],
    otherwise: &str,
) {
    if times_ns.is_empty() {
        for name in names {
            reading.lack(name, otherwise);
        }
        return;
    }
    let mean = times_ns.iter().map(|&ns| ns as f64).sum::<f64>() / times_ns.len() as f64;
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    let quantile = |thousandths: usize| {
        let place = (sorted.len() * thousandths).div_ceil(1000).max(1) - 1;
        sorted[place] as f64
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

/// Says of all of these figures that they have no value, and why.
pub(super) fn lack_all(reading: &mut Reading, figures: &[Figure], reason: &str) {
    for figure in figures {
        reading.lack(figure.name, reason);
    }
}
