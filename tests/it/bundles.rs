//! Bundles by the real `ovs-ofctl`: all of one or none, and never half of it to a frame.

use std::fs;
use std::time::Duration;

use openflow::{
    BundleAdd, BundleControl, BundleFeaturesRequest, BundleFlags, BundleId, BundleStep, Excerpt,
    Message, MultipartReply, MultipartRequest, Version, WallTime,
};
use testbed::Failure;

use crate::ground::{Ground, Outcome, PATIENCE, Rule, rules};
use crate::peer::Peer;
use crate::rig::{Rig, Switch, program};

pub(crate) const RULES: &[Rule] = rules![
    a_bundle_is_done_whole,
    of_a_bundle_that_fails_nothing_is_done,
    no_frame_sees_half_of_a_bundle,
    a_bundle_of_many_kinds_is_done_whole,
    a_bundle_is_done_at_its_time,
];

const SECURE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";

/// Sends lines of flow-mods as one bundle.
const SEND: &str = "-O OpenFlow13 --bundle add-flows br0";

fn a_bundle_is_done_whole(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let many: Vec<_> = (1..=2000)
        .map(|port| format!("add priority={port},tcp,tp_dst={port},actions=output:2"))
        .collect();
    let lines = [&many.join("\n"), "delete tcp,tp_dst=7", "add actions=drop"].join("\n");
    for version in [13, 14, 15] {
        switch.ofctl("del-flows br0")?;
        let send = format!("-O OpenFlow{version} --bundle add-flows br0");
        switch.ofctl(&format!("{send} {}", file(ground, &lines)?))?;
        assert_eq!(switch.flows("dump-flows br0")?.len(), 2000, "{version}");
    }
    Ok(())
}

/// Groups, rules and frames in one bundle; and of one that fails, no frame leaves.
fn a_bundle_of_many_kinds_is_done_whole(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for version in [14, 15] {
        let form = format!("-O OpenFlow{version}");
        switch.ofctl(&format!("{form} del-flows br0"))?;
        switch.ofctl(&format!("{form} del-groups br0"))?;
        let frame = "ffffffffffff020000000077800045";
        let lines = format!(
            "packet-out in_port=controller,packet={frame},actions=table\n\
             group add group_id=1,type=all,bucket=output:2\n\
             flow add priority=1,in_port=1,actions=group:1\n\
             flow add priority=1,actions=output:2"
        );
        switch.ofctl(&format!("{form} bundle br0 {}", file(ground, &lines)?))?;
        let flows = switch.flows(&format!("{form} dump-flows br0"))?;
        let met = flows.iter().filter(|flow| flow.contains("n_packets=1,"));
        assert_eq!((flows.len(), met.count()), (2, 1), "{flows:?}");
        let bad = format!("{lines}\nflow delete\nflow add actions=group:7");
        let refused =
            switch.ofctl_refused(&format!("{form} bundle br0 {}", file(ground, &bad)?))?;
        assert!(refused.contains("OFPBFC_MSG_FAILED"), "{refused}");
        let after = switch.flows(&format!("{form} dump-flows br0"))?;
        assert_eq!(after, flows);
    }
    Ok(())
}

/// A commit names a time that the switch told a moment before.
fn a_bundle_is_done_at_its_time(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V15)?;
    let asked = BundleFeaturesRequest {
        flags: BundleFeaturesRequest::TIMESTAMP,
        times: None,
    };
    let question = MultipartRequest::BundleFeatures(asked);
    let answer = peer.ask(&Message::MultipartRequest(question.clone()))?;
    let time = |answer: &Message| match answer {
        Message::MultipartReply {
            reply: MultipartReply::BundleFeatures(features),
            ..
        } => features.times.expect("times are kept").now.0,
        other => panic!("{other:?}"),
    };
    let due = time(&answer) + Duration::from_millis(300);
    let step = |step| BundleControl {
        bundle: BundleId(1),
        step,
        flags: BundleFlags::TIME,
        time: Some(WallTime(due)).filter(|_| step == BundleStep::CommitRequest),
    };
    peer.ask(&Message::BundleControl(step(BundleStep::OpenRequest)))?;
    let rule = flow::text::parse_flow_line("actions=output:2").expect("a flow");
    let add = BundleAdd {
        bundle: BundleId(1),
        flags: BundleFlags::TIME,
        message: Box::new(Message::FlowMod(rule)),
        excerpt: Excerpt::of(&[]),
        length: 0,
    };
    peer.send(&Message::BundleAdd(add))?;
    let commit = peer.send(&Message::BundleControl(step(BundleStep::CommitRequest)))?;
    assert!(switch.flows("dump-flows br0")?.is_empty());
    assert_eq!(peer.answers(1)?, [commit]);
    let after = time(&peer.ask(&Message::MultipartRequest(question))?);
    assert!(
        after >= due && after < due + Duration::from_secs(5),
        "{after:?} {due:?}"
    );
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    Ok(())
}

fn of_a_bundle_that_fails_nothing_is_done(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    switch.ofctl("add-flow br0 priority=1,actions=output:1")?;
    let before = switch.flows("dump-flows br0")?;
    let lines = "delete\nadd priority=2,ip,actions=output:2\n\
                 add check_overlap,priority=2,ip,nw_src=10.0.0.1,actions=output:1";
    let complaint = switch.ofctl_refused(&format!("{SEND} {}", file(ground, lines)?))?;
    assert!(complaint.contains("OFPFMFC_OVERLAP"), "{complaint}");
    assert!(complaint.contains("OFPBFC_MSG_FAILED"), "{complaint}");
    assert_eq!(switch.flows("dump-flows br0")?, before);
    Ok(())
}

/// Two tables that forward only together: the first says by what number the second
/// knows its frames, and every bundle makes it another.
fn no_frame_sees_half_of_a_bundle(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    rig.introduce(1, 2)?;
    let switch = rig.start(SECURE)?;
    switch.ofctl("add-flow br0 in_port=2,actions=output:1")?;
    turn(ground, &switch, 0)?;
    let (one, two) = rig.pair();
    one.reach(two.address)?;
    let words = format!("fping -q -c 1000 -p 2 -t 5000 {}", two.address);
    let pings = program(&words)
        .inside(&one.namespace)
        .log(ground.file("fping.log"));
    let mut pings = ground.spawner.start(pings)?;
    let mut turns = 0;
    while pings.is_running() {
        turns += 1;
        turn(ground, &switch, turns)?;
    }
    pings.wait(PATIENCE)?;
    let said = pings.written()?;
    assert!(said.contains(" = 1000/1000/0%,"), "{said}");
    assert!(turns > 10, "{turns} bundles while frames were on their way");
    Ok(())
}

/// Makes the number of the frames on their way another, by one bundle.
fn turn(ground: &Ground, switch: &Switch<'_>, number: u32) -> Result<(), Failure> {
    let old = number.wrapping_sub(1);
    let lines = format!(
        "delete table=1,metadata={old}\n\
         add table=0,in_port=1,actions=write_metadata:{number},goto_table:1\n\
         add table=1,metadata={number},actions=output:2"
    );
    switch.ofctl(&format!("{SEND} {}", file(ground, &lines)?))?;
    Ok(())
}

/// A file with these lines, by its path.
fn file(ground: &Ground, lines: &str) -> Result<String, Failure> {
    let path = ground.file("flows");
    fs::write(&path, lines).map_err(Failure::to("write a file of flows"))?;
    Ok(path.display().to_string())
}
