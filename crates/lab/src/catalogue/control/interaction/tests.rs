//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;
use record::Value;

fn report(polling: &str, faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    let values = [
        ("rules", 20),
        ("others", 10),
        ("pps", 20_000),
        ("period-ms", 1),
    ];
    let point = point(&INTERACTION, &values);
    measure(&point.with("polling", Value::word(polling)), &mut rig).unwrap()
}

#[test]
fn requests_delay_concurrent_changes() {
    let faults = SwitchFaults {
        per_message: Duration::from_micros(500),
        ..SwitchFaults::default()
    };
    let quiet = report("none", faults.clone());
    assert_near(&quiet, "barrier_ms", 10.5, 0.2);
    assert_eq!(why_not(&quiet, "answers"), "no statistics were requested");
    for polling in ["flow", "aggregate"] {
        let busy = report(polling, faults.clone());
        // A request just before the barrier takes as long as a message.
        assert_near(&busy, "barrier_ms", 11.0, 0.2);
        assert!(busy.reading.figures["answers"] >= 20.0);
        assert!(busy.void.is_empty(), "{:?}", busy.void);
    }
}

#[test]
fn figures_are_absent_with_a_reason_if_setup_fails() {
    let faults = SwitchFaults {
        capacity: 3,
        ..SwitchFaults::default()
    };
    let reason = why_not(&report("flow", faults), "last_ms");
    assert!(reason.contains("OFPFMFC_TABLE_FULL"), "{reason}");
}
