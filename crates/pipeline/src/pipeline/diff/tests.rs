//! Events of changes and of differences between snapshots.

use crate::pipeline::Pipeline;
use crate::rules::RuleEvent;
use crate::testing::{NOW, apply, flow, pipeline};

/// Returns a word and a priority for each event.
fn told(rule_events: impl Iterator<Item = RuleEvent>) -> Vec<String> {
    let one = |rule_event: RuleEvent| {
        let word = format!("{:?}", rule_event.event);
        let old = if rule_event.old.is_some() {
            " again"
        } else {
            ""
        };
        format!("{} {word}{old}", rule_event.rule.priority())
    };
    rule_events.map(one).collect()
}

fn happened(pipeline: &mut Pipeline, line: &str) -> Vec<String> {
    told(apply(pipeline, line).expect(line).rule_events())
}

#[test]
fn change_reports_the_event_of_each_rule() {
    let mut pipeline = pipeline(&["priority=1,actions=drop"]);
    let again = "priority=1,actions=output:1";
    assert_eq!(happened(&mut pipeline, again), ["1 Added again"]);
    assert_eq!(happened(&mut pipeline, again), ["1 Added again"]);
    let other = "priority=2,in_port=1,actions=drop";
    assert_eq!(happened(&mut pipeline, other), ["2 Added"]);
    let both = "modify actions=output:2";
    let modified = ["2 Modified again", "1 Modified again"];
    assert_eq!(happened(&mut pipeline, both), modified);
    assert_eq!(happened(&mut pipeline, both), [""; 0], "nothing is another");
    let gone = ["2 Removed(Delete)", "1 Removed(Delete)"];
    assert_eq!(happened(&mut pipeline, "delete"), gone);
}

#[test]
fn diff_reports_each_rule_once_and_in_pieces() {
    let mut pipeline = pipeline(&[
        "priority=9,actions=drop",
        "priority=8,actions=drop",
        "priority=7,actions=drop",
        "priority=6,actions=drop",
    ]);
    let before = pipeline.clone();
    for line in [
        "delete_strict priority=9",
        "modify_strict priority=8,actions=output:1",
        "modify_strict priority=6,actions=output:1",
        "modify_strict priority=6,actions=drop",
        "table=3,priority=5,actions=drop",
        "table=3,priority=4,actions=drop",
        "delete_strict table=3,priority=4",
    ] {
        apply(&mut pipeline, line).expect(line);
    }
    let later = NOW + std::time::Duration::from_secs(1);
    let again = flow("priority=7,actions=drop");
    pipeline.flow_mod(&again, later).expect("there is room");
    let all = [
        "9 Removed(Delete)",
        "8 Modified again",
        "7 Added again",
        "5 Added",
    ];
    let changes = |last| pipeline.diff_since(Some(&before), last);
    assert_eq!(told(changes(None)), all);
    let mut last = None;
    let mut pieces = Vec::new();
    loop {
        let next = pipeline.diff_since(Some(&before), last.as_deref()).next();
        let Some(next) = next else { break };
        last = Some(std::sync::Arc::clone(&next.rule));
        pieces.extend(told([next].into_iter()));
    }
    assert_eq!(pieces, all);
    let first = told(pipeline.diff_since(None, None));
    assert_eq!(first, ["8 Initial", "7 Initial", "6 Initial", "5 Initial"]);
    assert_eq!(told(before.diff_since(Some(&before), None)), [""; 0]);
}

/// Rules of one priority are in the order of their addition, whatever they match.
#[test]
fn rules_of_one_priority_are_distinguished_in_any_order() {
    let ports = [3, 1, 4, 2];
    let mut pipeline = pipeline(&[]);
    for port in ports {
        let line = format!("priority=7,in_port={port},actions=drop");
        apply(&mut pipeline, &line).expect(&line);
    }
    let before = pipeline.clone();
    let matched = |rule_event: RuleEvent| {
        let port = rule_event.rule.matching().exact(flow::Field::InPort);
        format!("{:?} {:?}", port.expect("all match one"), rule_event.event)
    };
    let told = |now: &Pipeline| -> Vec<_> {
        let changes = now.diff_since(Some(&before), None);
        changes.map(matched).collect()
    };
    apply(&mut pipeline, "delete_strict priority=7,in_port=3").expect("it is there");
    assert_eq!(told(&pipeline), ["3 Removed(Delete)"]);
    apply(&mut pipeline, "priority=7,in_port=3,actions=drop").expect("there is room");
    assert_eq!(told(&pipeline), ["3 Removed(Delete)", "3 Added"]);
    apply(
        &mut pipeline,
        "modify_strict priority=7,in_port=2,actions=output:1",
    )
    .expect("it is there");
    let all = ["3 Removed(Delete)", "2 Modified", "3 Added"];
    assert_eq!(told(&pipeline), all);
}
