//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

fn found(faults: Faults, rate: u64) -> Found {
    let mut rig = Simulated::new(Version::V13, faults);
    let values = [("rate", rate), ("milliseconds", 100)];
    measure(&point(&PORT_STATS, &values), &mut rig).unwrap()
}

#[test]
fn as_many_are_answered_as_the_device_can() {
    let faults = Faults {
        per_message: Duration::from_micros(100),
        ..Faults::default()
    };
    let slow = found(faults.clone(), 1_000);
    assert_near(&slow, "answers_s", 1_000.0, 15.0);
    assert_near(&slow, "p50_us", 100.0, 1.0);
    // The device answers at most ten thousand requests per second; the others wait.
    let fast = found(faults, 20_000);
    assert_near(&fast, "answers_s", 10_000.0, 200.0);
    assert!(fast.reading.figures["max_us"] > 50_000.0);
}

#[test]
fn a_silent_device_is_told_of() {
    let faults = Faults {
        silent_after: 2,
        ..Faults::default()
    };
    let found = found(faults, 1_000);
    assert_near(&found, "unanswered", 100.0, 0.0);
    assert_eq!(why_not(&found, "answers_s"), "no question was answered");
}
