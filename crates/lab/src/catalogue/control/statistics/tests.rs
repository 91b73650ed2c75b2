//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

const VALUES: &[(&str, u64)] = &[
    ("rules", 8),
    ("pps", 10_000),
    ("milliseconds", 100),
    ("period-ms", 10),
];

fn report(faults: SwitchFaults, request: fn() -> Message) -> TrialReport {
    let mut rig = SimulatedSwitch::new(Version::V13, faults);
    measure(&point(&FLOW_STATS, VALUES), &mut rig, request()).unwrap()
}

#[test]
fn response_times_and_frame_delays_are_those_of_the_device() {
    for (request, parts) in [
        (flow_stats_request as fn() -> Message, 2.0),
        (aggregate_stats_request, 1.0),
    ] {
        let faults = SwitchFaults {
            statistics: Duration::from_micros(1_995),
            forward: Duration::from_micros(40),
            ..SwitchFaults::default()
        };
        let report = report(faults, request);
        assert!(report.void.is_empty(), "{:?}", report.void);
        assert_near(&report, "answer_mean_us", 2_000.0, 0.1);
        assert_near(&report, "unanswered", 0.0, 0.0);
        assert_near(&report, "quiet_frame_p50_us", 40.0, 0.1);
        assert_near(&report, "asked_frame_p99_us", 40.0, 0.1);
        assert_near(&report, "quiet_lost", 0.0, 0.0);
        assert_near(&report, "asked_lost", 0.0, 0.0);
        assert_near(&report, "answer_bytes", 100.0 * parts, 0.0);
    }
}

#[test]
fn unanswered_requests_are_counted_and_wrong_rule_count_voids() {
    let faults = SwitchFaults {
        // The setup is eleven messages and a barrier request.
        silent_after: 11 + 4,
        ..SwitchFaults::default()
    };
    let few = report(faults, flow_stats_request);
    assert_near(&few, "unanswered", 6.0, 0.0);
    let faults = SwitchFaults {
        silent_after: 11,
        ..SwitchFaults::default()
    };
    let none = report(faults, flow_stats_request);
    assert_eq!(why_not(&none, "answer_p50_us"), "no request was answered");
    let faults = SwitchFaults {
        unlisted: 2,
        ..SwitchFaults::default()
    };
    let wrong = report(faults, aggregate_stats_request);
    assert_eq!(wrong.void, ["the device reports 7 rules instead of 9"]);
}

#[test]
fn rejected_rules_leave_the_reason() {
    let faults = SwitchFaults {
        capacity: 5,
        ..SwitchFaults::default()
    };
    let report = report(faults, flow_stats_request);
    assert!(why_not(&report, "answer_p50_us").contains("OFPFMFC_TABLE_FULL"));
}
