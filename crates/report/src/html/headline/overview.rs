//! Table of the main figures: a row for each figure, a column for each device.

use maud::{Markup, html};
use record::Results;

use crate::format::{decimal, decimals};
use crate::html::catalogue::{self, OverviewRow};
use crate::html::parts;

pub(super) fn table(results: &Results) -> Markup {
    let devices = results.devices();
    let readings = catalogue::all_readings(results);
    let rows = catalogue::rows(&readings);
    if rows.is_empty() {
        return html! {};
    }
    let caption = html! {
        b { "Main figures. " }
        "Means over runs; for several points, the least and the greatest."
        @if rows.iter().any(|row| matches!(row, OverviewRow::Highest(_))) {
            " Without loss: the highest intended load at which no run lost more than 0.1\u{a0}%."
        }
    };
    let head = html! {
        tr {
            th scope="col" { "Figure" }
            th scope="col" { "Unit" }
            @for device in &devices {
                th.calibration[device.calibration] scope="col" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
            }
        }
    };
    let body = html! {
        tbody {
            @for row in &rows {
                @let (anchor, title, place, unit) = head_of(row);
                tr {
                    th scope="row" {
                        a href={ "#" (anchor) } { (title) }
                        @if !place.is_empty() { span.remark { (place) } }
                    }
                    td.unit-of { (unit) }
                    @for device in &devices {
                        @match text(row, &device.name) {
                            Some(text) => td { (text) },
                            None => td.none { "–" },
                        }
                    }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

/// Returns the anchor, the title, the point and the unit of a row.
fn head_of<'r>(row: &'r OverviewRow<'_, '_>) -> (&'static str, &'r str, String, &'static str) {
    match row {
        OverviewRow::Figure(main) => {
            let unit = main.figure.shown_unit();
            (main.experiment.name, &main.title, main.place(), unit)
        }
        OverviewRow::Highest(highest) => {
            let anchor = highest.experiment.name;
            (anchor, &highest.title, String::new(), highest.unit)
        }
    }
}

fn text(row: &OverviewRow<'_, '_>, device: &str) -> Option<String> {
    match row {
        OverviewRow::Figure(main) => {
            let (low, high) = main.range(device)?;
            Some(span(low, high, ""))
        }
        OverviewRow::Highest(highest) => highest.text(device),
    }
}

/// Returns the least and the greatest value as text, or the value that both are.
pub(super) fn span(low: f64, high: f64, unit: &str) -> String {
    let [least, most] = [low, high].map(|value| decimal(value, decimals(high)));
    let numbers = match least == most {
        true => most,
        false => format!("{least} – {most}"),
    };
    match unit {
        "" => numbers,
        unit => format!("{numbers} {unit}"),
    }
}
