//! Properties of the group table that no case can state: limits and references.

use std::fmt::Write;

use base::TableId;
use flow::Refusal;
use flow::field::Depth;
use flow::text::parse_group_line;
use packet::Pool;

use super::*;
use crate::limits::{BUCKET_ACTIONS_MAX, BUCKETS_PER_FRAME_MAX, Limits};
use crate::pipeline::Pipeline;
use crate::rules::Changes;
use crate::testing::{NOW, apply, pipeline, run};
use crate::verdict::DropReason;

fn change(pipeline: &mut Pipeline, line: &str) -> Result<Changes, Refusal> {
    let command = parse_group_line(line).expect(line);
    pipeline.group_mod(&command, NOW)
}

fn refusal(pipeline: &mut Pipeline, line: &str) -> Option<Refusal> {
    change(pipeline, line).err()
}

fn small() -> Pipeline {
    let limits = Limits {
        groups: 2,
        buckets: 3,
        ..Limits::default()
    };
    Pipeline::new(limits, 1)
}

#[test]
fn group_limit_is_enforced() {
    let mut pipeline = small();
    assert_eq!(refusal(&mut pipeline, "group_id=1,type=all"), None);
    assert_eq!(refusal(&mut pipeline, "group_id=2,type=all"), None);
    let full = Some(Refusal::GroupModOutOfGroups);
    assert_eq!(refusal(&mut pipeline, "group_id=3,type=all"), full);
    // A replacement needs no space.
    assert_eq!(
        refusal(&mut pipeline, "modify group_id=2,type=select"),
        None
    );
    assert_eq!(refusal(&mut pipeline, "delete group_id=2"), None);
    assert_eq!(refusal(&mut pipeline, "group_id=3,type=all"), None);
}

#[test]
fn bucket_limits_are_enforced() {
    let mut pipeline = small();
    let two = "group_id=1,type=all,bucket=drop,bucket=drop";
    assert_eq!(refusal(&mut pipeline, two), None);
    let full = Some(Refusal::GroupModOutOfBuckets);
    let two = "group_id=2,type=all,bucket=drop,bucket=drop";
    assert_eq!(refusal(&mut pipeline, two), full);
    let one = "group_id=2,type=all,bucket=drop";
    assert_eq!(refusal(&mut pipeline, one), None);
    let one = "modify group_id=1,type=all,bucket=drop";
    assert_eq!(refusal(&mut pipeline, one), None);
    let two = "modify group_id=2,type=all,bucket=drop,bucket=drop";
    assert_eq!(refusal(&mut pipeline, two), None);
    let mut many = "group_id=1,type=all".to_owned();
    (0..BUCKETS_PER_GROUP_MAX).for_each(|_| many += ",bucket=drop");
    let mut roomy = Pipeline::new(Limits::default(), 1);
    assert_eq!(refusal(&mut roomy, &many), None);
    many = many.replace("group_id=1", "group_id=2") + ",bucket=drop";
    assert_eq!(refusal(&mut roomy, &many), full);
}

#[test]
fn bucket_action_limit_is_enforced() {
    let mut line = "group_id=1,type=all,bucket=output:1".to_owned();
    for _ in 1..BUCKET_ACTIONS_MAX {
        let _ = write!(line, ",output:1");
    }
    let mut pipeline = pipeline(&[]);
    assert_eq!(refusal(&mut pipeline, &line), None);
    line = line.replace("group_id=1", "group_id=2") + ",output:1";
    let too_many = Some(Refusal::ActionTooMany);
    assert_eq!(refusal(&mut pipeline, &line), too_many);
}

/// The limit of a chain holds at whichever end it grows.
#[test]
fn group_chain_limit_is_enforced() {
    let mut pipeline = pipeline(&[]);
    assert_eq!(refusal(&mut pipeline, "group_id=0,type=all"), None);
    for id in 1..=CHAIN_MAX {
        let line = format!("group_id={id},type=all,bucket=group:{}", id - 1);
        assert_eq!(refusal(&mut pipeline, &line), None, "{line}");
    }
    let too_long = Some(Refusal::GroupModChainingUnsupported);
    let line = format!("group_id=99,type=all,bucket=group:{CHAIN_MAX}");
    assert_eq!(refusal(&mut pipeline, &line), too_long);
    assert_eq!(refusal(&mut pipeline, "group_id=100,type=all"), None);
    let line = "modify group_id=0,type=all,bucket=group:100";
    assert_eq!(refusal(&mut pipeline, line), too_long);
    // In the middle, cut and joined again.
    let cut = "modify group_id=8,type=all";
    assert_eq!(refusal(&mut pipeline, cut), None);
    let line = "modify group_id=0,type=all,bucket=group:100";
    assert_eq!(refusal(&mut pipeline, line), None);
    let joined = "modify group_id=8,type=all,bucket=group:7";
    assert_eq!(refusal(&mut pipeline, joined), too_long);
}

#[test]
fn packet_bucket_limit_is_enforced() {
    let mut pipeline = pipeline(&[]);
    let leaf = "group_id=0,type=all,bucket=output:2,bucket=output:2";
    assert_eq!(refusal(&mut pipeline, leaf), None);
    for id in 1..=CHAIN_MAX {
        let below = id - 1;
        let line = format!("group_id={id},type=all,bucket=group:{below},bucket=group:{below}");
        assert_eq!(refusal(&mut pipeline, &line), None, "{line}");
    }
    apply(&mut pipeline, &format!("actions=group:{CHAIN_MAX}")).expect("legal");
    let mut pool = Pool::new(4);
    let verdict = run(&pipeline, "eth", &mut pool, &mut ());
    assert_eq!(verdict.drops, [DropReason::GroupLimit]);
    let sent = u32::try_from(verdict.egress.len()).expect("few");
    assert!(sent < BUCKETS_PER_FRAME_MAX, "{sent}");
}

#[test]
fn asking_who_is_alive_has_an_end() {
    let mut pipeline = pipeline(&[]);
    // Port 9 does not exist, so no bucket is live.
    let dead = ",bucket=watch_port:9,output:2".repeat(60);
    let leaf = format!("group_id=0,type=ff{dead}");
    assert_eq!(refusal(&mut pipeline, &leaf), None);
    for id in 1..=CHAIN_MAX {
        let dead = format!(",bucket=watch_group:{},output:2", id - 1).repeat(60);
        let line = format!("group_id={id},type=ff{dead}");
        assert_eq!(refusal(&mut pipeline, &line), None, "{line}");
    }
    apply(&mut pipeline, &format!("actions=group:{CHAIN_MAX}")).expect("legal");
    let mut pool = Pool::new(4);
    let verdict = run(&pipeline, "eth", &mut pool, &mut ());
    assert_eq!(verdict.drops, [DropReason::NoBucket]);
}

#[test]
fn copies_are_freed_when_buffers_run_out() {
    let mut pipeline = pipeline(&[]);
    let bucket = ",bucket=mod_dl_src:02:00:00:00:00:aa,output:2".repeat(4);
    let line = format!("group_id=1,type=all{bucket}");
    assert_eq!(refusal(&mut pipeline, &line), None);
    apply(&mut pipeline, "actions=output:3,group:1").expect("legal");
    let mut pool = Pool::new(3);
    let mut verdict = run(&pipeline, "eth", &mut pool, &mut ());
    let expected = [DropReason::NoBuffer, DropReason::NoBuffer];
    assert_eq!(verdict.drops[..2], expected);
    assert!(!verdict.egress.is_empty());
    verdict.frames.drain(..).for_each(|frame| pool.put(frame));
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn deleted_groups_leave_no_references() {
    let mut pipeline = pipeline(&[]);
    for _ in 0..3 {
        change(&mut pipeline, "group_id=1,type=select,bucket=output:2").expect("legal");
        let line = "group_id=2,type=ff,bucket=watch_group:1,group:1";
        change(&mut pipeline, line).expect("legal");
        apply(&mut pipeline, "in_port=1,actions=group:1,group:2").expect("legal");
        apply(&mut pipeline, "modify in_port=1,actions=group:2").expect("legal");
        apply(&mut pipeline, "in_port=2,actions=group:2,group:2").expect("legal");
        assert_eq!(pipeline.depth(), Depth::Transport);
        let references: Vec<_> = pipeline
            .group_stats(GroupId::ALL, NOW)
            .map(|stats| stats.references)
            .collect();
        assert_eq!(references, [1, 2]);
        let changes = change(&mut pipeline, "delete group_id=all").expect("legal");
        assert_eq!(changes.removed.len(), 2);
        assert_eq!(pipeline.depth(), Depth::Link);
        let table = pipeline.groups();
        assert!(table.groups.is_empty() && table.referrers.is_empty());
        assert_eq!(table.buckets, 0);
        assert_eq!(table.rules.count(GroupId(1)), 0);
        assert_eq!(pipeline.rules(TableId::ALL).count(), 0);
    }
}

#[test]
fn clone_keeps_the_group_that_the_original_changes() {
    let mut pipeline = pipeline(&[]);
    change(&mut pipeline, "group_id=1,type=all,bucket=output:2").expect("legal");
    let snapshot = pipeline.clone();
    change(&mut pipeline, "delete group_id=1").expect("legal");
    assert_eq!(snapshot.group_descs(GroupId::ALL).count(), 1);
    assert_eq!(pipeline.group_descs(GroupId::ALL).count(), 0);
}
