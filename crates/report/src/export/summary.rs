//! A page of Markdown with the first figure of each experiment, for the summary of a CI job or a
//! README.

use std::collections::{BTreeMap, BTreeSet};

use record::{Better, Description, ExperimentKey, Point, Results};

use crate::figures::{Cell, CellKey, cells, declared};
use crate::format::figure;

/// Greatest number of lines of the page.
pub const SUMMARY_LINES_MAX: usize = 60;

/// Number of lines besides the rows of the table.
const FRAME_LINES: usize = 12;

/// Greatest number of devices.
const DEVICES_MAX: usize = 8;

/// Returns the page.
#[must_use]
pub fn summary(results: &Results) -> String {
    let cells = cells(results);
    let heads: Vec<(ExperimentKey, Vec<&Point>, &'static str)> = experiments(results)
        .into_iter()
        .filter_map(|experiment| {
            let figure = head_figure(results.catalogue().find(experiment.name())?)?;
            let of_experiment = cells.keys().filter(|key| key.experiment == experiment);
            let points: BTreeSet<&Point> = of_experiment
                .filter(|key| key.figure == figure)
                .map(|key| &key.point)
                .collect();
            Some((experiment, points.into_iter().collect(), figure))
        })
        .collect();
    let devices: Vec<&str> = results
        .devices()
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let shown = &devices[..devices.len().min(DEVICES_MAX)];
    let mut lines = head(results);
    lines.push(format!("| experiment | | {} |", shown.join(" | ")));
    lines.push(format!("|---|---|{}", "---:|".repeat(shown.len())));
    let room = SUMMARY_LINES_MAX - FRAME_LINES;
    let counts: Vec<usize> = heads.iter().map(|(_, points, _)| points.len()).collect();
    let mut left = 0;
    for ((experiment, points, figure), room) in heads.iter().zip(shares(&counts, room)) {
        for point in &points[..room] {
            lines.push(row(&cells, (experiment, point, figure), shown));
        }
        left += points.len() - room;
    }
    lines.push(String::new());
    lines.push(
        "Means with their 99 % intervals over runs; no interval for too few runs.".to_owned(),
    );
    if left > 0 || shown.len() < devices.len() {
        let hidden = devices.len() - shown.len();
        lines.push(format!(
            "{left} more rows and {hidden} more devices: see the tables of `comporta lab export --csv`."
        ));
    }
    lines.join("\n") + "\n"
}

fn experiments(results: &Results) -> BTreeSet<ExperimentKey> {
    let trials = results.trials().iter();
    trials.map(|trial| results.key(trial)).collect()
}

/// Returns the first figure with a better direction.
fn head_figure(experiment: &Description) -> Option<&'static str> {
    let figures = declared(experiment).into_iter();
    let mut figures = figures.filter(|figure| figure.better != Better::Neither);
    figures.next().map(|figure| figure.name)
}

fn head(results: &Results) -> Vec<String> {
    let void = results.trials().iter().filter(|trial| !trial.is_valid());
    let void = void.count();
    let mut lines = vec!["# comporta lab".to_owned(), String::new()];
    if let Some(session) = results.sessions().last() {
        let machine = &session.machine;
        lines.push(format!(
            "{}, Linux {}, {} cores; {}; version {}.",
            safe(&machine.processor),
            safe(&machine.kernel),
            machine.cores,
            safe(&session.started),
            safe(&session.lab_version)
        ));
    }
    lines.push(format!(
        "{} trials, of which {void} are void.",
        results.trials().len()
    ));
    lines.push(String::new());
    lines
}

/// Shares out the lines equally, as far as they are needed.
fn shares(needed: &[usize], room: usize) -> Vec<usize> {
    let mut given = vec![0; needed.len()];
    let mut room = room;
    while room > 0 && given != needed {
        for (given, needed) in given.iter_mut().zip(needed) {
            if *given < *needed && room > 0 {
                *given += 1;
                room -= 1;
            }
        }
    }
    given
}

fn row(
    cells: &BTreeMap<CellKey, Cell>,
    (experiment, point, name): (&ExperimentKey, &Point, &str),
    devices: &[&str],
) -> String {
    let mut unit = "";
    let mut key = CellKey {
        experiment: experiment.clone(),
        point: point.clone(),
        figure: name.to_owned(),
        device: String::new(),
    };
    let values: Vec<String> = devices
        .iter()
        .map(|device| {
            key.device = (*device).to_owned();
            let Some(cell) = cells.get(&key) else {
                return "–".to_owned();
            };
            unit = cell.unit;
            match cell.interval() {
                Some(interval) => {
                    let ends = [interval.mean, interval.low, interval.high];
                    let [mean, low, high] = ends.map(figure);
                    format!("{mean} [{low}, {high}]")
                }
                None => figure(cell.mean()),
            }
        })
        .collect();
    let point = safe(&key.point_text());
    let unit = if unit.is_empty() {
        String::new()
    } else {
        format!(", {unit}")
    };
    let experiment = format!("{experiment} {point}");
    format!(
        "| {} | {name}{unit} | {} |",
        experiment.trim(),
        values.join(" | ")
    )
}

/// Escapes a text for a cell.
fn safe(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
