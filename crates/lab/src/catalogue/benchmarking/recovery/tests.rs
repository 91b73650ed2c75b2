//! The measured recovery time and settling time equal those of the simulated device.

use trafficgen::memory::{Path, Service};

use super::*;
use crate::catalogue::simulated::{SimulatedLines, dead_for};

const MS: u64 = 1_000_000;

/// Device of 100,000 frames per second, with an overload of 150 % for 0.1 s, and then a load of 50
/// %.
const PLAN: OverloadPlan = OverloadPlan {
    frame_bytes: 64,
    overload: 150_000,
    after: 50_000,
    overload_for: Duration::from_millis(100),
    after_for: Duration::from_millis(200),
};

/// Queue of 10 ms.
fn queue() -> Path {
    Path {
        delay_ns: 20_000,
        service: Some(Service {
            frame_ns: 10_000,
            queue: 1_000,
        }),
        ..Path::default()
    }
}

fn read(device: &mut SimulatedLines) -> Reading {
    let mut reading = Reading::at(&Point::default());
    recover(&PLAN, device, &mut reading).unwrap();
    reading
}

#[test]
fn queue_without_later_losses_empties_in_its_time() {
    let reading = read(&mut dead_for(0..0, queue()));
    // The queue is full after 20 ms; a third of the frames in the other 80 ms is lost.
    let lost = reading.figures["overload_loss_percent"];
    assert!((lost - 80.0 / 3.0).abs() < 0.5, "{lost}");
    let recovery = reading.figures["recovery_ms"];
    assert!(recovery <= 0.02, "{recovery}");
    // 1,000 frames wait, and 50,000 frames per second more leave than arrive: 20 ms.
    let settled = reading.figures["settled_ms"];
    assert!((18.0..=22.0).contains(&settled), "{settled}");
    assert!((reading.figures["rest_p50_us"] - 30.0).abs() < 0.1);
}

#[test]
fn recovery_time_is_that_of_the_later_losses() {
    for more in [3, 41, 120] {
        // The delay at rest is measured first; the duration of that is found by running it.
        let plan = PLAN;
        let mut device = dead_for(0..0, queue());
        let mut reading = Reading::at(&Point::default());
        let quiet = device.time.look_ns();
        let rest = plan.request(Pace::Constant(Rate::Frames(plan.after)), plan.after_for);
        device.offer(&rest).unwrap();
        let overload = device.time.look_ns() - quiet;
        let dead = overload + 90 * MS..overload + (100 + more) * MS;
        let mut device = dead_for(dead, queue());
        recover(&plan, &mut device, &mut reading).unwrap();
        let recovery = reading.figures["recovery_ms"];
        // The gap between two frames limits the resolution.
        let off = (recovery - more as f64).abs();
        assert!(off <= 0.1, "{recovery} for {more}");
    }
}

#[test]
fn recovery_is_absent_without_loss_and_with_endless_loss() {
    let fast = Path {
        delay_ns: 20_000,
        ..Path::default()
    };
    let reading = read(&mut dead_for(0..0, fast));
    assert_eq!(reading.absent["recovery_ms"], "the overload lost nothing");
    assert_eq!(reading.figures["settled_ms"], 0.0);
    let lossy = Path {
        lose_every: Some(7),
        ..queue()
    };
    let reading = read(&mut dead_for(0..0, lossy));
    assert!(reading.absent["recovery_ms"].contains("until the end"));
}

#[test]
fn overload_is_limited_to_the_highest_offered_rate() {
    let limits = |throughput, greatest| Limits {
        throughput,
        greatest,
    };
    let (plan, note) = overload(limits(Some(100_000), 400_000), 150).unwrap();
    assert_eq!((plan.overload, plan.after), (150_000, 50_000));
    assert!(note.is_none());
    let (plan, note) = overload(limits(Some(100_000), 120_000), 150).unwrap();
    assert_eq!(plan.overload, 120_000);
    let Some(Note::Plain(note)) = note else {
        panic!("it is cut")
    };
    assert!(note.contains("carries 120 % of the throughput, not 150 %"));
    assert!(overload(limits(Some(100_000), 100_000), 150).is_err());
    assert!(overload(limits(None, 100_000), 150).is_err());
}
