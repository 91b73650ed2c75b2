//! The main figures of everything that was measured: a row for each, a column for each device.
//! (A row for each device would be wider than any page as soon as all experiments are there.)

use maud::{Markup, html};
use record::DeviceRecord;
use record::Results;

use crate::format::{decimal, decimals};
use crate::html::catalogue::{self, MainFigure};
use crate::html::{echo, flow_table, forwarding, parts, tcp};

/// A figure of every device.
struct Row {
    place: &'static str,
    name: String,
    unit: &'static str,
    cells: Vec<Markup>,
}

pub(super) fn table(results: &Results) -> Markup {
    let devices = results.devices();
    let mut rows = of_scenarios(results, &devices);
    let mains = catalogue::mains(results);
    rows.extend(mains.iter().map(|main| of_catalogue(main, &devices)));
    if rows.is_empty() {
        return html! {};
    }
    let has_rates = results.has("forwarding-rate");
    let caption = html! {
        b { "Main figures. " }
        "Means over runs; where an experiment has several tests, the least and the most of them. "
        @if let Some((set, frame_bytes)) = echo::focus(results) {
            "Round trips: " (frame_bytes) "-byte frames, " (set) " match. "
        }
        @if has_rates { "Without loss: the highest rate offered at which no run lost more than 0.1\u{a0}%." }
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
                tr {
                    th scope="row" { a href={ "#" (row.place) } { (row.name) } }
                    td.unit-of { (row.unit) }
                    @for cell in &row.cells { (cell) }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

fn of_scenarios(results: &Results, devices: &[&DeviceRecord]) -> Vec<Row> {
    let row = |place, name: &str, unit, cell: &dyn Fn(&str) -> Markup| Row {
        place,
        name: name.to_owned(),
        unit,
        cells: devices.iter().map(|device| cell(&device.name)).collect(),
    };
    let mut rows = Vec::new();
    if let Some((set, bytes)) = echo::focus(results) {
        rows.push(row("echo", "Round trip, median", "µs", &|name| {
            parts::plain(&echo::medians(results, name, set, bytes), 1e3)
        }));
        rows.push(row("echo", "Round trip, 99 % within", "µs", &|name| {
            parts::plain(&echo::tails(results, name, set, bytes), 1e3)
        }));
    }
    if results.has("tcp-throughput") {
        rows.push(row("tcp", "TCP throughput", "Gbit/s", &|name| {
            parts::plain(&tcp::throughputs(results, name), 1e9)
        }));
        rows.push(row("tcp", "TCP: its process", "% of a core", &|name| {
            tcp::process_cell(results, name)
        }));
    }
    if results.has("forwarding-rate") {
        rows.push(row(
            "forwarding",
            "Forwarding rate, flat out",
            "kpps",
            &|name| parts::plain(&forwarding::flat_out(results, name), 1e3),
        ));
        rows.push(row(
            "forwarding",
            "Forwarding rate, without loss",
            "kpps",
            &|name| forwarding::lossless_cell(results, name),
        ));
        rows.push(row(
            "forwarding",
            "Its process, for a frame",
            "ns",
            &|name| parts::plain(&forwarding::processor_time(results, name), 1.0),
        ));
    }
    if results.has("flow-table") {
        rows.push(row("flow-table", "Flows added", "1000/s", &|name| {
            parts::plain(&flow_table::added(results, name), 1e3)
        }));
    }
    rows
}

fn of_catalogue(main: &MainFigure<'_>, devices: &[&DeviceRecord]) -> Row {
    let cell = |device: &&DeviceRecord| match main.range(&device.name) {
        None => html! { td.none { "–" } },
        Some((low, high)) => html! { td { (span(low, high, "")) } },
    };
    Row {
        place: main.experiment.name,
        name: format!("{}: {}", main.experiment.title, main.figure.title),
        unit: main.figure.unit,
        cells: devices.iter().map(cell).collect(),
    }
}

/// The least and the most, or the one that there is.
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
