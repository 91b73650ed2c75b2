//! Distributions of the catalogue's experiments: curves of shares and of percentiles.

use maud::{Markup, html};
use record::Better;
use record::DeviceRecord;
use stats::Histogram;

use super::drawings::{SIZE, limit};
use super::material::{Facet, Material, words};
use super::multiples;
use crate::html::parts::{self, Point};
use crate::html::scale::{self, Scale, nines};
use crate::html::svg::Plot;

/// The most nines that are drawn: 99.99 %.
const NINES_MAX: f64 = 4.0;
/// The share up to which a curve of shares is drawn.
const SHOWN: f64 = 0.999;
/// Shares that have a mark on each curve, with their names.
const MARKS: [(f64, &str); 4] = [
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
];

/// A device's curve.
struct Curve<'a> {
    device: &'a DeviceRecord,
    values: Histogram,
}

impl Curve<'_> {
    /// The marks that at least twenty values lie beyond.
    fn marks(&self) -> impl Iterator<Item = (f64, &'static str, f64)> {
        let count = self.values.count() as f64;
        let told = MARKS.into_iter();
        told.filter(move |(share, _)| (1.0 - share) * count >= 20.0)
            .map(|(share, name)| (share, name, micros(self.values.quantile(share))))
    }
}

/// The curves at one place.
type Panel<'a> = (Facet, Vec<Curve<'a>>);

fn panels<'a>(material: &Material<'a>, histogram: &str) -> Vec<Panel<'a>> {
    let facets = material.facets(&[]).into_iter();
    let panels = facets.map(|facet| {
        let curves = material.devices.iter().filter_map(|&device| {
            let values = material.histogram(&device.name, histogram, &facet)?;
            Some(Curve { device, values })
        });
        let curves = curves.collect();
        (facet, curves)
    });
    panels
        .filter(|(_, curves): &Panel<'_>| !curves.is_empty())
        .collect()
}

/// The least and the most of what all curves have at these shares.
fn ends(panels: &[Panel<'_>], low: f64, high: f64) -> (f64, f64) {
    let at = |share: f64| {
        let curves = panels.iter().flat_map(|(_, curves)| curves);
        curves.map(move |one| micros(one.values.quantile(share)))
    };
    (
        at(low).fold(f64::INFINITY, f64::min),
        at(high).fold(0.0, f64::max),
    )
}

/// The share of values up to each.
pub(super) fn shares(material: &Material<'_>, title: &'static str, histogram: &str) -> Markup {
    let panels = panels(material, histogram);
    let (least, most) = ends(&panels, 0.001, SHOWN);
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::log(least, most),
        x_name: "µs",
        y: Scale::from_zero(1.0),
        y_name: "share of all".to_owned(),
    };
    let caption = html! { "Share of all that take no longer than the time on the axis (logarithmic), all runs together." };
    let path = |curve: &Curve<'_>| {
        let points = curve.values.shares().into_iter();
        let points: Vec<(f64, f64)> = points.map(|(ns, share)| (micros(ns), share)).collect();
        plot.steps(&points)
    };
    let at = |share: f64, micros: f64| (plot.at_x(micros), plot.at_y(share));
    let figures = panels.iter().map(|panel| {
        let content = drawn(&panel.1, path, at);
        figure(
            title,
            panel,
            &plot.draw(&description(title, &panel.1), &content),
            &caption,
        )
    });
    multiples::grid(title, &figures.collect::<Vec<_>>(), 1)
}

/// Values by how many nines of all stay below.
pub(super) fn percentiles(material: &Material<'_>, title: &'static str, histogram: &str) -> Markup {
    let panels = panels(material, histogram);
    let (least, most) = ends(&panels, 0.001, 0.9999);
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::Nines { most: NINES_MAX },
        x_name: "share of all that take no longer",
        y: Scale::log(least, most),
        y_name: "µs".to_owned(),
    };
    let path = |curve: &Curve<'_>| plot.line(&by_nines(curve, 1.0));
    let at = |share: f64, micros: f64| (plot.at_x(nines(share)), plot.at_y(micros));
    let figures = panels.iter().map(|panel| {
        let floor = panel.1.iter().find(|curve| curve.device.calibration);
        let content = html! {
            @if let Some(floor) = floor { path.limit d=(plot.area(&by_nines(floor, 2.0), false)) {} }
            (drawn(&panel.1, path, at))
        };
        let caption = html! {
            "Time against the share of all that take no longer, in nines, as far as twenty values lie beyond; all runs together."
            @if floor.is_some() { " " (limit(Better::Lower)) }
        };
        figure(title, panel, &plot.draw(&description(title, &panel.1), &content), &caption)
    });
    multiples::grid(title, &figures.collect::<Vec<_>>(), 1)
}

/// A curve by nines, its times multiplied by `factor`. A share that fewer than twenty values
/// lie beyond is not told.
fn by_nines(curve: &Curve<'_>, factor: f64) -> Vec<(f64, f64)> {
    let supported = nines(1.0 - 20.0 / curve.values.count() as f64);
    let points = curve.values.shares().into_iter();
    points
        .map(|(ns, share)| (nines(share), micros(ns) * factor))
        .take_while(|(place, _)| *place <= supported.min(NINES_MAX))
        .collect()
}

fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

fn drawn(
    curves: &[Curve<'_>],
    path: impl Fn(&Curve<'_>) -> String,
    at: impl Fn(f64, f64) -> (f64, f64),
) -> Markup {
    html! {
        @for curve in curves {
            @let name = curve.device.name.as_str();
            g.series.{ (parts::class(name)) } data-series=(name) {
                path.line d=(path(curve)) {}
                @for (share, mark, value) in curve.marks() {
                    @let (x, y) = at(share, value);
                    (Point { series: name, x: mark, y: value, unit: "µs" }.at(x, y))
                }
            }
        }
    }
}

fn description(title: &str, curves: &[Curve<'_>]) -> String {
    let described = curves.iter().map(|curve| {
        let median = scale::label(micros(curve.values.quantile(0.5)));
        format!("{}: median {median} µs", curve.device.name)
    });
    format!("{title}. {}", described.collect::<Vec<_>>().join("; "))
}

fn figure(title: &str, (facet, curves): &Panel<'_>, plot: &Markup, caption: &Markup) -> Markup {
    let devices: Vec<&DeviceRecord> = curves.iter().map(|curve| curve.device).collect();
    let title = format!("{title}{}", words(facet));
    parts::figure(&title, &parts::legend(&devices), plot, caption)
}
