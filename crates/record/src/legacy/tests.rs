//! Conversion of real records: one trial or more of each old shape, and those of the first labs.

use crate::{Entry, Reading, Trial, Value, fixture, journal};

/// Run of an earlier version, with every shape (`comporta lab run ... --quick --runs 1`).
const RUN: &str = fixture::OLD_SHAPES;
/// Lines of the first versions.
const FIRST: &str = fixture::SCHEMA_1;

fn trials(text: &str) -> Vec<Trial> {
    let entries = journal::entries(text).into_iter();
    let trials = entries.filter_map(|entry| match entry {
        Entry::Trial(trial) => Some(*trial),
        Entry::Session(_) => None,
    });
    trials.collect()
}

/// Returns the reading of the trial with this identifier.
fn reading(id: &str) -> Reading {
    let all = trials(RUN);
    let ids: Vec<&str> = all.iter().map(|trial| trial.id.as_str()).collect();
    let found = all.iter().find(|trial| trial.id == id);
    let found = found.unwrap_or_else(|| panic!("no {id} in {ids:?}"));
    found.reading.clone().expect("the trial has results")
}

/// Returns the number in `path` of the old results of the trial with this identifier.
fn old(id: &str, path: &str) -> f64 {
    let lines = RUN.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines = lines.filter(|line: &serde_json::Value| line["id"] == id);
    let line = lines.next().unwrap_or_else(|| panic!("no {id}"));
    let value = line.pointer(&format!("/outcome/{path}"));
    value.and_then(serde_json::Value::as_f64).unwrap()
}

fn assert_near(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-9 * expected.abs(),
        "{value} instead of {expected}"
    );
}

#[test]
fn legacy_record_shapes_convert_to_readings() {
    for (text, valid) in [(RUN, 28), (FIRST, 7)] {
        let trials = trials(text);
        let readings = trials.iter().filter(|trial| trial.reading.is_some());
        assert_eq!(readings.count(), valid);
    }
}

#[test]
fn echo_keeps_its_samples_and_parameters() {
    let reading = reading("echo/match_set=ip/frame_bytes=64/comporta/1");
    assert_eq!(reading.samples["round_trip_ns"].len(), 40);
    assert_eq!(reading.of["loss"], 40);
    assert_eq!(reading.point.number("packets"), 40);
    assert_eq!(reading.point.word("prober"), "solo");
    let first = old("echo/ip/64/comporta/1", "echo/round_trip_ns/0");
    assert_eq!(
        reading.samples["round_trip_ns"][0].map(f64::from),
        Some(first)
    );
    assert_eq!(reading.openflow.unwrap().packet_ins, 0);
}

#[test]
fn tcp_throughput_and_requests_keep_their_rates() {
    let id = "tcp-throughput/comporta/1";
    let tcp = reading(id);
    assert_near(
        tcp.figures["bit_s"],
        old(id, "tcp-throughput/bits_per_second"),
    );
    assert_eq!(tcp.point.number("seconds"), 1);
    assert_eq!(tcp.point.word("direction"), "forward");
    assert!(tcp.figures["cpu_percent"] > 0.0);
    assert!(
        reading("tcp-throughput/direct/1")
            .absent
            .contains_key("cpu_percent")
    );
    let id = "tcp-requests/direct/1";
    let rate = old(id, "requests/answered") / old(id, "requests/seconds");
    assert_near(reading(id).figures["requests_s"], rate);
}

#[test]
fn forwarding_rate_keeps_its_counts() {
    let flat_out = reading("forwarding-rate/offer=flat-out/comporta/1");
    let id = "forwarding-rate/flat-out/comporta/1";
    let [offered, received] =
        ["offered", "received"].map(|name| old(id, &format!("forwarding-rate/{name}")));
    let seconds = old(id, "forwarding-rate/seconds");
    assert_near(flat_out.figures["offered_pps"], offered / seconds);
    assert_near(flat_out.figures["received_pps"], received / seconds);
    assert_near(flat_out.of["loss"] as f64, offered);
    assert_eq!(flat_out.point.get("offer"), Some(&Value::word("flat-out")));
    assert_eq!(flat_out.point.number("millis"), 100);
    let paced = reading("forwarding-rate/offer=5000/direct/1");
    assert!(paced.absent.contains_key("ingress_share"));
}

#[test]
fn flow_table_memory_is_relative_to_the_empty_process() {
    let id = "flow-table/comporta/1";
    let table = reading(id);
    assert_near(
        table.figures["add_s"],
        500.0 / old(id, "flow-table/add_seconds"),
    );
    assert_eq!(
        table.figures["resident_flow_bytes"],
        table.figures["flow_bytes"]
    );
    assert_near(
        table.figures["tell_ms"],
        old(id, "flow-table/tell_seconds") * 1e3,
    );
}

#[test]
fn meters_and_changes_keep_their_parameters() {
    let meter = reading("meters/unit=kilobits/act=remark/pps=1000/comporta/1");
    assert_eq!(meter.point.number("seconds"), 2);
    assert_eq!(meter.series["passed_pps"].len(), 1);
    let effect = reading("changes/test=effect/comporta/1");
    assert_eq!(effect.point.number("rate"), 4_000);
    assert_eq!(effect.point.number("flow-mods"), 10_000);
    assert!(!effect.samples["effect_ns"].is_empty());
    let quiet = reading("changes/test=quiet/comporta/1");
    assert!(quiet.absent["late"].contains("not changed"));
}

#[test]
fn change_of_the_first_labs_has_the_test_of_its_identifier() {
    let trials = trials(FIRST);
    let change = trials.iter().find(|trial| trial.experiment == "changes");
    let reading = change.and_then(|trial| trial.reading.as_ref()).unwrap();
    assert_eq!(reading.point.word("test"), "effect");
}
