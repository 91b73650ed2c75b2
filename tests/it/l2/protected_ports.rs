//! Ports that are protected, beside Open vSwitch: by none of what rules send does a frame go from
//! one to another.

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] =
    tests![nothing_that_a_rule_sends_goes_from_a_protected_port_to_another,];

/// Groups of all that send, and what rules do with frames of a type of their own.
const GROUPS: [&str; 3] = [
    "group_id=1,type=all,bucket=output:2,bucket=output:3",
    "group_id=2,type=indirect,bucket=output:2",
    "group_id=3,type=ff,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3",
];

const ACTIONS: [&str; 16] = [
    "output:2,output:3",
    "output:3,output:4",
    "all",
    "flood",
    "in_port",
    "group:1",
    "group:2",
    "group:3",
    // What counts is where the frame is said to have come in when it is sent.
    "load:3->NXM_OF_IN_PORT[],output:2",
    "load:2->NXM_OF_IN_PORT[],output:1",
    "load:2->NXM_OF_IN_PORT[],all",
    "resubmit(3,5),output:2",
    "load:2->NXM_NX_REG0[],output:NXM_NX_REG0[]",
    "bundle(eth_src,0,hrw,ofport,members:2)",
    "mod_nw_tos:4,output:2,mod_nw_tos:8,output:3",
    "normal",
];

/// Its frame ends a round at every host, those that are protected, too.
const LAST_RULE: &str =
    "table=0,priority=65535,dl_type=0x88b6,actions=load:0xff00->NXM_OF_IN_PORT[],all";

/// What is said where a frame is not sent.
const LEFT_OUT: &str = " >> Flow is between protected ports, skipping output.";

/// A frame that comes to the rule of this number.
fn frame(number: usize) -> String {
    format!(
        "eth(dst=02:00:00:00:01:77,src=02:00:00:00:01:01)/ipv4(src=10.9.0.1,dst=10.9.0.2)/udp(dst={number},src=9)"
    )
}

fn nothing_that_a_rule_sends_goes_from_a_protected_port_to_another(
    context: &TestContext,
) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    for deployment in both.deployments() {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {LAST_RULE}"))?;
        deployment.run_tool("ovs-ofctl add-flow br0 table=5,actions=output:2,normal")?;
        for group in GROUPS {
            deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-group br0 {group}"))?;
        }
        for (number, actions) in ACTIONS.iter().enumerate() {
            let rule = format!("priority=9,udp,tp_dst={number},actions={actions}");
            deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-flow br0 {rule}"))?;
        }
    }
    let frames: Vec<_> = (0..ACTIONS.len()).map(frame).collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    let free = both.deliver(1, &frames)?;
    both.vsctl("set Port p1 protected=true -- set Port p2 protected=true")?;
    let held = both.deliver(1, &frames)?;
    let of = |come: &[String], host| come.iter().filter(|line| line.starts_with(host)).count();
    // Where it is said to have come by another port, and nowhere else.
    assert_eq!((of(&free, '2'), of(&held, '2')), (14, 1), "{held:?}");
    assert_eq!(of(&free, '3'), of(&held, '3'));
    assert_eq!(of(&free, '4'), of(&held, '4'));
    both.deliver(2, &frames)?;
    both.deliver(3, &frames)?;
    let held_by = |deployment, words: &str| {
        let told = appctl(deployment, words)?;
        Ok::<_, testbed::Failure>(told.lines().filter(|line| line.ends_with(LEFT_OUT)).count())
    };
    let mut left_out = 0;
    for number in 0..ACTIONS.len() {
        for port in 1..=2 {
            let question = format!(
                "ofproto/trace br0 in_port={port},udp,dl_src=02:00:00:00:01:01,dl_dst=02:00:00:00:01:77,udp_dst={number}"
            );
            let count = held_by(&ours, &question)?;
            assert_eq!(count, held_by(&other, &question)?, "{question}");
            left_out += count;
        }
    }
    assert_eq!(left_out, 23);
    controllers_frames_and_copies_are_held_likewise(&both)
}

fn controllers_frames_and_copies_are_held_likewise(both: &SideBySide<'_, '_>) -> TestResult {
    // A controller's frame comes in where it says so.
    for from in ["1", "3", "LOCAL", "NONE"] {
        let mut heard = Vec::new();
        for deployment in both.deployments() {
            let mut capture = deployment.network.host(2).capture_frames()?;
            let hex = "0200000001770200000001018888".to_owned() + &"00".repeat(46);
            let last = "ffffffffffff02000000010188b6".to_owned() + &"00".repeat(46);
            deployment.run_tool(&format!(
                "ovs-ofctl packet-out br0 in_port={from},packet={hex},actions=output:2"
            ))?;
            deployment.run_tool(&format!(
                "ovs-ofctl packet-out br0 in_port=NONE,packet={last},actions=output:2"
            ))?;
            heard.push(loop {
                let frame = capture.next_frame()?;
                match frame.bytes().get(12..14) {
                    Some([0x88, 0x88]) => break true,
                    Some([0x88, 0xb6]) => break false,
                    _ => {}
                }
            });
        }
        assert_eq!(heard, [from != "1"; 2], "{from}");
    }
    // Nor does a mirror's port have copies of what came in by another.
    both.vsctl(
        "-- --id=@p get Port p2 -- --id=@m create Mirror name=m select_all=true output_port=@p \
         -- set Bridge br0 mirrors=@m",
    )?;
    let frame = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01)/data(50)";
    let copies = |from| {
        let come = both.deliver(from, &[frame])?;
        let copies = come.iter().filter(|line| line.starts_with('2'));
        Ok::<_, testbed::Failure>(copies.count())
    };
    assert_eq!((copies(1)?, copies(3)?), (0, 1));
    both.vsctl("set Port p1 protected=false")?;
    assert_eq!(copies(1)?, 1);
    Ok(())
}
