//! Each frame matches its rule and no other, and no two rules have the same mask.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::*;
use crate::catalogue::simulated::{matched_rule, offer};

#[test]
fn mask_frames_match_their_rule_and_no_other() {
    let count = 1_000;
    let rules = rules(count).unwrap();
    let pace = Pace::Constant(Rate::Frames(100_000));
    let mut load = Load::udp(64, pace, Duration::from_millis(20));
    load.frames = frames(0..count).unwrap();
    let matches = Arc::new(Mutex::new(Vec::new()));
    let decide = {
        let matches = Arc::clone(&matches);
        move |frame: &mut Vec<u8>| {
            let place = matched_rule(&rules, frame)?;
            let others = rules
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let others: Vec<FlowMod> = others.map(|(_, rule)| rule.clone()).collect();
            assert_eq!(matched_rule(&others, frame), None);
            matches.lock().unwrap().push(place);
            Some(10_000)
        }
    };
    let offered = offer(&load, Box::new(decide));
    let matches = matches.lock().unwrap();
    // Two frames for each rule, and an order that differs from the order of priorities.
    assert_eq!(matches.len(), 2_000);
    let (first, second) = matches.split_at(1_000);
    assert_eq!(first, second);
    let different: BTreeSet<usize> = first.iter().copied().collect();
    assert_eq!(different.len(), 1_000);
    assert!(!first.is_sorted());
    let stream = &offered.measurement.streams[0];
    assert_eq!((stream.lost, stream.modified), (0, 0));
}

#[test]
fn mask_rules_have_different_masks() {
    let all: BTreeSet<[u32; 2]> = (0..LENGTHS * LENGTHS).map(lengths).collect();
    assert_eq!(all.len(), 1_024);
    let bits = |[source, destination]: &[u32; 2]| {
        (1..=32).contains(source) && (1..=32).contains(destination)
    };
    assert!(all.iter().all(bits));
}

#[test]
fn last_mask_rule_has_the_lowest_priority() {
    let rules = rules(100).unwrap();
    let frames = frames(99..100).unwrap();
    let (frame, _) = &frames.parts()[0];
    let last = rules.last().unwrap();
    let accepts = last.matching.term(Field::Ipv4Src).unwrap();
    assert_eq!(
        u128::from(frame.source.ipv4.to_bits()) & accepts.mask,
        accepts.value
    );
    let towards_server = rules[2..].iter();
    assert!(
        towards_server
            .clone()
            .all(|rule| rule.priority >= last.priority)
    );
}
