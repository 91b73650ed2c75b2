//! Tables of an experiment, with published rows below.

use std::collections::BTreeMap;

use maud::{Markup, html};
use record::{DeviceRecord, Figure};

use super::readings::{Facet, Readings, heading, shown, suffix, with};
use crate::analysis::ByRun;
use crate::format::{decimal, decimals};
use crate::html::parts;
use crate::published::{self, PublishedTable};

/// Caption of intervals.
const INTERVALS: &str = "Below each mean: its 99\u{a0}% interval over runs.";

/// Greatest number of points of a table that is visible at first.
const POINTS_VISIBLE: usize = 6;

/// Title of a percentile that a run does not support.
const UNSUPPORTED: &str = "fewer than twenty values of a run lie beyond this percentile";

/// Returns a table of one figure: a row for each device, a column for each value of a parameter.
pub(super) fn matrix(
    readings: &Readings<'_>,
    title: &str,
    figure: &str,
    across: &'static str,
    published: &str,
) -> Markup {
    let (figure, axis) = (readings.figure(figure), readings.axis(across));
    let columns = readings.values(axis);
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for value in &columns { th scope="col" { (shown(value)) } }
        }
    };
    html! {
        @for facet in readings.facets(&[across]) {
            @let reference = published::table(published).filter(|one| applies(one, readings, &facet, across));
            @let caption = html! {
                b { (title) (suffix(&facet)) (unit(figure)) ". " } (INTERVALS) (notes(readings, &[figure]))
                @if let Some(reference) = &reference { (source(reference)) }
            };
            @let body = html! {
                tbody {
                    @for device in &readings.devices {
                        tr.calibration[device.calibration] {
                            th scope="row" { (parts::device_name(device)) }
                            @for value in &columns {
                                (cell(readings, device, figure, &with(&facet, axis, value)))
                            }
                        }
                    }
                }
                @if let Some(reference) = &reference {
                    @let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
                    (published_rows(reference, &names))
                }
            };
            (parts::table(&caption, &head, &body))
        }
    }
}

/// Returns true if a published table has the parameters of a facet.
fn applies(
    reference: &PublishedTable,
    readings: &Readings<'_>,
    facet: &Facet,
    across: &str,
) -> bool {
    let whole = readings.whole(facet, &[across]);
    reference.at.iter().all(|(name, value)| {
        let here = whole.iter().find(|(axis, _)| axis.name == *name);
        here.is_some_and(|(_, here)| here.to_string() == *value)
    })
}

/// Returns a table of several figures: a row for each device and point, a column for each figure.
pub(super) fn table(readings: &Readings<'_>, title: &str, figures: &[&str]) -> Markup {
    let figures: Vec<&Figure> = figures.iter().map(|name| readings.figure(name)).collect();
    let caption = html! { b { (title) ". " } (INTERVALS) (notes(readings, &figures)) };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for figure in &figures {
                th scope="col" {
                    (figure.title)
                    @if !figure.shown_unit().is_empty() { span.unit { (figure.shown_unit()) } }
                }
            }
        }
    };
    let facets = readings.facets(&[]);
    let span = figures.len() + 1;
    let body = html! {
        @for facet in &facets {
            tbody {
                @if !facet.is_empty() {
                    tr.group { th scope="rowgroup" colspan=(span) { (heading(facet)) } }
                }
                @for device in devices_at(readings, facet) {
                    tr.calibration[device.calibration] {
                        th scope="row" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
                        @for figure in &figures { (cell(readings, device, figure, facet)) }
                    }
                }
            }
        }
    };
    let table = parts::table(&caption, &head, &body);
    if facets.len() > POINTS_VISIBLE {
        html! { details.more { summary { span { (title) } ": " span { (facets.len()) " points" } } (table) } }
    } else {
        table
    }
}

/// Returns the ratio of a figure at two values of a parameter.
pub(super) fn ratio(
    readings: &Readings<'_>,
    title: &str,
    figure: &str,
    (parameter, of, to): (&'static str, &str, &str),
    published: &str,
) -> Markup {
    let (figure, axis) = (readings.figure(figure), readings.axis(parameter));
    let facets = readings.facets(&[parameter]);
    let reference = published::table(published);
    let [of, to] = [of, to].map(record::Value::word);
    let ratio = |device: &DeviceRecord, facet: &Facet| {
        let at = |value| readings.by_run(&device.name, figure, &with(facet, axis, value));
        (at(&of), at(&to))
    };
    let places = facets
        .iter()
        .map(|facet| readings.whole(facet, &[parameter]));
    let heads: Vec<String> = places.map(|place| heading(&place)).collect();
    let caption = html! {
        b { (title) ". " }
        "Run by run, with the 99\u{a0}% interval over runs."
        @if let Some(reference) = &reference { (source(reference)) }
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for head in &heads { th scope="col" { @if head.is_empty() { "Ratio" } @else { (head) } } }
        }
    };
    let has_both = |device: &&&DeviceRecord| {
        let mut all = facets.iter().map(|facet| ratio(device, facet));
        all.any(|(of, to)| of.runs() > 0 && to.runs() > 0)
    };
    let body = html! {
        tbody {
            @for device in readings.devices.iter().filter(has_both) {
                tr {
                    th scope="row" { (parts::device_name(device)) }
                    @for facet in &facets { (ratio_cell(ratio(device, facet))) }
                }
            }
        }
        @if let Some(reference) = &reference { (published_rows(reference, &heads)) }
    };
    parts::table(&caption, &head, &body)
}

fn ratio_cell((of, to): (ByRun, ByRun)) -> Markup {
    match (of.ratio_to(&to), of.mean(), to.mean()) {
        (Some(interval), ..) => html! {
            td {
                span.value { (decimal(interval.mean, 2)) }
                span.interval { (parts::range(&interval, 2)) }
            }
        },
        (None, Some(of), Some(to)) if to > 0.0 => html! {
            td { span.value { (decimal(of / to, 2)) } span.interval { "too few runs" } }
        },
        _ => html! { td.none { "–" } },
    }
}

/// Returns the differences of a figure from that of the bare link; empty if the link was not
/// measured.
pub(super) fn above_link(
    readings: &Readings<'_>,
    title: &str,
    figure: &str,
    across: &'static str,
) -> Markup {
    let Some(link) = readings.link() else {
        return html! {};
    };
    let (figure, axis) = (readings.figure(figure), readings.axis(across));
    let columns = readings.values(axis);
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for value in &columns { th scope="col" { (shown(value)) } }
        }
    };
    let above = |device: &DeviceRecord, facet: &Facet| {
        let of = |name: &str| readings.by_run(name, figure, facet);
        of(&device.name).above(&of(&link.name))
    };
    html! {
        @for facet in readings.facets(&[across]) {
            @let caption = html! {
                b { (title) (suffix(&facet)) (unit(figure)) ". " }
                "Difference within each run. " (INTERVALS)
            };
            @let body = html! {
                tbody {
                    @for device in readings.devices.iter().filter(|one| !one.calibration) {
                        tr {
                            th scope="row" { (parts::device_name(device)) }
                            @for value in &columns { (parts::cell(&above(device, &with(&facet, axis, value)))) }
                        }
                    }
                }
            };
            (parts::table(&caption, &head, &body))
        }
    }
}

/// Returns the recorded reasons for cells without a value.
pub(super) fn reasons(readings: &Readings<'_>) -> Markup {
    let facets = readings.facets(&[]);
    let mut places: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for facet in &facets {
        for device in &readings.devices {
            for figure in readings.experiment.figures {
                let values = readings.by_run(&device.name, figure, facet);
                let reason = readings.reason(&device.name, figure.name, facet);
                if let (0, Some(reason)) = (values.runs(), reason) {
                    let devices = places.entry(reason).or_default();
                    let headings = devices.entry(&device.name).or_default();
                    let heading = heading(facet);
                    if !headings.contains(&heading) {
                        headings.push(heading);
                    }
                }
            }
        }
    }
    html! {
        @if !places.is_empty() {
            p.fine { "Cells without a value, and the reasons:" }
            ul.flaws {
                @for (reason, devices) in &places {
                    li {
                        span { (reason) } ": "
                        @for (index, (device, headings)) in devices.iter().enumerate() {
                            @if index > 0 { "; " }
                            span { (place(device, headings)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the cells of a device in words.
fn place(device: &str, headings: &[String]) -> String {
    match headings {
        [only] if only.is_empty() => device.to_owned(),
        [only] => format!("{device}, {only}"),
        several => format!("{device} ({} points)", several.len()),
    }
}

/// Returns the cell of a figure; an empty one has the reason as its title.
fn cell(readings: &Readings<'_>, device: &DeviceRecord, figure: &Figure, facet: &Facet) -> Markup {
    let values = readings.by_run(&device.name, figure, facet);
    match readings.reason(&device.name, figure.name, facet) {
        Some(reason) if values.runs() == 0 => html! { td.none title=(reason) { "–" } },
        _ if values.runs() == 0 => parts::cell(&values),
        _ if is_zero(&values) => {
            let sent = readings.sent(&device.name, figure, facet);
            parts::cell_with(&values, sent.map(parts::zero_loss_bound))
        }
        _ if !readings.supports(&device.name, figure, facet) => {
            let mean = values.mean().map(|mean| decimal(mean, decimals(mean)));
            html! { td.weak title=(UNSUPPORTED) { (mean.unwrap_or_default()) } }
        }
        _ => parts::cell(&values),
    }
}

fn is_zero(values: &ByRun) -> bool {
    values.values().iter().all(|value| *value == 0.0)
}

/// Returns the caption of bounds and of grey numbers, as far as the table has any.
fn notes(readings: &Readings<'_>, figures: &[&Figure]) -> Markup {
    let facets = readings.facets(&[]);
    let any = |is: &dyn Fn(&DeviceRecord, &Figure, &Facet) -> bool| {
        facets.iter().any(|facet| {
            let mut devices = readings.devices.iter();
            devices.any(|device| figures.iter().any(|figure| is(device, figure, facet)))
        })
    };
    let is_unsupported = any(&|device, figure, facet| {
        let values = readings.by_run(&device.name, figure, facet);
        values.runs() > 0 && !readings.supports(&device.name, figure, facet)
    });
    let has_bounds = any(&|device, figure, facet| {
        let values = readings.by_run(&device.name, figure, facet);
        let is_zero = values.runs() > 0 && is_zero(&values);
        is_zero && readings.sent(&device.name, figure, facet).is_some()
    });
    html! {
        @if is_unsupported { " Grey: fewer than twenty values of a run lie beyond this percentile." }
        @if has_bounds { (parts::ZERO_LOSS) }
    }
}

/// Returns the devices that have a value or a reason at a facet.
fn devices_at<'m>(readings: &'m Readings<'_>, facet: &'m Facet) -> Vec<&'m DeviceRecord> {
    let has_any = |device: &&&DeviceRecord| {
        let mut figures = readings.experiment.figures.iter();
        figures.any(|figure| {
            readings.by_run(&device.name, figure, facet).runs() > 0
                || readings.reason(&device.name, figure.name, facet).is_some()
        })
    };
    readings.devices.iter().filter(has_any).copied().collect()
}

fn unit(figure: &Figure) -> String {
    match figure.shown_unit() {
        "" => String::new(),
        unit => format!(", in {unit}"),
    }
}

fn source(reference: &PublishedTable) -> Markup {
    html! { " ○ Published: " (reference.source) "; " (reference.note) "." }
}

/// Returns published rows, with values in the columns of the same name.
fn published_rows(reference: &PublishedTable, columns: &[String]) -> Markup {
    html! {
        tbody.published {
            @for row in &reference.rows {
                tr {
                    th scope="row" { "○ " (row.device) span.remark { (row.form) } }
                    @for column in columns {
                        @let position = reference.columns.iter().position(|name| name == column);
                        @match position.and_then(|index| row.values.get(index)).and_then(Option::as_ref) {
                            Some(range) => td { (range.text()) },
                            None => td.none { "–" },
                        }
                    }
                }
            }
        }
    }
}
