//! Figures of round trips that are measured one at a time (a closed loop of echoes).

use stats::{
    Distribution, effective_size, inter_packet_variations, packet_delay_variations,
    supports_quantile,
};

use crate::reading::TOO_FEW;
use crate::{Better, Figure, Reading, Samples};

/// Reason for an absent figure of the delays.
const NONE_RETURNED: &str = "no packet returned";

/// Name of the samples.
const SAMPLES: &str = "round_trip_ns";

/// Round trips of a trial, in the order of transmission.
#[derive(Clone, Debug)]
pub struct RoundTrips(Samples);

impl RoundTrips {
    /// Figures that [`RoundTrips::put_into`] sets.
    pub const FIGURES: &'static [Figure] = &[
        Figure::new("mean_us", "Mean", "µs", Better::Lower),
        Figure::new("p50_us", "Median", "µs", Better::Lower),
        Figure::new("p99_us", "99 %", "µs", Better::Lower),
        Figure::new("p999_us", "99.9 %", "µs", Better::Lower),
        Figure::new("p9999_us", "99.99 %", "µs", Better::Lower),
        Figure::new("max_us", "Maximum", "µs", Better::Lower),
        Figure::new("ipdv_mean_us", "Mean jitter (IPDV)", "µs", Better::Lower),
        Figure::new("ipdv_p99_us", "IPDV, 99 %", "µs", Better::Lower),
        Figure::new("pdv_p99_us", "PDV, 99 %", "µs", Better::Lower),
        Figure::new("loss", "Loss", "", Better::Lower).shown_in("%", 0.01),
        Figure::new("effective_share", "Effective samples", "", Better::Neither)
            .shown_in("%", 0.01),
    ];

    /// Wraps round trips in nanoseconds; `None` is an echo without a reply in time.
    #[must_use]
    pub const fn new(round_trip_ns: Samples) -> Self {
        Self(round_trip_ns)
    }

    /// Adds the samples and their figures to `reading`.
    pub fn put_into(self, reading: &mut Reading) {
        let samples = self.0;
        match Distribution::new(samples.iter().flatten().copied()) {
            Some(all) => put_delays(&all, &samples, reading),
            None => {
                let delays = Self::FIGURES.iter().map(|figure| figure.name);
                reading.lack_each(delays.filter(|name| *name != "loss"), NONE_RETURNED);
            }
        }
        let lost = samples.iter().filter(|sample| sample.is_none()).count();
        reading.put_share("loss", lost as u64, samples.len() as u64);
        reading.samples.insert(SAMPLES.to_owned(), samples);
    }
}

fn put_delays(all: &Distribution, samples: &[Option<u32>], reading: &mut Reading) {
    reading.put("mean_us", micros(all.mean()));
    reading.put("max_us", micros(all.max().into()));
    reading.put_quantiles_us(all, &[("p50_us", 500), ("p99_us", 990), ("p999_us", 999)]);
    if supports_quantile(all.count() as u64, 0.9999) {
        let rank = (all.count() * 9_999).div_ceil(10_000);
        reading.put("p9999_us", micros(all.values()[rank - 1].into()));
    } else {
        reading.lack("p9999_us", TOO_FEW);
    }
    match Distribution::new(inter_packet_variations(samples)) {
        Some(variations) => {
            reading.put("ipdv_mean_us", micros(variations.mean()));
            reading.put_quantiles_us(&variations, &[("ipdv_p99_us", 990)]);
        }
        None => reading.lack_each(["ipdv_mean_us", "ipdv_p99_us"], NONE_RETURNED),
    }
    match Distribution::new(packet_delay_variations(samples)) {
        Some(variations) => reading.put_quantiles_us(&variations, &[("pdv_p99_us", 990)]),
        None => reading.lack("pdv_p99_us", NONE_RETURNED),
    }
    let effective = effective_size(samples) / all.count() as f64;
    reading.put("effective_share", effective);
}

fn micros(nanoseconds: f64) -> f64 {
    nanoseconds / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(samples: Samples) -> Reading {
        let mut reading = Reading::default();
        RoundTrips::new(samples).put_into(&mut reading);
        reading
    }

    #[test]
    fn figures_of_round_trips_are_computed_from_samples() {
        // 1 to 2100 microseconds, and four lost packets.
        let mut samples: Samples = (1..=2_100).map(|us| Some(us * 1_000)).collect();
        samples.extend([None; 4]);
        let reading = reading(samples);
        for (name, expected) in [
            ("mean_us", 1_050.5),
            ("p50_us", 1_050.0),
            ("p99_us", 2_079.0),
            ("max_us", 2_100.0),
            ("ipdv_mean_us", 1.0),
            ("ipdv_p99_us", 1.0),
            ("pdv_p99_us", 2_078.0),
            ("loss", 4.0 / 2_104.0),
        ] {
            assert!((reading.figures[name] - expected).abs() < 1e-9, "{name}");
        }
        assert_eq!(reading.of["loss"], 2_104);
        assert_eq!(reading.absent["p999_us"], TOO_FEW);
    }

    #[test]
    fn round_trip_figures_have_value_or_reason() {
        for samples in [vec![None; 3], vec![Some(5)], Vec::new()] {
            let reading = reading(samples);
            for figure in RoundTrips::FIGURES {
                let has_value = reading.figures.contains_key(figure.name);
                let has_reason = reading.absent.contains_key(figure.name);
                assert!(has_value != has_reason, "{}", figure.name);
            }
        }
    }
}
