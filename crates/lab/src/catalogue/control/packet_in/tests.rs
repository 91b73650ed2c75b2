//! Tests with the simulated switch.

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

fn found(version: Version, faults: Faults) -> Found {
    let mut rig = Simulated::new(version, faults);
    let values = [("rate", 10_000), ("milliseconds", 100)];
    measure(&point(&PACKET_IN, &values), &mut rig).unwrap()
}

#[test]
fn frames_come_up_as_late_as_they_come() {
    for version in [Version::V10, Version::V13] {
        let faults = Faults {
            up: Duration::from_micros(700),
            ..Faults::default()
        };
        let found = found(version, faults);
        assert_near(&found, "p50_us", 700.0, 0.1);
        assert_near(&found, "loss", 0.0, 0.0);
        assert_near(&found, "sent_s", 10_000.0, 20.0);
        assert_near(&found, "packet_ins_s", 10_000.0, 150.0);
        assert!(found.void.is_empty() && found.notes.is_empty());
    }
}

#[test]
fn those_that_do_not_come_up_are_lost() {
    let faults = Faults {
        up_one_in: 4,
        ..Faults::default()
    };
    assert_near(&found(Version::V13, faults), "loss", 0.75, 0.001);
    let faults = Faults {
        up_one_in: u64::MAX,
        ..Faults::default()
    };
    let none = found(Version::V10, faults);
    assert_near(&none, "loss", 1.0, 0.0);
    assert_eq!(why_not(&none, "p50_us"), "no frame came to the controller");
}

#[test]
fn a_device_without_room_for_the_rule_says_so() {
    let faults = Faults {
        capacity: 0,
        ..Faults::default()
    };
    let told = why_not(&found(Version::V13, faults), "p50_us");
    assert!(told.contains("OFPFMFC_TABLE_FULL"), "{told}");
}
