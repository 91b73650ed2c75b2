//! A simulated device with known loss and known memory growth.

use super::*;
use crate::catalogue::simulated::{
    DIGITS, Faults, SimulatedPlane, assert_near, figure, point, void, why_not,
};
use record::Value;

fn measured(faults: Faults) -> TrialResult {
    let values = [("seconds", 1), ("pps", 10_000)];
    let values = values.map(|(name, number)| (name, Value::Number(number)));
    measure(&point(&SOAK, &values), &mut SimulatedPlane::new(faults)).unwrap()
}

#[test]
fn soak_reports_losses_and_memory_growth() {
    let mut faults = Faults::slow(80_000, 0);
    faults.forth.lose_every = Some(2_500);
    faults.forth.hold_every = Some((3_000, 4_000_000));
    faults.grows = Some([0, 3_500_000]);
    let lossy = measured(faults);
    assert_eq!(figure(&lossy, "frames"), 10_000.0);
    assert_eq!(figure(&lossy, "lost"), 4.0);
    assert_eq!(why_not(&lossy, "loss_bound_ppm"), "frames were lost");
    assert_near(&lossy, "p999_us", 80.0, DIGITS);
    assert_near(&lossy, "most_ms", 4.08, DIGITS);
    assert_eq!(figure(&lossy, "grown_mb"), 3.5);
    assert!(void(&lossy).is_empty());
}

#[test]
fn soak_without_loss_has_an_upper_bound() {
    let mut faults = Faults::slow(80_000, 0);
    faults.grows = None;
    let measured = measured(faults);
    // exp(-4.6) is a hundredth.
    assert_near(&measured, "loss_bound_ppm", 460.0, 1e-9);
    assert_eq!(why_not(&measured, "grown_mb"), "the kernel itself forwards");
}

#[test]
fn soak_without_received_frames_has_no_delay() {
    let mut faults = Faults::default();
    faults.forth.lose_every = Some(1);
    let measured = measured(faults);
    assert_eq!(figure(&measured, "lost"), 10_000.0);
    assert_eq!(why_not(&measured, "p999_us"), "no frame arrived");
}
