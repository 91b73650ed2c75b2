//! Curves of distributions.

use maud::{Markup, html};
use record::{Better, DeviceRecord};

use super::drawings::{SIZE, limit};
use super::multiples;
use super::readings::{DelayDistribution, Facet, Readings, suffix};
use crate::html::parts::{self, Point};
use crate::html::scale::{self, Scale, nines};
use crate::html::svg::Plot;

/// Greatest number of nines on the axis: 99.99 %.
const NINES_MAX: f64 = 4.0;
/// Quantile, in ten-thousandths, up to which a cumulative distribution is drawn.
const CURVE_END: u16 = 9_990;
/// Least difference of consecutive round trips that is drawn, in microseconds: zero has no
/// logarithm.
const VARIATION_MIN: f64 = 0.1;
/// Quantiles with a mark on each curve, in ten-thousandths, with their names.
const MARKS: [(u16, &str); 4] = [
    (5_000, "50 %"),
    (9_000, "90 %"),
    (9_900, "99 %"),
    (9_990, "99.9 %"),
];
/// Least number of values beyond a quantile that is shown.
const BEYOND_MIN: f64 = 20.0;

/// Curve of a device.
struct Curve<'a> {
    device: &'a DeviceRecord,
    values: DelayDistribution,
}

impl Curve<'_> {
    /// Returns the marks that enough values lie beyond: share, name, microseconds.
    fn marks(&self) -> impl Iterator<Item = (f64, &'static str, f64)> {
        let count = self.values.count() as f64;
        MARKS.into_iter().filter_map(move |(quantile, name)| {
            let share = f64::from(quantile) / 1e4;
            let is_supported = (1.0 - share) * count >= BEYOND_MIN;
            is_supported.then(|| (share, name, micros(self.values.quantile(quantile))))
        })
    }
}

/// Curves at a facet.
type CurvePanel<'a> = (Facet, Vec<Curve<'a>>);

fn panels<'a>(
    readings: &Readings<'a>,
    values: impl Fn(&str, &Facet) -> Option<DelayDistribution>,
) -> Vec<CurvePanel<'a>> {
    let facets = readings.facets(&[]).into_iter();
    let panels = facets.map(|facet| {
        let curves = readings.devices.iter().filter_map(|&device| {
            let values = values(&device.name, &facet)?;
            Some(Curve { device, values })
        });
        let curves = curves.collect();
        (facet, curves)
    });
    panels
        .filter(|(_, curves): &CurvePanel<'_>| !curves.is_empty())
        .collect()
}

/// Returns the least and the greatest value of all curves at two quantiles.
fn ends(panels: &[CurvePanel<'_>], low: u16, high: u16) -> (f64, f64) {
    let at = |quantile: u16| {
        let curves = panels.iter().flat_map(|(_, curves)| curves);
        curves.map(move |one| micros(one.values.quantile(quantile)))
    };
    (
        at(low).fold(f64::INFINITY, f64::min),
        at(high).fold(0.0, f64::max),
    )
}

/// Returns the cumulative distributions.
pub(super) fn shares(readings: &Readings<'_>, title: &'static str, name: &str) -> Markup {
    let panels = panels(readings, |device, facet| {
        readings.distribution(device, name, facet)
    });
    let caption = html! { "Share of the values up to the time on the axis (logarithmic), all runs together." };
    cumulative(title, "µs", &panels, &caption)
}

/// Returns the cumulative distributions of the differences between consecutive samples.
pub(super) fn variations(readings: &Readings<'_>, title: &'static str, name: &str) -> Markup {
    let panels = panels(readings, |device, facet| {
        readings.variations(device, name, facet)
    });
    let caption = html! {
        "Share of consecutive packets whose round trips differ by up to the time on the axis "
        "(logarithmic; IPDV, RFC 5481), all runs together."
    };
    let x_name = "difference of consecutive round trips, µs";
    cumulative(title, x_name, &panels, &caption)
}

fn cumulative(
    title: &'static str,
    x_name: &str,
    panels: &[CurvePanel<'_>],
    caption: &Markup,
) -> Markup {
    let (least, most) = ends(panels, 10, CURVE_END);
    let least = if least > 0.0 { least } else { VARIATION_MIN };
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::log(least, most),
        x_name: x_name.to_owned(),
        y: Scale::from_zero(1.0),
        y_name: "share of the values".to_owned(),
    };
    let path = |curve: &Curve<'_>| {
        let points = curve.values.shares().into_iter();
        let points: Vec<(f64, f64)> = points.map(|(ns, share)| (micros(ns), share)).collect();
        plot.steps(&points)
    };
    let at = |share: f64, micros: f64| (plot.at_x(micros), plot.at_y(share));
    let figures = panels.iter().map(|panel| {
        let content = drawn(&panel.1, path, at);
        let plot = plot.draw(&description(title, &panel.1), &content);
        figure(title, panel, &plot, caption)
    });
    multiples::grid(title, &figures.collect::<Vec<_>>(), 1)
}

/// Returns the percentiles on an axis of nines.
pub(super) fn percentiles(readings: &Readings<'_>, title: &'static str, name: &str) -> Markup {
    let panels = panels(readings, |device, facet| {
        readings.distribution(device, name, facet)
    });
    let (least, most) = ends(&panels, 10, 9_999);
    let plot = Plot {
        width: SIZE.0,
        height: SIZE.1,
        x: Scale::Nines { most: NINES_MAX },
        x_name: "percentile".to_owned(),
        y: Scale::log(least, most),
        y_name: "µs".to_owned(),
    };
    let path = |curve: &Curve<'_>| plot.line(&by_nines(curve, 1.0));
    let at = |share: f64, micros: f64| (plot.at_x(nines(share)), plot.at_y(micros));
    let figures = panels.iter().map(|panel| {
        let link = panel.1.iter().find(|curve| curve.device.calibration);
        let content = html! {
            @if let Some(link) = link { path.limit d=(plot.area(&by_nines(link, 2.0), false)) {} }
            (drawn(&panel.1, path, at))
        };
        let caption = html! {
            "Time by percentile, as far as twenty values lie beyond it; all runs together."
            @if link.is_some() { " " (limit(Better::Lower)) }
        };
        figure(
            title,
            panel,
            &plot.draw(&description(title, &panel.1), &content),
            &caption,
        )
    });
    multiples::grid(title, &figures.collect::<Vec<_>>(), 1)
}

/// Returns a curve by nines, with its times multiplied by `factor`, as far as enough values lie
/// beyond.
fn by_nines(curve: &Curve<'_>, factor: f64) -> Vec<(f64, f64)> {
    let supported = nines(1.0 - BEYOND_MIN / curve.values.count() as f64);
    let points = curve.values.shares_with_tail().into_iter();
    points
        .map(|(ns, share)| (nines(share), micros(ns) * factor))
        .take_while(|(position, _)| *position <= supported.min(NINES_MAX))
        .collect()
}

fn micros(nanoseconds: f64) -> f64 {
    nanoseconds / 1e3
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
        let median = scale::label(micros(curve.values.quantile(5_000)));
        format!("{}: median {median} µs", curve.device.name)
    });
    format!("{title}. {}", described.collect::<Vec<_>>().join("; "))
}

fn figure(
    title: &str,
    (facet, curves): &CurvePanel<'_>,
    plot: &Markup,
    caption: &Markup,
) -> Markup {
    let devices: Vec<&DeviceRecord> = curves.iter().map(|curve| curve.device).collect();
    let title = format!("{title}{}", suffix(facet));
    parts::figure(&title, &parts::legend(&devices), plot, caption)
}
