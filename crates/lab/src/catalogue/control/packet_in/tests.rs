//! Tests with the simulated switch.

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

fn report(version: Version, faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(version, faults);
    let values = [("rate", 10_000), ("milliseconds", 100)];
    measure(&point(&PACKET_IN, &values), &mut rig).unwrap()
}

#[test]
fn packet_in_delays_are_those_of_the_device() {
    for version in [Version::V10, Version::V13] {
        let faults = SwitchFaults {
            packet_in_delay: Duration::from_micros(700),
            ..SwitchFaults::default()
        };
        let report = report(version, faults);
        assert_near(&report, "p50_us", 700.0, 0.1);
        assert_near(&report, "loss", 0.0, 0.0);
        assert_near(&report, "sent_s", 10_000.0, 20.0);
        assert_near(&report, "packet_ins_s", 10_000.0, 150.0);
        assert!(report.void.is_empty() && report.notes.is_empty());
    }
}

#[test]
fn frames_without_packet_in_are_lost() {
    let faults = SwitchFaults {
        packet_in_one_in: 4,
        ..SwitchFaults::default()
    };
    assert_near(&report(Version::V13, faults), "loss", 0.75, 0.001);
    let faults = SwitchFaults {
        packet_in_one_in: u64::MAX,
        ..SwitchFaults::default()
    };
    let none = report(Version::V10, faults);
    assert_near(&none, "loss", 1.0, 0.0);
    assert_eq!(why_not(&none, "p50_us"), "no packet-in arrived");
}

#[test]
fn full_table_leaves_a_reason_instead_of_delays() {
    let faults = SwitchFaults {
        capacity: 0,
        ..SwitchFaults::default()
    };
    let reason = why_not(&report(Version::V13, faults), "p50_us");
    assert!(reason.contains("OFPFMFC_TABLE_FULL"), "{reason}");
}
