//! Tables of the catalogue's experiments, with published rows under them where there are any.

use maud::{Markup, html};
use record::DeviceRecord;
use record::Figure;

use super::material::{Facet, Material, shown, with, words};
use crate::analysis::ByRun;
use crate::format::{decimal, decimals};
use crate::html::parts;
use crate::published::{self, PublishedTable};

/// What every caption says of the small numbers.
const INTERVALS: &str = "Under each mean its 99\u{a0}% interval over runs.";

/// One figure: devices down, values of a parameter across.
pub(super) fn matrix(
    material: &Material<'_>,
    title: &str,
    figure: &str,
    across: &'static str,
    published: &str,
) -> Markup {
    let (figure, axis) = (material.figure(figure), material.axis(across));
    let columns = material.values(axis);
    let reference = published::table(published);
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for value in &columns { th scope="col" { (shown(value)) } }
        }
    };
    html! {
        @for facet in material.facets(&[across]) {
            @let caption = html! {
                b { (title) (words(&facet)) (unit(figure)) ". " } (INTERVALS) (legend(material, &[figure]))
                @if let Some(reference) = &reference { (source(reference)) }
            };
            @let body = html! {
                tbody {
                    @for device in &material.devices {
                        tr.calibration[device.calibration] {
                            th scope="row" { (parts::device_name(device)) }
                            @for value in &columns {
                                (cell(material, device, figure, &with(&facet, axis, value)))
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

/// Several figures: devices and points down, figures across.
pub(super) fn table(material: &Material<'_>, title: &str, figures: &[&str]) -> Markup {
    let figures: Vec<&Figure> = figures.iter().map(|name| material.figure(name)).collect();
    let caption = html! { b { (title) ". " } (INTERVALS) (legend(material, &figures)) };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @for figure in &figures {
                th scope="col" { (figure.title) @if !figure.unit.is_empty() { span.unit { (figure.unit) } } }
            }
        }
    };
    let facets = material.facets(&[]);
    let span = figures.len() + 1;
    let body = html! {
        @for facet in &facets {
            tbody {
                @if !facet.is_empty() {
                    tr.group { th scope="rowgroup" colspan=(span) { (words(facet).trim_start_matches(" · ")) } }
                }
                @for device in takers(material, facet) {
                    tr.calibration[device.calibration] {
                        th scope="row" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
                        @for figure in &figures { (cell(material, device, figure, facet)) }
                    }
                }
            }
        }
    };
    let table = parts::table(&caption, &head, &body);
    if facets.len() > FACETS_OPEN {
        html! { details.more { summary { span { (title) } ": " span { (facets.len()) " points" } } (table) } }
    } else {
        table
    }
}

/// So many points are shown at once; more are shown when asked for.
const FACETS_OPEN: usize = 6;

/// One figure at a value of a parameter, by the same at another.
pub(super) fn ratio(
    material: &Material<'_>,
    title: &str,
    figure: &str,
    (parameter, of, to): (&'static str, &str, &str),
    published: &str,
) -> Markup {
    let (figure, axis) = (material.figure(figure), material.axis(parameter));
    let facets = material.facets(&[parameter]);
    let reference = published::table(published);
    let [of, to] = [of, to].map(record::Value::word);
    let ratio = |device: &DeviceRecord, facet: &Facet| {
        let at = |value| material.by_run(&device.name, figure.name, &with(facet, axis, value));
        (at(&of), at(&to))
    };
    let places = facets
        .iter()
        .map(|facet| material.whole(facet, &[parameter]));
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
    let both = |device: &&&DeviceRecord| {
        let mut all = facets.iter().map(|facet| ratio(device, facet));
        all.any(|(of, to)| of.runs() > 0 && to.runs() > 0)
    };
    let body = html! {
        tbody {
            @for device in material.devices.iter().filter(both) {
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
                span.interval { (parts::range(&interval, 1.0, 2)) }
            }
        },
        (None, Some(of), Some(to)) if to > 0.0 => html! {
            td { span.value { (decimal(of / to, 2)) } span.interval { "too few runs" } }
        },
        _ => html! { td.none { "–" } },
    }
}

/// Why cells are empty, where that was told.
pub(super) fn reasons(material: &Material<'_>) -> Markup {
    let mut told: Vec<String> = Vec::new();
    for facet in material.facets(&[]) {
        for device in &material.devices {
            for figure in material.experiment.figures {
                let values = material.by_run(&device.name, figure.name, &facet);
                let reason = material.reason(&device.name, figure.name, &facet);
                let (0, Some(reason)) = (values.runs(), reason) else {
                    continue;
                };
                let at = heading(&facet);
                let line = match at.as_str() {
                    "" => format!("{}: {reason}", device.name),
                    at => format!("{}, {at}: {reason}", device.name),
                };
                if !told.contains(&line) {
                    told.push(line);
                }
            }
        }
    }
    html! {
        @if !told.is_empty() {
            p.fine { "Cells without a value, and why:" }
            ul.flaws { @for line in &told { li { (line) } } }
        }
    }
}

/// A figure of a device at a point; an empty cell says why.
fn cell(material: &Material<'_>, device: &DeviceRecord, figure: &Figure, facet: &Facet) -> Markup {
    let values = material.by_run(&device.name, figure.name, facet);
    let nothing_lost =
        LOSSES.contains(&figure.name) && values.values().iter().all(|one| *one == 0.0);
    match material.reason(&device.name, figure.name, facet) {
        Some(reason) if values.runs() == 0 => html! { td.none title=(reason) { "–" } },
        _ if values.runs() > 0 && nothing_lost => {
            match material.values_of(&device.name, facet) {
                // Where nothing was lost, what came is what was sent.
                Some((_, sent)) => html! {
                    td {
                        span.value { "0" }
                        span.interval { (parts::not_excluded(sent)) }
                    }
                },
                None => parts::cell(&values, 1.0),
            }
        }
        _ if values.runs() > 0 && !material.supports(&device.name, figure, facet) => {
            let shown = values.mean().map(|mean| decimal(mean, decimals(mean)));
            html! { td.weak title=(WEAK) { (shown.unwrap_or_default()) } }
        }
        _ => parts::cell(&values, 1.0),
    }
}

/// Figures that say how much was lost of what has a distribution.
const LOSSES: [&str; 2] = ["loss_percent", "lost"];
/// Why a percentile is grey.
const WEAK: &str = "fewer than twenty values of a run lie beyond: the luck of a few";

/// What a table's small and grey numbers mean, besides intervals.
fn legend(material: &Material<'_>, figures: &[&Figure]) -> Markup {
    let facets = material.facets(&[]);
    let any = |is: &dyn Fn(&DeviceRecord, &Figure, &Facet) -> bool| {
        facets.iter().any(|facet| {
            let devices = material.devices.iter();
            devices
                .clone()
                .any(|device| figures.iter().any(|figure| is(device, figure, facet)))
        })
    };
    let weak = any(&|device, figure, facet| !material.supports(&device.name, figure, facet));
    let lossless = any(&|device, figure, facet| {
        let values = material.by_run(&device.name, figure.name, facet).values();
        LOSSES.contains(&figure.name)
            && !values.is_empty()
            && values.iter().all(|one| *one == 0.0)
            && material.values_of(&device.name, facet).is_some()
    });
    html! {
        @if weak { " Grey: fewer than twenty values of a run lie beyond, the luck of a few." }
        @if lossless { (parts::NOT_EXCLUDED) }
    }
}

/// The devices that have anything at this point.
fn takers<'m>(material: &'m Material<'_>, facet: &'m Facet) -> Vec<&'m DeviceRecord> {
    let any = |device: &&&DeviceRecord| {
        let figures = material.experiment.figures.iter();
        figures.clone().any(|figure| {
            material.by_run(&device.name, figure.name, facet).runs() > 0
                || material.reason(&device.name, figure.name, facet).is_some()
        })
    };
    material.devices.iter().filter(any).copied().collect()
}

/// A facet as the head of a column.
fn heading(facet: &Facet) -> String {
    words(facet).trim_start_matches(" · ").to_owned()
}

fn unit(figure: &Figure) -> String {
    match figure.unit {
        "" => String::new(),
        unit => format!(", in {unit}"),
    }
}

fn source(reference: &PublishedTable) -> Markup {
    html! { " ○ Published: " (reference.source) "; " (reference.note) "." }
}

/// What others measured, in the columns of the same name.
fn published_rows(reference: &PublishedTable, columns: &[String]) -> Markup {
    html! {
        tbody.published {
            @for row in &reference.rows {
                tr {
                    th scope="row" { "○ " (row.device) span.remark { (row.form) } }
                    @for column in columns {
                        @let place = reference.columns.iter().position(|name| name == column);
                        @match place.and_then(|index| row.values.get(index)).and_then(Option::as_ref) {
                            Some(range) => td { (range.text()) },
                            None => td.none { "–" },
                        }
                    }
                }
            }
        }
    }
}
