//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;
use record::Value;

fn found(polling: &str, faults: Faults) -> Found {
    let mut rig = Simulated::new(Version::V13, faults);
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
fn questions_take_the_time_that_changes_then_lack() {
    let faults = Faults {
        per_message: Duration::from_micros(500),
        ..Faults::default()
    };
    let quiet = found("none", faults.clone());
    assert_near(&quiet, "barrier_ms", 10.5, 0.2);
    assert_eq!(why_not(&quiet, "answers"), "nothing was asked");
    for polling in ["flow", "aggregate"] {
        let busy = found(polling, faults.clone());
        // A request just before the barrier takes as long as a message.
        assert_near(&busy, "barrier_ms", 11.0, 0.2);
        assert!(busy.reading.figures["answers"] >= 20.0);
        assert!(busy.void.is_empty(), "{:?}", busy.void);
    }
}

#[test]
fn what_cannot_be_set_up_has_a_reason() {
    let faults = Faults {
        capacity: 3,
        ..Faults::default()
    };
    let told = why_not(&found("flow", faults), "last_ms");
    assert!(told.contains("OFPFMFC_TABLE_FULL"), "{told}");
}
