//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

fn report(faults: SwitchFaults, version: Version) -> Result<TrialReport, TrialError> {
    let mut rig = SimulatedSwitch::new(version, faults);
    measure(&point(&CONTROL_ECHO, &[("echoes", 50)]), &mut rig)
}

#[test]
fn echo_times_are_those_of_the_device() {
    for version in [Version::V10, Version::V13] {
        let faults = SwitchFaults {
            echo: Duration::from_micros(295),
            ..SwitchFaults::default()
        };
        let report = report(faults, version).unwrap();
        for figure in ["mean_us", "p50_us", "max_us"] {
            assert_near(&report, figure, 300.0, 0.001);
        }
        assert_near(&report, "lost", 0.0, 0.0);
        assert_near(&report, "echoes", 50.0, 0.0);
    }
}

#[test]
fn echoes_without_a_reply_are_lost() {
    let faults = SwitchFaults {
        silent_after: 2 + 30,
        ..SwitchFaults::default()
    };
    let report = report(faults, Version::V13).unwrap();
    assert_near(&report, "lost", 20.0, 0.0);
}

#[test]
fn echo_times_are_absent_with_a_reason_without_replies() {
    let faults = SwitchFaults {
        silent_after: 2,
        ..SwitchFaults::default()
    };
    let report = report(faults, Version::V13).unwrap();
    assert_eq!(why_not(&report, "p50_us"), "no echo reply arrived");
}

#[test]
fn silent_or_closing_device_fails_the_trial() {
    let silent = SwitchFaults {
        silent_after: 0,
        ..SwitchFaults::default()
    };
    let reason = report(silent, Version::V13).unwrap_err().to_string();
    assert_eq!(reason, "the device did not answer a barrier within 10 s");
    let closing = SwitchFaults {
        closes_after: 20,
        ..SwitchFaults::default()
    };
    let reason = report(closing, Version::V13).unwrap_err().to_string();
    assert!(reason.ends_with("the device closed it"), "{reason}");
}

#[test]
fn requests_are_withheld_if_the_device_does_not_read() {
    let faults = SwitchFaults {
        reads: 2 + 10,
        ..SwitchFaults::default()
    };
    let report = report(faults, Version::V13).unwrap();
    assert_near(&report, "echoes", 10.0, 0.0);
    assert_eq!(
        report.notes,
        ["40 requests were not sent: the device did not read"]
    );
}
