//! The experiments of the catalogue: a section for each family, with the method of each
//! experiment, and what came of it in the views that it asks for.

mod curves;
mod drawings;
mod load;
mod main_figure;
mod material;
mod multiples;
mod reference;
mod runs;
mod tables;

use maud::{Markup, html};
use record::Results;
use record::{Description, Family, View};

use material::Material;

pub(super) use main_figure::{MainFigure, mains};

/// The families of which there is anything, each with its place in the page.
pub(super) fn contents(results: &Results) -> Vec<(Family, &'static str)> {
    families(results)
        .map(|family| (family, family.name()))
        .collect()
}

fn families(results: &Results) -> impl Iterator<Item = Family> {
    let present = |family: &Family| !materials(results, *family).is_empty();
    Family::ALL.into_iter().filter(present)
}

pub(super) fn sections(results: &Results) -> Markup {
    html! {
        @for (family, id) in contents(results) {
            section id=(id) {
                h2 { (family.title()) }
                @for material in materials(results, family) { (experiment(&material)) }
            }
        }
    }
}

/// The rates without loss and the delays below them, as the head of a report shows them; nothing
/// if they were not measured.
pub(super) fn rates_and_delays(results: &Results) -> Markup {
    let throughput = results.catalogue().find("throughput");
    let material = throughput.and_then(|one| Material::of(results, one));
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
        @if let Some(material) = material {
            (tables::table(&material, "Throughput, and latency below it", &figures))
        }
    }
}

fn materials(results: &Results, family: Family) -> Vec<Material<'_>> {
    let all = results.catalogue().iter();
    all.filter(|one| one.family == family && !one.views.is_empty())
        .filter_map(|one| Material::of(results, one))
        .collect()
}

fn experiment(material: &Material<'_>) -> Markup {
    let experiment = material.experiment;
    html! {
        h3 id=(experiment.name) { (experiment.title) }
        p { (experiment.question) " After " (experiment.source) "." }
        (method(material))
        @for views in experiment.views.chunk_by(|one, next| is_drawing(one) && is_drawing(next)) {
            @if is_drawing(&views[0]) {
                div.drawings { @for view in views { (draw(material, view)) } }
            } @else {
                @for view in views { (draw(material, view)) }
            }
        }
        (reference::results(experiment.name))
        (tables::reasons(material))
    }
}

/// Whether a view is a drawing, which stands beside others, and no table.
const fn is_drawing(view: &View) -> bool {
    !matches!(
        view,
        View::Matrix { .. } | View::Table { .. } | View::Ratio { .. }
    )
}

/// What was done, for whoever wants to know or to repeat it.
fn method(material: &Material<'_>) -> Markup {
    let experiment: &Description = material.experiment;
    html! {
        details {
            summary { "How it is measured" }
            ol { @for step in experiment.steps { li { (step) } } }
            @if !material.constants().is_empty() {
                p {
                    "Set for all tests: "
                    @for (index, (about, value)) in material.constants().iter().enumerate() {
                        @if index > 0 { "; " }
                        (about) " " (value)
                    }
                    "."
                }
            }
            p { "Again: " code { "comporta lab run " (experiment.name) } }
        }
    }
}

/// One view, once for each combination of the axes that it does not show.
fn draw(material: &Material<'_>, view: &View) -> Markup {
    match *view {
        View::Matrix {
            title,
            figure,
            across,
            published,
        } => tables::matrix(material, title, figure, across, published),
        View::Table { title, figures } => tables::table(material, title, figures),
        View::Ratio {
            title,
            figure,
            parameter,
            of,
            to,
            published,
        } => tables::ratio(material, title, figure, (parameter, of, to), published),
        View::Bars {
            title,
            figure,
            across,
        } => drawings::bars(material, title, figure, across),
        View::Lines {
            title,
            figure,
            along,
            log,
        } => drawings::lines(material, title, figure, along, log),
        View::Load {
            title,
            delay,
            lost,
            along,
        } => load::pair(material, title, (delay, lost), along),
        View::Runs {
            title,
            figure,
            across,
        } => runs::runs(material, title, figure, across),
        View::Shares { title, histogram } => curves::shares(material, title, histogram),
        View::Percentiles { title, histogram } => curves::percentiles(material, title, histogram),
    }
}
