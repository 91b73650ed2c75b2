//! Tests with the simulated switch.

use base::Xid;
use openflow::Version;

use super::super::rig::{Caught, Told};
use super::super::simulated::{Faults, Simulated, assert_near, point, why_not};
use super::*;

/// A device that loses every nth frame.
struct Lossy {
    inner: Simulated,
    every: u64,
    sent: u64,
}

impl Rig for Lossy {
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
        self.inner.hear()
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, TrialError> {
        self.sent += 1;
        match self.sent.is_multiple_of(self.every) {
            true => Ok(true),
            false => self.inner.send(frame),
        }
    }

    fn catch(&mut self) -> Result<Option<Caught>, TrialError> {
        self.inner.catch()
    }
}

const FEW: [(&str, u64); 3] = [("resident", 40), ("pps", 10_000), ("milliseconds", 100)];

fn at(rate: u64) -> Point {
    let [resident, pps, length] = FEW;
    point(&CHURN, &[resident, pps, length, ("rate", rate)])
}

fn found(faults: Faults, rate: u64) -> Found {
    measure(&at(rate), &mut Simulated::new(Version::V13, faults)).unwrap()
}

#[test]
fn as_many_rules_come_and_go_as_are_wanted_and_frames_take_what_they_take() {
    let faults = Faults {
        forward: Duration::from_micros(30),
        ..Faults::default()
    };
    for rate in [0, 2_000] {
        let found = found(faults.clone(), rate);
        assert_near(&found, "changes_s", rate as f64, 30.0);
        assert_near(&found, "lost_percent", 0.0, 0.0);
        assert_near(&found, "received_kpps", 10.0, 0.1);
        // A poll for arrived frames takes time too.
        assert_near(&found, "p50_us", 32.0, 3.0);
        assert_near(&found, "quiet_p50_us", 32.0, 3.0);
        assert_near(&found, "delay_ratio", 1.0, 0.1);
        assert_near(&found, "refused", 0.0, 0.0);
        assert_eq!(found.notes, [] as [String; 0]);
    }
}

#[test]
fn a_device_that_is_behind_is_told_of_by_its_barrier() {
    let faults = Faults {
        per_message: Duration::from_millis(1),
        ..Faults::default()
    };
    // It processes 100 of 200 rules in a tenth of a second.
    let found = found(faults, 2_000);
    assert_near(&found, "behind_ms", 101.0, 3.0);
}

#[test]
fn what_is_lost_is_told_as_a_share() {
    let inner = Simulated::new(Version::V13, Faults::default());
    let mut rig = Lossy {
        inner,
        every: 20,
        sent: 0,
    };
    let found = measure(&at(1_000), &mut rig).unwrap();
    assert_near(&found, "lost_percent", 5.0, 0.2);
    assert_near(&found, "quiet_lost_percent", 5.0, 0.2);
    assert_near(&found, "received_kpps", 9.5, 0.1);
    assert!(found.notes[0].contains("lost before anything was changed"));
}

#[test]
fn what_the_device_does_not_read_is_withheld_and_what_it_refuses_counted() {
    let unread = Faults {
        reads: 100,
        ..Faults::default()
    };
    let unread = found(unread, 2_000);
    // Of the 100 messages that the device reads, 59 are of the setup; the others are part of 200.
    assert_near(&unread, "withheld", 159.0, 3.0);
    assert!(why_not(&unread, "behind_ms").contains("did not answer a barrier"));
    let full = Faults {
        capacity: 30,
        ..Faults::default()
    };
    let full = found(full, 1_000);
    assert!(why_not(&full, "p50_us").contains("refused"), "{full:?}");
}
