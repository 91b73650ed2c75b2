//! A simulated device that executes each rule correctly, and one that only forwards.

use base::Xid;

use super::*;
use crate::catalogue::simulated::{DeviceFunction, matched_rule, offer};

/// Applies the action to a frame, after its addresses.
fn apply_action(name: &str, frame: &mut Vec<u8>) {
    match name {
        "push-vlan" => drop(frame.splice(12..12, [0x81, 0, 0x20, 100])),
        "push-qinq" => drop(frame.splice(12..12, [0x88, 0xa8, 0xa0, 200])),
        "pop-vlan" | "pop-qinq" => drop(frame.drain(12..16)),
        "push-mpls" => drop(frame.splice(12..14, [0x88, 0x47, 0x00, 0x3e, 0x87, 64])),
        "pop-mpls" => drop(frame.splice(12..18, [0x08, 0x00])),
        _ => {}
    }
}

fn load(case: &Case) -> Load {
    let pace = Pace::Constant(Rate::Frames(10_000));
    let mut load = Load::udp(150, pace, Duration::from_millis(10));
    load.frames = case.sent.clone().into();
    load.rewritten = Some(case.becomes.clone().into());
    load
}

#[test]
fn correct_tag_actions_are_accepted() {
    for name in NAMES {
        let case = Case::of(name, 150);
        let rules = case.rules().unwrap();
        let decide: DeviceFunction = Box::new(move |frame| {
            assert_eq!(matched_rule(&rules, frame), Some(1), "{name}");
            apply_action(name, frame);
            Some(10_000)
        });
        let offered = offer(&load(&case), decide);
        let stream = &offered.measurement.streams[0];
        let counts = (stream.received, stream.modified, stream.corrupt);
        assert_eq!(counts, (100, 0, 0), "{name}");
    }
}

#[test]
fn missing_tag_actions_are_counted_as_modified_frames() {
    for name in NAMES.iter().filter(|name| **name != "none") {
        let case = Case::of(name, 150);
        let offered = offer(&load(&case), Box::new(|_| Some(10_000)));
        assert_eq!(offered.measurement.streams[0].modified, 100, "{name}");
    }
}

#[test]
fn tag_rules_can_be_encoded() {
    for name in NAMES {
        for rule in Case::of(name, 72).rules().unwrap() {
            let encoded = Message::FlowMod(rule).encode(Xid(1), Version::V13, &mut Vec::new());
            assert!(encoded.is_ok(), "{name}: {encoded:?}");
        }
    }
}
