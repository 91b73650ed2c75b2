//! Tests with the simulated switch.

use std::time::Duration;

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point};
use super::*;

fn found(faults: Faults) -> Found {
    let mut rig = Simulated::new(Version::V13, faults);
    let point = point(&CONSISTENCY, &[("rules", 10), ("pps", 100_000)]);
    measure(&point, &mut rig).unwrap()
}

#[test]
fn an_update_without_fault_loses_nothing_and_overtakes_nothing() {
    let faults = Faults {
        per_message: Duration::from_millis(1),
        ..Faults::default()
    };
    let found = found(faults);
    for figure in ["lost", "late", "overtaken", "foreign", "duplicates"] {
        assert_near(&found, figure, 0.0, 0.0);
    }
    // Nine milliseconds from the first change to the last, sampled once per 100 µs.
    assert_near(&found, "mixed_ms", 9.0, 0.2);
}

#[test]
fn frames_that_a_rule_drops_while_it_changes_are_lost() {
    let faults = Faults {
        gap: Duration::from_millis(2),
        ..Faults::default()
    };
    // Each of ten rules drops ten frames per millisecond for two milliseconds.
    assert_near(&found(faults), "lost", 200.0, 12.0);
}

#[test]
fn changes_that_overtake_others_are_counted() {
    let faults = Faults {
        reorders: true,
        apply: Duration::from_millis(3),
        lies: true,
        ..Faults::default()
    };
    let found = found(faults);
    let overtaken = found.reading.figures["overtaken"];
    assert!((4.0..=5.0).contains(&overtaken), "{overtaken}");
    assert!(found.reading.figures["late"] > 0.0);
}
