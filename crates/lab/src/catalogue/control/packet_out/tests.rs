//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

fn found(faults: Faults) -> Found {
    let mut rig = Simulated::new(Version::V10, faults);
    let values = [("rate", 10_000), ("milliseconds", 100)];
    measure(&point(&PACKET_OUT, &values), &mut rig).unwrap()
}

#[test]
fn frames_come_out_as_late_as_they_come() {
    let faults = Faults {
        forward: Duration::from_micros(195),
        ..Faults::default()
    };
    let found = found(faults);
    assert_near(&found, "p50_us", 200.0, 4.0);
    assert_near(&found, "loss", 0.0, 0.0);
    assert_near(&found, "frames_s", 10_000.0, 120.0);
}

#[test]
fn those_that_do_not_come_out_are_lost() {
    let faults = Faults {
        out_one_in: 5,
        ..Faults::default()
    };
    assert_near(&found(faults), "loss", 0.8, 0.001);
    let faults = Faults {
        out_one_in: u64::MAX,
        ..Faults::default()
    };
    assert_eq!(why_not(&found(faults), "p50_us"), "no frame came out");
}

#[test]
fn where_the_device_does_not_read_packet_outs_are_withheld() {
    let faults = Faults {
        reads: 3 + 100,
        ..Faults::default()
    };
    let found = found(faults);
    assert_near(&found, "withheld", 899.0, 2.0);
    assert_near(&found, "loss", 0.0, 0.0);
}
