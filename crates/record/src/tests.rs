//! Records as they are written and read.

use super::*;
use crate::fixture;

#[test]
fn records_round_trip_through_json() {
    for entry in fixture::entries() {
        let line = serde_json::to_string(&entry).unwrap();
        assert!(!line.contains('\n'));
        assert!(
            serde_json::from_str::<Entry>(&line).unwrap() == entry,
            "{line}"
        );
    }
}

#[test]
fn record_format_is_that_of_schema_1() {
    // A change here is a new schema: readers of old records must keep reading them.
    let line = r#"{"kind":"trial","id":"echo/match_set=ip/ovs/1","scenario":"echo","device":"ovs","run":1,"order":0,"started":"2026-01-02T03:04:05.678Z","seconds":0.5,"flaws":[{"void":false,"reason":"why"}],"conditions":{"seconds":0.4,"steal":0.0,"pressure":0.02,"tester_busy":1.0,"device_busy":0.5,"process":{"user_seconds":0.1,"system_seconds":0.2,"resident_bytes":4096}},"outcome":{"reading":{"point":{"match_set":"ip"},"figures":{"loss":0.5},"of":{"loss":2},"samples":{"round_trip_ns":[51000,null]},"openflow":{"packet_ins":0,"towards_server":2,"towards_client":1}}}}"#;
    let entry: Entry = serde_json::from_str(line).unwrap();
    assert_eq!(serde_json::to_string(&entry).unwrap(), line);
    let Entry::Trial(trial) = entry else {
        panic!("a trial");
    };
    assert!(trial.is_valid());
}

#[test]
fn trial_with_a_void_flaw_or_without_results_is_invalid() {
    let mut trial = fixture::echo_trial("ovs", 1, "ip", 64);
    assert!(trial.is_valid());
    trial.flaws.push(Flaw {
        void: true,
        reason: "why".to_owned(),
    });
    assert!(!trial.is_valid());
    trial.flaws.clear();
    trial.reading = None;
    assert!(!trial.is_valid());
    let line = serde_json::to_string(&trial).unwrap();
    assert!(line.ends_with(r#""outcome":null}"#), "{line}");
}
