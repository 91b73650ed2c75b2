//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

fn report(version: Version, faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(version, faults);
    let values = [("flows", 20), ("pps", 10_000)];
    measure(&point(&REACTIVE, &values), &mut rig).unwrap()
}

#[test]
fn flows_are_set_up_as_soon_as_their_rule_is_in_force() {
    for version in [Version::V10, Version::V13] {
        let faults = SwitchFaults {
            packet_in_delay: Duration::from_micros(300),
            apply: Duration::from_micros(900),
            ..SwitchFaults::default()
        };
        let report = report(version, faults);
        assert_near(&report, "up_p50_us", 300.0, 2.0);
        // The rule is in force 1.2 ms after the first frame; the next frame follows 2 ms after it.
        assert_near(&report, "setup_p50_us", 2_010.0, 20.0);
        assert_near(&report, "never", 0.0, 0.0);
        assert_near(&report, "packet_ins", 20.0, 0.0);
        assert_near(&report, "all_ms", 4.0, 0.2);
    }
}

#[test]
fn flows_that_the_device_refuses_are_never_set_up() {
    let faults = SwitchFaults {
        // One of them is the table-miss rule.
        capacity: 11,
        ..SwitchFaults::default()
    };
    let report = report(Version::V13, faults);
    assert_near(&report, "never", 10.0, 0.0);
    assert_eq!(why_not(&report, "all_ms"), "10 flows were never set up");
}

#[test]
fn flow_setup_needs_packet_ins() {
    let faults = SwitchFaults {
        packet_in_one_in: u64::MAX,
        ..SwitchFaults::default()
    };
    let report = report(Version::V13, faults);
    assert_eq!(why_not(&report, "setup_p50_us"), "no flow was set up");
    assert_eq!(why_not(&report, "up_p50_us"), "no packet-in arrived");
}
