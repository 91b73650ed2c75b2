//! How sure a mean is: over runs, and by what one run says of itself. The two differ, which is why
//! this report's intervals are those over runs.

use maud::{Markup, html};
use record::DeviceRecord;
use record::MatchSet;
use record::Results;
use stats::{CONFIDENCE, Interval, batch_means_interval, block_bootstrap_interval, mean_interval};

use super::Tests;
use crate::analysis::{ByRun, EchoRun, by_run, echo_runs};
use crate::format::{decimal, decimals};
use crate::html::parts;

/// What blocks are drawn by: the same records give the same report.
const SEED: u64 = 1;

/// Half widths of intervals, for every device and frame size; nothing where runs are too short.
pub(super) fn table(results: &Results, set: MatchSet, tests: &Tests) -> Markup {
    let rows: Vec<(u16, Vec<Row<'_>>)> = tests
        .sizes
        .iter()
        .map(|&size| (size, rows(results, set, size)))
        .collect();
    if rows.iter().all(|(_, rows)| rows.is_empty()) {
        return html! {};
    }
    let caption = html! {
        b { "How sure the mean is: " (set) " match. " }
        "Half widths of 99\u{a0}% intervals in µs. Over runs is what the tables of this report tell. "
        "Within one run, means over runs: by batch means and by moving blocks, which allow for echoes that resemble their neighbours; "
        "and as if echoes were independent, which is how the published intervals were made."
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
            th scope="col" { "as if independent" }
        }
    };
    let body = html! {
        @for (size, rows) in &rows {
            tbody {
                tr.group { th scope="rowgroup" colspan="6" { (size) "-byte frames" } }
                @for row in rows { (row.shown()) }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

/// An interval of the mean of one run.
type Way = fn(&[f64]) -> Option<Interval>;

/// A device's mean and half widths, in nanoseconds.
struct Row<'a> {
    device: &'a DeviceRecord,
    means: ByRun,
    within: [ByRun; 3],
}

fn rows<'a>(results: &'a Results, set: MatchSet, size: u16) -> Vec<Row<'a>> {
    let devices = results.devices_in("echo").into_iter();
    let rows = devices.map(|device| {
        let runs = echo_runs(results, &device.name, set, size);
        let ways: [Way; 3] = [
            |values| batch_means_interval(values, CONFIDENCE),
            |values| block_bootstrap_interval(values, CONFIDENCE, SEED),
            |values| mean_interval(values, CONFIDENCE),
        ];
        Row {
            device,
            means: by_run(&runs, |run| run.delays.mean()),
            within: ways.map(|way| half_widths(&runs, way)),
        }
    });
    rows.filter(|row| row.within[0].runs() > 0).collect()
}

fn half_widths(runs: &[EchoRun<'_>], way: Way) -> ByRun {
    ByRun::new(runs.iter().filter_map(|run| {
        let interval = way(&in_order(run))?;
        Some((run.run, interval.half_width()))
    }))
}

/// Round trips in the order of sending, in nanoseconds.
pub(in crate::html) fn in_order(run: &EchoRun<'_>) -> Vec<f64> {
    let came = run.outcome.round_trip_ns.iter().flatten();
    came.map(|&nanos| f64::from(nanos)).collect()
}

impl Row<'_> {
    fn shown(&self) -> Markup {
        let over = self.means.interval().map(|interval| interval.half_width());
        html! {
            tr.calibration[self.device.calibration] {
                th scope="row" { span.device.{ (parts::class(&self.device.name)) } { (self.device.name) } }
                (parts::plain(&self.means, 1e3))
                @match over {
                    Some(nanos) => (width(nanos)),
                    None => td.none title="too few runs" { "–" },
                }
                @for way in &self.within {
                    @match way.mean() {
                        Some(nanos) => (width(nanos)),
                        None => td.none { "–" },
                    }
                }
            }
        }
    }
}

fn width(nanos: f64) -> Markup {
    let micros = nanos / 1e3;
    html! { td { "± " (decimal(micros, decimals(micros))) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture;

    #[test]
    fn what_one_run_says_stands_beside_what_runs_say() {
        let results = fixture::results(fixture::entries());
        let tests = Tests::of(&results);
        let set = *tests.sets.last().unwrap();
        let all = rows(&results, set, tests.sizes[0]);
        for row in &all {
            let [batches, blocks, naive] = row.within.each_ref().map(|way| way.mean().unwrap());
            assert!(batches > 0.0 && blocks > 0.0 && naive > 0.0);
        }
        let shown = table(&results, set, &tests).into_string();
        assert_eq!(shown.is_empty(), all.is_empty());
    }
}
