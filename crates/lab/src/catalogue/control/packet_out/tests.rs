//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

fn report(faults: SwitchFaults) -> TrialReport {
    let mut rig = SimulatedSwitch::new(Version::V10, faults);
    let values = [("rate", 10_000), ("milliseconds", 100)];
    measure(&point(&PACKET_OUT, &values), &mut rig).unwrap()
}

#[test]
fn packet_out_delays_are_those_of_the_device() {
    let faults = SwitchFaults {
        forward: Duration::from_micros(195),
        ..SwitchFaults::default()
    };
    let report = report(faults);
    assert_near(&report, "p50_us", 200.0, 4.0);
    assert_near(&report, "loss", 0.0, 0.0);
    assert_near(&report, "frames_s", 10_000.0, 120.0);
}

#[test]
fn packet_outs_without_frame_are_lost() {
    let faults = SwitchFaults {
        packet_out_one_in: 5,
        ..SwitchFaults::default()
    };
    assert_near(&report(faults), "loss", 0.8, 0.001);
    let faults = SwitchFaults {
        packet_out_one_in: u64::MAX,
        ..SwitchFaults::default()
    };
    assert_eq!(why_not(&report(faults), "p50_us"), "no frame arrived");
}

#[test]
fn packet_outs_are_withheld_if_the_device_does_not_read() {
    let faults = SwitchFaults {
        reads: 3 + 100,
        ..SwitchFaults::default()
    };
    let report = report(faults);
    assert_near(&report, "withheld", 899.0, 2.0);
    assert_near(&report, "loss", 0.0, 0.0);
}
