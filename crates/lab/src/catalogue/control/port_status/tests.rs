//! Tests with the simulated switch and a link that changes.

use std::collections::VecDeque;

use controller::Kind;
use flow::PortDesc;

use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

/// Reports of the device about its port.
#[derive(Clone)]
struct Manner {
    /// Delay of the kernel, and further delay of the message.
    shows: Duration,
    tells: Duration,
    /// Messages for each change.
    times: u32,
    /// True if the messages report the actual state.
    is_right: bool,
    /// Interval in which several changes are reported by one message.
    merges: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            shows: Duration::from_millis(20),
            tells: Duration::from_millis(2),
            times: 1,
            is_right: true,
            merges: Duration::ZERO,
        }
    }
}

struct Flapping {
    inner: Simulated,
    manner: Manner,
    up: bool,
    changed: Instant,
    told: VecDeque<(Instant, bool)>,
}

impl Flapping {
    fn new(manner: Manner) -> Self {
        Self {
            inner: Simulated::new(Version::V13, Faults::default()),
            manner,
            up: true,
            changed: Instant::START,
            told: VecDeque::new(),
        }
    }
}

impl Plugged for Flapping {
    fn plug(&mut self, up: bool) -> Result<(), TrialError> {
        let now = self.inner.now();
        self.up = up;
        self.changed = now;
        let due = now + self.manner.shows + self.manner.tells;
        let merged = self.manner.merges;
        self.told.retain(|(at, _)| *at + merged <= due);
        for _ in 0..self.manner.times {
            self.told.push_back((due, up == self.manner.is_right));
        }
        Ok(())
    }

    fn carries(&mut self) -> Result<Option<bool>, TrialError> {
        let shown = self.inner.now() >= self.changed + self.manner.shows;
        Ok(Some(self.up == shown))
    }
}

impl Rig for Flapping {
    fn version(&self) -> Version {
        self.inner.version()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn say(&mut self, message: &Message) -> Result<Xid, TrialError> {
        self.inner.say(message)
    }

    fn flush(&mut self) -> Result<(), TrialError> {
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn handed_at(&self, xid: Xid) -> Option<Instant> {
        self.inner.handed_at(xid)
    }

    fn hear(&mut self) -> Result<Option<Told>, TrialError> {
        let told = self.inner.hear()?;
        let due = self.told.front().copied();
        match due.filter(|(at, _)| told.is_none() && *at <= self.inner.now()) {
            None => Ok(told),
            Some((at, up)) => {
                self.told.pop_front();
                let mut port = PortDesc::new(PORT);
                port.state = PortState(u32::from(!up));
                let reason = PortReason::Modify;
                let status = PortStatus { reason, port };
                Ok(Some(Told {
                    kind: Kind::PortStatus,
                    xid: Xid(0),
                    at,
                    handed: None,
                    length: 72,
                    message: Some(Message::PortStatus(status)),
                }))
            }
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        self.inner.send(frame)
    }

    fn catch(&mut self) -> Result<Option<Caught>, TrialError> {
        self.inner.catch()
    }
}

fn found(manner: Manner) -> Found {
    let values = [("times", 3), ("watch-millis", 5), ("burst", 10)];
    measure(&point(&PORT_STATUS, &values), &mut Flapping::new(manner)).unwrap()
}

#[test]
fn what_is_told_in_time_and_once_is_found_so() {
    let found = found(Manner::default());
    for (name, wanted) in [("down_ms", 22.0), ("up_ms", 22.0), ("lag_ms", 2.0)] {
        assert_near(&found, name, wanted, 0.1);
    }
    assert_near(&found, "down_seen_ms", 20.0, 0.1);
    for name in ["never", "again", "wrong", "burst_wrong"] {
        assert_near(&found, name, 0.0, 0.0);
    }
    assert_near(&found, "burst_told_percent", 100.0, 0.0);
}

#[test]
fn what_is_told_twice_and_wrongly_is_counted() {
    let found = found(Manner {
        times: 2,
        is_right: false,
        ..Manner::default()
    });
    assert_near(&found, "again", 6.0, 0.0);
    assert_near(&found, "wrong", 12.0, 0.0);
    assert_near(&found, "burst_wrong", 1.0, 0.0);
}

#[test]
fn a_device_that_says_nothing_has_told_of_nothing() {
    let found = found(Manner {
        times: 0,
        ..Manner::default()
    });
    assert_near(&found, "never", 6.0, 0.0);
    assert_eq!(why_not(&found, "down_ms"), "it was never told");
    assert_near(&found, "down_seen_ms", 20.0, 0.1);
    assert_near(&found, "burst_told_percent", 0.0, 0.0);
    assert_eq!(why_not(&found, "burst_wrong"), "none was told");
}

#[test]
fn quick_changes_that_are_told_together_are_a_share() {
    // A change replaces the pending message of an earlier one.
    let found = found(Manner {
        merges: Duration::from_secs(1),
        ..Manner::default()
    });
    let share = found.reading.figures["burst_told_percent"];
    assert!((10.0..60.0).contains(&share), "{share}");
    assert_near(&found, "burst_wrong", 0.0, 0.0);
}
