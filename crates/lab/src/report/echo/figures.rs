//! The distributions of round trips as the publication drew them, and the runs
//! that the table's intervals are made of.

use maud::{Markup, html};

use super::super::scale::Scale;
use super::super::svg::{Plot, round};
use super::super::{parts, scale};
use super::Tests;
use crate::MatchSet;
use crate::Scenario;
use crate::analysis::{EchoRun, by_run, echo_runs, together};
use crate::record::DeviceRecord;
use crate::results::Results;
use crate::statistics::Distribution;

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
    let devices = results.devices_in(Scenario::Echo).into_iter();
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
            path.line.{ (parts::class(&curve.device.name)) } d=(plot.steps(&points)) {
                title { (curve.device.name) }
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

/// Distance between two devices' rows, in pixels.
const ROW: f64 = 15.0;
/// Where rows begin, and what stands left of them.
const MARGIN: (f64, f64) = (84.0, 8.0);

/// Each run's median as a dot, match type by match type.
fn runs_figure(results: &Results, tests: &Tests, size: u16) -> Markup {
    let devices = results.devices_in(Scenario::Echo);
    let group = ROW * (devices.len() as f64 + 0.9);
    let height = MARGIN.1 + group * tests.sets.len() as f64;
    let medians: Vec<Vec<Vec<f64>>> = tests
        .sets
        .iter()
        .map(|&set| {
            let of = |device: &&DeviceRecord| {
                let runs = echo_runs(results, &device.name, set, size);
                by_run(&runs, |run| f64::from(run.delays.quantile(500)) / 1e3).values()
            };
            devices.iter().map(of).collect()
        })
        .collect();
    let every = || medians.iter().flatten().flatten().copied();
    let x = Scale::log(
        every().reduce(f64::min).unwrap_or(1.0),
        every().reduce(f64::max).unwrap_or(1.0),
    );
    let width = 520.0;
    let at = |value: f64| round(MARGIN.0 + x.place(value) * (width - MARGIN.0 - 20.0));
    let content = html! {
        svg viewBox={ "0 0 " (width) " " (round(height + 44.0)) } role="img"
            aria-label={ "Median round trip of each run, " (size) "-byte frames" } {
            g.grid {
                @for tick in x.ticks() {
                    path d={ "M" (at(tick)) " " (MARGIN.1) "V" (round(height)) } {}
                    text x=(at(tick)) y=(round(height + 17.0)) text-anchor="middle" { (scale::label(tick)) }
                }
                text.axis x=(f64::midpoint(MARGIN.0, width)) y=(round(height + 38.0)) text-anchor="middle" {
                    "median round trip, µs"
                }
            }
            @for (index, (set, rows)) in (0_u8..).zip(tests.sets.iter().zip(&medians)) {
                @let top = MARGIN.1 + group * f64::from(index);
                g.rows {
                    text.label x=(MARGIN.0 - 12.0) y=(round(top + group / 2.0 + 1.0)) text-anchor="end" { (super::heading(*set)) }
                    @if index > 0 { path.divide d={ "M" (MARGIN.0) " " (round(top)) "H" (width - 20.0) } {} }
                    @for (row, (device, values)) in (0_u8..).zip(devices.iter().zip(rows)) {
                        @let y = round(top + ROW * (f64::from(row) + 0.95));
                        g class=(parts::class(&device.name)) {
                            @for value in values {
                                circle.dot cx=(at(*value)) cy=(y) r="3.6" {
                                    title { (device.name) ", " (set) ": " (scale::label(*value)) " µs" }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    let caption = html! {
        "Each dot is the median of one run: what scatters here is what the intervals of the table are made of."
    };
    let title = format!("Run by run, {size}-byte frames");
    parts::figure(&title, &parts::legend(&devices), &content, &caption)
}
