//! Which frames leave by which of a port's queues, when, and with what mark.

use packet::build::Stack;
use testbed::Failure;

use crate::qos::queue_classes::{QUEUES, bridge, sent, vsctl};
use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    frames_leave_by_the_queue_that_rules_name,
    queues_share_a_link_by_their_rates,
    packets_are_marked_as_their_queue_says,
];

const ETH: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)";

/// Frames to these ports of UDP, one each.
fn to(ports: impl IntoIterator<Item = u16>) -> Vec<String> {
    let frames = ports.into_iter();
    frames
        .map(|port| {
            format!(
                "{ETH} / ipv4(src=10.1.0.1,dst=10.1.0.2) / udp(src=1000,dst={port}) / data(500)"
            )
        })
        .collect()
}

pub(crate) fn send(
    network: &TestNetwork<'_>,
    ports: impl IntoIterator<Item = u16>,
) -> Result<(), Failure> {
    let frames = to(ports);
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    network.host(1).send(&frames)
}

/// What is done with frames to a port of UDP, and how many of one leave by queues 0, 1 and 7.
#[rustfmt::skip]
const RULES_OF: [(u16, &str, [u64; 3]); 13] = [
    (1, "set_queue:1,output:2", [0, 1, 0]),
    (2, "enqueue:2:7,output:3", [0, 0, 1]),
    (3, "output:2", [1, 0, 0]),
    (4, "set_queue:1,pop_queue,output:2", [1, 0, 0]),
    (5, "set_queue:5,output:2", [1, 0, 0]),
    (6, "set_queue:7,output:3,output:2,set_queue:1,output:2", [0, 1, 1]),
    (7, "set_queue:61440,output:2", [1, 0, 0]),
    (8, "set_queue:0,output:2", [1, 0, 0]),
    (9, "set_queue:7,normal", [0, 0, 1]),
    (10, "set_queue:1,resubmit(,1)", [0, 1, 0]),
    (11, "clone(set_queue:1,mod_nw_ttl:9,output:2),output:2", [1, 1, 0]),
    (12, "group:1", [1, 0, 1]),
    (13, "write_actions(set_queue:1,output:2)", [0, 1, 0]),
];

/// The classes of these queues.
const CLASSES: [&str; 3] = ["1:1", "1:2", "1:8"];

fn frames_leave_by_the_queue_that_rules_name(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    bridge(&deployment)?;
    let third = "add-port br0 p3 -- set Interface p3 ofport_request=3";
    vsctl(&deployment, third)?;
    vsctl(&deployment, QUEUES)?;
    let group = "group_id=1,type=all,bucket=set_queue:7,output:2,bucket=output:2";
    deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-group br0 {group}"))?;
    for (port, actions, _) in RULES_OF {
        let flow = format!("in_port=1,udp,tp_dst={port},actions={actions}");
        deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-flow br0 {flow}"))?;
    }
    deployment.run_tool("ovs-ofctl add-flow br0 table=1,actions=output:2")?;
    let mut wanted = [0; 3];
    let frame_bytes = 14 + 20 + 8 + 500;
    for (port, _, counts) in RULES_OF {
        send(&network, [port; 3])?;
        for (sum, count) in wanted.iter_mut().zip(counts) {
            *sum += 3 * count;
        }
        context.wait_until(&format!("frames {port} in {wanted:?}"), || {
            let sent = sent(&network, "p2")?;
            let all = wanted.map(|count| [count * frame_bytes, count, 0]);
            Ok(CLASSES.map(|class| sent[class]) == all)
        })?;
    }
    let counted = || -> Result<[u64; 3], Failure> {
        let sent = sent(&network, "p2")?;
        Ok(CLASSES.map(|class| sent[class][1]))
    };
    // Frames of several queues that come together are taken apart, and all leave.
    send(&network, (0..300).map(|place| 1 + place % 3))?;
    wanted = wanted.map(|count| count + 100);
    context.wait_until("all frames", || Ok(counted()? == wanted))?;
    // A controller's frames, too, and the counts are those of OpenFlow.
    let frame = format!("0200000000020200000000018888{}", "00".repeat(46));
    for (place, actions) in [(2, "set_queue:7,output:2"), (1, "enqueue:2:1")] {
        let words = format!("in_port=controller,packet={frame},actions={actions}");
        CommandOutput::run(
            context,
            deployment.program("ovs-ofctl packet-out br0").arg(words),
        )?
        .expect_success()?;
        wanted[place] += 1;
        context.wait_until("the controller's frame", || Ok(counted()? == wanted))?;
    }
    let told = deployment.run_tool("ovs-ofctl -O OpenFlow13 queue-stats br0 2 7")?;
    let stats = format!("pkts={}, errors=0", wanted[2]);
    assert!(told.contains(&stats), "{told}");
    let told = deployment.run_tool("ovs-appctl qos/show p2")?;
    let packets = format!("tx_packets: {}\n", wanted[1]);
    assert!(told.contains(&packets), "{told}");
    Ok(())
}

fn queues_share_a_link_by_their_rates(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    bridge(&deployment)?;
    // Three shares to one.
    vsctl(
        &deployment,
        "set Port p2 qos=@q -- --id=@q create QoS type=linux-htb other_config:max-rate=4000000 queues:1=@one queues:2=@two \
         -- --id=@one create Queue other_config:min-rate=3000000 -- --id=@two create Queue other_config:min-rate=1000000",
    )?;
    for queue in [1, 2] {
        let flow = format!("in_port=1,udp,tp_dst={queue},actions=set_queue:{queue},output:2");
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    // A class keeps a thousand frames back; the rest it drops, and says so.
    send(&network, (0..4000).map(|place| 1 + place % 2))?;
    let counts = || -> Result<[[u64; 3]; 2], Failure> {
        let sent = sent(&network, "p2")?;
        Ok(["1:2", "1:3"].map(|class| sent[class]))
    };
    context.wait_until("frames of the first queue", || Ok(counts()?[0][1] >= 400))?;
    let [one, two] = counts()?;
    assert!(
        one[1] > 2 * two[1] && one[1] < 5 * two[1],
        "{one:?} {two:?}"
    );
    context.wait_until("frames to be dropped", || {
        Ok(counts()?.iter().all(|[_, _, drops]| *drops > 0))
    })?;
    let told = deployment.run_tool("ovs-ofctl -O OpenFlow13 queue-stats br0 2 1")?;
    assert!(!told.contains("errors=0"), "{told}");
    Ok(())
}

fn packets_are_marked_as_their_queue_says(context: &TestContext) -> TestResult {
    const QUEUES: &str = "set Port p2 qos=@q -- --id=@q create QoS type=linux-htb queues:0=@z queues:1=@o queues:7=@s \
         -- --id=@z create Queue dscp=8 -- --id=@o create Queue other_config:priority=1 -- --id=@s create Queue dscp=10";
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, real) = (
        Deployment::new(&here)?,
        Deployment::in_directory(&there, "real")?,
    );
    let _daemon = ours.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&real, "")?;
    let frames = (1..=4).flat_map(|port| {
        [
            format!("{ETH} / ipv4(src=10.1.0.1,dst=10.1.0.2,tos=0x2) / udp(src=1000,dst={port}) / data(40)"),
            format!("{ETH} / vlan(vid=5) / ipv6(src=fd00::1,dst=fd00::2) / udp(src=1000,dst={port}) / data(40)"),
        ]
    });
    let frames: Vec<_> = frames.chain([format!("{ETH} / data(60)")]).collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    let mut seen = Vec::new();
    for deployment in [&ours, &real] {
        bridge(deployment)?;
        vsctl(deployment, QUEUES)?;
        for (port, actions) in [
            (1, "set_queue:7,output:2"),
            (2, "output:2"),
            (3, "set_queue:1,output:2"),
            (4, "enqueue:2:0"),
        ] {
            for kind in ["udp", "udp6"] {
                let flow = format!("in_port=1,{kind},tp_dst={port},actions={actions}");
                deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
            }
        }
        deployment
            .run_tool("ovs-ofctl add-flow br0 priority=0,in_port=1,actions=set_queue:7,output:2")?;
        // One after the other: those of several queues may overtake each other.
        let mut capture = deployment.network.host(2).capture_frames()?;
        let mut came = Vec::new();
        for frame in &frames {
            deployment.network.host(1).send(&[frame])?;
            came.push(Stack::dissect(&capture.next_frame()?).to_string());
        }
        seen.push(came);
    }
    assert_eq!(seen[0], seen[1]);
    for (place, mark) in [
        (0, "tos=42)"),
        (2, "tos=34)"),
        (4, "tos=2)"),
        (6, "tos=34)"),
    ] {
        assert!(seen[0][place].contains(mark), "{place}: {seen:?}");
    }
    // Who has none marks nothing.
    ours.vsctl("clear Port p2 qos")?;
    context.wait_until("a frame without a mark", || {
        let mut capture = here.host(2).capture_frames()?;
        here.host(1).send(&[frames[0]])?;
        Ok(!Stack::dissect(&capture.next_frame()?)
            .to_string()
            .contains("tos=42"))
    })?;
    Ok(())
}
