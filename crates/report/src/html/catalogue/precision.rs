//! Precision of a mean: the interval over runs, and intervals within one run. The second ones are
//! narrower, which is why the intervals of this report are over runs.

use maud::{Markup, html};
use record::{DeviceRecord, Focus};
use stats::{CONFIDENCE, Interval, batch_means_interval, block_bootstrap_interval, mean_interval};

use super::readings::{Facet, Readings, heading};
use crate::analysis::ByRun;
use crate::format::{decimal, decimals};
use crate::html::parts;

/// Seed of the bootstrap: the same records give the same report.
const SEED: u64 = 1;

/// Returns the half widths of intervals for each device at the facets of `at`; empty if the runs
/// are too short.
pub(super) fn table(
    readings: &Readings<'_>,
    title: &str,
    samples: &str,
    at: &[(&str, Focus)],
) -> Markup {
    let groups: Vec<(Facet, Vec<PrecisionRow<'_>>)> = readings
        .facets_at(at)
        .into_iter()
        .map(|facet| (facet.clone(), rows(readings, samples, &facet)))
        .collect();
    if groups.iter().all(|(_, rows)| rows.is_empty()) {
        return html! {};
    }
    let caption = html! {
        b { (title) ". " }
        "Half widths of 99\u{a0}% intervals in µs. The tables of this report have those over runs. "
        "Within one run, as means over runs: by batch means and by moving blocks, which account for the autocorrelation of consecutive packets; "
        "and for independent packets, as in the published intervals."
    };
    let head = html! {
        tr {
            th scope="col" rowspan="2" { "Device" }
            th scope="col" rowspan="2" { "Mean" span.unit { "µs" } }
            th scope="col" rowspan="2" { "Over runs" }
            th scope="colgroup" colspan="3" { "Within one run" }
        }
        tr {
            th scope="col" { "batch means" }
            th scope="col" { "moving blocks" }
            th scope="col" { "if independent" }
        }
    };
    let body = html! {
        @for (facet, rows) in &groups {
            tbody {
                @if !facet.is_empty() {
                    tr.group { th scope="rowgroup" colspan="6" { (heading(facet)) } }
                }
                @for row in rows { (row.shown()) }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

/// Method of an interval within one run.
type IntervalMethod = fn(&[f64]) -> Option<Interval>;

/// Mean and half widths of a device in microseconds.
struct PrecisionRow<'a> {
    device: &'a DeviceRecord,
    means: ByRun,
    within: [ByRun; 3],
}

fn rows<'a>(readings: &Readings<'a>, samples: &str, facet: &Facet) -> Vec<PrecisionRow<'a>> {
    let rows = readings.devices.iter().map(|&device| {
        let runs = readings.samples(&device.name, samples, facet).into_iter();
        let runs = runs.map(|(run, samples)| {
            let returned = samples.iter().flatten();
            let micros = returned.map(|&ns| f64::from(ns) / 1e3);
            (run, micros.collect::<Vec<f64>>())
        });
        let runs: Vec<(u32, Vec<f64>)> = runs.filter(|(_, values)| !values.is_empty()).collect();
        let methods: [IntervalMethod; 3] = [
            |values| batch_means_interval(values, CONFIDENCE),
            |values| block_bootstrap_interval(values, CONFIDENCE, SEED),
            |values| mean_interval(values, CONFIDENCE),
        ];
        let half_widths = |method: IntervalMethod| {
            ByRun::new(runs.iter().filter_map(|(run, values)| {
                let interval = method(values)?;
                Some((*run, interval.half_width()))
            }))
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        PrecisionRow {
            device,
            means: ByRun::new(runs.iter().map(|(run, values)| (*run, mean(values)))),
            within: methods.map(half_widths),
        }
    });
    rows.filter(|row| row.within[0].runs() > 0).collect()
}

impl PrecisionRow<'_> {
    fn shown(&self) -> Markup {
        let over = self.means.interval().map(|interval| interval.half_width());
        html! {
            tr.calibration[self.device.calibration] {
                th scope="row" { span.device.{ (parts::class(&self.device.name)) } { (self.device.name) } }
                (parts::plain(&self.means))
                @match over {
                    Some(width) => (half_width(width)),
                    None => td.none title="too few runs" { "–" },
                }
                @for method in &self.within {
                    @match method.mean() {
                        Some(width) => (half_width(width)),
                        None => td.none { "–" },
                    }
                }
            }
        }
    }
}

fn half_width(micros: f64) -> Markup {
    html! { td { "± " (decimal(micros, decimals(micros))) } }
}

#[cfg(test)]
mod tests {
    use record::fixture;

    use super::*;
    use crate::html::catalogue::all_readings;

    #[test]
    fn devices_have_half_widths_over_runs_and_within_one() {
        let results = fixture::results(fixture::entries());
        let all = all_readings(&results);
        let echo = all
            .iter()
            .find(|one| one.experiment.name == "echo")
            .unwrap();
        let at = [("match_set", Focus::Last), ("frame_bytes", Focus::First)];
        let facets = echo.facets_at(&at);
        assert_eq!(facets.len(), 1);
        let rows = rows(echo, "round_trip_ns", &facets[0]);
        assert!(!rows.is_empty());
        for row in &rows {
            let [batches, blocks, independent] =
                row.within.each_ref().map(|method| method.mean().unwrap());
            assert!(batches > 0.0 && blocks > 0.0 && independent > 0.0);
        }
        let shown = table(echo, "Precision", "round_trip_ns", &at).into_string();
        assert!(shown.contains("batch means"));
    }
}
