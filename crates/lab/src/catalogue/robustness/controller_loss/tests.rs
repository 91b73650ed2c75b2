//! A simulated device that loses frames without its controller, and then forwards by itself.

use testbed::DeviceKind;

use super::*;
use crate::catalogue::simulated::{DeviceFunction, matched_rule, offer_both, point};
use record::Value;

/// Returns a device that loses the frames with these numbers, and delays the others by 15 µs.
fn but(lost: std::ops::Range<u64>) -> DeviceFunction {
    let mut number = 0;
    Box::new(move |_| {
        number += 1;
        (!lost.contains(&number)).then_some(15_000)
    })
}

fn at(after_millis: u64) -> Point {
    let after = Value::Number(after_millis);
    point(&CONTROLLER_LOSS, &[("after-millis", after)])
}

#[test]
fn controller_loss_reports_losses_and_standalone_forwarding() {
    let point = at(100);
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let mut load = Load::udp(64, pace, length(&point));
    load.bidirectional = true;
    // 3,500 frames in all; the other direction drops all but 400.
    let back = Box::new({
        let mut number = 0;
        move |_: &mut Vec<u8>| {
            number += 1;
            (1_000..1_400).contains(&number).then_some(15_000)
        }
    });
    let offered = offer_both(&load, but(2_000..2_500), back);
    let reconnected = Some(Duration::from_millis(700));
    let reading = reading(&point, &offered, reconnected, 2.0 / 3.0);
    let near = |name: &str, wanted: f64, slack: f64| {
        let value = reading.figures[name];
        assert!((value - wanted).abs() <= slack, "{name}: {value}");
    };
    near("called_ms", 700.0, 0.0);
    near("lost", 500.0, 0.0);
    near("outage_ms", 50.0, 0.1);
    near("p99_us", 15.0, 1.0);
    near("by_itself_ms", 40.0, 0.0);
    near("rules_kept_percent", 66.7, 0.1);
}

#[test]
fn device_that_keeps_forwarding_has_no_outage() {
    let point = at(10);
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let mut load = Load::udp(64, pace, length(&point));
    load.bidirectional = true;
    let offered = offer_both(&load, but(0..0), Box::new(|_| None));
    let reading = reading(&point, &offered, None, 1.0);
    assert!(reading.absent["called_ms"].contains("did not notice"));
    for name in ["lost", "outage_ms", "by_itself_ms"] {
        assert_eq!(reading.figures[name], 0.0, "{name}");
    }
}

#[test]
fn frames_to_the_server_have_a_rule_and_others_are_dropped() {
    let rules = rules();
    let out = rules.iter().map(|rule| rule.instructions.apply.len());
    assert_eq!(out.collect::<Vec<_>>(), [0, 1, 0]);
    let frame = crate::frames::UdpFrame {
        eth_src: [2, 0, 0, 0, 0, 1],
        eth_dst: [2, 0, 0, 0, 0, 2],
        tag: None,
        ip_src: [10, 0, 0, 1].into(),
        ip_dst: [10, 0, 0, 2].into(),
        dscp: 0,
        udp_src: 1,
        udp_dst: 2,
        payload: 4,
    };
    assert_eq!(matched_rule(&rules, &frame.sized(64).bytes(1)), Some(1));
}

#[test]
fn reconnection_limit_exceeds_the_probe_interval() {
    // Open vSwitch probes after five seconds of silence, and disconnects five seconds later.
    let silent = at(100).with("loss", Value::word("silent"));
    assert_eq!(away(&silent), Duration::ZERO);
    assert!(RECONNECT_LIMIT > Duration::from_secs(2 * 5 + 8));
    let paper = record::Settings::default();
    let points = paper.points(&CONTROLLER_LOSS.description).unwrap();
    assert_eq!(points.len(), 4);
    assert!(
        points
            .iter()
            .all(|point| length(point) > Duration::from_secs(20))
    );
}

#[test]
fn standalone_device_has_a_dedicated_setup() {
    let setup = |point: &Point| CONTROLLER_LOSS.dedicated_setup(DeviceKind::Ovs, point);
    let point = at(100);
    assert!(setup(&point).is_none());
    let standalone = point.with("fail", Value::word("standalone"));
    assert!(setup(&standalone).is_some());
}
