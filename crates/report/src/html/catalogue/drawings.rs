//! Drawings of a figure by a parameter: lines with intervals, and bars.

use maud::{Markup, html};
use record::DeviceRecord;
use record::{Better, Figure, Parameter, Value};

use super::multiples;
use super::readings::{Facet, Readings, shown, suffix, with};
use super::reference::{Reach, Reference};
use super::runs;
use crate::analysis::ByRun;
use crate::html::parts::{self, Point};
use crate::html::scale::{self, Scale};
use crate::html::svg::{Plot, round};

/// Width and height of a drawing in a column.
pub(super) const SIZE: (f64, f64) = (520.0, 330.0);

/// Figure against a parameter.
#[derive(Clone, Copy)]
pub(super) struct Against {
    pub(super) figure: &'static Figure,
    pub(super) along: &'static Parameter,
    /// True for a logarithmic axis of the figure.
    pub(super) log: bool,
}

/// Returns lines of a figure against a parameter.
pub(super) fn lines(
    readings: &Readings<'_>,
    title: &'static str,
    figure: &str,
    along: &'static str,
    log: bool,
) -> Markup {
    let against = Against {
        figure: readings.figure(figure),
        along: readings.axis(along),
        log,
    };
    // For a single value of the parameter, the runs are drawn instead.
    if readings.values(against.along).len() < 2 {
        return runs::runs(readings, title, against.figure.name, against.along.name);
    }
    let figures: Vec<Markup> = panels(readings, against)
        .iter()
        .map(|panel| panel.draw(title))
        .collect();
    multiples::grid(title, &figures, 1)
}

/// Line of a device: the parameter, and the figure over runs.
struct DeviceLine<'a> {
    device: &'a DeviceRecord,
    points: Vec<(f64, ByRun)>,
}

/// One of several drawings with common scales.
pub(super) struct Panel<'a> {
    facet: Facet,
    against: Against,
    lines: Vec<DeviceLine<'a>>,
    reference: Option<Reference>,
    reach: Reach,
    x: Scale,
    y: Scale,
}

/// Returns a panel for each combination of the axes that are not shown.
pub(super) fn panels<'a>(readings: &Readings<'a>, against: Against) -> Vec<Panel<'a>> {
    let facets = readings.facets(&[against.along.name]).into_iter();
    let drawn = facets.map(|facet| (lines_of(readings, against, &facet), facet));
    let drawn: Vec<(Vec<DeviceLine<'a>>, Facet)> =
        drawn.filter(|(lines, _)| !lines.is_empty()).collect();
    let all: Vec<&DeviceLine<'a>> = drawn.iter().flat_map(|(lines, _)| lines).collect();
    let reference = || {
        let (figure, along) = (against.figure.name, against.along.name);
        Reference::of(readings.experiment.name, figure, along)
    };
    let Some((reach, x, y)) = scales(&all, reference().as_ref(), against.log) else {
        return Vec::new();
    };
    let panel = |(lines, facet)| Panel {
        facet,
        against,
        lines,
        reference: reference(),
        reach,
        x,
        y,
    };
    drawn.into_iter().map(panel).collect()
}

impl Panel<'_> {
    pub(super) fn draw(&self, title: &str) -> Markup {
        let figure = self.against.figure;
        let plot = Plot {
            width: SIZE.0,
            height: SIZE.1,
            x: self.x,
            x_name: self.against.along.about.to_owned(),
            y: self.y,
            y_name: y_name(figure),
        };
        // A link without loss has no limit to show.
        let has_limit = |line: &&DeviceLine<'_>| {
            let mut means = line.points.iter().filter_map(|(_, runs)| runs.mean());
            line.device.calibration && line.points.len() > 1 && means.any(|mean| mean > 0.0)
        };
        let link = self.lines.iter().find(has_limit);
        let content = html! {
            @if let Some(link) = link { (shade(&plot, link, figure.better)) }
            @if let Some(reference) = &self.reference { (reference.draw(&plot, self.reach, figure.shown_unit())) }
            @for line in &self.lines { (drawn_line(&plot, line, figure)) }
        };
        let described = self.lines.iter().filter_map(|line| {
            let (_, last) = line.points.last()?;
            let last = scale::label(last.mean()?);
            Some(format!("{}: at the end {last}", line.device.name))
        });
        let description = format!("{title}. {}", described.collect::<Vec<_>>().join("; "));
        let devices: Vec<&DeviceRecord> = self.lines.iter().map(|line| line.device).collect();
        let caption = html! {
            "Means over runs, with their 99\u{a0}% intervals."
            @if link.is_some() { " " (limit(figure.better)) }
            @if let Some(reference) = &self.reference { (reference.caption(self.reach, figure.shown_unit())) }
        };
        let others = self.reference.as_ref().map(Reference::legend);
        parts::figure(
            &format!("{title}{}", suffix(&self.facet)),
            &parts::legend_with(&devices, &others.unwrap_or_default()),
            &plot.draw(&description, &content),
            &caption,
        )
    }
}

/// Returns the caption of the shaded area beside the curve of the bare link.
pub(super) const fn limit(better: Better) -> &'static str {
    match better {
        Better::Higher => {
            "Grey curve: bare link, the limit of the tester. Shaded, down to half of it: the tester may be the limit."
        }
        Better::Lower | Better::Neither => {
            "Grey curve: bare link, the contribution of the tester. Shaded, up to twice of it: the tester may be the limit."
        }
    }
}

/// Returns the shaded area: within a factor of two of the bare link.
fn shade(plot: &Plot, link: &DeviceLine<'_>, better: Better) -> Markup {
    let factor = if better == Better::Higher { 0.5 } else { 2.0 };
    let means = link.points.iter();
    let means = means.filter_map(|(x, runs)| Some((*x, runs.mean()? * factor)));
    let edge: Vec<(f64, f64)> = means.collect();
    html! { path.limit d=(plot.area(&edge, better == Better::Higher)) {} }
}

/// Returns a line for each device that has any point.
fn lines_of<'a>(readings: &Readings<'a>, against: Against, facet: &Facet) -> Vec<DeviceLine<'a>> {
    let numbers = readings.values(against.along);
    let line = |device: &'a DeviceRecord| {
        let points = numbers.iter().filter_map(|value| {
            let facet = with(facet, against.along, value);
            let runs = readings.by_run(&device.name, against.figure, &facet);
            (runs.runs() > 0).then_some((value.number()? as f64, runs))
        });
        let points = points.collect();
        DeviceLine { device, points }
    };
    let lines = readings.devices.iter().map(|device| line(device));
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// Returns the measured range and the scales for all `lines`; `None` if there are no points.
fn scales(
    lines: &[&DeviceLine<'_>],
    reference: Option<&Reference>,
    log: bool,
) -> Option<(Reach, Scale, Scale)> {
    let all = || lines.iter().flat_map(|line| &line.points);
    let means = || all().filter_map(|(_, runs)| runs.mean());
    let first = all().map(|(x, _)| *x).reduce(f64::min)?;
    let last = all().map(|(x, _)| *x).reduce(f64::max)?;
    // Sizes and counts over several decades have a logarithmic axis.
    let x = match first > 0.0 && last / first > 30.0 {
        true => Scale::log(first, last),
        false => Scale::from_zero(last),
    };
    // A single value has the whole axis.
    let reach = if first < last {
        (first, last)
    } else {
        x.ends()
    };
    let others = reference.map_or_else(Vec::new, |one| one.values(reach));
    let values = || means().chain(others.iter().copied());
    let most = values().fold(0.0, f64::max);
    let positive = values().filter(|mean| *mean > 0.0).reduce(f64::min);
    let y = match (log, positive) {
        (true, Some(least)) => Scale::log(least, most),
        _ => Scale::from_zero(most),
    };
    Some((reach, x, y))
}

fn drawn_line(plot: &Plot, line: &DeviceLine<'_>, figure: &Figure) -> Markup {
    let name = line.device.name.as_str();
    let means = line.points.iter();
    let means: Vec<(f64, f64)> = means
        .filter_map(|(x, runs)| Some((*x, runs.mean()?)))
        .collect();
    html! {
        g.series.{ (parts::class(name)) } data-series=(name) {
            path.line d=(plot.line(&means)) {}
            @for (x, runs) in &line.points {
                @if let Some(interval) = runs.interval() {
                    path.spread d={ "M" (round(plot.at_x(*x))) " " (round(plot.at_y(interval.low))) "V" (round(plot.at_y(interval.high))) } {}
                }
                @if let Some(mean) = runs.mean() {
                    (Point { series: name, x: &scale::label(*x), y: mean, unit: figure.shown_unit() }.at(plot.at_x(*x), plot.at_y(mean)))
                }
            }
        }
    }
}

/// Returns bars of a figure, a group for each value of a parameter.
pub(super) fn bars(
    readings: &Readings<'_>,
    title: &'static str,
    figure: &str,
    across: &'static str,
) -> Markup {
    let (figure, axis) = (readings.figure(figure), readings.axis(across));
    let facets = readings.facets(&[across]).into_iter();
    let drawn = facets.map(|facet| (bars_of(readings, figure, axis, &facet), facet));
    let drawn: Vec<(Vec<DeviceBar<'_>>, Facet)> = drawn.collect();
    let ends = drawn.iter().flat_map(|(bars, _)| bars).filter_map(|bar| {
        let high = bar.runs.interval().map(|interval| interval.high);
        // A wide interval does not make all bars small.
        let mean = bar.runs.mean()?;
        Some(high.unwrap_or(mean).min(2.0 * mean))
    });
    let y = Scale::from_zero(ends.fold(0.0, f64::max));
    let figures = drawn
        .iter()
        .map(|(bars, facet)| bar_figure(readings, title, (figure, axis), (bars, facet), y));
    multiples::grid(title, &figures.collect::<Vec<_>>(), 1)
}

/// Bar of a device at a value of the parameter.
struct DeviceBar<'a> {
    device: &'a DeviceRecord,
    value: Value,
    /// Left and right side, in groups from the left end of the axis.
    sides: [f64; 2],
    runs: ByRun,
}

fn bar_figure(
    readings: &Readings<'_>,
    title: &'static str,
    (figure, across): (&'static Figure, &'static Parameter),
    (bars, facet): (&[DeviceBar<'_>], &Facet),
    y: Scale,
) -> Markup {
    let groups = readings.values(across);
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::Groups {
            count: groups.len(),
        },
        x_name: across.about.to_owned(),
        y,
        y_name: y_name(figure),
    };
    let room = plot.at_x(1.0) - plot.at_x(0.0);
    let content = html! {
        @for (group, value) in (0_u8..).zip(&groups) {
            (label(&shown(value), plot.at_x(f64::from(group) + 0.5), plot.at_y(0.0) + 15.0, room))
        }
        @for bar in bars { (drawn_bar(&plot, bar, figure)) }
    };
    parts::figure(
        &format!("{title}{}", suffix(facet)),
        &parts::legend(&readings.devices),
        &plot.draw(title, &content),
        &html! { "Means over runs, with their 99\u{a0}% intervals, which end at the frame." },
    )
}

/// Returns the name of a group, in two lines if one is too short.
fn label(name: &str, x: f64, y: f64, room: f64) -> Markup {
    let fits = name.chars().count() as f64 * 6.4 <= room;
    let middle = name.len() / 2;
    let breaks = name.match_indices(['-', ' ']).map(|(at, _)| at);
    let at = breaks
        .min_by_key(|at| at.abs_diff(middle))
        .filter(|_| !fits);
    let (first, second) = at.map_or((name, ""), |at| name.split_at(at + 1));
    html! {
        text.group x=(round(x)) y=(round(y)) text-anchor="middle" {
            (first.trim_end())
            @if !second.is_empty() { tspan x=(round(x)) dy="12" { (second) } }
        }
    }
}

fn bars_of<'a>(
    readings: &Readings<'a>,
    figure: &Figure,
    across: &'static Parameter,
    facet: &Facet,
) -> Vec<DeviceBar<'a>> {
    let width = 0.8 / readings.devices.len() as f64;
    let groups = readings.values(across).into_iter();
    let places = (0_u8..).zip(groups).flat_map(|(group, value)| {
        let devices = (0_u8..).zip(&readings.devices);
        devices.map(move |(place, device)| (group, value.clone(), place, *device))
    });
    let bars = places.map(|(group, value, place, device)| {
        let left = f64::from(group) + 0.1 + f64::from(place) * width;
        let facet = with(facet, across, &value);
        DeviceBar {
            device,
            runs: readings.by_run(&device.name, figure, &facet),
            value,
            sides: [left, left + width],
        }
    });
    bars.collect()
}

fn drawn_bar(plot: &Plot, bar: &DeviceBar<'_>, figure: &Figure) -> Markup {
    let Some(mean) = bar.runs.mean() else {
        return html! {};
    };
    let [left, right] = bar.sides.map(|side| plot.at_x(side));
    let (top, bottom) = (plot.at_y(mean), plot.at_y(0.0));
    let middle = f64::midpoint(left, right);
    let name = bar.device.name.as_str();
    html! {
        g.series.{ (parts::class(name)) } data-series=(name) {
            rect.column x=(round(left + 1.0)) y=(round(top)) width=(round(right - left - 2.0)) height=(round(bottom - top)) {}
            @if let Some(interval) = bar.runs.interval() {
                path.whisker d={ "M" (round(middle)) " " (round(plot.at_y(interval.low))) "V" (round(plot.at_y(interval.high))) } {}
            }
            (Point { series: name, x: &shown(&bar.value), y: mean, unit: figure.shown_unit() }.at(middle, top))
        }
    }
}

/// Returns the name of an axis: the figure with its unit.
pub(super) fn y_name(figure: &'static Figure) -> String {
    match figure.shown_unit() {
        "" => figure.title.to_owned(),
        unit => format!("{}, {unit}", figure.title),
    }
}
