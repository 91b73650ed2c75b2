//! The simulated switch under control, the point of a test, and assertions for the figures of its
//! report.

use record::Value;

use crate::catalogue::control::TrialReport;
use crate::catalogue::prelude::*;
use crate::catalogue::simulated;
pub(super) use crate::catalogue::simulated::{PortReports, SimulatedSwitch, SwitchFaults, TICK};

/// Returns the first point of an experiment's quick profile, with these values.
pub(super) fn point(experiment: &Experiment, values: &[(&str, u64)]) -> Point {
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| (*name, Value::Number(*value)))
        .collect();
    simulated::point(experiment, &values)
}

/// Asserts that a figure differs by at most `slack` from the configured value.
pub(super) fn assert_near(report: &TrialReport, figure: &str, wanted: f64, slack: f64) {
    let value = report.reading.figures.get(figure);
    let value = value.unwrap_or_else(|| panic!("{figure}: {:?}", report.reading.absent));
    assert!(
        (value - wanted).abs() <= slack,
        "{figure}: {value} instead of {wanted}"
    );
}

/// Returns the reason for an absent figure.
pub(super) fn why_not(report: &TrialReport, figure: &str) -> String {
    let reason = report.reading.absent.get(figure);
    reason
        .unwrap_or_else(|| panic!("{figure}: {:?}", report.reading.figures))
        .clone()
}
