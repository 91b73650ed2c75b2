//! A simulated device that forwards a limited number of flows.

use super::*;
use crate::catalogue::simulated::{
    DIGITS, Faults, SimulatedPlane, assert_near, figure, point, void,
};
use record::Value;

fn measured(rules: &str, order: &str, flows: u64, faults: Faults) -> (TrialResult, u64) {
    let values = [
        ("rules", Value::word(rules)),
        ("order", Value::word(order)),
        ("flows", Value::Number(flows)),
        ("pps", Value::Number(10_000)),
        ("millis", Value::Number(100)),
    ];
    let mut device = SimulatedPlane::new(faults);
    let measured = measure(&point(&FLOWS, &values), &mut device).unwrap();
    (measured, device.done[0].sent)
}

#[test]
fn device_without_flow_state_has_equal_results() {
    for (rules, order, flows) in [
        ("port", "sequential", 1),
        ("list", "sequential", 1_000),
        ("list", "random", 100_000),
    ] {
        let (measured, sent) = measured(rules, order, flows, Faults::slow(12_000, 0));
        assert_eq!(sent, 1_000);
        assert_near(&measured, "p50_us", 12.0, DIGITS);
        assert_near(&measured, "received_kpps", 10.0, 1e-3);
        assert_eq!(figure(&measured, "loss_percent"), 0.0, "{rules} {order}");
        assert!(void(&measured).is_empty());
    }
}

#[test]
fn device_with_limited_flows_loses_the_others() {
    let few = || Faults {
        flows: 250,
        ..Faults::default()
    };
    let (sequential, _) = measured("list", "sequential", 500, few());
    assert_eq!(figure(&sequential, "loss_percent"), 50.0);
    let (one, _) = measured("list", "sequential", 1, few());
    assert_eq!(figure(&one, "loss_percent"), 0.0);
    // Almost every frame has a new flow; only the first flows pass.
    let (random, _) = measured("list", "random", 1_000_000, few());
    assert_near(&random, "loss_percent", 75.0, 0.01);
}

#[test]
fn linear_rule_search_appears_in_the_delay() {
    let slow = || Faults {
        rule: Duration::from_micros(5),
        ..Faults::slow(10_000, 0)
    };
    let (by_list, _) = measured("list", "random", 100, slow());
    assert_near(&by_list, "p50_us", 10.0 + 5.0 * 5.0, DIGITS);
}
