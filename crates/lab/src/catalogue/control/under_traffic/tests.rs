//! Tests with the simulated switch.

use proptest::prelude::*;

use super::*;
use crate::catalogue::control::simulated::{
    SimulatedSwitch, SwitchFaults, TICK, assert_near, point,
};

const PPS: u64 = 20_000;

fn at(test: &str) -> Point {
    let values = [("rate", PPS), ("millis", 100), ("dump-flows", 100)];
    point(&CHANGES, &values).with("test", record::Value::word(test))
}

fn report(test: &str, faults: SwitchFaults) -> (TrialReport, SimulatedSwitch) {
    let mut device = SimulatedSwitch::new(Version::V10, faults);
    let report = measure(&at(test), &mut device).unwrap();
    (report, device)
}

/// Asserts that all samples are within some ticks of the configured value, or up to `more` later.
fn assert_samples(report: &TrialReport, samples: &str, expected: Duration, more: Duration) {
    let slack = 8 * TICK;
    for sample in report.reading.samples[samples].iter().flatten() {
        let sample = Duration::from_nanos(u64::from(*sample));
        let range = expected..=expected + more + slack;
        assert!(
            range.contains(&sample),
            "{sample:?} instead of {expected:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn effects_and_barrier_replies_are_those_of_the_device(
        forward in 5_u64..40,
        apply in 0_u64..900,
        replies_early: bool,
    ) {
        let micros = Duration::from_micros;
        let per_message = micros(5);
        let (report, _) = report("effect", SwitchFaults {
            per_message,
            forward: micros(forward),
            apply: micros(apply),
            replies_early,
            ..SwitchFaults::default()
        });
        let changes = report.reading.samples["effect_ns"].len();
        prop_assert!(changes > 15);
        // A frame shows a change up to one interval of frames later.
        let interval = Duration::from_nanos(1_000_000_000 / PPS);
        assert_samples(&report, "effect_ns", micros(apply + forward) + per_message, interval);
        let reply = match replies_early {
            true => 2 * per_message,
            false => (2 * per_message).max(per_message + micros(apply)),
        };
        assert_samples(&report, "barrier_ns", reply, Duration::ZERO);
        assert_near(&report, "delay_max_us", forward as f64, 8.0);
        let late = report.reading.figures["late"];
        if !replies_early {
            prop_assert_eq!(late, 0.0);
        } else if apply > 150 {
            let each = apply as f64 / interval.as_micros() as f64;
            let late = late / changes as f64;
            prop_assert!((late - each).abs() <= 1.6, "{} instead of {}", late, each);
        }
    }
}

#[test]
fn loss_during_flow_mods_is_a_figure() {
    let (report, device) = report(
        "flow-mods",
        SwitchFaults {
            loses_one_in: 100,
            ..SwitchFaults::default()
        },
    );
    assert_near(&report, "loss", 0.01, 0.001);
    assert_near(&report, "changes_s", 10_000.0, 100.0);
    let added = report.reading.figures["changes_s"] * 0.1 / 2.0;
    let rules = device.rule_count() as f64;
    assert!((rules - 1.0 - added).abs() < 2.0, "{rules}, {added}");
    assert!(
        report.void.is_empty() && report.notes.is_empty(),
        "{report:?}"
    );
}

#[test]
fn listings_are_counted_and_their_flows_added_before() {
    let (report, device) = report(
        "dump",
        SwitchFaults {
            statistics: Duration::from_millis(3),
            ..SwitchFaults::default()
        },
    );
    assert_eq!(device.rule_count(), 101);
    // One listing after another.
    assert_near(&report, "dumps", 33.0, 0.0);
    assert_near(&report, "delay_max_us", 10.0, 8.0);
}

#[test]
fn device_without_forwarding_is_void() {
    let (report, _) = report(
        "quiet",
        SwitchFaults {
            loses_one_in: 1,
            ..SwitchFaults::default()
        },
    );
    assert_eq!(report.void.len(), 1, "{report:?}");
}

#[test]
fn half_is_of_the_rate_at_which_no_queue_grows() {
    let mut device = SimulatedSwitch::new(
        Version::V10,
        SwitchFaults {
            per_frame: Duration::from_micros(20),
            ..SwitchFaults::default()
        },
    );
    let point = at("quiet").with("rate", record::Value::word(HALF));
    let report = measure(&point, &mut device).unwrap();
    let carried = report.reading.figures["carried_pps"];
    let step = (rate::RATE_MAX >> rate::STEPS) as f64;
    // The queue may have grown by 3 per cent of a step's frames.
    assert!(
        (50_000.0 - step..=50_000.0 * 1.04).contains(&carried),
        "{carried}"
    );
    assert_near(&report, "intended_pps", carried / 2.0, 1.0);
}
