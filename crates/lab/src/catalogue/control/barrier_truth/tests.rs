//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

fn found(faults: Faults) -> Result<Found, TrialError> {
    let mut rig = Simulated::new(Version::V10, faults);
    let point = point(
        &BARRIER_TRUTH,
        &[("changes", 10), ("batch", 2), ("pps", 100_000)],
    );
    measure(&point, &mut rig)
}

#[test]
fn an_honest_barrier_is_not_convicted() {
    let faults = Faults {
        apply: Duration::from_millis(1),
        ..Faults::default()
    };
    let found = found(faults).unwrap();
    assert_near(&found, "convicted", 0.0, 0.0);
    assert_near(&found, "late", 0.0, 0.0);
    // Two messages take 5 µs each, and the last is in force a millisecond later.
    assert_near(&found, "barrier_p50_us", 1_010.0, 15.0);
    assert_near(&found, "effect_p50_us", 1_030.0, 25.0);
    assert_near(&found, "lag_max_us", 20.0, 25.0);
}

#[test]
fn each_barrier_that_lies_is_convicted_and_by_how_much() {
    let faults = Faults {
        apply: Duration::from_millis(1),
        lies: true,
        ..Faults::default()
    };
    let found = found(faults).unwrap();
    assert_near(&found, "convicted", 10.0, 0.0);
    // A hundred frames in each of ten milliseconds.
    assert_near(&found, "late", 1_000.0, 50.0);
    assert_near(&found, "barrier_p50_us", 15.0, 10.0);
    assert_near(&found, "lag_max_us", 1_020.0, 30.0);
}

#[test]
fn a_change_that_never_comes_ends_the_test_and_a_refusal_is_no_failure() {
    let never = Faults {
        apply: Duration::from_secs(60),
        lies: true,
        ..Faults::default()
    };
    let told = found(never).unwrap_err().to_string();
    assert!(
        told.starts_with("no frame met a change within two seconds"),
        "{told}"
    );
    let full = Faults {
        capacity: 1,
        ..Faults::default()
    };
    let told = why_not(&found(full).unwrap(), "convicted");
    assert!(
        told.contains("OFPFMFC_ALL_TABLES_FULL") || told.contains("TABLE_FULL"),
        "{told}"
    );
}
