//! A simulated device with a flow cache and a known delay for the first frame of each flow.

use std::sync::{Arc, Mutex};

use super::*;
use crate::catalogue::simulated::{DeviceFunction, matched_rule, offer, point};
use record::Value;

const FIRST_NS: u64 = 200_000;
const LATER_NS: u64 = 20_000;

fn load(flows: &Flows) -> Load {
    let pace = Pace::Constant(Rate::Frames(50_000));
    let mut load = Load::udp(64, pace, Duration::from_millis(100));
    let flows = flows.clone();
    load.frames = Template {
        flows,
        ..Template::udp(64)
    }
    .into();
    load
}

/// Returns the addresses and ports of a frame.
fn flow_of(frame: &[u8]) -> Vec<u8> {
    frame[26..38].to_vec()
}

/// Returns a device that delays the first frame of a flow longer than the others.
fn remembering(lost_every: usize) -> DeviceFunction {
    let mut known = BTreeSet::new();
    Box::new(move |frame| match known.insert(flow_of(frame)) {
        true if known.len().is_multiple_of(lost_every) => None,
        true => Some(FIRST_NS),
        false => Some(LATER_NS),
    })
}

#[test]
fn storm_reports_the_delay_of_new_flows() {
    let flows = Flows::random(FLOWS_MAX, 1, &FIELDS);
    let one = offer(&load(&Flows::ONE), remembering(usize::MAX));
    let storm = offer(&load(&flows), remembering(10));
    let reading = reading(&point(&STORM, &[]), [&one, &storm], &flows);
    let near = |name: &str, wanted: f64, slack: f64| {
        let value = reading.figures[name];
        assert!((value - wanted).abs() <= slack, "{name}: {value}");
    };
    near("one_p50_us", 20.0, 0.5);
    near("storm_p50_us", 200.0, 1.0);
    near("delay_ratio", 10.0, 0.2);
    near("one_loss_percent", 0.0, 0.0);
    // A tenth of the first frames is lost, and a few flows repeat.
    near("storm_loss_percent", 10.0, 0.1);
    near("received_ratio", 0.9, 0.002);
    near("new_percent", 99.7, 0.3);
    assert!(reading.histograms.contains_key("storm_delay_ns"));
}

#[test]
fn storm_without_received_frames_has_no_ratio() {
    let flows = Flows::random(FLOWS_MAX, 1, &FIELDS);
    let one = offer(&load(&Flows::ONE), remembering(usize::MAX));
    let storm = offer(&load(&flows), Box::new(|_| None));
    let reading = reading(&point(&STORM, &[]), [&one, &storm], &flows);
    assert_eq!(reading.figures["storm_loss_percent"], 100.0);
    assert_eq!(reading.figures["received_ratio"], 0.0);
    assert_eq!(reading.absent["delay_ratio"], "no frame arrived");
}

#[test]
fn list_rules_match_frames_except_some() {
    let frame = Template::udp(64);
    let rules = list(&frame, 1_000).unwrap();
    let hits = Arc::new(Mutex::new(vec![0_u32; rules.len()]));
    let flows = Flows::random(FLOWS_MAX, 1, &FIELDS);
    let mut load = load(&flows);
    load.length = Duration::from_millis(60);
    let decide = {
        let hits = Arc::clone(&hits);
        move |frame: &mut Vec<u8>| {
            hits.lock().unwrap()[matched_rule(&rules, frame).unwrap()] += 1;
            Some(0)
        }
    };
    offer(&load, Box::new(decide));
    let hits = hits.lock().unwrap();
    // None of these frames match the probe rule or the rule of the other direction.
    assert_eq!((hits[0], hits[2]), (0, 0));
    let all: u32 = hits.iter().sum();
    let share = f64::from(hits[1]) / f64::from(all);
    // Each kind has a quarter of its pairs, so (3/4)^4 of the frames match none.
    assert!((share - 0.316).abs() < 0.03, "{share}");
    let missed = hits[3..].iter().filter(|hits| **hits == 0).count();
    assert!(
        missed < 300,
        "{missed} of 1000 rules matched none of {all} frames"
    );
}

#[test]
fn list_rules_are_distinct_and_optional() {
    let frame = Template::udp(64);
    let all: BTreeSet<_> = (0..u32::try_from(RULES_MAX).unwrap())
        .map(|number| pair(&frame, number).unwrap())
        .collect();
    assert_eq!(all.len() as u64, RULES_MAX);
    assert_eq!(list(&frame, 0).unwrap().len(), 3);
    assert_eq!(
        point(&STORM, &[("rules", Value::Number(0))]).number("rules"),
        0
    );
}

#[test]
fn figures_of_an_unreached_single_flow_are_removed() {
    let flows = Flows::random(FLOWS_MAX, 1, &FIELDS);
    let one = offer(&load(&Flows::ONE), remembering(usize::MAX));
    let storm = offer(&load(&flows), remembering(usize::MAX));
    let mut reading = reading(&point(&STORM, &[]), [&one, &storm], &flows);
    lack_of_one(&mut reading, "too slow");
    for name in ["one_p50_us", "delay_ratio", "received_ratio"] {
        assert_eq!(reading.absent[name], "too slow", "{name}");
    }
    assert!(reading.figures.contains_key("storm_p50_us"));
}
