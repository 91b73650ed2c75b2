//! Protected ports compared with Open vSwitch: no action of a rule sends a frame from one protected
//! port to another.

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![protected_ports_exchange_no_frames_by_any_action,];

/// Groups of each type, and actions of rules, each for its own UDP port.
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
    // The `in_port` at the time of the output counts.
    "load:3->NXM_OF_IN_PORT[],output:2",
    "load:2->NXM_OF_IN_PORT[],output:1",
    "load:2->NXM_OF_IN_PORT[],all",
    "resubmit(3,5),output:2",
    "load:2->NXM_NX_REG0[],output:NXM_NX_REG0[]",
    "bundle(eth_src,0,hrw,ofport,members:2)",
    "mod_nw_tos:4,output:2,mod_nw_tos:8,output:3",
    "normal",
];

/// Its frame ends a round at all hosts, also at protected ports.
const LAST_RULE: &str =
    "table=0,priority=65535,dl_type=0x88b6,actions=load:0xff00->NXM_OF_IN_PORT[],all";

/// Line of a trace for a suppressed output.
const SKIPPED_OUTPUT: &str = " >> Flow is between protected ports, skipping output.";

/// Frame that matches the rule of this number.
fn frame(number: usize) -> String {
    format!(
        "eth(dst=02:00:00:00:01:77,src=02:00:00:00:01:01)/ipv4(src=10.9.0.1,dst=10.9.0.2)/udp(dst={number},src=9)"
    )
}

fn protected_ports_exchange_no_frames_by_any_action(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
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
    let unprotected = both.deliver(1, &frames)?;
    both.vsctl("set Port p1 protected=true -- set Port p2 protected=true")?;
    let protected = both.deliver(1, &frames)?;
    let count_at =
        |lines: &[String], host| lines.iter().filter(|line| line.starts_with(host)).count();
    // Host 2 receives the frame whose `in_port` was changed, and no other.
    assert_eq!(
        (count_at(&unprotected, '2'), count_at(&protected, '2')),
        (14, 1),
        "{protected:?}"
    );
    assert_eq!(count_at(&unprotected, '3'), count_at(&protected, '3'));
    assert_eq!(count_at(&unprotected, '4'), count_at(&protected, '4'));
    both.deliver(2, &frames)?;
    both.deliver(3, &frames)?;
    let skipped_outputs = |deployment, words: &str| {
        let output = appctl(deployment, words)?;
        Ok::<_, testbed::Failure>(
            output
                .lines()
                .filter(|line| line.ends_with(SKIPPED_OUTPUT))
                .count(),
        )
    };
    let mut skipped = 0;
    for number in 0..ACTIONS.len() {
        for port in 1..=2 {
            let command = format!(
                "ofproto/trace br0 in_port={port},udp,dl_src=02:00:00:00:01:01,dl_dst=02:00:00:00:01:77,udp_dst={number}"
            );
            let count = skipped_outputs(&comporta, &command)?;
            assert_eq!(count, skipped_outputs(&ovs, &command)?, "{command}");
            skipped += count;
        }
    }
    assert_eq!(skipped, 23);
    check_packet_outs_and_mirrors(&both)
}

fn check_packet_outs_and_mirrors(both: &SideBySide<'_, '_>) -> TestResult {
    // The packet-out of a controller has the `in_port` that it names.
    for from in ["1", "3", "LOCAL", "NONE"] {
        let mut received = Vec::new();
        for deployment in both.deployments() {
            let mut capture = deployment.network.host(2).capture_frames()?;
            let hex = "0200000001770200000001018888".to_owned() + &"00".repeat(46);
            let last_frame = "ffffffffffff02000000010188b6".to_owned() + &"00".repeat(46);
            deployment.run_tool(&format!(
                "ovs-ofctl packet-out br0 in_port={from},packet={hex},actions=output:2"
            ))?;
            deployment.run_tool(&format!(
                "ovs-ofctl packet-out br0 in_port=NONE,packet={last_frame},actions=output:2"
            ))?;
            received.push(loop {
                let frame = capture.next_frame()?;
                match frame.bytes().get(12..14) {
                    Some([0x88, 0x88]) => break true,
                    Some([0x88, 0xb6]) => break false,
                    _ => {}
                }
            });
        }
        assert_eq!(received, [from != "1"; 2], "{from}");
    }
    // A mirror's output port receives no copies from another protected port.
    both.vsctl(
        "-- --id=@p get Port p2 -- --id=@m create Mirror name=m select_all=true output_port=@p \
         -- set Bridge br0 mirrors=@m",
    )?;
    let frame = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01)/data(50)";
    let copies = |from| {
        let lines = both.deliver(from, &[frame])?;
        let copies = lines.iter().filter(|line| line.starts_with('2'));
        Ok::<_, testbed::Failure>(copies.count())
    };
    assert_eq!((copies(1)?, copies(3)?), (0, 1));
    both.vsctl("set Port p1 protected=false")?;
    assert_eq!(copies(1)?, 1);
    Ok(())
}
