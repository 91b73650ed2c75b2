//! Searches, losses and bursts of a simulated device with known capacity and queue.

use proptest::prelude::*;
use trafficgen::memory::Service;

use super::back_to_back::{self, BACK_TO_BACK};
use super::loss::{self, LOSS};
use super::throughput::{self, THROUGHPUT};
use crate::catalogue::Experiment;
use crate::catalogue::simulated::{
    DIGITS, Faults, SimulatedPlane, assert_near, figure, notes, point, reading, void, why_not,
};
use crate::trial::TrialResult;
use record::Value;

/// Frames per second at 20 Mbit/s with 64 bytes.
const LINE: u64 = 29_761;
const LINE_MBIT: u64 = 20;

/// Returns a device with this time per frame and this queue, and a tester that sends at twice the
/// line's rate.
fn device(frame_ns: u64, queue: u64) -> Faults {
    let mut faults = Faults::slow(7_000, 7_000);
    for path in [&mut faults.forth, &mut faults.back] {
        path.service = Some(Service { frame_ns, queue });
        path.sender_gap_ns = 500_000_000 / LINE;
    }
    faults
}

fn measured(experiment: &Experiment, faults: Faults, values: &[(&str, u64)]) -> TrialResult {
    let values = values.iter().copied().chain([("line", LINE_MBIT)]);
    let values: Vec<_> = values.map(|(name, n)| (name, Value::Number(n))).collect();
    let point = point(experiment, &values);
    let mut device = SimulatedPlane::new(faults);
    let measure = match experiment.description.name {
        "throughput" => throughput::measure,
        "loss-rate" => loss::measure,
        _ => back_to_back::measure,
    };
    measure(&point, &mut device).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    /// A search reaches the width of its goal, and delays below the throughput are the device's.
    #[test]
    fn throughput_search_finds_the_capacity(frame_ns in 36_000_u64..100_000, queue in 2_u64..8) {
        let measured = measured(&THROUGHPUT, device(frame_ns, queue), &[]);
        let capacity = 1e6 / frame_ns as f64;
        let lossless = figure(&measured, "lossless_kpps");
        // While the queue fills, a trial accepts a few frames more than the device forwards.
        let slack = 1.0 + (queue + 2) as f64 / (capacity * 250.0);
        prop_assert!(lossless <= capacity * slack, "{} of {}", lossless, capacity);
        prop_assert!(lossless >= capacity * 0.975, "{} of {}", lossless, capacity);
        // The other goal permits a loss of half a per cent.
        let throughput = figure(&measured, "throughput_kpps");
        prop_assert!(throughput <= capacity * slack * 1.006, "{} of {}", throughput, capacity);
        prop_assert!(throughput >= lossless);
        let of_line = figure(&measured, "line_percent");
        prop_assert!((of_line - throughput * 1e5 / LINE as f64).abs() < 0.01);
        let took = 7.0 + frame_ns as f64 / 1e3;
        for name in ["p50_at_10_us", "p99_at_10_us", "p50_at_50_us", "p99_at_50_us"] {
            assert_near(&measured, name, took, DIGITS);
        }
        prop_assert!(void(&measured).is_empty());
    }
}

#[test]
fn device_at_line_rate_has_line_throughput_in_both_directions() {
    let mut faults = Faults::slow(9_000, 9_000);
    faults.forth.lose_every = Some(1_000_000);
    let values = [
        ("line", Value::Number(LINE_MBIT)),
        ("direction", Value::word("both")),
    ];
    let point = point(&THROUGHPUT, &values);
    let measured = throughput::measure(&point, &mut SimulatedPlane::new(faults)).unwrap();
    assert_eq!(figure(&measured, "line_percent"), 100.0);
    assert_eq!(
        figure(&measured, "throughput_kpps"),
        2.0 * LINE as f64 / 1e3
    );
    assert_near(&measured, "p50_at_90_us", 9.0, DIGITS);
}

#[test]
fn device_with_constant_loss_has_no_throughput() {
    let mut faults = Faults::default();
    faults.forth.lose_every = Some(100);
    let measured = measured(&THROUGHPUT, faults, &[]);
    let expected = "even the least rate was not met";
    assert_eq!(why_not(&measured, "throughput_kpps"), expected);
    assert_eq!(
        why_not(&measured, "p50_at_50_us"),
        "no throughput was found"
    );
}

#[test]
fn losses_of_the_tester_are_not_the_device_losses() {
    // Less than the shortfall that a search permits, and more than the loss that it permits.
    let mut faults = device(50_000, 4);
    faults.forth.drop_every = Some(1_500);
    let few = measured(&THROUGHPUT, faults.clone(), &[]);
    assert_near(&few, "lossless_kpps", 20.0, 0.025);
    // Delays are void if the tester loses frames.
    assert!(void(&few)[0].starts_with("the tester lost "));
    // With more losses of the tester, every trial is undecided.
    faults.forth.drop_every = Some(100);
    let many = measured(&THROUGHPUT, faults, &[]);
    let notes = notes(&many);
    assert!(
        notes
            .iter()
            .any(|note| note.ends_with("does not reach the least rate")),
        "{notes:?}"
    );
}

#[test]
fn modified_frames_void_the_throughput() {
    let mut faults = Faults::default();
    faults.forth.rewrite = Some(|frame, nth| frame[0] ^= u8::from(nth.is_multiple_of(50)) << 1);
    let measured = measured(&THROUGHPUT, faults, &[]);
    assert!(void(&measured)[0].contains("with modified headers"));
}

#[test]
fn loss_at_each_share_is_the_excess_over_the_capacity() {
    // 12,000 frames per second of the line's 29,761: 40 per cent without loss.
    let measured = measured(&LOSS, device(1_000_000 / 12, 4), &[("millis", 400)]);
    assert_near(&measured, "greatest_kpps", LINE as f64 / 1e3, 1e-3);
    let carried = |kpps: f64| (12.0 * 0.4 + 0.005) / (kpps * 0.4);
    for (name, kpps) in [
        ("loss_at_100_percent", 29.761),
        ("loss_at_50_percent", 14.880),
    ] {
        assert_near(&measured, name, 100.0 * (1.0 - carried(kpps)), 0.01);
    }
    assert_near(&measured, "received_at_100_kpps", 12.0, 0.01);
    assert_eq!(figure(&measured, "lossless_percent"), 40.0);
    let series = &reading(&measured).series["loss_by_kpps"];
    assert_eq!(series.len(), 8, "100 to 30 per cent");
    assert!(void(&measured).is_empty());
}

#[test]
fn untried_share_has_a_reason_instead_of_a_loss() {
    let measured = measured(&LOSS, device(30_000, 4), &[]);
    assert_eq!(figure(&measured, "loss_at_100_percent"), 0.0);
    assert_eq!(figure(&measured, "lossless_percent"), 100.0);
    let expected = "not tried: nothing was lost at 100 % and at 90 %";
    assert_eq!(why_not(&measured, "loss_at_50_percent"), expected);
}

#[test]
fn device_with_constant_loss_is_lossless_at_no_share() {
    let mut faults = device(30_000, 4);
    faults.forth.lose_every = Some(20);
    let measured = measured(&LOSS, faults, &[]);
    for name in ["loss_at_100_percent", "loss_at_50_percent"] {
        assert_near(&measured, name, 5.0, 0.01);
    }
    let expected = "frames were lost down to 10 %";
    assert_eq!(why_not(&measured, "lossless_percent"), expected);
}

#[test]
fn tester_slower_than_the_line_limits_the_rate() {
    let mut faults = device(30_000, 4);
    faults.forth.sender_gap_ns = 100_000;
    let measured = measured(&LOSS, faults, &[]);
    assert_near(&measured, "greatest_kpps", 9.7, 0.01);
    assert_eq!(figure(&measured, "loss_at_100_percent"), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    /// The device forwards one of two frames at the line's rate, so a burst of twice the queue
    /// passes.
    #[test]
    fn longest_burst_follows_from_the_queue(queue in 20_u64..400) {
        let faults = device(2_000_000_000 / LINE, queue);
        let measured = measured(&BACK_TO_BACK, faults, &[("longest", 3_000)]);
        let longest = 2.0 * queue as f64;
        let burst = figure(&measured, "burst");
        prop_assert!(burst <= longest + 4.0, "{} of {}", burst, longest);
        prop_assert!(burst >= longest * 0.94 - 2.0, "{} of {}", burst, longest);
        prop_assert_eq!(figure(&measured, "burst_least"), burst);
        prop_assert_eq!(figure(&measured, "burst_most"), burst);
        assert_near(&measured, "rate_kpps", LINE as f64 / 1e3, 1e-3);
        assert_near(&measured, "implied_buffer_ms", burst / LINE as f64 * 1e3, 1e-3);
    }
}

#[test]
fn burst_without_loss_is_noted_as_the_longest_tried() {
    let measured = measured(&BACK_TO_BACK, device(20_000, 4), &[("longest", 2_000)]);
    assert_eq!(figure(&measured, "burst"), 2_000.0);
    assert_eq!(
        notes(&measured),
        ["bursts of 2000 frames, the longest tried, lost nothing"]
    );
}

#[test]
fn device_that_loses_every_tenth_frame_passes_no_burst() {
    let mut faults = device(20_000, 4);
    faults.forth.lose_every = Some(10);
    let measured = measured(&BACK_TO_BACK, faults, &[("longest", 1_000)]);
    assert_eq!(figure(&measured, "burst"), 0.0);
}
