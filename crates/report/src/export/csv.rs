//! Comma-separated values (RFC 4180) in tidy form: a row for each trial and figure, with a column
//! for each parameter of the experiment. A figure without a value has a row with the reason.

use std::collections::{BTreeMap, BTreeSet};

use record::{Better, Results};

use crate::figures::{Observation, observe, parameters};

/// Columns before and after those of the parameters.
const BEFORE: [&str; 6] = ["scenario", "device", "run", "trial", "started", "valid"];
const AFTER: [&str; 5] = ["figure", "value", "unit", "better", "note"];

/// Returns the tables by the names of their experiments.
#[must_use]
pub fn csv(results: &Results) -> BTreeMap<String, String> {
    let trials = results.trials().iter();
    let names: BTreeSet<&str> = trials.map(|one| one.experiment.as_str()).collect();
    let table = |name: &str| (name.to_owned(), table(results, name));
    names.into_iter().map(table).collect()
}

fn table(results: &Results, experiment: &str) -> String {
    let trials = results.trials().iter();
    let observations: Vec<Observation<'_>> = trials
        .filter(|trial| trial.experiment == experiment)
        .map(|trial| observe(trial, results.catalogue()))
        .collect();
    let description = results.catalogue().find(experiment);
    let mut columns: Vec<&str> = description.map(parameters).unwrap_or_default();
    // Older records may have parameters that the experiment no longer has.
    for (name, _) in observations.iter().flat_map(|one| one.point.iter()) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let head: Vec<&str> = [&BEFORE[..], &columns, &AFTER].concat();
    let mut text = line(head.into_iter());
    for one in &observations {
        rows(one, &columns, &mut text);
    }
    text
}

fn rows(observation: &Observation<'_>, columns: &[&str], text: &mut String) {
    let trial = observation.trial;
    let run = trial.run.to_string();
    let valid = if trial.is_valid() { "true" } else { "false" };
    let before = [
        trial.experiment.as_str(),
        &trial.device,
        &run,
        &trial.id,
        &trial.started,
        valid,
    ];
    let value = |name: &&str| {
        observation
            .point
            .get(name)
            .map_or_else(String::new, ToString::to_string)
    };
    let point: Vec<String> = columns.iter().map(value).collect();
    let flaws: Vec<&str> = trial
        .flaws
        .iter()
        .map(|flaw| flaw.reason.as_str())
        .collect();
    let flaws = flaws.join("; ");
    let mut add = |after: [&str; 5]| {
        let cells = before.into_iter().chain(point.iter().map(String::as_str));
        text.push_str(&line(cells.chain(after)));
    };
    for measure in &observation.measures {
        let number = measure.value.to_string();
        add([
            &measure.name,
            &number,
            measure.unit,
            word(measure.better),
            &flaws,
        ]);
    }
    for (name, reason) in &observation.absent {
        add([name, "", "", "", reason]);
    }
    if observation.measures.is_empty() && observation.absent.is_empty() {
        add(["", "", "", "", &flaws]);
    }
}

const fn word(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "",
    }
}

/// Returns a line, with quotes around cells that need them (RFC 4180, 2).
fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells = cells.map(|cell| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    });
    let mut line = cells.collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}
