//! Tests of compaction after a quiet period.

use std::time::Duration;

use super::super::compaction::quiet_period;
use super::*;

#[test]
fn tables_are_compacted_after_a_quiet_period() {
    let mut rig = Rig::new(FailMode::Secure, false);
    let add = |rig: &mut Rig, number: u32| {
        let bits = 8 + number % 20;
        let line =
            format!("priority={number},ip,nw_src=10.{number}.0.0/{bits},nw_dst=10.0.0.0/{bits}");
        let line = format!("{line},nw_tos={},actions=drop", number % 8 * 4);
        let flow_mod = text::parse_flow_line(&line).expect("a flow");
        let done = rig.bridge.do_flow_mod(&flow_mod, None, Instant::START);
        done.expect("there is room");
        drop(rig.bridge.snapshot());
        rig.pass();
    };
    let mut rules = 0..;
    while rules.start < 100 || rig.bridge.tables.compiled.rules_to_compact() == 0 {
        add(&mut rig, rules.next().expect("there is no end"));
    }
    let form = |rig: &Rig| rig.bridge.describe_tables()[0].form.clone();
    assert!(form(&rig).contains('+'), "{}", form(&rig));
    let (quiet_period, start) = (quiet_period(100), Instant::START);
    rig.bridge.handle_timeout(start);
    assert_eq!(rig.bridge.next_timeout(), Some(start + quiet_period));
    // A change restarts the quiet period.
    add(&mut rig, rules.next().expect("there is no end"));
    rig.bridge.handle_timeout(start + quiet_period);
    assert!(!rig.bridge.is_unpublished());
    assert_eq!(rig.bridge.next_timeout(), Some(start + quiet_period * 2));
    rig.bridge.handle_timeout(start + quiet_period * 2);
    assert!(rig.bridge.is_unpublished());
    drop(rig.bridge.snapshot());
    rig.pass();
    assert_eq!(form(&rig), "bits");
    rig.bridge.handle_timeout(start + quiet_period * 3);
    assert_eq!(rig.bridge.next_timeout(), None);
}

/// Larger tables wait longer, so compaction costs a small part of the control thread's time.
#[test]
fn quiet_period_grows_with_the_tables() {
    assert_eq!(quiet_period(1), Duration::from_millis(100));
    assert_eq!(quiet_period(10_000), Duration::from_millis(200));
    assert_eq!(quiet_period(1_000_000), Duration::from_secs(20));
    assert!(quiet_period(usize::MAX) > quiet_period(1_000_000));
}
