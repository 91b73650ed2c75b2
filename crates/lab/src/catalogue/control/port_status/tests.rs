//! Tests with the simulated switch and a link that changes.

use super::super::simulated::{
    PortReports, SimulatedSwitch, SwitchFaults, assert_near, point, why_not,
};
use super::*;

impl LinkRig for SimulatedSwitch {
    fn set_link(&mut self, up: bool) -> Result<(), TrialError> {
        self.change_link(PORT, up);
        Ok(())
    }

    fn has_carrier(&mut self) -> Result<Option<bool>, TrialError> {
        Ok(Some(Self::has_carrier(self)))
    }
}

fn report(reports: PortReports) -> TrialReport {
    let values = [("times", 3), ("watch-millis", 5), ("burst", 10)];
    let faults = SwitchFaults {
        port_reports: reports,
        ..SwitchFaults::default()
    };
    let mut device = SimulatedSwitch::new(Version::V13, faults);
    measure(&point(&PORT_STATUS, &values), &mut device).unwrap()
}

#[test]
fn correct_port_status_messages_have_no_faults() {
    let report = report(PortReports::default());
    for (name, wanted) in [("down_ms", 22.0), ("up_ms", 22.0), ("lag_ms", 2.0)] {
        assert_near(&report, name, wanted, 0.1);
    }
    assert_near(&report, "down_seen_ms", 20.0, 0.1);
    for name in ["never", "again", "wrong", "burst_wrong"] {
        assert_near(&report, name, 0.0, 0.0);
    }
    assert_near(&report, "burst_told_percent", 100.0, 0.0);
}

#[test]
fn surplus_and_wrong_port_status_messages_are_counted() {
    let report = report(PortReports {
        per_change: 2,
        is_correct: false,
        ..PortReports::default()
    });
    assert_near(&report, "again", 6.0, 0.0);
    assert_near(&report, "wrong", 12.0, 0.0);
    assert_near(&report, "burst_wrong", 1.0, 0.0);
}

#[test]
fn missing_port_status_messages_are_counted() {
    let report = report(PortReports {
        per_change: 0,
        ..PortReports::default()
    });
    assert_near(&report, "never", 6.0, 0.0);
    assert_eq!(
        why_not(&report, "down_ms"),
        "no port-status message arrived"
    );
    assert_near(&report, "down_seen_ms", 20.0, 0.1);
    assert_near(&report, "burst_told_percent", 0.0, 0.0);
    assert_eq!(
        why_not(&report, "burst_wrong"),
        "no port-status message arrived"
    );
}

#[test]
fn merged_port_status_messages_are_a_percentage_of_changes() {
    // A change replaces the pending message of an earlier one.
    let report = report(PortReports {
        merge_interval: Duration::from_secs(1),
        ..PortReports::default()
    });
    let share = report.reading.figures["burst_told_percent"];
    assert!((10.0..60.0).contains(&share), "{share}");
    assert_near(&report, "burst_wrong", 0.0, 0.0);
}
