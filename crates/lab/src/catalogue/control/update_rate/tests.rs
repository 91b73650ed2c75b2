//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;
use record::Value;

const VALUES: &[(&str, u64)] = &[("occupancy", 30), ("batches", 5), ("batch", 10)];

fn report(operation: &str, priorities: &str, faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    let point = point(&UPDATE_RATE, VALUES).with("operation", Value::word(operation));
    let point = point.with("priorities", Value::word(priorities));
    measure(&point, &mut rig).unwrap()
}

#[test]
fn change_rate_is_that_of_the_device() {
    for priorities in ["same", "ascending", "descending", "random"] {
        for (operation, listed) in [("add", 81.0), ("modify", 51.0), ("delete", 1.0)] {
            let faults = SwitchFaults {
                per_message: Duration::from_micros(100),
                ..SwitchFaults::default()
            };
            let report = report(operation, priorities, faults);
            assert!(
                report.void.is_empty(),
                "{operation} {priorities}: {:?}",
                report.void
            );
            // Ten messages and a barrier take 1.1 ms.
            assert_near(&report, "changes_s", 10.0 / 1.1e-3, 50.0);
            assert_near(&report, "batch_p50_us", 1_100.0, 5.0);
            assert_near(&report, "refused", 0.0, 0.0);
            assert_near(&report, "told", listed, 0.0);
        }
    }
}

#[test]
fn full_table_counts_rejected_changes() {
    let faults = SwitchFaults {
        capacity: 61,
        ..SwitchFaults::default()
    };
    let report = report("add", "same", faults);
    assert_near(&report, "refused", 20.0, 0.0);
    assert_near(&report, "told", 61.0, 0.0);
    assert!(
        report.notes[0].contains("OFPFMFC_TABLE_FULL"),
        "{:?}",
        report.notes
    );
    assert!(report.void.is_empty(), "{:?}", report.void);
}

#[test]
fn wrong_rule_count_voids_the_trial() {
    let faults = SwitchFaults {
        unlisted: 1,
        ..SwitchFaults::default()
    };
    let report = report("add", "same", faults);
    assert_eq!(report.void, ["the device reports 80 rules instead of 81"]);
}

#[test]
fn occupancy_beyond_capacity_leaves_a_reason() {
    let faults = SwitchFaults {
        capacity: 7,
        ..SwitchFaults::default()
    };
    let reason = why_not(&report("add", "same", faults), "changes_s");
    assert!(reason.contains("OFPFMFC_TABLE_FULL"), "{reason}");
}
