//! Elements of several sections: names of devices with their colours, cells, captions.

use maud::{Markup, html};
use record::DeviceRecord;
use stats::{CONFIDENCE, Interval, zero_events_bound};

use super::svg::round;
use crate::analysis::ByRun;
use crate::format::{decimal, decimals};

/// Returns the style class of a device's colour and dashes. Other devices share one.
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

/// Returns the name of a device after its mark.
pub(super) fn device_name(device: &DeviceRecord) -> Markup {
    html! {
        span.device.{ (class(&device.name)) } { (device.name) }
        @if let Some(remark) = remark(device) { span.remark { (remark) } }
    }
}

fn remark(device: &DeviceRecord) -> Option<&'static str> {
    if device.calibration {
        Some("bare link, for calibration")
    } else if device.openflow {
        None
    } else {
        Some("own forwarding, without rules")
    }
}

/// Returns the cell of a value over runs: the mean, and below it the interval or the reason why
/// there is none.
pub(super) fn cell(values: &ByRun) -> Markup {
    cell_with(values, None)
}

/// As [`cell`], with `below` in place of the interval.
pub(super) fn cell_with(values: &ByRun, below: Option<String>) -> Markup {
    let Some(mean) = values.mean() else {
        return html! { td.none { "–" } };
    };
    let digits = digits(values);
    html! {
        td {
            span.value { (decimal(mean, digits)) }
            span.interval {
                @match (below, values.interval(), values.runs()) {
                    (Some(text), ..) => (text),
                    (None, Some(_), _) if are_equal(values) => "all runs equal",
                    (None, Some(interval), _) => (range(&interval, digits)),
                    (None, None, 1) => "one run",
                    (None, None, _) => "two runs",
                }
            }
        }
    }
}

/// Returns the cell of a value over runs, without its interval.
pub(super) fn plain(values: &ByRun) -> Markup {
    match values.mean() {
        None => html! { td.none { "–" } },
        Some(mean) => html! { td { (decimal(mean, digits(values))) } },
    }
}

/// Returns the number of decimal places of a mean: none for equal integers.
fn digits(values: &ByRun) -> usize {
    let mean = values.mean().unwrap_or_default();
    match are_equal(values) && mean.fract() == 0.0 {
        true => 0,
        false => decimals(mean),
    }
}

/// Returns true if all runs have the same value, except for rounding.
fn are_equal(values: &ByRun) -> bool {
    let mean = values.mean().unwrap_or_default();
    let near = |value: &f64| (value - mean).abs() <= mean.abs() * 1e-9;
    values.values().iter().all(near)
}

/// Returns both ends of an interval as text.
pub(super) fn range(interval: &Interval, digits: usize) -> String {
    let (low, high) = (interval.low, interval.high);
    format!("{} – {}", decimal(low, digits), decimal(high, digits))
}

/// Caption of the upper bounds of losses of zero.
pub(super) const ZERO_LOSS: &str =
    " Below a loss of zero: its upper bound at 99\u{a0}% confidence.";

/// Returns the upper bound of the loss if none of `sent` packets was lost.
pub(super) fn zero_loss_bound(sent: u64) -> String {
    let percent = zero_events_bound(sent, CONFIDENCE) * 100.0;
    format!("< {} %", decimal(percent, decimals(percent)))
}

/// Returns a table under its caption, in an area that scrolls horizontally.
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

/// Returns a figure: title, legend, plot, caption.
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

/// Returns the element in which the script puts the buttons of a table or a figure.
pub(super) fn tools() -> Markup {
    html! { div.tools {} }
}

/// Returns the legend of devices. The script makes buttons of its entries.
pub(super) fn legend(devices: &[&DeviceRecord]) -> Markup {
    legend_with(devices, &html! {})
}

/// As [`legend`], with more entries at the end.
pub(super) fn legend_with(devices: &[&DeviceRecord], others: &Markup) -> Markup {
    html! {
        ul.legend {
            @for device in devices {
                li class=(class(&device.name)) data-series=(device.name) {
                    svg.key viewBox="0 0 24 8" aria-hidden="true" { path.line d="M0 4H24" {} }
                    (device.name)
                    @if device.calibration { " " span.fine { "bare link" } }
                }
            }
            (others)
        }
    }
}

/// Mark of a value in a drawing, with its text for the pointer.
pub(super) struct Point<'a> {
    /// Name of the device.
    pub(super) series: &'a str,
    /// Position in words.
    pub(super) x: &'a str,
    /// Value.
    pub(super) y: f64,
    /// Unit of the value.
    pub(super) unit: &'a str,
}

impl Point<'_> {
    /// Returns the mark at a position of the drawing.
    pub(super) fn at(&self, x: f64, y: f64) -> Markup {
        let value = decimal(self.y, decimals(self.y));
        let space = if self.unit.is_empty() { "" } else { " " };
        html! {
            circle.dot.point cx=(round(x)) cy=(round(y)) r="3.4"
                data-series=(self.series) data-x=(self.x) data-y=(self.y) {
                title { (self.series) ", " (self.x) ": " (value) (space) (self.unit) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_integers_have_no_decimal_places() {
        let text = |values: [f64; 3]| cell(&ByRun::new((1..).zip(values))).into_string();
        assert!(text([3.0; 3]).contains(">3<"), "{}", text([3.0; 3]));
        assert!(text([3.0; 3]).contains("all runs equal"));
        assert!(text([3.0, 4.0, 3.5]).contains(">3.50<"));
    }

    #[test]
    fn bound_of_zero_loss_falls_with_the_number_of_packets() {
        assert_eq!(zero_loss_bound(30_000), "< 0.015 %");
        assert_eq!(zero_loss_bound(300), "< 1.54 %");
    }
}
