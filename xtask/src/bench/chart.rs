//! A bar chart of the data path's packet rates, as SVG: one pair of bars for each workload.
//!
//! The scale is logarithmic: the rates of Open vSwitch differ by a factor of a thousand between
//! workloads that fit its caches and those that do not.

use std::fmt::Write;

use super::figures::{Figures, Spread};
use super::page::number;
use super::rows::{BenchRow, OURS, OVS_DPDK};

/// The file of the chart.
pub(super) const FILE: &str = "docs/images/benchmarks.svg";

/// The workloads of the chart.
const WORKLOADS: [&str; 8] = [
    "dpdk/one-port",
    "dpdk/flows-1000",
    "dpdk/flows-100000",
    "dpdk/networks-10000",
    "dpdk/tables-random",
    "dpdk/acl-1000-random",
    "dpdk/acl-3-random",
    "dpdk/acl-3-attack",
];

/// Sizes in pixels.
const WIDTH: f64 = 860.0;
const LABELS: f64 = 400.0;
const VALUES: f64 = 70.0;
const BAR: f64 = 14.0;
const PITCH: f64 = 44.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 46.0;

/// The range of the scale, as powers of ten of packets per second.
const SCALE: [f64; 2] = [3.0, 8.0];

/// One series of bars.
struct Series {
    column: &'static str,
    colour: &'static str,
}

const SERIES: [Series; 2] = [
    Series {
        column: OURS,
        colour: "#0b7a75",
    },
    Series {
        column: OVS_DPDK,
        colour: "#b8b8b8",
    },
];

/// Returns the chart, or `None` if a workload was not measured.
pub(super) fn chart(rows: &[&BenchRow], figures: &Figures, machine: &str) -> Option<String> {
    let mut bars = String::new();
    let mut top = TOP;
    for id in WORKLOADS {
        let row = rows.iter().find(|row| row.id() == id)?;
        label(&mut bars, LABELS - 10.0, top + BAR + 4.0, "end", row.about);
        for (index, series) in (0_u8..).zip(SERIES) {
            let samples = figures
                .of(row)
                .iter()
                .find(|(name, _)| name == series.column);
            let rate = Spread::of(&samples?.1)?.median;
            let y = top + f64::from(index) * (BAR + 1.0);
            bar(&mut bars, y, rate, series.colour);
        }
        top += PITCH;
    }
    let height = top + BOTTOM;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"Packets per second on one core\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    axis(&mut text, top);
    legend(&mut text);
    text += &bars;
    let caption = format!("packets per second on one core, logarithmic; medians; {machine}");
    label(&mut text, 12.0, height - 10.0, "start", &caption);
    text += "</svg>\n";
    Some(text)
}

/// Returns the horizontal position of a rate.
fn position(rate: f64) -> f64 {
    let [low, high] = SCALE;
    let share = (rate.max(1.0).log10() - low) / (high - low);
    LABELS + share.clamp(0.0, 1.0) * (WIDTH - LABELS - VALUES)
}

fn bar(text: &mut String, y: f64, rate: f64, colour: &str) {
    let end = position(rate);
    let width = (end - LABELS).max(1.0);
    writeln!(
        text,
        "<rect x=\"{LABELS}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>"
    )
    .expect("a String accepts every write");
    label(text, end + 6.0, y + BAR - 3.0, "start", &number(rate));
}

fn axis(text: &mut String, bottom: f64) {
    let mut tick = 1e3;
    while tick <= 1e8 {
        let x = position(tick);
        writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#e4e4e4\"/>",
            TOP - 8.0
        )
        .expect("a String accepts every write");
        label(text, x, bottom + 14.0, "middle", &tick_label(tick));
        tick *= 10.0;
    }
}

fn tick_label(rate: f64) -> String {
    match rate >= 1e6 {
        true => format!("{} M", rate / 1e6),
        false => format!("{} k", rate / 1e3),
    }
}

fn legend(text: &mut String) {
    let mut x = LABELS;
    for series in SERIES {
        writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"24\" width=\"14\" height=\"14\" fill=\"{}\"/>",
            series.colour
        )
        .expect("a String accepts every write");
        label(text, x + 20.0, 36.0, "start", series.column);
        x += 140.0;
    }
}

fn label(text: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222\">{words}</text>"
    )
    .expect("a String accepts every write");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::chosen;

    #[test]
    fn chart_has_a_bar_for_each_workload_and_device() {
        let rows = chosen(&["dpdk".to_owned()]).expect("the group exists");
        let mut figures = Figures::default();
        assert_eq!(chart(&rows, &figures, "x"), None);
        for row in &rows {
            figures.add(row, OURS, 8_000_000.0);
            figures.add(row, OVS_DPDK, 9_000.0);
        }
        let text = chart(&rows, &figures, "x").expect("all workloads are measured");
        let bars = text.matches(&format!("height=\"{BAR}\"")).count();
        // The legend has squares of the same height.
        assert_eq!(bars, 2 * WORKLOADS.len() + SERIES.len());
        assert!(text.contains(">8.00 M<") && text.contains(">9,000<"));
    }

    #[test]
    fn scale_is_logarithmic() {
        let step = position(1e5) - position(1e4);
        assert!((position(1e6) - position(1e5) - step).abs() < 1e-9);
        assert!((position(1e3) - LABELS).abs() < 1e-9);
        assert!((position(1.0) - LABELS).abs() < 1e-9);
    }
}
