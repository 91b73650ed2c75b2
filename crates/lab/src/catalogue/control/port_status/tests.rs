//! Tests with the simulated switch and a link that changes.

use std::collections::VecDeque;

use controller::IncomingKind;
use flow::PortDesc;

use super::super::simulated::{SimulatedSwitch, SwitchFaults, assert_near, point, why_not};
use super::*;

/// Reports of the device about its port.
#[derive(Clone)]
struct PortReports {
    /// Delay of the kernel, and further delay of the message.
    kernel_delay: Duration,
    message_delay: Duration,
    /// Messages for each change.
    per_change: u32,
    /// True if the messages report the actual state.
    is_correct: bool,
    /// Interval in which several changes are reported by one message.
    merge_interval: Duration,
}

impl Default for PortReports {
    fn default() -> Self {
        Self {
            kernel_delay: Duration::from_millis(20),
            message_delay: Duration::from_millis(2),
            per_change: 1,
            is_correct: true,
            merge_interval: Duration::ZERO,
        }
    }
}

struct FlappingLink {
    inner: SimulatedSwitch,
    reports: PortReports,
    up: bool,
    changed_at: Instant,
    pending: VecDeque<(Instant, bool)>,
}

impl FlappingLink {
    fn new(reports: PortReports) -> Self {
        Self {
            inner: SimulatedSwitch::new(Version::V13, SwitchFaults::default()),
            reports,
            up: true,
            changed_at: Instant::START,
            pending: VecDeque::new(),
        }
    }
}

impl LinkRig for FlappingLink {
    fn set_link(&mut self, up: bool) -> Result<(), TrialError> {
        let now = self.inner.now();
        self.up = up;
        self.changed_at = now;
        let due = now + self.reports.kernel_delay + self.reports.message_delay;
        let merged = self.reports.merge_interval;
        self.pending.retain(|(at, _)| *at + merged <= due);
        for _ in 0..self.reports.per_change {
            self.pending.push_back((due, up == self.reports.is_correct));
        }
        Ok(())
    }

    fn has_carrier(&mut self) -> Result<Option<bool>, TrialError> {
        let shown = self.inner.now() >= self.changed_at + self.reports.kernel_delay;
        Ok(Some(self.up == shown))
    }
}

impl ControlRig for FlappingLink {
    fn version(&self) -> Version {
        self.inner.version()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn queue(&mut self, message: &Message) -> Result<Xid, TrialError> {
        self.inner.queue(message)
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn written_at(&self, xid: Xid) -> Option<Instant> {
        self.inner.written_at(xid)
    }

    fn receive(&mut self) -> Result<Option<SwitchMessage>, TrialError> {
        let message = self.inner.receive()?;
        let due = self.pending.front().copied();
        match due.filter(|(at, _)| message.is_none() && *at <= self.inner.now()) {
            None => Ok(message),
            Some((at, up)) => {
                self.pending.pop_front();
                let mut port = PortDesc::new(PORT);
                port.state = PortState(u32::from(!up));
                let reason = PortReason::Modify;
                let status = PortStatus { reason, port };
                Ok(Some(SwitchMessage {
                    kind: IncomingKind::PortStatus,
                    xid: Xid(0),
                    at,
                    written: None,
                    length: 72,
                    body: Some(Message::PortStatus(status)),
                }))
            }
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        self.inner.send(frame)
    }

    fn receive_frame(&mut self) -> Result<Option<ServerFrame>, TrialError> {
        self.inner.receive_frame()
    }
}

fn report(reports: PortReports) -> TrialReport {
    let values = [("times", 3), ("watch-millis", 5), ("burst", 10)];
    measure(
        &point(&PORT_STATUS, &values),
        &mut FlappingLink::new(reports),
    )
    .unwrap()
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
