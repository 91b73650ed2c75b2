//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;
use record::Value;

const VALUES: &[(&str, u64)] = &[("occupancy", 30), ("batches", 5), ("batch", 10)];

fn found(operation: &str, priorities: &str, faults: Faults) -> Found {
    let mut rig = Simulated::new(Version::V13, faults);
    let point = point(&UPDATE_RATE, VALUES).with("operation", Value::word(operation));
    let point = point.with("priorities", Value::word(priorities));
    measure(&point, &mut rig).unwrap()
}

#[test]
fn changes_are_as_fast_as_the_device_does_them() {
    for priorities in ["same", "ascending", "descending", "random"] {
        for (operation, there) in [("add", 81.0), ("modify", 51.0), ("delete", 1.0)] {
            let faults = Faults {
                per_message: Duration::from_micros(100),
                ..Faults::default()
            };
            let found = found(operation, priorities, faults);
            assert!(
                found.void.is_empty(),
                "{operation} {priorities}: {:?}",
                found.void
            );
            // Ten messages and a barrier take 1.1 ms.
            assert_near(&found, "changes_s", 10.0 / 1.1e-3, 50.0);
            assert_near(&found, "batch_p50_us", 1_100.0, 5.0);
            assert_near(&found, "refused", 0.0, 0.0);
            assert_near(&found, "told", there, 0.0);
        }
    }
}

#[test]
fn a_table_that_is_full_in_between_is_told_of() {
    let faults = Faults {
        capacity: 61,
        ..Faults::default()
    };
    let found = found("add", "same", faults);
    assert_near(&found, "refused", 20.0, 0.0);
    assert_near(&found, "told", 61.0, 0.0);
    assert!(
        found.notes[0].contains("OFPFMFC_TABLE_FULL"),
        "{:?}",
        found.notes
    );
    assert!(found.void.is_empty(), "{:?}", found.void);
}

#[test]
fn a_device_that_forgets_rules_voids() {
    let faults = Faults {
        forgets: 1,
        ..Faults::default()
    };
    let found = found("add", "same", faults);
    assert_eq!(
        found.void,
        ["81 rules should be there, and 80 were told of"]
    );
}

#[test]
fn without_room_for_the_occupancy_there_is_a_reason() {
    let faults = Faults {
        capacity: 7,
        ..Faults::default()
    };
    let told = why_not(&found("add", "same", faults), "changes_s");
    assert!(told.contains("OFPFMFC_TABLE_FULL"), "{told}");
}
