//! Frames of each kind have the bytes that its name says, and the experiment finds a simulated
//! device that modifies them.

use super::*;
use crate::catalogue::simulated::{DeviceFunction, offer, point};

fn load(kind: &str) -> Load {
    let pace = Pace::Constant(Rate::Frames(10_000));
    let mut load = Load::udp(150, pace, Duration::from_millis(20));
    load.frames = frames(kind, 150).unwrap();
    load
}

/// Returns all frames of a kind.
fn sent(kind: &str) -> Vec<Vec<u8>> {
    let all = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let into = std::sync::Arc::clone(&all);
    let decide: DeviceFunction = Box::new(move |frame| {
        into.lock().unwrap().push(frame.clone());
        Some(10_000)
    });
    let offered = offer(&load(kind), decide);
    let stream = &offered.measurement.streams[0];
    assert_eq!(
        (stream.lost, stream.modified, stream.corrupt),
        (0, 0, 0),
        "{kind}"
    );
    let all = all.lock().unwrap();
    all.clone()
}

#[test]
fn frame_kinds_have_the_bytes_of_their_names() {
    // Kinds with the offset and the bytes that identify them.
    let expected: [(&str, usize, &[u8]); 10] = [
        ("udp", 23, &[17]),
        ("tcp", 23, &[6]),
        ("icmp", 23, &[1]),
        ("ipv6-udp", 12, &[0x86, 0xdd]),
        ("vlan", 12, &[0x81, 0x00, 0x20, 100, 0x08, 0x00]),
        ("qinq", 12, &[0x88, 0xa8, 0x20, 200, 0x81, 0x00, 0x20, 100]),
        // Label 1000, traffic class 1, bottom of the stack.
        ("mpls", 12, &[0x88, 0x47, 0x00, 0x3e, 0x83, 64]),
        ("vxlan", 36, &4_789_u16.to_be_bytes()),
        ("gre", 34, &[0, 0, 0x65, 0x58]),
        ("geneve", 36, &6_081_u16.to_be_bytes()),
    ];
    for (kind, at, bytes) in expected {
        let frames = sent(kind);
        assert_eq!(frames.len(), 200, "{kind}");
        for frame in &frames {
            assert_eq!(frame.len(), 146, "{kind}");
            assert_eq!(&frame[at..at + bytes.len()], bytes, "{kind}");
        }
    }
    assert_eq!(expected.len() + 1, NAMES.len());
}

#[test]
fn mix_has_its_sizes_in_their_shares() {
    let mut count = [0; 3];
    for frame in sent("imix").iter().take(120) {
        let size = [60, 566, 1_514]
            .iter()
            .position(|size| *size == frame.len());
        count[size.unwrap()] += 1;
    }
    assert_eq!(count, [70, 40, 10]);
}

#[test]
fn modified_frames_are_counted_and_do_not_void_the_trial() {
    // It clears the priority of the inner tag in every second frame.
    let mut number = 0;
    let decide: DeviceFunction = Box::new(move |frame| {
        number += 1;
        if number % 2 == 0 {
            frame[18] = 0;
        }
        Some(10_000)
    });
    let offered = offer(&load("qinq"), decide);
    let reading = offered.reading(&point(&KINDS, &[]));
    let measured = measured(&offered, reading);
    let reading = measured.reading;
    assert_eq!(reading.figures["changed"], 100.0);
    assert_eq!(reading.figures["damaged"], 0.0);
    assert_eq!(reading.figures["loss_percent"], 0.0);
    assert!(measured.flaws.iter().all(|flaw| !flaw.void));
}
