//! What several sections of the report are made of: device names with their
//! colour, intervals, captions.

use maud::{Markup, html};
use record::DeviceRecord;
use stats::{CONFIDENCE, Interval, zero_events_bound};

use super::svg::round;
use crate::analysis::ByRun;
use crate::format::{decimal, decimals, percent};

/// The class that gives a device its colour and its dashes. Devices that a style
/// does not know share one.
pub(super) fn class(device: &str) -> &'static str {
    match device {
        "comporta" => "d-comporta",
        "ovs" => "d-ovs",
        "ovs-tso" => "d-ovs-tso",
        "linux-bridge" => "d-bridge",
        "direct" => "d-direct",
        _ => "d-other",
    }
}

/// A device's name behind its mark.
pub(super) fn device_name(device: &DeviceRecord) -> Markup {
    html! {
        span.device.{ (class(&device.name)) } { (device.name) }
        @if let Some(remark) = remark(device) { span.remark { (remark) } }
    }
}

/// What to know of a device in every table.
fn remark(device: &DeviceRecord) -> Option<&'static str> {
    if device.calibration {
        Some("cable only, for calibration")
    } else if device.openflow {
        None
    } else {
        Some("its own forwarding, no rules")
    }
}

/// A number over runs: the mean, and under it the interval or why there is none.
/// `unit` converts from what was recorded.
pub(super) fn cell(values: &ByRun, unit: f64) -> Markup {
    match mean_and_interval(values, unit) {
        Some(content) => html! { td { (content) } },
        None => html! { td.none { "–" } },
    }
}

/// The same, with another number over the same runs at the end.
pub(super) fn cell_with(values: &ByRun, name: &str, other: &ByRun, unit: f64) -> Markup {
    let number = other.mean().map(|mean| mean / unit);
    match (mean_and_interval(values, unit), number) {
        (Some(content), Some(number)) => html! {
            td {
                (content)
                span.also { (name) " " (decimal(number, decimals(number))) }
            }
        },
        _ => html! { td.none { "–" } },
    }
}

fn mean_and_interval(values: &ByRun, unit: f64) -> Option<Markup> {
    let mean = values.mean()? / unit;
    let digits = digits(values, unit);
    Some(html! {
        span.value { (decimal(mean, digits)) }
        @match (values.interval(), values.runs()) {
            (Some(_), _) if alike(values) => span.interval { "all runs alike" },
            (Some(interval), _) => span.interval { (range(&interval, unit, digits)) },
            (None, 1) => span.interval { "one run" },
            (None, _) => span.interval { "two runs" },
        }
    })
}

/// Digits after the point: none where every run came to a whole number and they are alike.
fn digits(values: &ByRun, unit: f64) -> usize {
    let mean = values.mean().unwrap_or_default();
    match alike(values) && (mean / unit).fract() == 0.0 {
        true => 0,
        false => decimals(mean / unit),
    }
}

/// Whether all runs came to the same number, but for the rounding of its computation.
fn alike(values: &ByRun) -> bool {
    let mean = values.mean().unwrap_or_default();
    let near = |value: &f64| (value - mean).abs() <= mean.abs() * 1e-9;
    values.values().iter().all(near)
}

/// Both ends of an interval.
pub(super) fn range(interval: &Interval, unit: f64, digits: usize) -> String {
    let (low, high) = (interval.low / unit, interval.high / unit);
    format!("{} – {}", decimal(low, digits), decimal(high, digits))
}

/// A share of what was lost. That nothing was lost proves no more than that little is.
pub(super) fn lost_cell(lost: u64, sent: u64) -> Markup {
    match (lost, sent) {
        (_, 0) => html! { td.none { "–" } },
        (0, sent) => html! {
            td {
                "0\u{a0}%"
                span.interval { (not_excluded(sent)) }
            }
        },
        (lost, sent) => html! { td { (percent(lost as f64 / sent as f64)) } },
    }
}

/// What stands under a loss of zero, for captions.
pub(super) const NOT_EXCLUDED: &str =
    " Where nothing was lost, under it the share that this does not exclude (99\u{a0}%).";

/// The share that none of so many does not exclude.
pub(super) fn not_excluded(sent: u64) -> String {
    let most = zero_events_bound(sent, CONFIDENCE) * 100.0;
    format!("< {} %", figure_of(most))
}

/// A small share in per cent, to two digits.
fn figure_of(share: f64) -> String {
    let digits = (1.0 - share.max(1e-9).log10().floor()).max(0.0);
    let digits = (0..12_u8).find(|&count| f64::from(count) >= digits);
    decimal(share, usize::from(digits.unwrap_or(12)))
}

/// A plain number over runs, without its interval.
pub(super) fn plain(values: &ByRun, unit: f64) -> Markup {
    match values.mean() {
        None => html! { td.none { "–" } },
        Some(mean) => {
            html! { td { (decimal(mean / unit, digits(values, unit))) } }
        }
    }
}

/// A table under its caption; it scrolls sideways where it does not fit, and the caption stays.
pub(super) fn table(caption: &Markup, head: &Markup, body: &Markup) -> Markup {
    html! {
        div.sheet {
            p.caption { (caption) }
            div.scroll tabindex="0" {
                table {
                    thead { (head) }
                    (body)
                }
            }
            (tools())
        }
    }
}

/// A figure: what it shows above it, what it means under it.
pub(super) fn figure(title: &str, legend: &Markup, plot: &Markup, caption: &Markup) -> Markup {
    html! {
        figure {
            h4 { (title) }
            (legend)
            div.plot { (plot) }
            figcaption { (caption) }
            (tools())
        }
    }
}

/// Where the script puts what can be done with a table or a figure.
pub(super) fn tools() -> Markup {
    html! { div.tools {} }
}

/// The marks of devices, for under a figure's title. The script makes buttons of them.
pub(super) fn legend(devices: &[&DeviceRecord]) -> Markup {
    legend_with(devices, &html! {})
}

/// The same, with marks of something else behind them.
pub(super) fn legend_with(devices: &[&DeviceRecord], others: &Markup) -> Markup {
    html! {
        ul.legend {
            @for device in devices {
                li class=(class(&device.name)) data-series=(device.name) {
                    svg.key viewBox="0 0 24 8" aria-hidden="true" { path.line d="M0 4H24" {} }
                    (device.name)
                    @if device.calibration { " " span.fine { "the tester alone" } }
                }
            }
            (others)
        }
    }
}

/// A value in a drawing that can be pointed at.
pub(super) struct Point<'a> {
    /// Whose it is.
    pub(super) series: &'a str,
    /// Where it is, in words.
    pub(super) x: &'a str,
    /// What it is.
    pub(super) y: f64,
    /// The unit of that.
    pub(super) unit: &'a str,
}

impl Point<'_> {
    /// Its mark.
    pub(super) fn at(&self, x: f64, y: f64) -> Markup {
        let told = decimal(self.y, decimals(self.y));
        let space = if self.unit.is_empty() { "" } else { " " };
        html! {
            circle.dot.point cx=(round(x)) cy=(round(y)) r="3.4"
                data-series=(self.series) data-x=(self.x) data-y=(self.y) {
                title { (self.series) ", " (self.x) ": " (told) (space) (self.unit) }
            }
        }
    }
}
