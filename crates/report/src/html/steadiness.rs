//! Runs that were not like themselves, and runs that were not like the others: noted, and left in.

use maud::{Markup, html};
use record::Results;
use stats::{Drift, OUTLIER_SCORE, drift, modified_z_scores};

use super::catalogue;
use super::echo::{in_order, places};
use crate::analysis::{ByRun, by_run, echo_runs};
use crate::format::{count, decimal, percent};

/// Of fewer runs none stands out: any two are far from a third.
const RUNS_MIN: usize = 5;
/// What nobody cares for, as a share of the mean.
const DRIFT_NOTED: f64 = 0.05;
/// Notes of a kind that are told; the rest are counted.
const TOLD: usize = 8;

/// What is to be noted of all runs; nothing as a rule.
pub(super) fn notes(results: &Results) -> Markup {
    let (drifts, checked) = drifts(results);
    let (outliers, compared) = outliers(results);
    html! {
        @if !drifts.is_empty() {
            h3 { "Runs that drifted" }
            p.fine {
                "Of " (count(checked as u64)) " runs of echoes whose last third was held against their first, "
                (drifts.len()) " differ by more than chance (99\u{a0}%, batch means) and by more than "
                (percent(DRIFT_NOTED)) "; one in a hundred would by chance alone. They count."
            }
            (list(&drifts))
        }
        @if !outliers.is_empty() {
            h3 { "Runs that stand out" }
            p.fine {
                "By the modified z-score (beyond 3.5 median distances), of " (count(compared as u64))
                " runs. They count: a device that is slow once in ten runs is slow once in ten runs."
            }
            (list(&outliers))
        }
    }
}

fn list(notes: &[String]) -> Markup {
    let rest = notes.len().saturating_sub(TOLD);
    html! {
        ul.flaws {
            @for note in notes.iter().take(TOLD) { li { (note) } }
            @if rest > 0 { li { "and " (rest) " more" } }
        }
    }
}

/// Runs of echoes that were not the same at their end, and how many were looked at.
fn drifts(results: &Results) -> (Vec<String>, usize) {
    let (mut notes, mut checked) = (Vec::new(), 0);
    for (device, set, size) in places(results) {
        for run in echo_runs(results, device, set, size) {
            let values = in_order(&run);
            let Some(drift) = drift(&values) else {
                continue;
            };
            checked += 1;
            let share = drift.contrast.interval.mean / run.delays.mean();
            if is_noted(&drift, share) {
                let way = if share > 0.0 { "longer" } else { "shorter" };
                notes.push(format!(
                    "{device}, {set} match, {size}-byte frames, run {}: the last third took {} {way} than the first",
                    run.run,
                    percent(share.abs())
                ));
            }
        }
    }
    (notes, checked)
}

fn is_noted(drift: &Drift, share: f64) -> bool {
    drift.proven && share.abs() > DRIFT_NOTED
}

/// Runs that lie far from the others of their cell, and how many were compared.
fn outliers(results: &Results) -> (Vec<String>, usize) {
    let (mut notes, mut compared) = (Vec::new(), 0);
    for (device, set, size) in places(results) {
        let runs = echo_runs(results, device, set, size);
        let medians = by_run(&runs, |run| f64::from(run.delays.quantile(500)) / 1e3);
        compared += medians.runs();
        let place = format!("{device}, {set} match, {size}-byte frames");
        notes.extend(standing_out(&place, "µs", &medians));
    }
    for main in catalogue::mains(results) {
        for (device, place, runs) in main.cells() {
            compared += runs.runs();
            let place = format!("{}: {device}{place}", main.experiment.name);
            notes.extend(standing_out(&place, main.figure.unit, &runs));
        }
    }
    (notes, compared)
}

fn standing_out(place: &str, unit: &str, runs: &ByRun) -> Vec<String> {
    let values = runs.values();
    if values.len() < RUNS_MIN {
        return Vec::new();
    }
    let scores = modified_z_scores(&values);
    let all = runs.numbers().into_iter().zip(values).zip(scores);
    let far = all.filter(|(_, score)| score.abs() > OUTLIER_SCORE);
    far.map(|((run, value), _)| {
        let digits = crate::format::decimals(value);
        format!("{place}, run {run}: {} {unit}", decimal(value, digits))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture;
    use record::{Entry, Outcome};

    #[test]
    fn a_run_that_gets_slower_is_noted() {
        let mut entries = fixture::entries();
        assert!(drifts(&fixture::results(entries.clone())).0.is_empty());
        let echo = entries.iter_mut().find_map(|entry| match entry {
            Entry::Trial(trial) if trial.is_valid() => match &mut trial.outcome {
                Some(Outcome::Echo(echo)) => Some(echo),
                _ => None,
            },
            _ => None,
        });
        let slower = (0..900_u32).map(|index| Some(10_000 + index * 10 + index % 7));
        echo.unwrap().round_trip_ns = slower.collect();
        let results = fixture::results(entries);
        let (notes, _) = drifts(&results);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("longer than the first"), "{notes:?}");
        assert!(
            super::notes(&results)
                .into_string()
                .contains("Runs that drifted")
        );
    }

    #[test]
    fn a_run_far_from_the_others_stands_out_and_few_runs_never_do() {
        let runs = |values: &[f64]| ByRun::new((1..).zip(values.iter().copied()));
        let one = standing_out("here", "µs", &runs(&[1.0, 1.1, 0.9, 1.0, 1.05, 9.0]));
        assert_eq!(one, ["here, run 6: 9.00 µs"]);
        assert!(standing_out("here", "µs", &runs(&[1.0, 1.1, 9.0])).is_empty());
    }
}
