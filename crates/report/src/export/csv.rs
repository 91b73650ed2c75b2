//! Comma-separated values (RFC 4180) in tidy form: a row for each trial and figure, the
//! scenario's parameters in columns of their own. What has no value has a row with
//! the reason.

use std::collections::{BTreeMap, BTreeSet};

use record::Better;
use record::Results;

use crate::figures::{Observation, observe, parameters};

/// The columns before and behind those of the parameters.
const BEFORE: [&str; 6] = ["scenario", "device", "run", "trial", "started", "valid"];
const BEHIND: [&str; 5] = ["figure", "value", "unit", "better", "note"];

/// The tables, by the names of their scenarios.
#[must_use]
pub fn csv(results: &Results) -> BTreeMap<String, String> {
    let trials = results.trials().iter();
    let names: BTreeSet<&str> = trials.map(|one| one.experiment.as_str()).collect();
    let table = |name: &str| (name.to_owned(), table(results, name));
    names.into_iter().map(table).collect()
}

fn table(results: &Results, experiment: &str) -> String {
    let trials = results.trials().iter();
    let seen: Vec<Observation<'_>> = trials
        .filter(|trial| trial.experiment == experiment)
        .map(|trial| observe(trial, results.catalogue()))
        .collect();
    let description = results.catalogue().find(experiment);
    let mut columns: Vec<&str> = description.map(parameters).unwrap_or_default();
    // A record of another time may have parameters that the experiment no longer has.
    for (name, _) in seen.iter().flat_map(|one| one.point.iter()) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let head: Vec<&str> = [&BEFORE[..], &columns, &BEHIND].concat();
    let mut text = line(head.into_iter());
    for one in &seen {
        rows(one, &columns, &mut text);
    }
    text
}

fn rows(seen: &Observation<'_>, columns: &[&str], text: &mut String) {
    let trial = seen.trial;
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
        seen.point
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
    let mut add = |behind: [&str; 5]| {
        let cells = before.into_iter().chain(point.iter().map(String::as_str));
        text.push_str(&line(cells.chain(behind)));
    };
    for measure in &seen.measures {
        let number = measure.value.to_string();
        add([
            &measure.name,
            &number,
            measure.unit,
            word(measure.better),
            &flaws,
        ]);
    }
    for (name, reason) in &seen.absent {
        add([name, "", "", "", reason]);
    }
    if seen.measures.is_empty() && seen.absent.is_empty() {
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

/// Cells that need it stand in quotes; a line ends as the RFC has it.
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
