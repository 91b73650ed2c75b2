//! Queue selection by rules, sharing of a link by queues, and DSCP marks of queues.

use packet::build::Stack;
use testbed::Failure;

use crate::qos::queue_classes::{QUEUES, add_bridge, class_counters, vsctl};
use crate::support::command::CommandOutput;
use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    rules_select_egress_queues,
    queues_share_a_link_by_their_min_rates,
    packets_carry_the_dscp_of_their_queue,
];

const ETH: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)";

/// Frames to these UDP ports, one each.
fn frames_to(ports: impl IntoIterator<Item = u16>) -> Vec<String> {
    let frames = ports.into_iter();
    frames
        .map(|port| {
            format!(
                "{ETH} / ipv4(src=10.1.0.1,dst=10.1.0.2) / udp(src=1000,dst={port}) / data(500)"
            )
        })
        .collect()
}

pub(crate) fn send_to_ports(
    network: &TestNetwork<'_>,
    ports: impl IntoIterator<Item = u16>,
) -> Result<(), Failure> {
    let frames = frames_to(ports);
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    network.host(1).send(&frames)
}

/// UDP port, actions, and number of copies that leave by queues 0, 1 and 7.
#[rustfmt::skip]
const QUEUE_RULES: [(u16, &str, [u64; 3]); 13] = [
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

/// Classes of these queues.
const CLASSES: [&str; 3] = ["1:1", "1:2", "1:8"];

fn rules_select_egress_queues(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    let third = "add-port br0 p3 -- set Interface p3 ofport_request=3";
    vsctl(&deployment, third)?;
    vsctl(&deployment, QUEUES)?;
    let group = "group_id=1,type=all,bucket=set_queue:7,output:2,bucket=output:2";
    deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-group br0 {group}"))?;
    for (port, actions, _) in QUEUE_RULES {
        let flow = format!("in_port=1,udp,tp_dst={port},actions={actions}");
        deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-flow br0 {flow}"))?;
    }
    deployment.run_tool("ovs-ofctl add-flow br0 table=1,actions=output:2")?;
    let mut expected = [0; 3];
    let frame_bytes = 14 + 20 + 8 + 500;
    for (port, _, counts) in QUEUE_RULES {
        send_to_ports(&network, [port; 3])?;
        for (sum, count) in expected.iter_mut().zip(counts) {
            *sum += 3 * count;
        }
        context.wait_until(
            &format!("the counters {expected:?} of frames to port {port}"),
            || {
                let counters = class_counters(&network, "p2")?;
                let all = expected.map(|count| [count * frame_bytes, count, 0]);
                Ok(CLASSES.map(|class| counters[class]) == all)
            },
        )?;
    }
    let counts = || -> Result<[u64; 3], Failure> {
        let counters = class_counters(&network, "p2")?;
        Ok(CLASSES.map(|class| counters[class][1]))
    };
    // Frames of one batch for several queues are separated, and all are sent.
    send_to_ports(&network, (0..300).map(|index| 1 + index % 3))?;
    expected = expected.map(|count| count + 100);
    context.wait_until("the counters of all frames", || Ok(counts()? == expected))?;
    // Packet-outs select queues as well, and OpenFlow's counters are equal.
    let frame = format!("0200000000020200000000018888{}", "00".repeat(46));
    for (index, actions) in [(2, "set_queue:7,output:2"), (1, "enqueue:2:1")] {
        let words = format!("in_port=controller,packet={frame},actions={actions}");
        CommandOutput::run(
            context,
            deployment.program("ovs-ofctl packet-out br0").arg(words),
        )?
        .expect_success()?;
        expected[index] += 1;
        context.wait_until(
            "the counter of the packet-out",
            || Ok(counts()? == expected),
        )?;
    }
    let output = deployment.run_tool("ovs-ofctl -O OpenFlow13 queue-stats br0 2 7")?;
    let stats = format!("pkts={}, errors=0", expected[2]);
    assert!(output.contains(&stats), "{output}");
    let output = deployment.run_tool("ovs-appctl qos/show p2")?;
    let packets = format!("tx_packets: {}\n", expected[1]);
    assert!(output.contains(&packets), "{output}");
    Ok(())
}

fn queues_share_a_link_by_their_min_rates(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    // Rates with the ratio 3:1.
    vsctl(
        &deployment,
        "set Port p2 qos=@q -- --id=@q create QoS type=linux-htb other_config:max-rate=4000000 queues:1=@one queues:2=@two \
         -- --id=@one create Queue other_config:min-rate=3000000 -- --id=@two create Queue other_config:min-rate=1000000",
    )?;
    for queue in [1, 2] {
        let flow = format!("in_port=1,udp,tp_dst={queue},actions=set_queue:{queue},output:2");
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    // A class queues 1000 frames, and counts those it drops.
    send_to_ports(&network, (0..4000).map(|index| 1 + index % 2))?;
    let counts = || -> Result<[[u64; 3]; 2], Failure> {
        let counters = class_counters(&network, "p2")?;
        Ok(["1:2", "1:3"].map(|class| counters[class]))
    };
    context.wait_until("frames by the first queue", || Ok(counts()?[0][1] >= 400))?;
    let [one, two] = counts()?;
    assert!(
        one[1] > 2 * two[1] && one[1] < 5 * two[1],
        "{one:?} {two:?}"
    );
    context.wait_until("dropped frames", || {
        Ok(counts()?.iter().all(|[_, _, drops]| *drops > 0))
    })?;
    let output = deployment.run_tool("ovs-ofctl -O OpenFlow13 queue-stats br0 2 1")?;
    assert!(!output.contains("errors=0"), "{output}");
    Ok(())
}

fn packets_carry_the_dscp_of_their_queue(context: &TestContext) -> TestResult {
    const QUEUES: &str = "set Port p2 qos=@q -- --id=@q create QoS type=linux-htb queues:0=@z queues:1=@o queues:7=@s \
         -- --id=@z create Queue dscp=8 -- --id=@o create Queue other_config:priority=1 -- --id=@s create Queue dscp=10";
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&ovs, "")?;
    let frames = (1..=4).flat_map(|port| {
        [
            format!("{ETH} / ipv4(src=10.1.0.1,dst=10.1.0.2,tos=0x2) / udp(src=1000,dst={port}) / data(40)"),
            format!("{ETH} / vlan(vid=5) / ipv6(src=fd00::1,dst=fd00::2) / udp(src=1000,dst={port}) / data(40)"),
        ]
    });
    let frames: Vec<_> = frames.chain([format!("{ETH} / data(60)")]).collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    let mut received = Vec::new();
    for deployment in [&comporta, &ovs] {
        add_bridge(deployment)?;
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
        // One after the other: frames of different queues may be reordered.
        let mut capture = deployment.network.host(2).capture_frames()?;
        let mut texts = Vec::new();
        for frame in &frames {
            deployment.network.host(1).send(&[frame])?;
            texts.push(Stack::dissect(&capture.next_frame()?).to_string());
        }
        received.push(texts);
    }
    assert_eq!(received[0], received[1]);
    for (index, tos) in [
        (0, "tos=42)"),
        (2, "tos=34)"),
        (4, "tos=2)"),
        (6, "tos=34)"),
    ] {
        assert!(received[0][index].contains(tos), "{index}: {received:?}");
    }
    // Without queues no frame is marked.
    comporta.vsctl("clear Port p2 qos")?;
    context.wait_until("a frame without a mark", || {
        let mut capture = pair.comporta.host(2).capture_frames()?;
        pair.comporta.host(1).send(&[frames[0]])?;
        Ok(!Stack::dissect(&capture.next_frame()?)
            .to_string()
            .contains("tos=42"))
    })?;
    Ok(())
}
