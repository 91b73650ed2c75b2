//! Strips of single runs.

use maud::Markup;

use super::drawings::y_name;
use super::multiples;
use super::readings::{Readings, shown, suffix, with};
use crate::html::strip::{Strip, StripGroup};

/// Returns a strip of runs for each combination of the axes that are not shown.
pub(super) fn runs(
    readings: &Readings<'_>,
    title: &'static str,
    figure: &str,
    across: &'static str,
) -> Markup {
    let (figure, axis) = (readings.figure(figure), readings.axis(across));
    let values = readings.values(axis);
    let strips = readings.facets(&[across]).into_iter().map(|facet| {
        let groups = values.iter().map(|value| {
            let at = with(&facet, axis, value);
            let of = |name: &str| readings.by_run(name, figure, &at).values();
            StripGroup {
                name: shown(value),
                rows: readings
                    .devices
                    .iter()
                    .map(|device| of(&device.name))
                    .collect(),
            }
        });
        Strip {
            title: format!("{title}{}", suffix(&facet)),
            axis: y_name(figure),
            parameter: axis.name,
            unit: figure.shown_unit(),
            devices: &readings.devices,
            groups: groups.collect(),
        }
    });
    let strips: Vec<Strip<'_>> = strips.filter(Strip::has_runs).collect();
    let scale = Strip::common_scale(&strips);
    let figures: Vec<Markup> = strips.iter().map(|strip| strip.draw(scale)).collect();
    multiples::grid(title, &figures, 1)
}
