//! Drift within runs, and outliers among runs. They are noted and stay valid.

use maud::{Markup, html};
use record::Results;
use stats::{Drift, OUTLIER_SCORE, drift, modified_z_scores};

use super::catalogue;
use crate::analysis::ByRun;
use crate::format::{count, decimal, decimals, percent};

/// Least number of runs for outliers: of fewer, any two are far from a third.
const RUNS_MIN: usize = 5;
/// Greatest drift that is not noted, as a share of the mean.
const DRIFT_MAX: f64 = 0.05;
/// Greatest number of notes that are listed.
const LISTED_MAX: usize = 8;

/// Returns the notes on all runs; empty if there are none.
pub(super) fn notes(results: &Results) -> Markup {
    let (drifts, checked) = drifts(results);
    let (outliers, compared) = outliers(results);
    html! {
        @if !drifts.is_empty() {
            h3 { "Runs with drift" }
            p.fine {
                "The last third of a run is compared with the first, in " (count(checked as u64)) " runs. In "
                (drifts.len()) " runs the difference is significant (99\u{a0}%, batch means) and greater than "
                (percent(DRIFT_MAX)) "; by chance alone, one run in a hundred would differ significantly. The runs stay valid."
            }
            (list(&drifts))
        }
        @if !outliers.is_empty() {
            h3 { "Outliers" }
            p.fine {
                "Runs with a modified z-score above 3.5, of " (count(compared as u64))
                " runs. They stay valid: a device that is slow in one of ten runs is part of the result."
            }
            (list(&outliers))
        }
    }
}

fn list(notes: &[String]) -> Markup {
    let rest = notes.len().saturating_sub(LISTED_MAX);
    html! {
        ul.flaws {
            @for note in notes.iter().take(LISTED_MAX) { li { (note) } }
            @if rest > 0 { li { "and " (rest) " more" } }
        }
    }
}

/// Returns the runs of samples with drift, and the number of runs that were checked.
fn drifts(results: &Results) -> (Vec<String>, usize) {
    let (mut notes, mut checked) = (Vec::new(), 0);
    for trial in results.trials().iter().filter(|trial| trial.is_valid()) {
        let Some(reading) = &trial.reading else {
            continue;
        };
        for samples in reading.samples.values() {
            let returned = samples.iter().flatten();
            let values: Vec<f64> = returned.map(|&ns| f64::from(ns)).collect();
            let Some(drift) = drift(&values) else {
                continue;
            };
            checked += 1;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let share = drift.contrast.interval.mean / mean;
            if is_noted(&drift, share) {
                let direction = if share > 0.0 { "longer" } else { "shorter" };
                notes.push(format!(
                    "{}: the last third took {} {direction} than the first",
                    trial.id,
                    percent(share.abs())
                ));
            }
        }
    }
    (notes, checked)
}

fn is_noted(drift: &Drift, share: f64) -> bool {
    drift.proven && share.abs() > DRIFT_MAX
}

/// Returns the runs that are far from the others of their cell, and the number of runs that were
/// compared.
fn outliers(results: &Results) -> (Vec<String>, usize) {
    let (mut notes, mut compared) = (Vec::new(), 0);
    let readings = catalogue::all_readings(results);
    for main in catalogue::main_figures(&readings) {
        for (device, place, runs) in main.cells() {
            compared += runs.runs();
            let place = format!("{}: {device}{place}", main.experiment.name);
            notes.extend(outliers_of(&place, main.figure.shown_unit(), &runs));
        }
    }
    (notes, compared)
}

fn outliers_of(place: &str, unit: &str, runs: &ByRun) -> Vec<String> {
    let values = runs.values();
    if values.len() < RUNS_MIN {
        return Vec::new();
    }
    let scores = modified_z_scores(&values);
    let all = runs.numbers().into_iter().zip(values).zip(scores);
    let outliers = all.filter(|(_, score)| score.abs() > OUTLIER_SCORE);
    outliers
        .map(|((run, value), _)| {
            let value = decimal(value, decimals(value));
            format!("{place}, run {run}: {value} {unit}")
                .trim_end()
                .to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Entry, fixture};

    #[test]
    fn run_that_slows_down_is_noted() {
        let mut entries = fixture::entries();
        assert!(drifts(&fixture::results(entries.clone())).0.is_empty());
        let samples = entries.iter_mut().find_map(|entry| match entry {
            Entry::Trial(trial) if trial.is_valid() => {
                let reading = trial.reading.as_mut()?;
                reading.samples.get_mut("round_trip_ns")
            }
            _ => None,
        });
        let slower = (0..900_u32).map(|index| Some(10_000 + index * 10 + index % 7));
        *samples.unwrap() = slower.collect();
        let results = fixture::results(entries);
        let (notes, _) = drifts(&results);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("longer than the first"), "{notes:?}");
        let section = super::notes(&results).into_string();
        assert!(section.contains("Runs with drift"));
    }

    #[test]
    fn outliers_need_five_runs() {
        let runs = |values: &[f64]| ByRun::new((1..).zip(values.iter().copied()));
        let one = outliers_of("here", "µs", &runs(&[1.0, 1.1, 0.9, 1.0, 1.05, 9.0]));
        assert_eq!(one, ["here, run 6: 9.00 µs"]);
        assert!(outliers_of("here", "µs", &runs(&[1.0, 1.1, 9.0])).is_empty());
    }
}
