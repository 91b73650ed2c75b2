//! Tests with the simulated switch.

use std::time::Duration;

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

type Step = fn(&Point, &mut dyn Rig) -> Result<Found, TrialError>;

fn found(step: Step, faults: Faults, values: &[(&str, u64)]) -> Result<Found, TrialError> {
    let mut rig = Simulated::new(Version::V13, faults);
    step(&point(&ADD_FLOW, values), &mut rig)
}

const RULES: &[(&str, u64)] = &[("rules", 50), ("pps", 50_000)];

/// Interval between two frames of one of fifty flows.
const ROUND_MS: f64 = 1.0;

#[test]
fn an_honest_device_is_found_honest_and_as_slow_as_it_is() {
    for step in [add as Step, modify] {
        let faults = Faults {
            per_message: Duration::from_micros(100),
            apply: Duration::from_millis(3),
            ..Faults::default()
        };
        let found = found(step, faults, RULES).unwrap();
        assert!(found.void.is_empty(), "{:?}", found.void);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        // Fifty messages take 100 µs each, and the last is in force 3 ms later; the barrier reply
        // waits.
        assert_near(&found, "barrier_ms", 8.0, 0.02 + 0.1);
        assert_near(
            &found,
            "last_ms",
            8.0 + ROUND_MS / 2.0,
            ROUND_MS / 2.0 + 0.1,
        );
        assert_near(
            &found,
            "first_ms",
            3.1 + ROUND_MS / 2.0,
            ROUND_MS / 2.0 + 0.1,
        );
        assert_near(&found, "late", 0.0, 0.0);
        assert_near(&found, "never", 0.0, 0.0);
        assert_near(&found, "resolution_us", 1_000.0, 0.0);
        assert_near(&found, "lag_ms", ROUND_MS / 2.0, ROUND_MS / 2.0 + 0.1);
    }
}

#[test]
fn a_barrier_that_lies_by_five_milliseconds_is_convicted_of_five() {
    for step in [add as Step, modify] {
        let faults = Faults {
            apply: Duration::from_millis(5),
            lies: true,
            ..Faults::default()
        };
        let found = found(step, faults, RULES).unwrap();
        assert!(found.void.is_empty(), "{:?}", found.void);
        // Each message takes 5 µs and is in force 5 ms later.
        assert_near(&found, "barrier_ms", 0.26, 0.05);
        assert_near(&found, "lag_ms", 5.0 + ROUND_MS / 2.0, ROUND_MS / 2.0 + 0.1);
        // Fifty frames per millisecond match no rule or the old one.
        assert_near(&found, "late", 250.0, 20.0);
    }
}

#[test]
fn a_full_table_is_told_in_the_protocols_words() {
    let faults = Faults {
        capacity: 31,
        ..Faults::default()
    };
    let added = found(add, faults.clone(), RULES).unwrap();
    let reason = "refused 20 messages, the first (message 31): OFPFMFC_TABLE_FULL (type 5, code 1)";
    assert_eq!(why_not(&added, "last_ms"), reason);
    assert_near(&added, "never", 20.0, 0.0);
    assert_near(&added, "late", 0.0, 0.0);
    assert_eq!(added.notes, [reason]);
    let modified = found(modify, faults, RULES).unwrap();
    let told = why_not(&modified, "barrier_ms");
    assert!(told.contains("OFPFMFC_TABLE_FULL"), "{told}");
}

#[test]
fn a_device_that_hangs_up_or_falls_silent_in_mid_trial_is_told_of() {
    let gone = Faults {
        closes_after: 30,
        ..Faults::default()
    };
    let told = found(add, gone, RULES).unwrap_err().to_string();
    assert!(told.ends_with("the device closed it"), "{told}");
    let silent = Faults {
        silent_after: 30,
        ..Faults::default()
    };
    let told = found(add, silent, RULES).unwrap_err().to_string();
    assert_eq!(told, "the device did not answer a barrier within 10 s");
}

#[test]
fn exact_rules_of_both_versions_are_met_too() {
    for version in [Version::V10, Version::V13] {
        let exact = point(&ADD_FLOW, RULES).with("table", record::Value::word("exact"));
        let mut rig = Simulated::new(version, Faults::default());
        let found = add(&exact, &mut rig).unwrap();
        assert_near(&found, "never", 0.0, 0.0);
        assert!(found.void.is_empty());
    }
}

/// Adds rules after a deletion that takes effect this long after its barrier reply.
fn after_deletion(apply: Duration) -> Found {
    let faults = Faults {
        apply,
        lies: true,
        ..Faults::default()
    };
    let mut rig = Simulated::new(Version::V13, faults);
    let flows = Flows::of(Version::V13);
    let before = (0..50).map(|flow| flows.message(FlowModCommand::Add, flow, None));
    settle(&mut rig, before.collect()).unwrap();
    let until = rig.now() + apply;
    while rig.now() < until {
        rig.hear().unwrap();
    }
    add(&point(&ADD_FLOW, RULES), &mut rig).unwrap()
}

#[test]
fn nothing_is_changed_before_the_last_change_is_in_force() {
    let found = after_deletion(Duration::from_millis(300));
    assert!(found.void.is_empty(), "{:?}", found.void);
    assert_near(&found, "lag_ms", 300.5, 0.6);
}

#[test]
fn a_device_that_forwards_by_deleted_rules_voids() {
    let found = after_deletion(Duration::from_secs(4));
    let why = &found.void[0];
    assert!(
        why.contains("frames still came out by rules of before it"),
        "{why}"
    );
}
