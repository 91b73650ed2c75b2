//! Strip charts: runs as dots, a row for each device, with a box plot for enough runs.

use maud::{Markup, html};
use record::DeviceRecord;

use super::parts::{self, Point};
use super::scale::Scale;
use super::svg::round;

/// Least number of runs for a box: the dots of fewer say as much.
const BOX_RUNS_MIN: usize = 5;

/// Distance between the rows of two devices, in pixels.
const ROW: f64 = 15.0;
/// Greatest width of the groups' names, margin above the first row, and after the last tick.
const NAMES_MAX: f64 = 150.0;
const TOP: f64 = 8.0;
const RIGHT: f64 = 30.0;
const WIDTH: f64 = 520.0;

/// Strip chart.
pub(super) struct Strip<'a> {
    /// Title.
    pub(super) title: String,
    /// Name of the horizontal axis, with its unit.
    pub(super) axis: String,
    /// Parameter of the groups; a single group has it in its name.
    pub(super) parameter: &'static str,
    /// Unit of the values.
    pub(super) unit: &'static str,
    /// Devices in the order of rows.
    pub(super) devices: &'a [&'a DeviceRecord],
    /// Groups from top to bottom.
    pub(super) groups: Vec<StripGroup>,
}

/// Rows of one group.
pub(super) struct StripGroup {
    /// Name.
    pub(super) name: String,
    /// Values of the runs of each device.
    pub(super) rows: Vec<Vec<f64>>,
}

impl Strip<'_> {
    /// Returns true if there is any run.
    pub(super) fn has_runs(&self) -> bool {
        self.values().next().is_some()
    }

    /// Returns a scale for all of `strips`: logarithmic if they span more than a factor of three.
    pub(super) fn common_scale(strips: &[Self]) -> Scale {
        let all = || strips.iter().flat_map(Self::values);
        let least = all().fold(f64::INFINITY, f64::min);
        let most = all().fold(0.0, f64::max);
        match least > 0.0 && most / least > 3.0 {
            true => Scale::log(least, most),
            false => Scale::from_zero(most),
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        rows.flatten().copied()
    }

    /// Draws the strip on a scale that other strips may share.
    pub(super) fn draw(&self, x: Scale) -> Markup {
        let alone = self.groups.len() == 1 && !self.parameter.is_empty();
        let label = |group: &StripGroup| match alone {
            true => format!("{} {}", self.parameter, group.name),
            false => group.name.clone(),
        };
        let longest = self.groups.iter().map(|group| label(group).chars().count());
        // The parameter is longer in some languages.
        let longest = longest.max().unwrap_or(0) + if alone { 4 } else { 0 };
        let names = longest as f64 * 7.0 + 20.0;
        let left = names.clamp(50.0, NAMES_MAX);
        let group = ROW * (self.devices.len() as f64 + 0.9);
        let height = TOP + group * self.groups.len() as f64;
        let at = |value: f64| round(left + x.position(value) * (WIDTH - left - RIGHT));
        let content = html! {
            svg viewBox={ "0 0 " (WIDTH) " " (round(height + 44.0)) } role="group" aria-label=(self.title) {
                g.grid {
                    @for tick in x.ticks() {
                        path d={ "M" (at(tick)) " " (TOP) "V" (round(height)) } {}
                        text x=(at(tick)) y=(round(height + 17.0)) text-anchor="middle" { (x.label(tick)) }
                    }
                    text.axis x=(f64::midpoint(left, WIDTH)) y=(round(height + 38.0)) text-anchor="middle" { (self.axis) }
                }
                @for (index, one) in (0_u16..).zip(&self.groups) {
                    @let top = TOP + group * f64::from(index);
                    g.rows {
                        text.label x=(left - 12.0) y=(round(top + group / 2.0 + 1.0)) text-anchor="end" { (label(one)) }
                        @if index > 0 { path.divide d={ "M" (left) " " (round(top)) "H" (WIDTH - RIGHT) } {} }
                        @for (row, (device, values)) in (0_u16..).zip(self.devices.iter().zip(&one.rows)) {
                            @let y = round(top + ROW * (f64::from(row) + 0.95));
                            (self.row(&device.name, &one.name, values, y, &at))
                        }
                    }
                }
            }
        };
        let boxed = self.groups.iter().flat_map(|group| &group.rows);
        let boxed = boxed.clone().any(|values| values.len() >= BOX_RUNS_MIN);
        let caption = html! {
            "Each dot is one run. The intervals over runs follow from this spread."
            @if boxed { " A box contains the middle half of a device’s runs, with a line at the median." }
        };
        parts::figure(
            &self.title,
            &parts::legend(self.devices),
            &content,
            &caption,
        )
    }

    fn row(
        &self,
        device: &str,
        group: &str,
        values: &[f64],
        y: f64,
        at: &impl Fn(f64) -> f64,
    ) -> Markup {
        html! {
            g.series.{ (parts::class(device)) } data-series=(device) {
                @if let Some([low, middle, high]) = quartiles(values) {
                    rect.box x=(at(low)) y=(y - 5.0) width=(round((at(high) - at(low)).max(1.0))) height="10" {}
                    path.median d={ "M" (at(middle)) " " (y - 5.0) "v10" } {}
                }
                @for value in values {
                    (Point { series: device, x: group, y: *value, unit: self.unit }.at(at(*value), y))
                }
            }
        }
    }
}

/// Returns the first quartile, the median and the third quartile, interpolated; `None` for fewer
/// than [`BOX_RUNS_MIN`] values.
fn quartiles(values: &[f64]) -> Option<[f64; 3]> {
    if values.len() < BOX_RUNS_MIN {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quarters: usize| {
        // Positions are in quarters, and so integers.
        let place = quarters * (sorted.len() - 1);
        let (index, rest) = (place / 4, place % 4);
        let next = sorted[(index + 1).min(sorted.len() - 1)];
        sorted[index] + (next - sorted[index]) * rest as f64 / 4.0
    };
    Some([at(1), at(2), at(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        assert_eq!(quartiles(&[5.0, 1.0, 3.0, 2.0, 4.0]), Some([2.0, 3.0, 4.0]));
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(quartiles(&six), Some([2.25, 3.5, 4.75]));
    }

    #[test]
    fn four_runs_have_no_box() {
        assert_eq!(quartiles(&[1.0, 2.0, 3.0, 4.0]), None);
    }
}
