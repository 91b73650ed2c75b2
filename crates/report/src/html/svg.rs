//! Plots as inline SVG. Shapes have classes and no colours, so that a drawing follows the page's
//! light, dark and print styles, and its typeface. `plotters` writes a colour and a font into each
//! shape.

use std::fmt::Write;

use maud::{Markup, html};

use super::scale::Scale;

/// Margins for ticks and names of the axes, in units of the drawing.
const LEFT_LEAST: f64 = 52.0;
const RIGHT: f64 = 24.0;
/// Approximate width of a digit.
const DIGIT: f64 = 6.8;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;

/// Plot with two axes.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// Width of the drawing.
    pub(super) width: f64,
    /// Height of the drawing.
    pub(super) height: f64,
    /// Horizontal axis.
    pub(super) x: Scale,
    /// Name of the horizontal axis, with its unit.
    pub(super) x_name: String,
    /// Vertical axis.
    pub(super) y: Scale,
    /// Name of the vertical axis, with its unit.
    pub(super) y_name: String,
}

impl Plot {
    /// Returns the left end of the frame, after the ticks and the name of the axis.
    fn left(&self) -> f64 {
        let ticks = self.y.ticks().into_iter();
        let longest = ticks.map(|tick| self.y.label(tick).chars().count()).max();
        LEFT_LEAST.max(longest.unwrap_or(0) as f64 * DIGIT + 30.0)
    }

    /// Returns the position of a value on the horizontal axis.
    pub(super) fn at_x(&self, value: f64) -> f64 {
        let left = self.left();
        left + self.x.position(value) * (self.width - left - RIGHT)
    }

    /// Returns the position of a value on the vertical axis.
    pub(super) fn at_y(&self, value: f64) -> f64 {
        let bottom = self.height - BOTTOM;
        bottom - self.y.position(value) * (bottom - TOP)
    }

    /// Draws `content` over the grid. `description` is for screen readers.
    pub(super) fn draw(&self, description: &str, content: &Markup) -> Markup {
        let (left, right, bottom) = (self.left(), self.width - RIGHT, self.height - BOTTOM);
        let middle_x = f64::midpoint(left, right);
        let middle_y = f64::midpoint(TOP, bottom);
        html! {
            svg viewBox={ "0 0 " (self.width) " " (self.height) } role="group" aria-label=(description) {
                g.grid {
                    @for tick in self.x.ticks() {
                        @let x = round(self.at_x(tick));
                        path d={ "M" (x) " " (TOP) "V" (bottom) } {}
                        text x=(x) y=(bottom + 17.0) text-anchor="middle" { (self.x.label(tick)) }
                    }
                    @for tick in self.y.ticks() {
                        @let y = round(self.at_y(tick));
                        path d={ "M" (left) " " (y) "H" (right) } {}
                        text x=(left - 8.0) y=(y + 4.0) text-anchor="end" { (self.y.label(tick)) }
                    }
                    text.axis x=(middle_x) y=(self.height - 6.0) text-anchor="middle" { (self.x_name) }
                    text.axis x=(13) y=(middle_y) text-anchor="middle"
                        transform={ "rotate(-90 13 " (middle_y) ")" } { (self.y_name) }
                }
                path.frame d={ "M" (left) " " (TOP) "V" (bottom) "H" (right) } {}
                (content)
            }
        }
    }

    /// Returns the path of a curve that steps up at each point, for cumulative distributions, up to
    /// the end of the frame.
    pub(super) fn steps(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (index, &(value, y)) in points.iter().enumerate() {
            let (x, y) = (round(self.at_x(value)), round(self.at_y(y)));
            // Writing to a string does not fail.
            let _ = match index {
                0 => write!(path, "M{x} {}V{y}", round(self.at_y(0.0))),
                _ if self.x.is_beyond(value) => write!(path, "H{x}"),
                _ => write!(path, "H{x}V{y}"),
            };
            if self.x.is_beyond(value) {
                break;
            }
        }
        path
    }

    /// Returns the path of the area between `edge` and the lower end of the frame, or the upper.
    pub(super) fn area(&self, edge: &[(f64, f64)], above: bool) -> String {
        let (Some(&(first, _)), Some(&(last, _))) = (edge.first(), edge.last()) else {
            return String::new();
        };
        let end = if above { TOP } else { self.height - BOTTOM };
        let (first, last) = (round(self.at_x(first)), round(self.at_x(last)));
        format!("{}L{last} {end}L{first} {end}Z", self.line(edge))
    }

    /// Returns the path of straight lines from point to point.
    pub(super) fn line(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (round(self.at_x(x)), round(self.at_y(y)));
            let _ = write!(path, "{command}{x} {y}");
        }
        path
    }
}

/// Rounds to a tenth of a pixel, for a short file.
pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        Plot {
            width: 176.0,
            height: 154.0,
            x: Scale::from_zero(10.0),
            x_name: "time".to_owned(),
            y: Scale::from_zero(1.0),
            y_name: "share".to_owned(),
        }
    }

    #[test]
    fn positions_are_within_the_frame() {
        let plot = plot();
        assert_eq!((plot.at_x(0.0), plot.at_x(10.0)), (52.0, 152.0));
        assert_eq!((plot.at_y(0.0), plot.at_y(1.0)), (110.0, 10.0));
    }

    #[test]
    fn steps_and_lines_differ() {
        let points = [(0.0, 0.5), (10.0, 1.0)];
        assert_eq!(plot().steps(&points), "M52 110V60H152V10");
        assert_eq!(plot().line(&points), "M52 60L152 10");
        let beyond = [(0.0, 0.5), (12.0, 0.9), (13.0, 1.0)];
        assert_eq!(plot().steps(&beyond), "M52 110V60H152");
    }

    #[test]
    fn area_ends_at_the_frame() {
        let edge = [(0.0, 0.5), (10.0, 1.0)];
        assert_eq!(plot().area(&edge, false), "M52 60L152 10L152 110L52 110Z");
        assert_eq!(plot().area(&edge, true), "M52 60L152 10L152 10L52 10Z");
        assert_eq!(plot().area(&[], true), "");
    }

    #[test]
    fn description_is_for_screen_readers() {
        let drawn = plot().draw("a curve & more", &html! {}).into_string();
        assert!(drawn.contains("aria-label=\"a curve &amp; more\""));
    }
}
