//! A simulated link with a known downtime.

use super::*;
use crate::catalogue::simulated::{
    Faults, SimulatedPlane, assert_near, figure, notes, point, void, why_not,
};
use record::Value;

fn measured(down: u64, faults: Faults) -> TrialResult {
    let values = [("down-millis", down), ("pps", 5_000)];
    let values = values.map(|(name, number)| (name, Value::Number(number)));
    measure(
        &point(&LINK_FLAP, &values),
        &mut SimulatedPlane::new(faults),
    )
    .unwrap()
}

#[test]
fn link_flap_reports_outage_and_recovery() {
    for (down, recovers) in [(100, 0), (50, 30), (200, 500)] {
        let faults = Faults {
            recovers: Duration::from_millis(recovers),
            ..Faults::slow(20_000, 0)
        };
        let measured = measured(down, faults);
        let outage = (down + recovers) as f64;
        // To within one frame at either end.
        let near = |name: &str, wanted: f64| {
            let value = figure(&measured, name);
            assert!(
                (value - wanted).abs() <= 0.41,
                "{name}: {value} of {wanted}"
            );
        };
        near("outage_ms", outage);
        near("recovery_ms", recovers as f64);
        assert_near(&measured, "lost", outage * 5.0, 2.1 / (outage * 5.0));
        assert_eq!(void(&measured).len() + notes(&measured).len(), 0);
    }
}

#[test]
fn slow_tester_has_no_outage() {
    let mut faults = Faults::default();
    faults.forth.sender_gap_ns = 300_000;
    let measured = measured(100, faults);
    let reason = "the tester is too slow: it sent frames up to ";
    assert!(why_not(&measured, "outage_ms").starts_with(reason));
}

#[test]
fn late_tester_limits_the_resolution_of_the_outage() {
    let mut faults = Faults::default();
    // The tester sends four frames where five are due, so at the end it is late by a fifth of the
    // time.
    faults.forth.sender_gap_ns = 250_000;
    let measured = measured(2_000, faults);
    let outage = figure(&measured, "outage_ms");
    let reason = notes(&measured)[0];
    assert!(
        reason.starts_with("the tester sent frames up to 7"),
        "{reason}"
    );
    assert!((outage - 2_000.0).abs() < 700.0, "{outage}");
}

#[test]
fn losses_of_the_tester_are_not_an_outage() {
    let mut faults = Faults::default();
    faults.forth.drop_every = Some(100);
    let measured = measured(100, faults);
    assert!(void(&measured)[0].starts_with("the tester lost "));
}

#[test]
fn outage_of_a_bare_link_is_its_downtime() {
    let mut faults = Faults::slow(20_000, 0);
    faults.forth.without_carrier = true;
    let measured = measured(100, faults.clone());
    assert_near(&measured, "outage_ms", 100.0, 0.005);
    assert!(void(&measured).is_empty(), "{:?}", measured.flaws);
    // Other losses of the tester remain.
    faults.forth.drop_every = Some(1_000);
    let lossy = self::measured(100, faults);
    assert!(void(&lossy)[0].starts_with("the tester lost "));
}
