//! Forest plot of all comparisons: ratios with their intervals.

use maud::{Markup, html};

use super::comparison::Comparison;
use crate::format::{decimal, decimals};
use crate::html::parts;
use crate::html::scale::Scale;
use crate::html::svg::round;

/// Width, end of the names, and margin after the last tick.
const WIDTH: f64 = 800.0;
const NAMES: f64 = 360.0;
const RIGHT: f64 = 30.0;
/// Height of a row, and of the axis below the last.
const ROW: f64 = 24.0;
const AXIS: f64 = 42.0;

pub(super) fn figure(comparisons: &[Comparison]) -> Markup {
    let ends = comparisons.iter().flat_map(|one| {
        let (ratio, interval) = one.ratio;
        [
            ratio,
            interval.map_or(ratio, |interval| interval.low),
            interval.map_or(ratio, |interval| interval.high),
        ]
    });
    let ends: Vec<f64> = ends
        .filter(|end| *end > 0.0)
        .map(|end| end.clamp(0.01, 100.0))
        .collect();
    let x = Scale::log(
        ends.iter().copied().fold(0.5, f64::min),
        ends.iter().copied().fold(2.0, f64::max),
    );
    let at = |ratio: f64| round(NAMES + x.position(ratio) * (WIDTH - NAMES - RIGHT));
    let bottom = ROW * comparisons.len() as f64 + 6.0;
    let drawing = html! {
        svg.forest viewBox={ "0 0 " (WIDTH) " " (bottom + AXIS) } role="group" aria-label="All comparisons" {
            g.grid {
                @for tick in x.ticks() {
                    path d={ "M" (at(tick)) " 4V" (bottom) } {}
                    text x=(at(tick)) y=(bottom + 17.0) text-anchor="middle" { (x.label(tick)) }
                }
                text.axis x=(f64::midpoint(NAMES, WIDTH - RIGHT)) y=(bottom + 37.0) text-anchor="middle" { "ratio (logarithmic)" }
            }
            path.unity d={ "M" (at(1.0)) " 4V" (bottom) } {}
            @for (index, one) in (0_u16..).zip(comparisons) { (row(one, ROW * (f64::from(index) + 0.6) + 2.0, &at)) }
        }
    };
    let caption = html! {
        "One row per comparison, with its 99\u{a0}% interval; at 1 there is no difference. Green: better; red: worse; grey: no significant difference."
    };
    html! {
        figure.wide {
            h4 { "All comparisons" }
            div.plot { (drawing) }
            figcaption { (caption) }
            (parts::tools())
        }
    }
}

fn row(one: &Comparison, y: f64, at: &impl Fn(f64) -> f64) -> Markup {
    let (ratio, interval) = one.ratio;
    let digits = decimals(ratio).max(1);
    let range = interval.map_or_else(String::new, |interval| {
        format!(" ({})", parts::range(&interval, digits))
    });
    html! {
        g.{ (one.verdict().class()) } {
            text.label x=(NAMES - 14.0) y=(round(y + 4.0)) text-anchor="end" {
                tspan { (one.name()) } " "
                tspan.way { (match one.direction() { "lower is better" => "↓", "higher is better" => "↑", _ => "" }) }
            }
            @if let Some(interval) = interval {
                path.spread d={ "M" (at(interval.low)) " " (round(y)) "H" (at(interval.high)) } {}
            }
            circle.dot.point cx=(at(ratio)) cy=(round(y)) r="4.5"
                data-series=(one.name()) data-x=(decimal(ratio, digits)) data-y="" {
                title { (one.name()) ": " (decimal(ratio, digits)) " ×" (range) }
            }
        }
    }
}
