//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

fn found(version: Version, faults: Faults) -> Found {
    let mut rig = Simulated::new(version, faults);
    let values = [("flows", 20), ("pps", 10_000)];
    measure(&point(&REACTIVE, &values), &mut rig).unwrap()
}

#[test]
fn flows_are_set_up_as_soon_as_their_rule_is_in_force() {
    for version in [Version::V10, Version::V13] {
        let faults = Faults {
            up: Duration::from_micros(300),
            apply: Duration::from_micros(900),
            ..Faults::default()
        };
        let found = found(version, faults);
        assert_near(&found, "up_p50_us", 300.0, 2.0);
        // The rule is in force 1.2 ms after the first frame; the next frame follows 2 ms after it.
        assert_near(&found, "setup_p50_us", 2_010.0, 20.0);
        assert_near(&found, "never", 0.0, 0.0);
        assert_near(&found, "packet_ins", 20.0, 0.0);
        assert_near(&found, "all_ms", 4.0, 0.2);
    }
}

#[test]
fn flows_that_the_device_refuses_are_never_set_up() {
    let faults = Faults {
        // One of them is the table-miss rule.
        capacity: 11,
        ..Faults::default()
    };
    let found = found(Version::V13, faults);
    assert_near(&found, "never", 10.0, 0.0);
    assert_eq!(why_not(&found, "all_ms"), "10 flows were never set up");
}

#[test]
fn without_packet_ins_nothing_is_set_up() {
    let faults = Faults {
        up_one_in: u64::MAX,
        ..Faults::default()
    };
    let found = found(Version::V13, faults);
    assert_eq!(why_not(&found, "setup_p50_us"), "no flow was set up");
    assert_eq!(
        why_not(&found, "up_p50_us"),
        "no frame came to the controller"
    );
}
