//! Sections of the experiments: one for each family, with the method of each experiment and its
//! views.

mod against;
mod curves;
mod drawings;
mod load;
mod main_figure;
mod multiples;
mod precision;
mod readings;
mod reference;
mod runs;
mod tables;

use maud::{Markup, html};
use record::{Description, Family, Results, View};

use readings::Readings;

pub(super) use main_figure::{MainFigure, OverviewRow, main_figures, rows};

/// Returns the families that were measured, with their anchors.
pub(super) fn contents(results: &Results) -> Vec<(Family, &'static str)> {
    families(results)
        .map(|family| (family, family.name()))
        .collect()
}

fn families(results: &Results) -> impl Iterator<Item = Family> {
    let present = |family: &Family| !readings(results, *family).is_empty();
    Family::ALL.into_iter().filter(present)
}

pub(super) fn sections(results: &Results) -> Markup {
    html! {
        @for (family, id) in contents(results) {
            section id=(id) {
                h2 { (family.title()) }
                @for readings in readings(results, family) { (experiment(&readings)) }
            }
        }
    }
}

/// Returns the table of throughput and of the latency below it, for the overview; empty if it was
/// not measured.
pub(super) fn rates_and_delays(results: &Results) -> Markup {
    let throughput = results.catalogue().find("throughput");
    let readings = throughput.and_then(|one| Readings::of(results, one));
    let figures = [
        "lossless_kpps",
        "throughput_kpps",
        "throughput_mbit",
        "p50_at_10_us",
        "p99_at_10_us",
        "p50_at_50_us",
        "p99_at_50_us",
        "p50_at_90_us",
        "p99_at_90_us",
    ];
    html! {
        @if let Some(readings) = readings {
            (tables::table(&readings, "Throughput, and latency below it", &figures))
        }
    }
}

/// Returns the readings of each experiment of a family that was measured.
fn readings(results: &Results, family: Family) -> Vec<Readings<'_>> {
    let all = results.catalogue().iter();
    all.filter(|one| one.family == family && !one.views.is_empty())
        .filter_map(|one| Readings::of(results, one))
        .collect()
}

/// Returns the readings of all experiments in the order of the report.
pub(super) fn all_readings(results: &Results) -> Vec<Readings<'_>> {
    let families = families(results);
    families
        .flat_map(|family| readings(results, family))
        .collect()
}

fn experiment(readings: &Readings<'_>) -> Markup {
    let experiment = readings.experiment;
    html! {
        h3 id=(experiment.name) { (experiment.title) }
        @if !experiment.question.is_empty() {
            p { (experiment.question) " Source: " (experiment.source) "." }
        }
        (method(readings))
        @for views in experiment.views.chunk_by(|one, next| is_drawing(one) && is_drawing(next)) {
            @if is_drawing(&views[0]) {
                div.drawings { @for view in views { (draw(readings, view)) } }
            } @else {
                @for view in views { (draw(readings, view)) }
            }
        }
        (reference::results(experiment.name))
        (tables::reasons(readings))
    }
}

/// Returns true if a view is a drawing and no table: several drawings share a row of the page.
const fn is_drawing(view: &View) -> bool {
    !matches!(
        view,
        View::Matrix { .. }
            | View::Table { .. }
            | View::Ratio { .. }
            | View::AboveLink { .. }
            | View::Precision { .. }
    )
}

/// Returns the steps and constants of an experiment.
fn method(readings: &Readings<'_>) -> Markup {
    let experiment: &Description = readings.experiment;
    let constants = readings.constants();
    html! {
        details {
            summary { "Method" }
            ol { @for step in experiment.steps { li { (step) } } }
            @if !constants.is_empty() {
                p {
                    "The same in all trials: "
                    @for (index, (about, value)) in constants.iter().enumerate() {
                        @if index > 0 { "; " }
                        (about) " " (value)
                    }
                    "."
                }
            }
            p { "To repeat: " code { "comporta lab run " (experiment.name) } }
        }
    }
}

/// Returns a view, once for each combination of the axes that it does not show.
fn draw(readings: &Readings<'_>, view: &View) -> Markup {
    match *view {
        View::Matrix {
            title,
            figure,
            across,
            published,
        } => tables::matrix(readings, title, figure, across, published),
        View::Table { title, figures } => tables::table(readings, title, figures),
        View::Ratio {
            title,
            figure,
            parameter,
            of,
            to,
            published,
        } => tables::ratio(readings, title, figure, (parameter, of, to), published),
        View::AboveLink {
            title,
            figure,
            across,
        } => tables::above_link(readings, title, figure, across),
        View::Precision { title, samples, at } => precision::table(readings, title, samples, at),
        View::Bars {
            title,
            figure,
            across,
        } => drawings::bars(readings, title, figure, across),
        View::Lines {
            title,
            figure,
            along,
            log,
        } => drawings::lines(readings, title, figure, along, log),
        View::Against {
            title,
            x,
            y,
            along,
            diagonal,
        } => against::draw(readings, title, (x, y), along, diagonal),
        View::Load {
            title,
            delay,
            lost,
            along,
        } => load::pair(readings, title, (delay, lost), along),
        View::Runs {
            title,
            figure,
            across,
        } => runs::runs(readings, title, figure, across),
        View::Shares { title, values } => curves::shares(readings, title, values),
        View::Variations { title, samples } => curves::variations(readings, title, samples),
        View::Percentiles { title, values } => curves::percentiles(readings, title, values),
    }
}
