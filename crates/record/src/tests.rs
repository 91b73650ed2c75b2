//! Records as they are written and read again.

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
fn the_form_is_that_of_schema_1() {
    // A change here is a new schema: readers of old records must keep reading them.
    let line = r#"{"kind":"trial","id":"echo/ip/64/ovs/1","scenario":"echo","device":"ovs","run":1,"order":0,"started":"2026-01-02T03:04:05.678Z","seconds":0.5,"flaws":[{"void":false,"reason":"why"}],"conditions":{"seconds":0.4,"steal":0.0,"pressure":0.02,"tester_busy":1.0,"device_busy":0.5,"process":{"user_seconds":0.1,"system_seconds":0.2,"resident_bytes":4096}},"outcome":{"echo":{"match_set":"ip","frame_bytes":64,"prober":"solo","warm_up":500,"warm_up_lost":0,"served":503,"seconds":0.3,"round_trip_ns":[51000,null,49000],"openflow":{"packet_ins":0,"towards_server":503,"towards_client":503}}}}"#;
    let entry: Entry = serde_json::from_str(line).unwrap();
    assert_eq!(serde_json::to_string(&entry).unwrap(), line);
    let Entry::Trial(trial) = entry else {
        panic!("a trial");
    };
    assert!(trial.is_valid());
}

#[test]
fn a_void_flaw_or_no_outcome_makes_a_trial_worthless() {
    let mut trial = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
    assert!(trial.is_valid());
    trial.flaws.push(Flaw {
        void: true,
        reason: "why".to_owned(),
    });
    assert!(!trial.is_valid());
    trial.flaws.clear();
    trial.outcome = None;
    assert!(!trial.is_valid());
}
