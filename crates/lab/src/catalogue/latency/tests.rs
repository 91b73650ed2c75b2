//! The measured delay, loss, duplication and reordering equal those of the simulated device.

use proptest::prelude::*;
use trafficgen::memory::{Path, Service};

use super::action::ACTION;
use super::load::LOAD;
use super::measure;
use super::size::SIZE;
use crate::catalogue::Experiment;
use crate::catalogue::simulated::{
    DIGITS, Faults, SimulatedPlane, SwitchFaults, assert_near, figure, notes, point, void, why_not,
};
use crate::trial::TrialResult;
use record::Value;

/// Measures an experiment for 50 ms at these values.
fn measured(experiment: &Experiment, faults: Faults, values: &[(&str, u64)]) -> TrialResult {
    let values = [("millis", 50)].into_iter().chain(values.iter().copied());
    let values: Vec<_> = values.map(|(name, n)| (name, Value::Number(n))).collect();
    let mut device = SimulatedPlane::new(faults);
    measure(&point(experiment, &values), &mut device).unwrap()
}

#[test]
fn latency_is_measured_at_every_size() {
    for size in [64, 512, 1_518] {
        let values = [("size", size), ("mbit", 10)];
        let measured = measured(&SIZE, Faults::slow(37_000, 0), &values);
        for name in ["mean_us", "p50_us", "p99_us", "p999_us"] {
            assert_near(&measured, name, 37.0, DIGITS);
        }
        let pps = 10e6 / ((size + 20) as f64 * 8.0);
        // To within one frame of those that are due in the time.
        let frame = 1.0 / (pps * 0.05);
        assert_near(&measured, "offered_kpps", pps / 1e3, frame);
        assert_near(&measured, "received_kpps", pps / 1e3, frame);
        for name in ["loss_percent", "reordered", "duplicated", "ipdv_us"] {
            assert_eq!(figure(&measured, name), 0.0, "{name}");
        }
        assert_eq!(void(&measured).len() + notes(&measured).len(), 0);
    }
}

#[test]
fn device_without_delay_has_no_latency() {
    let measured = measured(&SIZE, Faults::default(), &[]);
    assert_eq!(figure(&measured, "p50_us"), 0.0);
    assert_eq!(figure(&measured, "mean_us"), 0.0);
}

#[test]
fn overload_fills_the_queue_and_loses_the_rest() {
    // 150 bytes: 7,353 frames per second at 10 Mbit/s; the device forwards 4,000.
    let mut faults = Faults::slow(5_000, 0);
    faults.forth.service = Some(Service {
        frame_ns: 250_000,
        queue: 8,
    });
    let below = measured(&LOAD, faults.clone(), &[("mbit", 5)]);
    assert_eq!(figure(&below, "loss_percent"), 0.0);
    assert_near(&below, "p50_us", 255.0, DIGITS);
    let values = [("mbit", 10), ("size", 150), ("millis", 400)];
    let beyond = measured(&LOAD, faults, &values);
    // The forwarded frames, and the queue that is left at the end.
    let sent = 10e6 / (170.0 * 8.0) * 0.4_f64;
    let lost = 100.0 * (1.0 - (1_600.0 + 9.0) / sent);
    assert_near(&beyond, "loss_percent", lost, 0.01);
    assert_near(&beyond, "p99_us", 5.0 + 250.0 * 9.0, 0.06);
}

#[test]
fn tester_shortfall_leaves_figures_absent() {
    let mut faults = Faults::default();
    faults.forth.sender_gap_ns = 200_000;
    let measured = measured(&LOAD, faults, &[("mbit", 10)]);
    let expected = "the tester is too slow: stream 0 was sent at ";
    assert!(why_not(&measured, "p50_us").starts_with(expected));
    assert!(figure(&measured, "offered_kpps") < 5.1);
}

#[test]
fn tester_losses_and_corrupt_frames_void_the_trial() {
    let mut faults = Faults::default();
    faults.forth.drop_every = Some(10);
    let dropped = measured(&LOAD, faults, &[("mbit", 10)]);
    assert!(void(&dropped)[0].starts_with("the tester lost "));
    let mut faults = Faults::default();
    faults.forth.rewrite = Some(|frame, _| frame[40] ^= 1);
    let damaged = measured(&LOAD, faults, &[("mbit", 10)]);
    assert!(void(&damaged)[0].ends_with("with a wrong checksum"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn losses_duplicates_and_reordering_are_counted(
        delay_ns in 0_u64..500_000,
        lose_every in 2_u64..200,
        repeat_every in 2_u64..200,
        hold_every in 2_u64..50,
        lose_share in 0.0_f64..0.5,
        seed in any::<u64>(),
    ) {
        let faults = Faults {
            forth: Path {
                delay_ns,
                lose_every: Some(lose_every),
                lose_share,
                repeat_every: Some(repeat_every),
                // The gap between frames is 136 µs, so a held frame is overtaken by one at most.
                hold_every: Some((hold_every, 150_000)),
                seed,
                ..Path::default()
            },
            ..Faults::default()
        };
        let mut device = SimulatedPlane::new(faults);
        let values = [("mbit", 10), ("millis", 50)];
        let values = values.map(|(name, n)| (name, Value::Number(n)));
        let measured = measure(&point(&LOAD, &values), &mut device).unwrap();
        let done = device.done[0];
        let lost = done.lost as f64 / done.sent as f64 * 100.0;
        prop_assert_eq!(figure(&measured, "loss_percent"), lost);
        prop_assert_eq!(figure(&measured, "duplicated"), done.repeated as f64);
        prop_assert!(figure(&measured, "reordered") <= done.held as f64);
        let p50 = figure(&measured, "p50_us");
        let wanted = delay_ns as f64 / 1e3;
        // Less than half of the frames are held, except if every second one is.
        let held = hold_every == 2 && (p50 - wanted - 150.0).abs() <= DIGITS * (wanted + 150.0);
        prop_assert!((p50 - wanted).abs() <= DIGITS * wanted || held, "{} {}", p50, wanted);
    }
}

/// Measures the experiment for an action.
fn action(word: &str, faults: Faults) -> (TrialResult, u64) {
    let values = [("action", Value::word(word)), ("millis", Value::Number(50))];
    let mut device = SimulatedPlane::new(faults);
    let point = point(&ACTION, &values);
    let measured = super::action::measure(&point, &mut device).unwrap();
    (measured, device.done.first().map_or(0, |done| done.sent))
}

#[test]
fn executed_actions_are_accepted() {
    for word in super::action::ACTIONS {
        let (measured, sent) = action(word, Faults::slow(21_000, 0));
        assert_near(&measured, "mean_us", 21.0, DIGITS);
        assert_eq!(figure(&measured, "loss_percent"), 0.0, "{word}");
        assert!(sent > 300 && void(&measured).is_empty(), "{word}");
    }
}

#[test]
fn missing_actions_are_found() {
    for word in super::action::ACTIONS {
        let faults = Faults {
            ignores_sets: true,
            ..Faults::slow(21_000, 0)
        };
        let (measured, sent) = action(word, faults);
        let expected: Vec<String> = match *word {
            "none" => Vec::new(),
            _ => vec![format!(
                "{sent} frames arrived with modified headers, 0 with a wrong checksum"
            )],
        };
        assert_eq!(void(&measured), expected, "{word}");
    }
}

#[test]
fn refused_action_has_the_error_as_its_reason() {
    let faults = Faults {
        switch: SwitchFaults {
            refuses: |rule| rule.instructions.apply.len() > 1,
            ..SwitchFaults::default()
        },
        ..Faults::default()
    };
    let (measured, sent) = action("nw-tos", faults);
    assert_eq!(sent, 0);
    for one in ACTION.description.figures {
        assert!(why_not(&measured, one.name).starts_with("refused: the addition of a rule: "));
    }
}
