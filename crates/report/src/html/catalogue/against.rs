//! One figure against another: received against offered frames.

use maud::{Markup, html};
use record::{DeviceRecord, Figure, Value};

use super::drawings::{SIZE, y_name};
use super::multiples;
use super::readings::{Facet, Readings, shown, suffix, with};
use crate::format::{decimal, decimals};
use crate::html::parts;
use crate::html::scale::{self, Scale};
use crate::html::svg::{Plot, round};

/// Means over runs at one value of the parameter.
struct CurvePoint {
    /// Value of the parameter.
    at: Value,
    x: f64,
    y: f64,
}

struct DeviceCurve<'a> {
    device: &'a DeviceRecord,
    points: Vec<CurvePoint>,
}

/// Returns a drawing for each combination of the axes that are not shown.
pub(super) fn draw(
    readings: &Readings<'_>,
    title: &'static str,
    (x, y): (&str, &str),
    along: &'static str,
    diagonal: bool,
) -> Markup {
    let (x, y) = (readings.figure(x), readings.figure(y));
    let facets = readings.facets(&[along]).into_iter();
    let panels = facets.map(|facet| (lines(readings, (x, y), along, &facet), facet));
    let panels: Vec<(Vec<DeviceCurve<'_>>, Facet)> =
        panels.filter(|(lines, _)| !lines.is_empty()).collect();
    let greatest = |of: fn(&CurvePoint) -> f64| {
        let lines = panels.iter().flat_map(|(lines, _)| lines);
        let points = lines.flat_map(|line| &line.points);
        points.map(of).fold(0.0, f64::max)
    };
    let (most_x, most_y) = (greatest(|point| point.x), greatest(|point| point.y));
    // Both axes of a diagonal have the same scale.
    let most_y = if diagonal { most_x.max(most_y) } else { most_y };
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::from_zero(if diagonal { most_y } else { most_x }),
        x_name: y_name(x),
        y: Scale::from_zero(most_y),
        y_name: y_name(y),
    };
    let figures = panels.iter().map(|(lines, facet)| {
        let content = html! {
            @if diagonal { path.ideal d=(plot.line(&[(0.0, 0.0), (most_y, most_y)])) {} }
            @for line in lines { (drawn(&plot, line, (x, y))) }
        };
        let described = lines.iter().filter_map(|line| {
            let greatest = line.points.iter().map(|point| point.y).reduce(f64::max)?;
            Some(format!(
                "{}: up to {}",
                line.device.name,
                scale::label(greatest)
            ))
        });
        let description = format!("{title}. {}", described.collect::<Vec<_>>().join("; "));
        let devices: Vec<&DeviceRecord> = lines.iter().map(|line| line.device).collect();
        let caption = html! {
            "Means over runs. A ring marks the trial without a set rate."
            @if diagonal { " On the dotted diagonal both are equal." }
        };
        parts::figure(
            &format!("{title}{}", suffix(facet)),
            &parts::legend(&devices),
            &plot.draw(&description, &content),
            &caption,
        )
    });
    multiples::grid(title, &figures.collect::<Vec<_>>(), 1)
}

/// Returns a line for each device that has any point: through the numbers of the parameter, then
/// to its words.
fn lines<'a>(
    readings: &Readings<'a>,
    (x, y): (&Figure, &Figure),
    along: &'static str,
    facet: &Facet,
) -> Vec<DeviceCurve<'a>> {
    let axis = readings.axis(along);
    let values = readings.values(axis);
    let line = |&device: &&'a DeviceRecord| {
        let points = values.iter().filter_map(|value| {
            let facet = with(facet, axis, value);
            let mean = |figure| readings.by_run(&device.name, figure, &facet).mean();
            Some(CurvePoint {
                at: value.clone(),
                x: mean(x)?,
                y: mean(y)?,
            })
        });
        let points = points.collect();
        DeviceCurve { device, points }
    };
    let lines = readings.devices.iter().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn drawn(plot: &Plot, line: &DeviceCurve<'_>, (x, y): (&Figure, &Figure)) -> Markup {
    let name = line.device.name.as_str();
    let path: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
    let text = |value: f64, figure: &Figure| {
        let number = decimal(value, decimals(value));
        format!("{number} {}", figure.shown_unit())
    };
    html! {
        g.series.{ (parts::class(name)) } data-series=(name) {
            path.line d=(plot.line(&path)) {}
            @for point in &line.points {
                @let (shape, radius) = if point.at.number().is_some() { ("dot", 3.4) } else { ("ring", 5.5) };
                circle.{ (shape) " point" } cx=(round(plot.at_x(point.x))) cy=(round(plot.at_y(point.y))) r=(radius)
                    data-series=(name) data-x=(point.x) data-y=(point.y) {
                    title { (name) ", " (shown(&point.at)) ": " (text(point.x, x)) ", " (text(point.y, y)) }
                }
            }
        }
    }
}
