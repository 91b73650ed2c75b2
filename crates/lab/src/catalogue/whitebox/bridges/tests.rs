//! Several simulated bridges, each of a known capacity.

use trafficgen::memory::Service;

use super::*;
use crate::catalogue::simulated::{
    DIGITS, Faults, SimulatedPlane, assert_near, figure, notes, point, void, why_not,
};
use record::Value;

/// Returns the results of bridges that forward 10,000 frames per second in each direction; the line
/// carries 11,748.
fn measured(bridges: u64, change: impl FnOnce(&mut Faults)) -> TrialResult {
    let mut faults = Faults::slow(11_000, 11_000);
    let service = Service {
        frame_ns: 100_000,
        queue: 4,
    };
    faults.forth.service = Some(service);
    faults.back.service = Some(service);
    change(&mut faults);
    let values = [("bridges", bridges), ("line", 50)];
    let values = values.map(|(name, number)| (name, Value::Number(number)));
    measure(&point(&BRIDGES, &values), &mut SimulatedPlane::new(faults)).unwrap()
}

#[test]
fn bridges_have_a_common_throughput_and_a_price() {
    for bridges in [1, 2] {
        let measured = measured(bridges, |faults| faults.price = Some(300.0));
        let kpps = 2.0 * bridges as f64 * 10.0;
        // The goal permits a loss of half a per cent, and the search has a width of two.
        assert_near(&measured, "throughput_kpps", kpps, 0.025);
        let kpps = figure(&measured, "throughput_kpps");
        let mbit = kpps * 532.0 * 8.0 / 1e3;
        assert_near(&measured, "throughput_mbit", mbit, 1e-9);
        assert_near(&measured, "price_per_gbit", 300.0 / mbit * 1e3, 1e-9);
        assert_near(&measured, "price_per_mpps", 300.0 / kpps * 1e3, 1e-9);
        assert_near(&measured, "p50_us", 111.0, DIGITS);
        assert_near(&measured, "p99_us", 111.0, DIGITS);
        assert_eq!(void(&measured).len() + notes(&measured).len(), 0);
    }
}

#[test]
fn misdelivered_frames_of_another_bridge_are_noted() {
    let measured = measured(2, |faults| faults.floods = true);
    assert!(notes(&measured)[0].ends_with("frames were misdelivered"));
}

#[test]
fn prices_are_absent_without_a_price_or_a_throughput() {
    let nothing = measured(1, |faults| faults.back.lose_every = Some(2));
    for one in FIGURES {
        assert_eq!(
            why_not(&nothing, one.name),
            "even the least rate was not met"
        );
    }
    let free = measured(1, |_| {});
    assert_eq!(
        why_not(&free, "price_per_gbit"),
        "the device's price is not known"
    );
}
