//! Accessors and assertions for the results of an experiment.

use record::Profile;

use crate::catalogue::prelude::*;
use crate::trial::TrialResult;
use record::{Settings, Value};

/// Returns the first point of an experiment's quick profile, with these values.
pub(in crate::catalogue) fn point(experiment: &Experiment, values: &[(&str, Value)]) -> Point {
    let settings = Settings {
        profile: Profile::Quick,
        ..Settings::default()
    };
    let points = settings.points(&experiment.description).unwrap();
    let values = values.iter();
    values.fold(points[0].clone(), |point, (name, value)| {
        point.with(name, value.clone())
    })
}

/// Returns the reading of a trial.
pub(in crate::catalogue) fn reading(measured: &TrialResult) -> &Reading {
    &measured.reading
}

/// Returns the value of a figure.
pub(in crate::catalogue) fn figure(measured: &TrialResult, name: &str) -> f64 {
    let reading = reading(measured);
    let value = reading.figures.get(name);
    *value.unwrap_or_else(|| panic!("{name}: {:?}", reading.absent))
}

/// Asserts that a figure differs by at most this share from the configured value.
pub(in crate::catalogue) fn assert_near(
    measured: &TrialResult,
    name: &str,
    wanted: f64,
    share: f64,
) {
    let value = figure(measured, name);
    assert!(
        (value - wanted).abs() <= share * wanted.abs(),
        "{name}: {value} instead of {wanted}"
    );
}

/// Precision of delays, which are kept to three digits.
pub(in crate::catalogue) const DIGITS: f64 = 2e-3;

/// Returns the reason for an absent figure.
pub(in crate::catalogue) fn why_not<'m>(measured: &'m TrialResult, name: &str) -> &'m str {
    let reading = reading(measured);
    let reason = reading.absent.get(name);
    reason.unwrap_or_else(|| panic!("{name}: {:?}", reading.figures))
}

/// Returns the reasons that void the trial.
pub(in crate::catalogue) fn void(measured: &TrialResult) -> Vec<&str> {
    flaws(measured, true)
}

/// Returns the notes of the trial.
pub(in crate::catalogue) fn notes(measured: &TrialResult) -> Vec<&str> {
    flaws(measured, false)
}

fn flaws(measured: &TrialResult, void: bool) -> Vec<&str> {
    let flaws = measured.flaws.iter().filter(|flaw| flaw.void == void);
    flaws.map(|flaw| flaw.reason.as_str()).collect()
}
