//! Tests with the simulated switch.

use proptest::prelude::*;

use super::*;
use crate::catalogue::control::simulated::{Faults, Simulated, TICK, assert_near, point};

const PPS: u64 = 20_000;

fn at(test: &str) -> Point {
    let values = [("rate", PPS), ("millis", 100), ("dump-flows", 100)];
    point(&CHANGES, &values).with("test", record::Value::word(test))
}

fn found(test: &str, faults: Faults) -> (Found, Simulated) {
    let mut device = Simulated::new(Version::V10, faults);
    let found = measure(&at(test), &mut device).unwrap();
    (found, device)
}

/// Asserts that all samples are within some ticks of the configured value, or up to `more` later.
fn assert_samples(found: &Found, samples: &str, expected: Duration, more: Duration) {
    let slack = 8 * TICK;
    for sample in found.reading.samples[samples].iter().flatten() {
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
        lies: bool,
    ) {
        let micros = Duration::from_micros;
        let per_message = micros(5);
        let (found, _) = found("effect", Faults {
            per_message,
            forward: micros(forward),
            apply: micros(apply),
            lies,
            ..Faults::default()
        });
        let changes = found.reading.samples["effect_ns"].len();
        prop_assert!(changes > 15);
        // A frame shows a change up to one interval of frames later.
        let interval = Duration::from_nanos(1_000_000_000 / PPS);
        assert_samples(&found, "effect_ns", micros(apply + forward) + per_message, interval);
        let reply = match lies {
            true => 2 * per_message,
            false => (2 * per_message).max(per_message + micros(apply)),
        };
        assert_samples(&found, "barrier_ns", reply, Duration::ZERO);
        assert_near(&found, "delay_max_us", forward as f64, 8.0);
        let late = found.reading.figures["late"];
        if !lies {
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
    let (found, device) = found(
        "flow-mods",
        Faults {
            loses_one_in: 100,
            ..Faults::default()
        },
    );
    assert_near(&found, "loss", 0.01, 0.001);
    assert_near(&found, "changes_s", 10_000.0, 100.0);
    let added = found.reading.figures["changes_s"] * 0.1 / 2.0;
    let rules = device.rule_count() as f64;
    assert!((rules - 1.0 - added).abs() < 2.0, "{rules}, {added}");
    assert!(found.void.is_empty() && found.notes.is_empty(), "{found:?}");
}

#[test]
fn listings_are_counted_and_their_flows_added_before() {
    let (found, device) = found(
        "dump",
        Faults {
            statistics: Duration::from_millis(3),
            ..Faults::default()
        },
    );
    assert_eq!(device.rule_count(), 101);
    // One listing after another.
    assert_near(&found, "dumps", 33.0, 0.0);
    assert_near(&found, "delay_max_us", 10.0, 8.0);
}

#[test]
fn device_without_forwarding_is_void() {
    let (found, _) = found(
        "quiet",
        Faults {
            loses_one_in: 1,
            ..Faults::default()
        },
    );
    assert_eq!(found.void.len(), 1, "{found:?}");
}

#[test]
fn half_is_of_the_rate_at_which_no_queue_grows() {
    let mut device = Simulated::new(
        Version::V10,
        Faults {
            per_frame: Duration::from_micros(20),
            ..Faults::default()
        },
    );
    let point = at("quiet").with("rate", record::Value::word(HALF));
    let found = measure(&point, &mut device).unwrap();
    let carried = found.reading.figures["carried_pps"];
    let step = (rate::RATE_MAX >> rate::STEPS) as f64;
    // The queue may have grown by 3 per cent of a step's frames.
    assert!(
        (50_000.0 - step..=50_000.0 * 1.04).contains(&carried),
        "{carried}"
    );
    assert_near(&found, "intended_pps", carried / 2.0, 1.0);
}
