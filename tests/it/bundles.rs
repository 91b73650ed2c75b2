//! Bundles by the real `ovs-ofctl`: all of one or none, and never half of it to a frame.

use std::fs;

use testbed::Failure;

use crate::ground::{Ground, Outcome, PATIENCE, Rule, rules};
use crate::rig::{Rig, Switch, program};

pub(crate) const RULES: &[Rule] = rules![
    a_bundle_is_done_whole,
    of_a_bundle_that_fails_nothing_is_done,
    no_frame_sees_half_of_a_bundle,
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
    switch.ofctl(&format!("{SEND} {}", file(ground, &lines)?))?;
    assert_eq!(switch.flows("dump-flows br0")?.len(), 2000);
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
