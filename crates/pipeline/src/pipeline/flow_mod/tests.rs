//! Properties of flow-mods that no case can state: limits, buffers, snapshots, deadlines.

use std::fmt::Write;

use base::{BufferId, Instant, TableId};
use flow::field::Depth;
use flow::{FragmentHandling, Refusal};

use crate::counters::Totals;
use crate::limits::{ACTIONS_MAX, EXPIRIES_MAX, Limits};
use crate::pipeline::Pipeline;
use crate::testing::{NOW, apply, flow, pipeline};

/// Returns the refusal of a flow-mod.
fn refusal(pipeline: &mut Pipeline, line: &str) -> Option<Refusal> {
    apply(pipeline, line).err()
}

#[test]
fn table_limit_and_total_limit_are_enforced() {
    let limits = Limits {
        rules: 3,
        rules_per_table: 2,
        ..Limits::default()
    };
    let mut pipeline = Pipeline::new(limits, 1);
    assert_eq!(refusal(&mut pipeline, "in_port=1,actions=drop"), None);
    assert_eq!(refusal(&mut pipeline, "in_port=2,actions=drop"), None);
    let full = Some(Refusal::FlowModTableFull);
    assert_eq!(refusal(&mut pipeline, "in_port=3,actions=drop"), full);
    assert_eq!(
        refusal(&mut pipeline, "table=1,in_port=1,actions=drop"),
        None
    );
    assert_eq!(
        refusal(&mut pipeline, "table=1,in_port=2,actions=drop"),
        full
    );
    // A replacement needs no space.
    assert_eq!(refusal(&mut pipeline, "in_port=2,actions=output:1"), None);
    assert_eq!(refusal(&mut pipeline, "delete in_port=2"), None);
    assert_eq!(
        refusal(&mut pipeline, "table=1,in_port=2,actions=drop"),
        None
    );
    assert_eq!(pipeline.len(), 3);
}

#[test]
fn action_limit_is_enforced() {
    let mut line = "actions=output:1".to_owned();
    for _ in 1..ACTIONS_MAX {
        let _ = write!(line, ",output:1");
    }
    let mut pipeline = pipeline(&[]);
    assert_eq!(refusal(&mut pipeline, &line), None);
    line += ",output:1";
    let too_many = Some(Refusal::ActionTooMany);
    assert_eq!(refusal(&mut pipeline, &line), too_many);
}

#[test]
fn missing_buffer_is_refused_after_the_change() {
    let mut pipeline = pipeline(&[]);
    for line in [
        "in_port=1,actions=drop",
        "modify in_port=1,actions=output:2",
    ] {
        let mut command = flow(line);
        command.buffer = Some(BufferId(7));
        let changes = pipeline.flow_mod(&command, NOW).expect("done all the same");
        assert_eq!(
            changes.deferred_refusal,
            Some(Refusal::RequestBufferUnknown)
        );
        assert_eq!(changes.added.len(), 1);
    }
    // A deletion ignores its buffer.
    let mut command = flow("delete in_port=1");
    command.buffer = Some(BufferId(7));
    let changes = pipeline.flow_mod(&command, NOW).expect("legal");
    assert_eq!((changes.deferred_refusal, changes.removed.len()), (None, 1));
}

#[test]
fn changes_name_what_came_and_what_went() {
    let mut pipeline = pipeline(&["priority=1,in_port=1,send_flow_rem,actions=drop"]);
    let changes = apply(&mut pipeline, "priority=1,in_port=1,actions=output:2").expect("legal");
    assert_eq!((changes.added.len(), changes.removed.len()), (1, 1));
    assert_eq!(changes.removed[0].reason, None);
    assert_eq!(
        changes.removed[0].flow_removed(),
        None,
        "replaced in silence"
    );
    let changes = apply(&mut pipeline, "modify actions=drop").expect("legal");
    assert_eq!((changes.added.len(), changes.removed.len()), (1, 1));
    let same = |a: &crate::Rule, b: &crate::Rule| a.counters.totals() == b.counters.totals();
    assert!(same(&changes.added[0], &changes.removed[0].rule));
}

#[test]
fn removal_reports_counts_up_to_the_request() {
    let mut pipeline = pipeline(&["in_port=1,send_flow_rem,actions=drop"]);
    let changes = apply(&mut pipeline, "delete in_port=1").expect("legal");
    let removal = &changes.removed[0];
    // A worker that still runs the older tables counts a last packet.
    let last = Totals {
        packets: 1,
        bytes: 60,
    };
    removal.rule.counters.add(1, last, NOW);
    let event = removal.flow_removed().expect("the flag is set");
    assert_eq!((event.packets, event.bytes), (1, 60));
}

#[test]
fn clone_is_a_snapshot_that_shares_the_counters() {
    let mut pipeline = pipeline(&["in_port=1,actions=output:2"]);
    let snapshot = pipeline.clone();
    apply(&mut pipeline, "delete").expect("legal");
    apply(&mut pipeline, "in_port=2,actions=drop").expect("legal");
    assert_eq!((snapshot.len(), pipeline.len()), (1, 1));
    let rule = snapshot.rules(TableId::ALL).next().expect("still there");
    assert!(rule.outputs_to(base::PortNo(2)));
    assert_eq!(snapshot.next_expiry(), None);
}

/// Returns the matches of all rules, in their order.
fn matches(pipeline: &Pipeline) -> Vec<String> {
    let rules = pipeline.rules(TableId::ALL);
    rules.map(|rule| rule.matching().to_string()).collect()
}

#[test]
fn older_rule_of_a_priority_is_first() {
    let mut pipeline = pipeline(&[
        "priority=5,in_port=3,actions=drop",
        "priority=5,in_port=1,actions=drop",
        "priority=6,in_port=4,actions=drop",
        "priority=5,in_port=2,actions=drop",
    ]);
    let order = ["in_port=4", "in_port=3", "in_port=1", "in_port=2"];
    assert_eq!(matches(&pipeline), order);
    // A replacement inherits the position.
    apply(&mut pipeline, "modify in_port=3,actions=output:1").expect("legal");
    apply(&mut pipeline, "priority=5,in_port=1,actions=output:1").expect("legal");
    assert_eq!(matches(&pipeline), order);
}

#[test]
fn clone_that_is_written_to_finds_its_rules() {
    let mut pipeline = pipeline(&["in_port=1,actions=drop", "table=3,in_port=2,actions=drop"]);
    let mut clone = pipeline.clone();
    apply(&mut pipeline, "delete in_port=1").expect("legal");
    for line in [
        "in_port=1,actions=output:2",
        "table=3,in_port=2,actions=output:2",
    ] {
        let changes = apply(&mut clone, line).expect("legal");
        assert_eq!((changes.removed.len(), clone.len()), (1, 2), "{line}");
    }
    apply(&mut clone, "delete").expect("legal");
    let changes = apply(&mut clone, "in_port=1,actions=drop").expect("legal");
    assert_eq!((changes.removed.len(), clone.len()), (0, 1));
    assert_eq!(matches(&pipeline), ["in_port=2"]);
}

#[test]
fn expiry_of_a_whole_table_is_bounded_per_call() {
    let mut pipeline = pipeline(&[]);
    for number in 0..EXPIRIES_MAX + 10 {
        let line = format!(
            "dl_src=02:00:00:00:{:02x}:{:02x},hard_timeout=5,actions=drop",
            number / 256,
            number % 256
        );
        apply(&mut pipeline, &line).expect("legal");
    }
    let end = NOW + std::time::Duration::from_secs(5);
    assert_eq!(pipeline.next_expiry(), Some(end));
    assert_eq!(pipeline.expire(end).removed.len(), EXPIRIES_MAX);
    assert_eq!(pipeline.next_expiry(), Some(end));
    assert_eq!(pipeline.expire(end).removed.len(), 10);
    assert_eq!(pipeline.next_expiry(), None);
    assert!(pipeline.is_empty());
}

#[test]
fn deadlines_are_kept_for_rules_that_are_there_and_no_others() {
    let mut pipeline = pipeline(&[]);
    for _ in 0..3 {
        apply(&mut pipeline, "in_port=1,idle_timeout=9,actions=drop").expect("legal");
        apply(&mut pipeline, "delete").expect("legal");
    }
    assert_eq!(pipeline.next_expiry(), None);
    apply(&mut pipeline, "in_port=1,idle_timeout=9,actions=drop").expect("legal");
    apply(&mut pipeline, "in_port=1,actions=drop").expect("legal");
    assert_eq!(pipeline.next_expiry(), None);
    assert!(pipeline.expire(Instant::from_secs(1000)).removed.is_empty());
}

#[test]
fn replacement_keeps_the_last_use_and_restarts_the_idle_timeout() {
    let mut pipeline = pipeline(&["in_port=1,actions=drop"]);
    let later = NOW + std::time::Duration::from_secs(20);
    for line in [
        "in_port=1,idle_timeout=9,actions=drop",
        "reset_counts,in_port=1,idle_timeout=9,actions=drop",
    ] {
        pipeline.flow_mod(&flow(line), later).expect("legal");
        let rule = pipeline.rules(TableId::FIRST).next().expect("a rule");
        let stats = rule.statistics(later + std::time::Duration::from_secs(1));
        assert_eq!(stats.idle_age.as_secs(), 21, "{line}");
        assert_eq!(stats.duration.as_secs(), 1, "{line}");
        let end = later + std::time::Duration::from_secs(9);
        assert_eq!(pipeline.next_expiry(), Some(end), "{line}");
    }
}

#[test]
fn frames_are_read_as_deep_as_the_deepest_rule_looks() {
    let mut pipeline = pipeline(&["in_port=1,dl_type=0x0800,actions=output:2"]);
    assert_eq!(pipeline.depth(), Depth::Link);
    apply(&mut pipeline, "table=9,ip,nw_dst=10.0.0.1,actions=drop").expect("legal");
    assert_eq!(pipeline.depth(), Depth::Network);
    apply(&mut pipeline, "tcp,in_port=3,actions=mod_tp_dst:5").expect("legal");
    assert_eq!(pipeline.depth(), Depth::Transport);
    apply(&mut pipeline, "modify in_port=3,actions=drop").expect("legal");
    assert_eq!(pipeline.depth(), Depth::Network);
    apply(&mut pipeline, "delete ip").expect("legal");
    assert_eq!(pipeline.depth(), Depth::Link);
    pipeline
        .set_fragments(FragmentHandling::Drop)
        .expect("supported");
    assert_eq!(pipeline.depth(), Depth::Link);
}
