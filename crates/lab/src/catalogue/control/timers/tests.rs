//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;
use record::Value;

fn found(kind: &str, version: Version, faults: Faults) -> Found {
    let mut rig = Simulated::new(version, faults);
    let point = point(&TIMERS, &[("rules", 4), ("pps", 4_000)]);
    measure(&point.with("timeout", Value::word(kind)), &mut rig).unwrap()
}

#[test]
fn timeouts_are_as_late_as_they_are() {
    for version in [Version::V10, Version::V13] {
        for (kind, slack) in [("hard", 1.2), ("idle", 0.2)] {
            let faults = Faults {
                timer_late: Duration::from_millis(150),
                ..Faults::default()
            };
            let found = found(kind, version, faults);
            // One frame per flow and millisecond.
            assert_near(&found, "late_mean_ms", 150.0, slack);
            assert_near(&found, "late_max_ms", 150.0, slack);
            assert_near(&found, "early_max_ms", -150.0, slack);
            assert_near(&found, "untold", 0.0, 0.0);
            assert_near(&found, "duration_error_ms", 0.0, 0.2);
        }
    }
}

#[test]
fn ends_that_are_not_told_are_counted_and_the_life_is_still_seen() {
    let faults = Faults {
        // Four rules, three messages before them, and the barrier request.
        silent_after: 8,
        ..Faults::default()
    };
    let found = found("hard", Version::V13, faults);
    assert_near(&found, "untold", 4.0, 0.0);
    assert_near(&found, "late_mean_ms", 0.0, 1.2);
    assert_eq!(
        why_not(&found, "told_mean_ms"),
        "the device told of no rule's end"
    );
}

#[test]
fn a_refused_rule_leaves_the_reason() {
    let faults = Faults {
        capacity: 2,
        ..Faults::default()
    };
    let found = found("hard", Version::V13, faults);
    assert!(why_not(&found, "late_mean_ms").contains("OFPFMFC_TABLE_FULL"));
}
