//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

const VALUES: &[(&str, u64)] = &[
    ("rules", 8),
    ("pps", 10_000),
    ("milliseconds", 100),
    ("period-ms", 10),
];

fn found(faults: Faults, question: fn() -> Message) -> Found {
    let mut rig = Simulated::new(Version::V13, faults);
    measure(&point(&FLOW_STATS, VALUES), &mut rig, question()).unwrap()
}

#[test]
fn answers_and_frames_take_what_they_take() {
    for (question, parts) in [(of_each as fn() -> Message, 2.0), (of_all, 1.0)] {
        let faults = Faults {
            statistics: Duration::from_micros(1_995),
            forward: Duration::from_micros(40),
            ..Faults::default()
        };
        let found = found(faults, question);
        assert!(found.void.is_empty(), "{:?}", found.void);
        assert_near(&found, "answer_mean_us", 2_000.0, 0.1);
        assert_near(&found, "unanswered", 0.0, 0.0);
        assert_near(&found, "quiet_frame_p50_us", 40.0, 0.1);
        assert_near(&found, "asked_frame_p99_us", 40.0, 0.1);
        assert_near(&found, "quiet_lost", 0.0, 0.0);
        assert_near(&found, "asked_lost", 0.0, 0.0);
        assert_near(&found, "answer_bytes", 100.0 * parts, 0.0);
    }
}

#[test]
fn questions_without_an_answer_are_counted_and_a_wrong_number_of_rules_voids() {
    let faults = Faults {
        // The setup is eleven messages and a barrier request.
        silent_after: 11 + 4,
        ..Faults::default()
    };
    let few = found(faults, of_each);
    assert_near(&few, "unanswered", 6.0, 0.0);
    let faults = Faults {
        silent_after: 11,
        ..Faults::default()
    };
    let none = found(faults, of_each);
    assert_eq!(why_not(&none, "answer_p50_us"), "no question was answered");
    let faults = Faults {
        forgets: 2,
        ..Faults::default()
    };
    let wrong = found(faults, of_all);
    assert_eq!(wrong.void, ["9 rules should be there, and 7 were told of"]);
}

#[test]
fn rules_that_are_refused_leave_the_reason() {
    let faults = Faults {
        capacity: 5,
        ..Faults::default()
    };
    let found = found(faults, of_each);
    assert!(why_not(&found, "answer_p50_us").contains("OFPFMFC_TABLE_FULL"));
}
