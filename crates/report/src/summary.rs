//! One-line summary of a trial, for the terminal.

use record::{Catalogue, Reading, Trial};

use crate::format::figure;

/// Greatest number of figures in a line.
const FIGURES_MAX: usize = 4;

/// Returns the first figures of `trial`, and its flaws in lines of their own.
#[must_use]
pub fn line(trial: &Trial, catalogue: Catalogue) -> String {
    let figures = match &trial.reading {
        None => "no result".to_owned(),
        Some(reading) => figures(reading, trial, catalogue),
    };
    let flaws = trial.flaws.iter().map(|flaw| {
        let mark = if flaw.void { "void" } else { "note" };
        format!("\n    {mark}: {}", flaw.reason)
    });
    format!("{}: {figures}{}", trial.id, flaws.collect::<String>())
}

/// Returns the figures that the experiment declares first, and the number of those without a
/// value.
fn figures(reading: &Reading, trial: &Trial, catalogue: Catalogue) -> String {
    let Some(experiment) = catalogue.find(trial.experiment.as_str()) else {
        return "figures of an unknown experiment".to_owned();
    };
    let figures = experiment.figures.iter();
    let values = figures.filter_map(|one| {
        let value = one.shown(*reading.figures.get(one.name)?);
        let text = format!("{} {} {}", one.title, figure(value), one.shown_unit());
        Some(text.trim_end().to_owned())
    });
    let mut parts: Vec<String> = values.take(FIGURES_MAX).collect();
    if let Some(reason) = reading.absent.values().next() {
        parts.push(format!(
            "{} without a value: {reason}",
            reading.absent.len()
        ));
    }
    parts.join(", ")
}
