//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

fn report(faults: SwitchFaults) -> Result<TrialReport, TrialError> {
    let mut rig = SimulatedSwitch::new(Version::V10, faults);
    let point = point(
        &BARRIER_TRUTH,
        &[("changes", 10), ("batch", 2), ("pps", 100_000)],
    );
    measure(&point, &mut rig)
}

#[test]
fn correct_barrier_replies_are_not_counted_as_wrong() {
    let faults = SwitchFaults {
        apply: Duration::from_millis(1),
        ..SwitchFaults::default()
    };
    let report = report(faults).unwrap();
    assert_near(&report, "convicted", 0.0, 0.0);
    assert_near(&report, "late", 0.0, 0.0);
    // Two messages take 5 µs each, and the last is in force a millisecond later.
    assert_near(&report, "barrier_p50_us", 1_010.0, 15.0);
    assert_near(&report, "effect_p50_us", 1_030.0, 25.0);
    assert_near(&report, "lag_max_us", 20.0, 25.0);
}

#[test]
fn early_barrier_replies_are_counted_with_their_lag() {
    let faults = SwitchFaults {
        apply: Duration::from_millis(1),
        replies_early: true,
        ..SwitchFaults::default()
    };
    let report = report(faults).unwrap();
    assert_near(&report, "convicted", 10.0, 0.0);
    // A hundred frames in each of ten milliseconds.
    assert_near(&report, "late", 1_000.0, 50.0);
    assert_near(&report, "barrier_p50_us", 15.0, 10.0);
    assert_near(&report, "lag_max_us", 1_020.0, 30.0);
}

#[test]
fn change_without_effect_fails_and_refusal_leaves_a_reason() {
    let never = SwitchFaults {
        apply: Duration::from_secs(60),
        replies_early: true,
        ..SwitchFaults::default()
    };
    let reason = report(never).unwrap_err().to_string();
    assert!(
        reason.starts_with("a change had no effect within two seconds"),
        "{reason}"
    );
    let full = SwitchFaults {
        capacity: 1,
        ..SwitchFaults::default()
    };
    let reason = why_not(&report(full).unwrap(), "convicted");
    assert!(
        reason.contains("OFPFMFC_ALL_TABLES_FULL") || reason.contains("TABLE_FULL"),
        "{reason}"
    );
}
