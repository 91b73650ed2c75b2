//! The distributions of round trips as the publication drew them, and the runs
//! that the table's intervals are made of.

use maud::{Markup, html};
use record::DeviceRecord;
use record::MatchSet;
use record::Results;
use stats::Distribution;

use super::super::scale::Scale;
use super::super::strip::{Group, Strip};
use super::super::svg::Plot;
use super::super::{parts, scale};
use super::Tests;
use crate::analysis::{EchoRun, by_run, echo_runs, together};

/// Points of a curve: more than pixels would not show.
const POINTS: usize = 160;
/// The share of every device's echoes that a figure has room for: beyond lie single
/// stalls, which would take up most of it.
const SHOWN: u16 = 990;

pub(super) fn all(results: &Results, tests: &Tests) -> Markup {
    let mut figures = Vec::new();
    figures.extend(
        tests
            .sizes
            .first()
            .map(|&size| runs_figure(results, tests, size)),
    );
    // The figures of the publication, as far as their tests were done.
    for (set, size) in [
        (MatchSet::Ip, 64),
        (MatchSet::Exact, 64),
        (MatchSet::Exact, 256),
    ] {
        figures.extend(delay_figure(results, tests, set, size));
    }
    figures.extend(jitter_figure(results, tests, MatchSet::Exact, 64));
    html! { div.figures { @for figure in &figures { (figure) } } }
}

/// One device's values in microseconds, sorted.
struct Curve<'a> {
    device: &'a DeviceRecord,
    values: Distribution,
}

fn delay_figure(results: &Results, tests: &Tests, set: MatchSet, size: u16) -> Option<Markup> {
    let curves = curves(results, tests, set, size, |run| Some(&run.delays));
    let caption = html! {
        "Share of echoes that came back within the time on the axis (logarithmic, up to 99\u{a0}% of every device’s), "
        "all runs together. The grey curve is the cable: what the tester itself costs."
    };
    let title = format!("Round trip, {set} match, {size}-byte frames");
    draw_curves(&title, "round trip, µs", &curves, &caption)
}

fn jitter_figure(results: &Results, tests: &Tests, set: MatchSet, size: u16) -> Option<Markup> {
    let curves = curves(results, tests, set, size, |run| run.jitter.as_ref());
    let caption = html! {
        "Share of consecutive echoes whose round trips differ by no more than the time on the axis "
        "(logarithmic; IPDV, RFC 5481), all runs together."
    };
    let title = format!("Jitter, {set} match, {size}-byte frames");
    draw_curves(
        &title,
        "difference of consecutive round trips, µs",
        &curves,
        &caption,
    )
}

fn curves<'a>(
    results: &'a Results,
    tests: &Tests,
    set: MatchSet,
    size: u16,
    of: impl for<'r> Fn(&'r EchoRun<'a>) -> Option<&'r Distribution>,
) -> Vec<Curve<'a>> {
    if !(tests.sets.contains(&set) && tests.sizes.contains(&size)) {
        return Vec::new();
    }
    let devices = results.devices_in("echo").into_iter();
    devices
        .filter_map(|device| {
            let runs = echo_runs(results, &device.name, set, size);
            let values = together(runs.iter().filter_map(&of))?;
            Some(Curve { device, values })
        })
        .collect()
}

fn draw_curves(
    title: &str,
    x_name: &'static str,
    curves: &[Curve<'_>],
    caption: &Markup,
) -> Option<Markup> {
    // A tenth of a microsecond is the least that jitter is drawn at; zero has no logarithm.
    let micros = |nanos: u32| (f64::from(nanos) / 1e3).max(0.1);
    let least = curves.iter().map(|curve| micros(curve.values.quantile(1)));
    let most = curves
        .iter()
        .map(|curve| micros(curve.values.quantile(SHOWN)));
    let least = least.reduce(f64::min)?;
    let most = most.reduce(f64::max)?;
    let plot = Plot {
        width: 520.0,
        height: 330.0,
        x: Scale::log(least, most),
        x_name,
        y: Scale::from_zero(1.0),
        y_name: "share of echoes".to_owned(),
    };
    let content = html! {
        @for curve in curves {
            @let points: Vec<(f64, f64)> = curve.values.curve(POINTS).into_iter()
                .map(|(nanos, share)| (micros(nanos), share))
                .collect();
            @let name = curve.device.name.as_str();
            g.series.{ (parts::class(name)) } data-series=(name) {
                path.line d=(plot.steps(&points)) {}
                @for (thousandths, mark) in [(500, "50 %"), (900, "90 %"), (990, "99 %")] {
                    @let value = micros(curve.values.quantile(thousandths));
                    @let point = parts::Point { series: name, x: mark, y: value, unit: "µs" };
                    (point.at(plot.at_x(value), plot.at_y(f64::from(thousandths) / 1e3)))
                }
            }
        }
    };
    let described = curves.iter().map(|curve| {
        let median = scale::label(micros(curve.values.quantile(500)));
        format!("{}: median {median} µs", curve.device.name)
    });
    let description = format!("{title}. {}", described.collect::<Vec<_>>().join("; "));
    let devices: Vec<&DeviceRecord> = curves.iter().map(|curve| curve.device).collect();
    Some(parts::figure(
        title,
        &parts::legend(&devices),
        &plot.draw(&description, &content),
        caption,
    ))
}

/// Each run's median as a dot, match type by match type.
fn runs_figure(results: &Results, tests: &Tests, size: u16) -> Markup {
    let devices = results.devices_in("echo");
    let groups = tests.sets.iter().map(|&set| {
        let of = |device: &&DeviceRecord| {
            let runs = echo_runs(results, &device.name, set, size);
            by_run(&runs, |run| f64::from(run.delays.quantile(500)) / 1e3).values()
        };
        Group {
            name: super::heading(set).to_owned(),
            rows: devices.iter().map(of).collect(),
        }
    });
    let strip = Strip {
        title: format!("Run by run, {size}-byte frames"),
        axis: "median round trip, µs".to_owned(),
        what: "",
        unit: "µs",
        devices: &devices,
        groups: groups.collect(),
    };
    let strips = [strip];
    let scale = Strip::common_scale(&strips);
    html! { @for strip in &strips { (strip.draw(scale)) } }
}
