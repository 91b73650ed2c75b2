//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;
use record::Value;

fn report(kind: &str, version: Version, faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(version, faults);
    let point = point(&TIMERS, &[("rules", 4), ("pps", 4_000)]);
    measure(&point.with("timeout", Value::word(kind)), &mut rig).unwrap()
}

#[test]
fn timeout_lateness_is_that_of_the_device() {
    for version in [Version::V10, Version::V13] {
        for (kind, slack) in [("hard", 1.2), ("idle", 0.2)] {
            let faults = SwitchFaults {
                timer_late: Duration::from_millis(150),
                ..SwitchFaults::default()
            };
            let report = report(kind, version, faults);
            // One frame per flow and millisecond.
            assert_near(&report, "late_mean_ms", 150.0, slack);
            assert_near(&report, "late_max_ms", 150.0, slack);
            assert_near(&report, "early_max_ms", -150.0, slack);
            assert_near(&report, "untold", 0.0, 0.0);
            assert_near(&report, "duration_error_ms", 0.0, 0.2);
        }
    }
}

#[test]
fn missing_flow_removed_is_counted_and_lifetime_still_measured() {
    let faults = SwitchFaults {
        // Four rules, three messages before them, and the barrier request.
        silent_after: 8,
        ..SwitchFaults::default()
    };
    let report = report("hard", Version::V13, faults);
    assert_near(&report, "untold", 4.0, 0.0);
    assert_near(&report, "late_mean_ms", 0.0, 1.2);
    assert_eq!(
        why_not(&report, "told_mean_ms"),
        "no flow-removed message arrived"
    );
}

#[test]
fn rejected_timed_rule_leaves_the_reason() {
    let faults = SwitchFaults {
        capacity: 2,
        ..SwitchFaults::default()
    };
    let report = report("hard", Version::V13, faults);
    assert!(why_not(&report, "late_mean_ms").contains("OFPFMFC_TABLE_FULL"));
}
