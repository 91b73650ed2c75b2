//! The report: one HTML file that needs nothing else, no network and, to be read, no
//! scripts. A function of the records alone, so that it can be made again, and made better,
//! long after the run.

mod catalogue;
mod changes;
mod devices;
mod echo;
mod environment;
mod flow_table;
mod forwarding;
mod headline;
mod language;
mod management;
mod meters;
mod parts;
mod requests;
mod scale;
mod steadiness;
mod strip;
mod svg;
mod tcp;
mod validity;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use language::Language;

use record::{Results, Session};

use crate::format;

/// The look of everything; light and dark, screen and paper.
const STYLE: &str = include_str!("html/style.css");

/// What it does besides where scripts run.
const SCRIPT: &str = include_str!("html/script.js");

/// What the page may do: be styled and scripted by itself, and nothing else. It cannot even
/// ask for anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// What the script says.
const WORDS: [(&str, &str); 5] = [
    ("csv", "Copy as CSV"),
    ("copied", "Copied"),
    ("not-copied", "The browser does not let it be copied"),
    ("svg", "Download SVG"),
    ("sort", "Sort by this column"),
];

/// Renders the report of a run as an HTML page.
#[must_use]
pub fn render(results: &Results, language: Language) -> String {
    language::translate(&page(results).into_string(), language)
}

/// What a run's records come to, a line for each experiment.
#[must_use]
pub fn glance(results: &Results) -> Vec<String> {
    headline::lines(results)
}

fn page(results: &Results) -> Markup {
    let title = title(results);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(&title, results))
                main {
                    (headline::section(results))
                    (devices::section(results))
                    @if results.has("echo") { (echo::section(results)) }
                    @if results.has("tcp-throughput") { (tcp::section(results)) }
                    @if results.has("forwarding-rate") { (forwarding::section(results)) }
                    @if results.has("flow-table") { (flow_table::section(results)) }
                    @if results.has("meters") { (meters::section(results)) }
                    @if results.has("tcp-requests") { (requests::section(results)) }
                    @if results.has("changes") { (changes::section(results)) }
                    (catalogue::sections(results))
                    (management::section(results))
                    (validity::section(results))
                    (environment::section(results))
                }
                footer {
                    p { "Made from " code { (record::journal::RECORDS) } " in the directory of this file by comporta lab " (env!("CARGO_PKG_VERSION")) "." }
                }
                div #words hidden { @for (name, text) in WORDS { span data-word=(name) { (text) } } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The devices by name, as in a title: calibration is no device.
fn title(results: &Results) -> String {
    let devices = results.devices();
    let names: Vec<&str> = devices
        .iter()
        .filter(|device| !device.calibration)
        .map(|device| device.name.as_str())
        .collect();
    match names.split_last() {
        None => "A calibration of the lab".to_owned(),
        Some((only, [])) => format!("{only}, measured"),
        Some((last, others)) => format!("{} and {last}, side by side", others.join(", ")),
    }
}

fn header(title: &str, results: &Results) -> Markup {
    let void = results
        .trials()
        .iter()
        .filter(|trial| !trial.is_valid())
        .count();
    let tests = results.trials().len();
    html! {
        header {
            p.kicker { "Comporta lab" }
            h1 { (title) }
            @if let Some(session) = results.sessions().last() {
                p.meta {
                    (date(session)) " · " (session.machine.processor) ", "
                    (session.machine.cores) " cores · Linux " (session.machine.kernel) " · "
                    (format::count(tests as u64)) " tests"
                    @if void > 0 { ", " a href="#validity" { (void) " void" } }
                }
            }
            (contents(results))
        }
    }
}

fn contents(results: &Results) -> Markup {
    let sections = [
        (true, "devices", "Devices"),
        (results.has("echo"), "echo", "Round trip"),
        (results.has("tcp-throughput"), "tcp", "TCP throughput"),
        (
            results.has("forwarding-rate"),
            "forwarding",
            "Forwarding rate",
        ),
        (results.has("flow-table"), "flow-table", "Flow table"),
        (results.has("meters"), "meters", "Meters"),
        (results.has("tcp-requests"), "requests", "TCP requests"),
        (results.has("changes"), "changes", "Rules that change"),
    ];
    let families = catalogue::contents(results);
    html! {
        nav aria-label="Contents" {
            @for (present, id, name) in sections {
                @if present { a href={ "#" (id) } { (name) } }
            }
            @for (family, id) in families { a href={ "#" (id) } { (family.title()) } }
            @if management::is_told(results) { a href="#spent" { "What the device spent" } }
            a href="#validity" { "Validity" }
            a href="#method" { "Method and machine" }
        }
    }
}

/// `2026-01-02 03:04 UTC`.
fn date(session: &Session) -> String {
    let minutes = session.started.get(..16).unwrap_or(&session.started);
    format!("{} UTC", minutes.replace('T', " "))
}

#[cfg(test)]
mod tests;
