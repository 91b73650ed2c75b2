//! Tests with the simulated switch.

use openflow::Version;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

const FEW: [(&str, u64); 3] = [("resident", 40), ("pps", 10_000), ("milliseconds", 100)];

fn at(rate: u64) -> Point {
    let [resident, pps, length] = FEW;
    point(&CHURN, &[resident, pps, length, ("rate", rate)])
}

fn report(faults: SwitchFaults, rate: u64) -> TrialReport {
    measure(&at(rate), &mut SimulatedSwitch::new(Version::V13, faults)).unwrap()
}

#[test]
fn change_rate_and_frame_delay_are_those_of_the_device() {
    let faults = SwitchFaults {
        forward: Duration::from_micros(30),
        ..SwitchFaults::default()
    };
    for rate in [0, 2_000] {
        let report = report(faults.clone(), rate);
        assert_near(&report, "changes_s", rate as f64, 30.0);
        assert_near(&report, "lost_percent", 0.0, 0.0);
        assert_near(&report, "received_kpps", 10.0, 0.1);
        // A poll for arrived frames takes time too.
        assert_near(&report, "p50_us", 32.0, 3.0);
        assert_near(&report, "quiet_p50_us", 32.0, 3.0);
        assert_near(&report, "delay_ratio", 1.0, 0.1);
        assert_near(&report, "refused", 0.0, 0.0);
        assert_eq!(report.notes, [] as [String; 0]);
    }
}

#[test]
fn backlog_of_the_device_shows_in_the_final_barrier() {
    let faults = SwitchFaults {
        per_message: Duration::from_millis(1),
        ..SwitchFaults::default()
    };
    // It processes 100 of 200 rules in a tenth of a second.
    let report = report(faults, 2_000);
    assert_near(&report, "behind_ms", 101.0, 3.0);
}

#[test]
fn loss_is_a_percentage_of_the_frames() {
    let lossy = SwitchFaults {
        loses_one_in: 20,
        ..SwitchFaults::default()
    };
    let report = report(lossy, 1_000);
    assert_near(&report, "lost_percent", 5.0, 0.2);
    assert_near(&report, "quiet_lost_percent", 5.0, 0.2);
    assert_near(&report, "received_kpps", 9.5, 0.1);
    assert!(report.notes[0].contains("lost before the first change"));
}

#[test]
fn unread_messages_are_withheld_and_refusals_reported() {
    let unread = SwitchFaults {
        reads: 100,
        ..SwitchFaults::default()
    };
    let unread = report(unread, 2_000);
    // Of the 100 messages that the device reads, 59 are of the setup; the others are part of 200.
    assert_near(&unread, "withheld", 159.0, 3.0);
    assert!(why_not(&unread, "behind_ms").contains("did not answer a barrier"));
    let full = SwitchFaults {
        capacity: 30,
        ..SwitchFaults::default()
    };
    let full = report(full, 1_000);
    assert!(why_not(&full, "p50_us").contains("refused"), "{full:?}");
}
