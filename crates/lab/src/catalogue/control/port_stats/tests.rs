//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

fn report(faults: SwitchFaults, rate: u64) -> TrialReport {
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    let values = [("rate", rate), ("milliseconds", 100)];
    measure(&point(&PORT_STATS, &values), &mut rig).unwrap()
}

#[test]
fn response_rate_is_that_of_the_device() {
    let faults = SwitchFaults {
        per_message: Duration::from_micros(100),
        ..SwitchFaults::default()
    };
    let slow = report(faults.clone(), 1_000);
    assert_near(&slow, "answers_s", 1_000.0, 15.0);
    assert_near(&slow, "p50_us", 100.0, 1.0);
    // The device answers at most ten thousand requests per second; the others wait.
    let fast = report(faults, 20_000);
    assert_near(&fast, "answers_s", 10_000.0, 200.0);
    assert!(fast.reading.figures["max_us"] > 50_000.0);
}

#[test]
fn silent_device_leaves_requests_unanswered() {
    let faults = SwitchFaults {
        silent_after: 2,
        ..SwitchFaults::default()
    };
    let report = report(faults, 1_000);
    assert_near(&report, "unanswered", 100.0, 0.0);
    assert_eq!(why_not(&report, "answers_s"), "no request was answered");
}
