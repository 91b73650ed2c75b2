//! Tests with the simulated switch.

use std::time::Duration;

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

type MeasureRules = fn(&Point, &mut dyn ControlRig) -> Result<TrialReport, TrialError>;

fn report(
    measure: MeasureRules,
    faults: SwitchFaults,
    values: &[(&str, u64)],
) -> Result<TrialReport, TrialError> {
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    measure(&point(&ADD_FLOW, values), &mut rig)
}

const RULES: &[(&str, u64)] = &[("rules", 50), ("pps", 50_000)];

/// Interval between two frames of one of fifty flows.
const ROUND_MS: f64 = 1.0;

#[test]
fn add_and_modify_times_are_those_of_a_correct_device() {
    for measure in [add as MeasureRules, modify] {
        let faults = SwitchFaults {
            per_message: Duration::from_micros(100),
            apply: Duration::from_millis(3),
            ..SwitchFaults::default()
        };
        let report = report(measure, faults, RULES).unwrap();
        assert!(report.void.is_empty(), "{:?}", report.void);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
        // Fifty messages take 100 µs each, and the last is in force 3 ms later; the barrier reply
        // waits.
        assert_near(&report, "barrier_ms", 8.0, 0.02 + 0.1);
        assert_near(
            &report,
            "last_ms",
            8.0 + ROUND_MS / 2.0,
            ROUND_MS / 2.0 + 0.1,
        );
        assert_near(
            &report,
            "first_ms",
            3.1 + ROUND_MS / 2.0,
            ROUND_MS / 2.0 + 0.1,
        );
        assert_near(&report, "late", 0.0, 0.0);
        assert_near(&report, "never", 0.0, 0.0);
        assert_near(&report, "resolution_us", 1_000.0, 0.0);
        assert_near(&report, "lag_ms", ROUND_MS / 2.0, ROUND_MS / 2.0 + 0.1);
    }
}

#[test]
fn early_barrier_reply_is_reported_with_its_lag() {
    for measure in [add as MeasureRules, modify] {
        let faults = SwitchFaults {
            apply: Duration::from_millis(5),
            replies_early: true,
            ..SwitchFaults::default()
        };
        let report = report(measure, faults, RULES).unwrap();
        assert!(report.void.is_empty(), "{:?}", report.void);
        // Each message takes 5 µs and is in force 5 ms later.
        assert_near(&report, "barrier_ms", 0.26, 0.05);
        assert_near(
            &report,
            "lag_ms",
            5.0 + ROUND_MS / 2.0,
            ROUND_MS / 2.0 + 0.1,
        );
        // Fifty frames per millisecond match no rule or the old one.
        assert_near(&report, "late", 250.0, 20.0);
    }
}

#[test]
fn full_table_is_reported_as_the_protocol_error() {
    let faults = SwitchFaults {
        capacity: 31,
        ..SwitchFaults::default()
    };
    let added = report(add, faults.clone(), RULES).unwrap();
    let reason = "refused 20 messages, the first (message 31): OFPFMFC_TABLE_FULL (type 5, code 1)";
    assert_eq!(why_not(&added, "last_ms"), reason);
    assert_near(&added, "never", 20.0, 0.0);
    assert_near(&added, "late", 0.0, 0.0);
    assert_eq!(added.notes, [reason]);
    let modified = report(modify, faults, RULES).unwrap();
    let reason = why_not(&modified, "barrier_ms");
    assert!(reason.contains("OFPFMFC_TABLE_FULL"), "{reason}");
}

#[test]
fn closed_or_silent_connection_fails_the_trial() {
    let closing = SwitchFaults {
        closes_after: 30,
        ..SwitchFaults::default()
    };
    let reason = report(add, closing, RULES).unwrap_err().to_string();
    assert!(reason.ends_with("the device closed it"), "{reason}");
    let silent = SwitchFaults {
        silent_after: 30,
        ..SwitchFaults::default()
    };
    let reason = report(add, silent, RULES).unwrap_err().to_string();
    assert_eq!(reason, "the device did not answer a barrier within 10 s");
}

#[test]
fn exact_rules_of_both_versions_forward_frames() {
    for version in [Version::V10, Version::V13] {
        let exact = point(&ADD_FLOW, RULES).with("table", record::Value::word("exact"));
        let mut rig = SimulatedSwitch::new(version, SwitchFaults::default());
        let report = add(&exact, &mut rig).unwrap();
        assert_near(&report, "never", 0.0, 0.0);
        assert!(report.void.is_empty());
    }
}

/// Adds rules after a deletion that takes effect this long after its barrier reply.
fn after_deletion(apply: Duration) -> TrialReport {
    let faults = SwitchFaults {
        apply,
        replies_early: true,
        ..SwitchFaults::default()
    };
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    let flows = FlowRules::of(Version::V13);
    let before = (0..50).map(|flow| flows.message(FlowModCommand::Add, flow, None));
    send_batch(&mut rig, before.collect()).unwrap();
    let until = rig.now() + apply;
    while rig.now() < until {
        rig.receive().unwrap();
    }
    add(&point(&ADD_FLOW, RULES), &mut rig).unwrap()
}

#[test]
fn update_waits_until_earlier_deletion_is_in_force() {
    let report = after_deletion(Duration::from_millis(300));
    assert!(report.void.is_empty(), "{:?}", report.void);
    assert_near(&report, "lag_ms", 300.5, 0.6);
}

#[test]
fn forwarding_by_deleted_rules_voids_the_trial() {
    let report = after_deletion(Duration::from_secs(4));
    let why = &report.void[0];
    assert!(
        why.contains("frames were still forwarded by earlier rules"),
        "{why}"
    );
}
