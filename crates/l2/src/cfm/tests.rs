//! Tests of two maintenance points at the two ends of a path, on simulated time.

use std::time::Duration;

use base::Instant;
use packet::MacAddr;
use packet::wire::cfm::{ContinuityCheck, ContinuityCheckHeader};
use packet::wire::vlan::VlanTag;
use proptest::prelude::*;

use super::*;
use config::CcmVlan;

const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn extended(mpid: u64, interval_ms: u64) -> CfmConfig {
    CfmConfig {
        mpid,
        interval: Duration::from_millis(interval_ms),
        is_extended: true,
        ..CfmConfig::default()
    }
}

/// Two points, and the path between them.
struct CfmPair {
    ends: [CfmPoint; 2],
    /// True for each direction that loses its messages, by sender.
    cut: [bool; 2],
    received: [u64; 2],
    now: Instant,
}

impl CfmPair {
    fn new(configs: [CfmConfig; 2]) -> Self {
        let now = Instant::from_secs(10);
        Self {
            ends: configs.map(|config| CfmPoint::new(config, 1, 0, now)),
            cut: [false; 2],
            received: [0; 2],
            now,
        }
    }

    /// Advances the time in steps of 100 ms.
    fn run(&mut self, millis: u64) {
        for _ in 0..millis / 100 {
            self.now += Duration::from_millis(100);
            for from in 0..2 {
                if let Some(frame) = self.ends[from].poll_transmit(OWN, self.now)
                    && !self.cut[from]
                {
                    let (header, bytes) =
                        ContinuityCheckHeader::find(frame.bytes()).expect("a message");
                    assert_eq!(header.dst, self.ends[from].address());
                    self.received[1 - from] += 1;
                    self.ends[1 - from]
                        .handle_message(bytes, self.now)
                        .expect("well formed");
                }
                let received = self.received[from];
                self.ends[from].handle_timeout(received, self.now);
            }
        }
    }

    fn faults(&self) -> [String; 2] {
        [0, 1].map(|end| self.ends[end].status().faults.to_string())
    }
}

#[test]
fn cfm_points_hear_each_other() {
    for configs in [
        [1, 2].map(|mpid| extended(mpid, 300)),
        [1, 2].map(|mpid| CfmConfig {
            mpid,
            interval: Duration::from_millis(150),
            ..CfmConfig::default()
        }),
    ] {
        let mut path = CfmPair::new(configs);
        path.run(10_000);
        assert_eq!(path.faults(), ["", ""]);
        let status = path.ends[0].status();
        assert_eq!(
            (status.health, status.heard.as_slice()),
            (Some(100), &[2][..])
        );
        assert!(path.ends[0].is_operational() && status.is_remote_up);
        assert_eq!(status.flaps, 0);
        let interval = if status.is_extended { 300 } else { 100 };
        assert_eq!(status.interval, Duration::from_millis(interval));
    }
}

#[test]
fn cfm_point_without_messages_has_a_fault_and_signals_it() {
    let mut path = CfmPair::new([1, 2].map(|mpid| extended(mpid, 100)));
    path.run(3000);
    path.cut = [true, false];
    path.run(2000);
    assert_eq!(path.faults(), ["rdi", "recv"]);
    assert!(!path.ends[0].is_operational() && !path.ends[1].is_operational());
    assert!(path.ends[1].status().heard.is_empty());
    path.cut = [false; 2];
    path.run(2000);
    assert_eq!(path.faults(), ["", ""]);
    assert_eq!([0, 1].map(|end| path.ends[end].status().flaps), [2, 2]);
}

#[test]
fn cfm_remote_point_that_is_down_disables_the_interface() {
    let down = CfmConfig {
        is_up: false,
        ..extended(2, 100)
    };
    let mut path = CfmPair::new([extended(1, 100), down]);
    path.run(3000);
    assert_eq!(path.faults(), ["", ""]);
    assert!(!path.ends[0].is_operational() && path.ends[1].is_operational());
}

#[test]
fn cfm_frames_replace_messages_in_demand_mode_for_a_while() {
    let demand = CfmConfig {
        is_demand: true,
        ..extended(1, 300)
    };
    let mut path = CfmPair::new([demand, extended(2, 300)]);
    path.run(5000);
    path.cut = [true; 2];
    for _ in 0..200 {
        path.received[0] += 1;
        path.run(100);
    }
    assert_eq!(path.faults()[0], "");
    for _ in 0..200 {
        path.received[0] += 1;
        path.run(100);
    }
    assert_eq!(path.faults()[0], "recv");
}

#[test]
fn cfm_fault_is_set_by_an_operator() {
    let mut path = CfmPair::new([1, 2].map(|mpid| extended(mpid, 100)));
    path.run(3000);
    path.ends[0].override_fault(Some(true));
    assert_eq!(path.faults()[0], "override");
    assert!(!path.ends[0].is_operational() && path.ends[0].poll_change());
    path.ends[0].override_fault(None);
    assert!(path.ends[0].is_operational());
}

#[test]
fn cfm_own_identifier_and_other_associations_are_faults() {
    let mut path = CfmPair::new([extended(1, 100), extended(1, 100)]);
    path.run(2000);
    assert_eq!(path.faults(), ["loopback", "loopback"]);
    let frame = path.ends[1]
        .poll_transmit(OWN, path.now + Duration::from_secs(1))
        .expect("it is due");
    let (_, bytes) = ContinuityCheckHeader::find(frame.bytes()).expect("a message");
    let mut message = ContinuityCheck::parse(bytes).expect("well formed");
    message.maid[47] = 1;
    let mut point = CfmPoint::new(extended(1, 100), 1, 0, path.now);
    assert_eq!(point.handle_message(&message.emit(), path.now), Ok(()));
    point.handle_timeout(0, path.now + Duration::from_secs(1));
    assert_eq!(point.status().faults.to_string(), "recv maid");
}

#[test]
fn cfm_messages_have_the_configured_tag() {
    let tagged = CfmConfig {
        vlan: CcmVlan::Vid(7),
        pcp: 5,
        ..CfmConfig::default()
    };
    let random = CfmConfig {
        vlan: CcmVlan::Random,
        ..tagged
    };
    for config in [tagged, random] {
        let mut point = CfmPoint::new(config, 1, 0, Instant::START);
        let frame = point.poll_transmit(OWN, Instant::START).expect("it is due");
        let (header, _) = ContinuityCheckHeader::find(frame.bytes()).expect("a message");
        let VlanTag { pcp, vid, .. } = header.tag.expect("it is tagged");
        assert_eq!((pcp, vid == 7), (5, config == tagged));
    }
}

proptest! {
    /// For any input, the number of remote points is limited and time advances.
    #[test]
    fn cfm_point_accepts_any_message(messages in proptest::collection::vec(
        (any::<u64>(), any::<[u8; 4]>()), 0..400)) {
        let mut point = CfmPoint::new(extended(1, 100), 1, 0, Instant::START);
        let mut other = CfmPoint::new(extended(2, 100), 1, 0, Instant::START);
        let frame = other.poll_transmit(OWN, Instant::START).expect("it is due");
        for (mpid, begin) in messages {
            let mut frame = frame.bytes().to_vec();
            frame[14..18].copy_from_slice(&begin);
            frame[15] = begin[1] % 2;
            frame[74..82].copy_from_slice(&mpid.to_be_bytes());
            let _ = point.handle_message(&frame[14..], Instant::START);
            prop_assert!(point.status().remotes.len() <= 256);
        }
    }
}
