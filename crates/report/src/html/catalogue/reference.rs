//! Published results: hollow marks with letters in drawings, and tables below an experiment. They
//! are of other hardware and other years, and are labelled so.

use maud::{Markup, html};

use super::readings::shown_number;
use crate::html::parts;
use crate::html::svg::{Plot, round};
use crate::published::{PublishedCurve, PublishedSpan, Range, published};

/// Published curves of a figure against a parameter.
pub(super) struct Reference {
    source: String,
    note: String,
    curves: Vec<PublishedCurve>,
}

/// Measured range of a parameter. Published values outside of it are in the caption.
pub(super) type Reach = (f64, f64);

/// Letters of the curves.
const LETTERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Radius of a letter's circle.
const RADIUS: f64 = 7.0;

impl Reference {
    /// Returns the curves of a figure of an experiment against a parameter; `None` without any.
    pub(super) fn of(experiment: &str, figure: &str, along: &str) -> Option<Self> {
        let drawn = published().curves.remove(experiment)?;
        let fits = |curve: &PublishedCurve| {
            curve.along == along && curve.figures.iter().any(|name| name == figure)
        };
        let curves: Vec<PublishedCurve> = drawn.curves.into_iter().filter(fits).collect();
        (!curves.is_empty()).then_some(Self {
            source: drawn.source,
            note: drawn.note,
            curves,
        })
    }

    /// Returns the values in the measured range, for the scale of the axis.
    pub(super) fn values(&self, x: Reach) -> Vec<f64> {
        let spans = self.curves.iter().flat_map(|curve| &curve.spans);
        let within = spans.filter(|span| clipped(span, x).is_some());
        within.flat_map(|span| span.is.ends()).collect()
    }

    /// Returns the shapes.
    pub(super) fn draw(&self, plot: &Plot, x: Reach, unit: &str) -> Markup {
        let count = self.curves.len();
        html! {
            @for (index, (curve, letter)) in (0_u8..).zip(self.curves.iter().zip(LETTERS)) {
                g.series.reference data-series=(letter) {
                    @for span in &curve.spans {
                        @if let Some((from, to)) = clipped(span, x) {
                            // The letters of equal curves are side by side.
                            @let share = (f64::from(index) + 1.0) / (count as f64 + 1.0);
                            @let sides = [plot.at_x(from), plot.at_x(to)];
                            @let at = sides[0] + share * (sides[1] - sides[0]);
                            (drawn_span(plot, &span.is, sides))
                            @let place = format!("{} – {}", shown_number(span.at[0]), shown_number(span.at[1]));
                            (mark(letter, &curve.device, &place, (&span.is.text(), unit), (at, plot.at_y(edge(&span.is)))))
                        }
                    }
                    @for &value in &curve.breaks {
                        @if value <= x.1 {
                            @let (at, top) = (plot.at_x(value), plot.at_y(plot.y.ends().1));
                            path.edge d={ "M" (round(at)) " " (round(top)) "V" (round(plot.at_y(plot.y.ends().0))) } {}
                            (mark(letter, &curve.device, &shown_number(value), ("", ""), (at, top + 12.0)))
                        }
                    }
                }
            }
        }
    }

    /// Returns the entries of the legend.
    pub(super) fn legend(&self) -> Markup {
        html! {
            @for (curve, letter) in self.curves.iter().zip(LETTERS) {
                li.reference data-series=(letter) {
                    svg.letter viewBox="0 0 16 16" aria-hidden="true" {
                        circle.hollow cx="8" cy="8" r=(RADIUS) {}
                        text x="8" y="11.5" text-anchor="middle" { (letter) }
                    }
                    span { "published: " (curve.device) }
                }
            }
        }
    }

    /// Returns the source and the values outside of the drawing.
    pub(super) fn caption(&self, x: Reach, unit: &str) -> Markup {
        let all = self.curves.iter().zip(LETTERS);
        let spans = all.clone().flat_map(|(curve, letter)| {
            let beyond = curve.spans.iter().filter(|span| clipped(span, x).is_none());
            beyond.map(move |span| {
                (
                    letter,
                    shown_number(span.at[0]),
                    format!("{} {unit}", span.is.text()),
                )
            })
        });
        let breaks = all.flat_map(|(curve, letter)| {
            let beyond = curve.breaks.iter().filter(|value| **value > x.1);
            beyond.map(move |value| (letter, shown_number(*value), String::new()))
        });
        let outside: Vec<(&str, String, String)> = spans.chain(breaks).collect();
        html! {
            " ○ Published: " (self.source) "; " (self.note) "."
            @for (letter, from, what) in &outside {
                @if what.is_empty() {
                    " Outside of the drawing: " (letter) " at " (from) "."
                } @else {
                    " Outside of the drawing: " (letter) " from " (from) ", " (what.trim_end()) "."
                }
            }
        }
    }
}

/// Returns the part of a span in the measured range; `None` if there is none.
fn clipped(span: &PublishedSpan, (first, last): Reach) -> Option<(f64, f64)> {
    let (from, to) = (span.at[0].max(first), span.at[1].min(last));
    (from < to).then_some((from, to))
}

/// Returns the position of a range's letter: its upper end, or its only one.
fn edge(range: &Range) -> f64 {
    range.high().or_else(|| range.low()).unwrap_or_default()
}

/// Returns a band, a line, or a line with arrows towards the unknown end.
fn drawn_span(plot: &Plot, range: &Range, [left, right]: [f64; 2]) -> Markup {
    let width = right - left;
    match (range.low(), range.high()) {
        (Some(low), Some(high)) if low < high => {
            let (top, bottom) = (plot.at_y(high), plot.at_y(low));
            html! { rect.band x=(round(left)) y=(round(top)) width=(round(width)) height=(round(bottom - top)) {} }
        }
        (low, high) => {
            let y = round(plot.at_y(low.or(high).unwrap_or_default()));
            let arrow = match (low, high) {
                (None, _) => "v11m-3 -4l3 4l3 -4",
                (_, None) => "v-11m-3 4l3 -4l3 4",
                _ => "",
            };
            html! {
                path.edge d={ "M" (round(left)) " " (y) "H" (round(right)) } {}
                @if !arrow.is_empty() {
                    @for share in [0.12, 0.88] {
                        path.arrow d={ "M" (round(left + share * width)) " " (y) (arrow) } {}
                    }
                }
            }
        }
    }
}

/// Returns a letter in its circle, with a text for the pointer.
fn mark(
    letter: &str,
    device: &str,
    place: &str,
    (value, unit): (&str, &str),
    (x, y): (f64, f64),
) -> Markup {
    html! {
        circle.hollow.point cx=(round(x)) cy=(round(y)) r=(RADIUS)
            data-series=(device) data-x=(place) data-y=(value) {
            title {
                "published: " (device) ", " (place)
                @if !value.is_empty() { ": " (value) " " (unit) }
            }
        }
        text.letter x=(round(x)) y=(round(y + 3.5)) text-anchor="middle" aria-hidden="true" { (letter) }
    }
}

/// Returns the published single results of an experiment; empty if there are none.
pub(super) fn results(experiment: &str) -> Markup {
    let Some(results) = published().results.remove(experiment) else {
        return html! {};
    };
    let caption =
        html! { b { "Published results. " } "○ " (results.source) "; " (results.note) "." };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Quantity" }
            th scope="col" { "Result" }
        }
    };
    let body = html! {
        tbody.published.words {
            @for row in &results.rows {
                tr {
                    th scope="row" { "○ " (row.device) }
                    td { (row.what) }
                    td {
                        @if let Some(range) = &row.range { (range.text()) " " (row.unit) }
                        @if let Some(words) = &row.words { (words) }
                    }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::scale::Scale;

    fn plot(last: f64) -> Plot {
        Plot {
            width: 520.0,
            height: 330.0,
            x: Scale::from_zero(last),
            x_name: "load".to_owned(),
            y: Scale::log(1.0, 10_000.0),
            y_name: String::new(),
        }
    }

    #[test]
    fn range_with_one_end_has_arrows_towards_the_other() {
        let reference = Reference::of("latency-vs-load", "p50_us", "mbit").unwrap();
        let drawn = reference
            .draw(&plot(1_000.0), (10.0, 1_000.0), "µs")
            .into_string();
        assert!(
            drawn.contains("published: OpenFlow on NetFPGA, 10 – 1\u{202f}000: &lt; 10 µs"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("class=\"arrow\"").count(), 2);
        assert!(drawn.contains("10\u{202f}000 µs"), "above 500 Mbit/s");
    }

    #[test]
    fn values_outside_of_the_drawing_are_in_the_caption() {
        let reference = Reference::of("latency-vs-load", "p50_us", "mbit").unwrap();
        let measured = (10.0, 400.0);
        assert_eq!(reference.values(measured), [10.0]);
        let drawn = reference.draw(&plot(400.0), measured, "µs").into_string();
        assert!(!drawn.contains("10\u{202f}000 µs"), "{drawn}");
        let caption = reference.caption(measured, "µs").into_string();
        assert!(
            caption.contains("Outside of the drawing: b from 500, 10\u{202f}000 µs."),
            "{caption}"
        );
    }

    #[test]
    fn break_is_a_vertical_line() {
        let reference = Reference::of("latency-vs-load", "loss_percent", "mbit").unwrap();
        let drawn = reference
            .draw(&plot(400.0), (10.0, 400.0), "%")
            .into_string();
        assert!(drawn.contains("small loss from here, 125"), "{drawn}");
    }

    #[test]
    fn reference_is_of_the_same_experiment_and_parameter() {
        assert!(Reference::of("latency-vs-load", "p50_us", "size").is_none());
        assert!(results("soak").into_string().is_empty());
        assert!(results("bridges").into_string().contains("&lt; 100 µs"));
    }
}
