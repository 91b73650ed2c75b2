//! What single runs came to.

use maud::Markup;

use super::drawings::y_name;
use super::material::{Material, shown, with, words};
use super::multiples;
use crate::html::strip::{Group, Strip};

/// A strip of runs for each combination of what is not shown.
pub(super) fn runs(
    material: &Material<'_>,
    title: &'static str,
    figure: &str,
    across: &'static str,
) -> Markup {
    let (figure, axis) = (material.figure(figure), material.axis(across));
    let values = material.values(axis);
    let strips = material.facets(&[across]).into_iter().map(|facet| {
        let groups = values.iter().map(|value| {
            let at = with(&facet, axis, value);
            let of = |name: &str| material.by_run(name, figure.name, &at).values();
            Group {
                name: shown(value),
                rows: material
                    .devices
                    .iter()
                    .map(|device| of(&device.name))
                    .collect(),
            }
        });
        Strip {
            title: format!("{title}{}", words(&facet)),
            axis: y_name(figure),
            what: axis.name,
            unit: figure.unit,
            devices: &material.devices,
            groups: groups.collect(),
        }
    });
    let strips: Vec<Strip<'_>> = strips.filter(Strip::is_there).collect();
    let scale = Strip::common_scale(&strips);
    let figures: Vec<Markup> = strips.iter().map(|strip| strip.draw(scale)).collect();
    multiples::grid(title, &figures, 1)
}
