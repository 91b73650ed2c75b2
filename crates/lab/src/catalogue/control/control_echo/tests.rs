//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

fn found(faults: Faults, version: Version) -> Result<Found, TrialError> {
    let mut rig = Simulated::new(version, faults);
    measure(&point(&CONTROL_ECHO, &[("echoes", 50)]), &mut rig)
}

#[test]
fn echoes_take_what_the_device_takes() {
    for version in [Version::V10, Version::V13] {
        let faults = Faults {
            echo: Duration::from_micros(295),
            ..Faults::default()
        };
        let found = found(faults, version).unwrap();
        for figure in ["mean_us", "p50_us", "max_us"] {
            assert_near(&found, figure, 300.0, 0.001);
        }
        assert_near(&found, "lost", 0.0, 0.0);
        assert_near(&found, "echoes", 50.0, 0.0);
    }
}

#[test]
fn echoes_that_are_not_answered_are_lost() {
    let faults = Faults {
        silent_after: 2 + 30,
        ..Faults::default()
    };
    let found = found(faults, Version::V13).unwrap();
    assert_near(&found, "lost", 20.0, 0.0);
}

#[test]
fn without_any_answer_there_is_a_reason_in_place_of_a_time() {
    let faults = Faults {
        silent_after: 2,
        ..Faults::default()
    };
    let found = found(faults, Version::V13).unwrap();
    assert_eq!(why_not(&found, "p50_us"), "no echo was answered");
}

#[test]
fn a_device_that_says_nothing_at_all_or_hangs_up_is_told_of() {
    let silent = Faults {
        silent_after: 0,
        ..Faults::default()
    };
    let told = found(silent, Version::V13).unwrap_err().to_string();
    assert_eq!(told, "the device did not answer a barrier within 10 s");
    let gone = Faults {
        closes_after: 20,
        ..Faults::default()
    };
    let told = found(gone, Version::V13).unwrap_err().to_string();
    assert!(told.ends_with("the device closed it"), "{told}");
}

#[test]
fn a_device_that_does_not_read_is_asked_no_more() {
    let faults = Faults {
        reads: 2 + 10,
        ..Faults::default()
    };
    let found = found(faults, Version::V13).unwrap();
    assert_near(&found, "echoes", 10.0, 0.0);
    assert_eq!(
        found.notes,
        ["40 requests were not sent: the device did not read"]
    );
}
