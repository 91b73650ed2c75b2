//! Drawings of the catalogue's experiments: lines with their intervals, curves of shares and
//! of percentiles, bars.

use maud::{Markup, html};

use super::material::{Facet, Material, with, words};
use crate::analysis::ByRun;
use crate::catalogue::{Figure, Parameter, Value};
use crate::record::DeviceRecord;
use crate::report::parts;
use crate::report::scale::{self, Scale, nines};
use crate::report::svg::{Plot, round};
use crate::statistics::Histogram;

/// The size of a drawing in a column.
const SIZE: (f64, f64) = (520.0, 330.0);
/// The most nines that are drawn: 99.99 %.
const NINES_MAX: f64 = 4.0;
/// The share up to which a curve of shares is drawn.
const SHOWN: f64 = 0.999;

/// A figure against a parameter.
pub(super) fn lines(
    material: &Material<'_>,
    title: &'static str,
    figure: &str,
    along: &'static str,
    log: bool,
) -> Markup {
    let (figure, axis) = (material.figure(figure), material.axis(along));
    html! {
        div.figures {
            @for facet in material.facets(&[along]) { (line_figure(material, title, (figure, axis), log, &facet)) }
        }
    }
}

/// A device's places on a line: the parameter, and the figure over runs.
struct Line<'a> {
    device: &'a DeviceRecord,
    points: Vec<(f64, ByRun)>,
}

fn line_figure(
    material: &Material<'_>,
    title: &'static str,
    (figure, along): (&'static Figure, &'static Parameter),
    log: bool,
    facet: &Facet,
) -> Markup {
    let lines = lines_of(material, figure, along, facet);
    let Some((x, y)) = scales(&lines, log) else {
        return html! {};
    };
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x,
        x_name: along.about,
        y,
        y_name: y_name(figure),
    };
    let content = html! { @for line in &lines { (drawn_line(&plot, line, figure)) } };
    let described = lines.iter().filter_map(|line| {
        let (_, last) = line.points.last()?;
        let last = scale::label(last.mean()?);
        Some(format!("{}: at the end {last}", line.device.name))
    });
    let description = format!("{title}. {}", described.collect::<Vec<_>>().join("; "));
    let devices: Vec<&DeviceRecord> = lines.iter().map(|line| line.device).collect();
    parts::figure(
        &format!("{title}{}", words(facet)),
        &parts::legend(&devices),
        &plot.draw(&description, &content),
        &html! { "Means over runs, with their 99\u{a0}% intervals." },
    )
}

/// A line for each device that has any point.
fn lines_of<'a>(
    material: &Material<'a>,
    figure: &Figure,
    along: &'static Parameter,
    facet: &Facet,
) -> Vec<Line<'a>> {
    let numbers = material.values(along);
    let line = |device: &'a DeviceRecord| {
        let points = numbers.iter().filter_map(|value| {
            let facet = with(facet, along, value);
            let runs = material.by_run(&device.name, figure.name, &facet);
            (runs.runs() > 0).then_some((value.number()? as f64, runs))
        });
        let points = points.collect();
        Line { device, points }
    };
    let lines = material.devices.iter().map(|device| line(device));
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The axes that hold all of `lines`; none if there is nothing to hold.
fn scales(lines: &[Line<'_>], log: bool) -> Option<(Scale, Scale)> {
    let all = || lines.iter().flat_map(|line| &line.points);
    let means = || all().filter_map(|(_, runs)| runs.mean());
    let first = all().map(|(x, _)| *x).reduce(f64::min)?;
    let last = all().map(|(x, _)| *x).reduce(f64::max)?;
    let most = means().fold(0.0, f64::max);
    let positive = means().filter(|mean| *mean > 0.0).reduce(f64::min);
    let y = match (log, positive) {
        (true, Some(least)) => Scale::log(least, most),
        _ => Scale::from_zero(most),
    };
    // Sizes and counts that span decades are told apart by factors.
    let x = match first > 0.0 && last / first > 30.0 {
        true => Scale::log(first, last),
        false => Scale::from_zero(last),
    };
    Some((x, y))
}

fn drawn_line(plot: &Plot, line: &Line<'_>, figure: &Figure) -> Markup {
    let means: Vec<(f64, f64)> = line
        .points
        .iter()
        .filter_map(|(x, runs)| Some((*x, runs.mean()?)))
        .collect();
    html! {
        g.series.{ (parts::class(&line.device.name)) } {
            path.line d=(plot.line(&means)) {}
            @for (x, runs) in &line.points {
                @if let Some(interval) = runs.interval() {
                    path.spread d={ "M" (round(plot.at_x(*x))) " " (round(plot.at_y(interval.low))) "V" (round(plot.at_y(interval.high))) } {}
                }
                @if let Some(mean) = runs.mean() {
                    circle.dot cx=(round(plot.at_x(*x))) cy=(round(plot.at_y(mean))) r="3.4" {
                        title { (line.device.name) ", " (scale::label(*x)) ": " (scale::label(mean)) " " (figure.unit) }
                    }
                }
            }
        }
    }
}

/// A device's curve.
struct Curve<'a> {
    device: &'a DeviceRecord,
    values: Histogram,
}

/// The histograms of all devices at a place, nanoseconds all of them.
fn curves<'a>(material: &Material<'a>, histogram: &str, facet: &Facet) -> Vec<Curve<'a>> {
    let devices = material.devices.iter();
    devices
        .filter_map(|&device| {
            let values = material.histogram(&device.name, histogram, facet)?;
            Some(Curve { device, values })
        })
        .collect()
}

/// The share of values up to each.
pub(super) fn shares(material: &Material<'_>, title: &'static str, histogram: &str) -> Markup {
    each_place(material, title, histogram, |title, curves| {
        let ends = |share: f64| {
            curves
                .iter()
                .map(move |one| micros(one.values.quantile(share)))
        };
        let plot = Plot {
            width: SIZE.0,
            height: SIZE.1,
            x: Scale::log(
                ends(0.001).fold(f64::INFINITY, f64::min),
                ends(SHOWN).fold(0.0, f64::max),
            ),
            x_name: "µs",
            y: Scale::from_zero(1.0),
            y_name: "share of all".to_owned(),
        };
        let draw = |curve: &Curve<'_>| {
            let points = curve.values.shares().into_iter();
            let points: Vec<(f64, f64)> = points.map(|(ns, share)| (micros(ns), share)).collect();
            plot.steps(&points)
        };
        let caption = html! { "Share of all that take no longer than the time on the axis (logarithmic), all runs together." };
        drawn_curves(title, curves, &plot, draw, &caption)
    })
}

/// Values by how many nines of all stay below.
pub(super) fn percentiles(material: &Material<'_>, title: &'static str, histogram: &str) -> Markup {
    each_place(material, title, histogram, |title, curves| {
        let most = curves.iter().map(|one| micros(one.values.quantile(0.9999)));
        let least = curves.iter().map(|one| micros(one.values.quantile(0.001)));
        let plot = Plot {
            width: SIZE.0,
            height: SIZE.1,
            x: Scale::Nines { most: NINES_MAX },
            x_name: "share of all that take no longer",
            y: Scale::log(
                least.fold(f64::INFINITY, f64::min),
                most.fold(0.0, f64::max),
            ),
            y_name: "µs".to_owned(),
        };
        let draw = |curve: &Curve<'_>| {
            // A share that fewer than twenty values lie beyond is not told.
            let supported = nines(1.0 - 20.0 / curve.values.count() as f64);
            let points = curve.values.shares().into_iter();
            let points: Vec<(f64, f64)> = points
                .map(|(ns, share)| (nines(share), micros(ns)))
                .take_while(|(place, _)| *place <= supported.min(NINES_MAX))
                .collect();
            plot.line(&points)
        };
        let caption = html! { "Time against the share of all that take no longer, in nines, as far as twenty values lie beyond; all runs together." };
        drawn_curves(title, curves, &plot, draw, &caption)
    })
}

fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

fn each_place(
    material: &Material<'_>,
    title: &'static str,
    histogram: &str,
    draw: impl Fn(&str, &[Curve<'_>]) -> Markup,
) -> Markup {
    html! {
        div.figures {
            @for facet in material.facets(&[]) {
                @let curves = curves(material, histogram, &facet);
                @if !curves.is_empty() { (draw(&format!("{title}{}", words(&facet)), &curves)) }
            }
        }
    }
}

fn drawn_curves(
    title: &str,
    curves: &[Curve<'_>],
    plot: &Plot,
    path: impl Fn(&Curve<'_>) -> String,
    caption: &Markup,
) -> Markup {
    let content = html! {
        @for curve in curves {
            g.series.{ (parts::class(&curve.device.name)) } {
                path.line d=(path(curve)) { title { (curve.device.name) } }
            }
        }
    };
    let described = curves.iter().map(|curve| {
        let median = scale::label(micros(curve.values.quantile(0.5)));
        format!("{}: median {median} µs", curve.device.name)
    });
    let description = format!("{title}. {}", described.collect::<Vec<_>>().join("; "));
    let devices: Vec<&DeviceRecord> = curves.iter().map(|curve| curve.device).collect();
    let drawn = plot.draw(&description, &content);
    parts::figure(title, &parts::legend(&devices), &drawn, caption)
}

/// One figure as bars, a group for each value of a parameter.
pub(super) fn bars(
    material: &Material<'_>,
    title: &'static str,
    figure: &str,
    across: &'static str,
) -> Markup {
    let (figure, axis) = (material.figure(figure), material.axis(across));
    html! {
        div.figures {
            @for facet in material.facets(&[across]) { (bar_figure(material, title, (figure, axis), &facet)) }
        }
    }
}

/// A bar: where it stands, and how high it is.
struct Bar<'a> {
    device: &'a DeviceRecord,
    value: Value,
    /// From the left end of the axis, in groups.
    sides: [f64; 2],
    runs: ByRun,
}

fn bar_figure(
    material: &Material<'_>,
    title: &'static str,
    (figure, across): (&'static Figure, &'static Parameter),
    facet: &Facet,
) -> Markup {
    let groups = material.values(across);
    let bars = bars_of(material, figure, across, facet);
    let ends = bars.iter().filter_map(|bar| {
        let high = bar.runs.interval().map(|interval| interval.high);
        high.or_else(|| bar.runs.mean())
    });
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::Groups {
            count: groups.len(),
        },
        x_name: "",
        y: Scale::from_zero(ends.fold(0.0, f64::max)),
        y_name: y_name(figure),
    };
    let content = html! {
        @for (group, value) in (0_u8..).zip(&groups) {
            text x=(round(plot.at_x(f64::from(group) + 0.5))) y=(round(plot.at_y(0.0) + 17.0)) text-anchor="middle" { (value) }
        }
        @for bar in &bars { (drawn_bar(&plot, bar, figure)) }
    };
    parts::figure(
        &format!("{title}{}", words(facet)),
        &parts::legend(&material.devices),
        &plot.draw(title, &content),
        &html! { "Means over runs, with their 99\u{a0}% intervals." },
    )
}

fn bars_of<'a>(
    material: &Material<'a>,
    figure: &Figure,
    across: &'static Parameter,
    facet: &Facet,
) -> Vec<Bar<'a>> {
    let width = 0.8 / material.devices.len() as f64;
    let groups = material.values(across).into_iter();
    let places = (0_u8..).zip(groups).flat_map(|(group, value)| {
        let devices = (0_u8..).zip(&material.devices);
        devices.map(move |(place, device)| (group, value.clone(), place, *device))
    });
    let bars = places.map(|(group, value, place, device)| {
        let left = f64::from(group) + 0.1 + f64::from(place) * width;
        let facet = with(facet, across, &value);
        Bar {
            device,
            runs: material.by_run(&device.name, figure.name, &facet),
            value,
            sides: [left, left + width],
        }
    });
    bars.collect()
}

fn drawn_bar(plot: &Plot, bar: &Bar<'_>, figure: &Figure) -> Markup {
    let Some(mean) = bar.runs.mean() else {
        return html! {};
    };
    let [left, right] = bar.sides.map(|side| plot.at_x(side));
    let (top, bottom) = (plot.at_y(mean), plot.at_y(0.0));
    html! {
        g.series.{ (parts::class(&bar.device.name)) } {
            rect.column x=(round(left + 1.0)) y=(round(top)) width=(round(right - left - 2.0)) height=(round(bottom - top)) {
                title { (bar.device.name) ", " (bar.value) ": " (scale::label(mean)) " " (figure.unit) }
            }
            @if let Some(interval) = bar.runs.interval() {
                @let middle = round(f64::midpoint(left, right));
                path.whisker d={ "M" (middle) " " (round(plot.at_y(interval.low))) "V" (round(plot.at_y(interval.high))) } {}
            }
        }
    }
}

/// What stands at the axis: the figure with its unit.
fn y_name(figure: &'static Figure) -> String {
    match figure.unit {
        "" => figure.title.to_owned(),
        unit => format!("{}, {unit}", figure.title),
    }
}
