//! Tests with the simulated switch.

use std::time::Duration;

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point};
use super::*;

fn report(faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    let point = point(&CONSISTENCY, &[("rules", 10), ("pps", 100_000)]);
    measure(&point, &mut rig).unwrap()
}

#[test]
fn correct_update_has_no_loss_and_no_reordering() {
    let faults = SwitchFaults {
        per_message: Duration::from_millis(1),
        ..SwitchFaults::default()
    };
    let report = report(faults);
    for figure in ["lost", "late", "overtaken", "foreign", "duplicates"] {
        assert_near(&report, figure, 0.0, 0.0);
    }
    // Nine milliseconds from the first change to the last, sampled once per 100 µs.
    assert_near(&report, "mixed_ms", 9.0, 0.2);
}

#[test]
fn frames_dropped_during_a_change_are_lost() {
    let faults = SwitchFaults {
        gap: Duration::from_millis(2),
        ..SwitchFaults::default()
    };
    // Each of ten rules drops ten frames per millisecond for two milliseconds.
    assert_near(&report(faults), "lost", 200.0, 12.0);
}

#[test]
fn reordered_changes_are_counted() {
    let faults = SwitchFaults {
        reorders: true,
        apply: Duration::from_millis(3),
        replies_early: true,
        ..SwitchFaults::default()
    };
    let report = report(faults);
    let overtaken = report.reading.figures["overtaken"];
    assert!((4.0..=5.0).contains(&overtaken), "{overtaken}");
    assert!(report.reading.figures["late"] > 0.0);
}
