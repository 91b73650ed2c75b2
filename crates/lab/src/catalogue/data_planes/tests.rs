//! Round trips, capacities and rewritten frames of a simulated device: the figures must be the
//! configured values.

use std::time::Duration;

use proptest::prelude::*;
use stats::Histogram;

use super::capacity::CAPACITY;
use super::legacy::LEGACY;
use super::rewrite::REWRITE;
use super::rules::RULES;
use crate::catalogue::plane::Plane;
use crate::catalogue::prelude::*;
use crate::catalogue::simulated::{
    DIGITS, Faults, SimulatedPlane, SwitchFaults, assert_near, figure, notes, point, reading, void,
    why_not,
};
use crate::trial::{TrialError, TrialResult};
use record::Value;

type MeasureEcho = fn(&Point, &mut dyn Plane) -> Result<TrialResult, TrialError>;

fn measured(
    (experiment, measure): (&Experiment, MeasureEcho),
    faults: Faults,
    values: &[(&str, Value)],
) -> TrialResult {
    let few = [("packets", 300), ("warm-up", 20)];
    let few = few.map(|(name, number)| (name, Value::Number(number)));
    let is_parameter =
        |(name, _): &&(&str, Value)| experiment.description.parameter(name).is_some();
    let values: Vec<_> = few
        .iter()
        .filter(is_parameter)
        .chain(values)
        .cloned()
        .collect();
    measure(
        &point(experiment, &values),
        &mut SimulatedPlane::new(faults),
    )
    .unwrap()
}

fn legacy(mode: &str, faults: Faults) -> TrialResult {
    measured(
        (&LEGACY, super::legacy::measure),
        faults,
        &[("mode", Value::word(mode))],
    )
}

fn rewrite(field: &str, faults: Faults) -> TrialResult {
    let values = [("rewrite", Value::word(field))];
    measured((&REWRITE, super::rewrite::measure), faults, &values)
}

fn rules(table: &str, place: &str, count: u64, faults: Faults) -> TrialResult {
    let values = [
        ("table", Value::word(table)),
        ("place", Value::word(place)),
        ("rules", Value::Number(count)),
    ];
    measured((&RULES, super::rules::measure), faults, &values)
}

fn capacity(kind: &str, most: u64, sample: u64, faults: Faults) -> TrialResult {
    let values = [
        ("kind", Value::word(kind)),
        ("most", Value::Number(most)),
        ("sample", Value::Number(sample)),
    ];
    measured((&CAPACITY, super::capacity::measure), faults, &values)
}

/// Asserts that there is no loss and no flaw, and that every echo took this time.
fn assert_all_took(measured: &TrialResult, micros: f64) {
    assert_eq!(
        void(measured).len() + notes(measured).len(),
        0,
        "{:?}",
        measured.flaws
    );
    for name in ["mean_us", "p50_us", "p99_us", "p999_us"] {
        assert_near(measured, name, micros, DIGITS);
    }
    assert_eq!(figure(measured, "lost"), 0.0);
}

#[test]
fn round_trip_has_both_directions_with_rules_and_with_normal() {
    let faults = || Faults {
        normal: Duration::from_micros(20),
        ..Faults::slow(15_000, 25_000)
    };
    assert_all_took(&legacy("openflow", faults()), 40.0);
    assert_all_took(&legacy("legacy", faults()), 80.0);
    let without = Faults {
        openflow: false,
        ..faults()
    };
    assert_all_took(&legacy("legacy", without), 40.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn round_trips_and_losses_are_those_of_the_device(
        forth_ns in 1_000_u64..400_000,
        back_ns in 1_000_u64..400_000,
        lose_every in 7_u64..90,
    ) {
        let mut faults = Faults::slow(forth_ns, back_ns);
        faults.forth.lose_every = Some(lose_every);
        let measured = legacy("openflow", faults);
        let took = (forth_ns + back_ns) as f64 / 1e3;
        assert_near(&measured, "p50_us", took, DIGITS);
        assert_near(&measured, "p999_us", took, DIGITS);
        // The trial begins after twenty echoes without loss; then 20 echoes warm up and 300 count.
        let lost = figure(&measured, "lost");
        let (least, most) = (300 / lose_every, 300_u64.div_ceil(lose_every));
        prop_assert!((least as f64..=most as f64).contains(&lost), "{}", lost);
        prop_assert!(void(&measured).is_empty());
        let text = &reading(&measured).histograms["round_trip_ns"];
        let all = Histogram::decode(text).unwrap();
        prop_assert_eq!(all.count() as f64, 300.0 - lost);
    }
}

#[test]
fn jitter_of_the_device_spreads_the_round_trips() {
    let mut faults = Faults::slow(50_000, 0);
    faults.forth.jitter_ns = 40_000;
    let measured = legacy("openflow", faults);
    // The delay is uniform from 50 to 90 us.
    assert_near(&measured, "mean_us", 70.0, 0.03);
    assert_near(&measured, "p99_us", 89.6, 0.01);
}

#[test]
fn correctly_rewritten_fields_leave_no_flaw() {
    for field in super::rewrite::FIELDS {
        assert_all_took(&rewrite(field, Faults::slow(10_000, 10_000)), 20.0);
    }
}

#[test]
fn missing_rewrite_or_wrong_checksum_voids_the_trial() {
    for field in super::rewrite::FIELDS
        .iter()
        .filter(|field| **field != "none")
    {
        let faults = Faults {
            ignores_sets: true,
            ..Faults::slow(10_000, 10_000)
        };
        let measured = rewrite(field, faults);
        let expected = "320 frames arrived other than expected, the first as ";
        assert!(
            void(&measured)[0].starts_with(expected),
            "{field}: {:?}",
            measured.flaws
        );
    }
    let mut faults = Faults::default();
    // Corrupts the UDP checksum of every fiftieth frame.
    faults.forth.rewrite = Some(|frame, nth| frame[40] ^= u8::from(nth.is_multiple_of(50)));
    let spoilt = rewrite("ip-tos", faults);
    assert!(void(&spoilt)[0].contains(" frames arrived other than expected"));
}

#[test]
fn rejected_rewrite_leaves_the_error_for_all_figures() {
    let faults = Faults {
        switch: SwitchFaults {
            refuses: |rule| rule.instructions.apply.len() > 1,
            ..SwitchFaults::default()
        },
        ..Faults::default()
    };
    let measured = rewrite("vlan-priority", faults);
    for one in REWRITE.description.figures {
        assert!(why_not(&measured, one.name).starts_with("refused: "));
    }
}

#[test]
fn early_barrier_reply_is_a_note_and_not_in_the_figures() {
    let faults = Faults {
        switch: SwitchFaults {
            // All rules are in force at the same time.
            per_message: Duration::ZERO,
            apply: Duration::from_millis(80),
            ..SwitchFaults::default()
        },
        ..Faults::slow(10_000, 10_000)
    };
    let measured = rewrite("udp-port", faults);
    assert!(void(&measured).is_empty(), "{:?}", measured.flaws);
    let expected = "the device forwarded by earlier rules for 80 ms after its barrier reply";
    assert_eq!(notes(&measured), [expected]);
    assert_near(&measured, "p999_us", 20.0, DIGITS);
}

#[test]
fn wrong_rule_counters_void_the_trial() {
    let faults = Faults {
        uncounted: 40,
        ..Faults::default()
    };
    let measured = legacy("openflow", faults);
    assert!(void(&measured)[0].starts_with("the rules counted "));
}

#[test]
fn slow_table_lengthens_round_trips_at_every_position() {
    let faults = || Faults {
        rule: Duration::from_nanos(50),
        ..Faults::slow(10_000, 10_000)
    };
    assert_all_took(
        &rules("one", "last", 500, faults()),
        20.0 + 2.0 * 2.0 * 0.05,
    );
    for place in ["last", "first", "random"] {
        let full = rules("full", place, 500, faults());
        assert_all_took(&full, 20.0 + 2.0 * 502.0 * 0.05);
    }
}

#[test]
fn small_table_leaves_figures_absent() {
    let faults = Faults {
        switch: SwitchFaults {
            capacity: 300,
            ..SwitchFaults::default()
        },
        ..Faults::default()
    };
    let measured = rules("full", "last", 500, faults);
    // One of the 300 is the rule towards the client.
    let expected = "the device accepted 299 of 500 rules: ";
    assert!(why_not(&measured, "mean_us").starts_with(expected));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn table_capacity_is_measured_exactly(
        room in 1_usize..1_500,
        kind in prop::sample::select(vec!["exact", "prefix", "masks"]),
        bytes in 100_u64..2_000,
        micros in 1_u64..200,
    ) {
        let faults = Faults {
            switch: SwitchFaults {
                capacity: room,
                per_message: Duration::from_micros(micros),
                ..SwitchFaults::default()
            },
            grows: Some([bytes, 0]),
            ..Faults::slow(5_000, 5_000)
        };
        let measured = capacity(kind, 1_200, 20, faults);
        let most = if kind == "masks" { 961 } else { 1_200 };
        let wanted = room.min(most) as f64;
        for name in ["accepted", "listed"] {
            prop_assert_eq!(figure(&measured, name), wanted, "{}", name);
        }
        prop_assert_eq!(figure(&measured, "bytes_per_rule"), bytes as f64);
        prop_assert_eq!(figure(&measured, "effective_percent"), 100.0);
        // Rejected rules take the same time.
        let batches = wanted.div_euclid(1_000.0) + 1.0;
        let offered = if room < most { (batches * 1_000.0).min(most as f64) } else { wanted };
        let rate = wanted / (offered * micros as f64 / 1e6);
        assert_near(&measured, "rules_s", rate, 1e-6);
        prop_assert_eq!(notes(&measured).len(), usize::from(room < most));
    }
}

#[test]
fn ineffective_rules_lower_the_effective_percentage() {
    let faults = Faults {
        switch: SwitchFaults {
            forgets_one_in: 4,
            unlisted: 7,
            ..SwitchFaults::default()
        },
        ..Faults::default()
    };
    let measured = capacity("exact", 1_000, 1_000, faults);
    assert_eq!(figure(&measured, "accepted"), 1_000.0);
    assert_eq!(figure(&measured, "listed"), 993.0);
    // The sample is random: 99 per cent of such samples are within 3.6 of 75.
    let effective = figure(&measured, "effective_percent");
    assert!((effective - 75.0).abs() < 3.6, "{effective}");
}

#[test]
fn device_that_accepts_no_rule_has_no_rate() {
    let faults = Faults {
        switch: SwitchFaults {
            refuses: |_| true,
            ..SwitchFaults::default()
        },
        ..Faults::default()
    };
    let measured = capacity("exact", 100, 10, faults);
    assert_eq!(figure(&measured, "accepted"), 0.0);
    assert_eq!(why_not(&measured, "rules_s"), "the device accepted no rule");
    assert_eq!(
        why_not(&measured, "effective_percent"),
        "the device accepted no rule"
    );
}
