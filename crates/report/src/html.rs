//! The report: one HTML file that needs no other file, no network and, to be read, no scripts.

mod catalogue;
mod devices;
mod environment;
mod headline;
mod language;
mod management;
mod parts;
mod scale;
mod steadiness;
mod strip;
mod svg;
mod validity;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use language::Language;

use record::{Results, Session};

use crate::format;

/// Style sheet for light, dark and print.
const STYLE: &str = include_str!("html/style.css");

/// Script for sorting, copying and downloads.
const SCRIPT: &str = include_str!("html/script.js");

/// Content security policy: inline styles and scripts only, and no requests.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Texts of the script.
const WORDS: [(&str, &str); 5] = [
    ("csv", "Copy as CSV"),
    ("copied", "Copied"),
    ("not-copied", "The browser does not allow copying"),
    ("svg", "Download SVG"),
    ("sort", "Sort by this column"),
];

/// Renders the report of a run as an HTML page.
#[must_use]
pub fn render(results: &Results, language: Language) -> String {
    language::translate(&page(results).into_string(), language)
}

/// Returns the comparisons of a run in one line each, for the terminal.
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

/// Returns the names of the devices as a title, without that of the bare link.
fn title(results: &Results) -> String {
    let devices = results.devices();
    let names: Vec<&str> = devices
        .iter()
        .filter(|device| !device.calibration)
        .map(|device| device.name.as_str())
        .collect();
    match names.split_last() {
        None => "Calibration of the lab".to_owned(),
        Some((only, [])) => format!("Measurement of {only}"),
        Some((last, others)) => format!("Comparison of {} and {last}", others.join(", ")),
    }
}

fn header(title: &str, results: &Results) -> Markup {
    let void = results
        .trials()
        .iter()
        .filter(|trial| !trial.is_valid())
        .count();
    let trials = results.trials().len();
    html! {
        header {
            p.kicker { "Comporta lab" }
            h1 { (title) }
            @if let Some(session) = results.sessions().last() {
                p.meta {
                    (date(session)) " · " (session.machine.processor) ", "
                    (session.machine.cores) " cores · Linux " (session.machine.kernel) " · "
                    (format::count(trials as u64)) " trials"
                    @if void > 0 { ", " a href="#validity" { (void) " void" } }
                }
            }
            (contents(results))
        }
    }
}

fn contents(results: &Results) -> Markup {
    html! {
        nav aria-label="Contents" {
            a href="#devices" { "Devices" }
            @for (family, id) in catalogue::contents(results) { a href={ "#" (id) } { (family.title()) } }
            @if management::is_recorded(results) { a href="#resources" { "Resources of the devices" } }
            a href="#validity" { "Validity" }
            a href="#method" { "Method and machine" }
        }
    }
}

/// Returns the start of a session: `2026-01-02 03:04 UTC`.
fn date(session: &Session) -> String {
    let minutes = session.started.get(..16).unwrap_or(&session.started);
    format!("{} UTC", minutes.replace('T', " "))
}

#[cfg(test)]
mod tests;
