//! What collectors are told of flows of which each frame is counted.

use std::collections::BTreeMap;

use testbed::Failure;

use crate::export::collector::Collector;
use crate::export::sflow_ipfix::{self, both, set_up, tell_by_ipfix};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    netflow_tells_of_flows_as_open_vswitch_does,
    what_is_kept_of_flows_is_told_when_their_row_goes,
    what_is_kept_for_collectors_is_told_before_a_bridge_goes,
];

/// Frames from host 1, and how many of each.
const FRAMES: [(&str, usize); 8] = [
    (
        "eth/ipv4(src=10.1.0.1,dst=10.1.0.2)/udp(src=1000,dst=2000)",
        5,
    ),
    (
        "eth/ipv4(src=10.1.0.1,dst=10.1.0.2)/tcp(src=1001,dst=80,flags=S)",
        1,
    ),
    (
        "eth/ipv4(src=10.1.0.1,dst=10.1.0.2)/tcp(src=1001,dst=80,flags=A)",
        2,
    ),
    (
        "eth/vlan(vid=7,pcp=3)/ipv4(src=10.1.0.1,dst=10.1.0.3)/udp(src=5,dst=6)",
        1,
    ),
    (
        "eth/ipv4(src=10.1.0.1,dst=10.1.0.2,tos=0xbb)/icmp(type=8,code=3)",
        2,
    ),
    ("eth/ipv4(src=10.1.0.1,dst=10.1.0.2)/udp(src=1002,dst=9)", 3),
    ("eth/ipv4(src=10.1.0.1,dst=10.1.0.2)/udp(src=1002,dst=8)", 3),
    ("eth/ipv6(src=fd00::1,dst=fd00::2)/udp(src=53,dst=53)", 3),
];

/// As many of them as are told of: those of IPv4.
const TOLD: u64 = 17;

/// What is sent until somebody is heard to be told.
const FIRST: &str = "eth/ipv4(src=10.9.0.1,dst=10.1.0.2)/udp(src=1,dst=1)";

/// What else becomes of frames.
const MORE_FLOWS: [&str; 2] = [
    "priority=5,in_port=1,udp,tp_dst=9,actions=drop",
    "priority=5,in_port=1,udp,tp_dst=8,actions=normal",
];

/// Frames that this bridge is told to count, and a collector that has heard of some.
fn count(deployment: &Deployment<'_, '_>, with: &str) -> Result<(), Failure> {
    for flow in MORE_FLOWS {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    deployment.vsctl(&format!(
        "-- --id=@n create NetFlow {with} -- set Bridge br0 netflow=@n"
    ))?;
    Ok(())
}

/// What of a record is the same, whoever tells it: what tshark calls it begins so.
const FIELDS: [&str; 11] = [
    "SrcAddr",
    "DstAddr",
    "NextHop",
    "InputInt",
    "OutputInt",
    "SrcPort",
    "DstPort",
    "TCP Flags",
    "Protocol",
    "IP ToS",
    "SrcAS",
];

/// What of flows is told, and their packets and octets.
type Flows = BTreeMap<String, [u64; 2]>;

/// Flows of our frames: what they are, and their packets and octets, over all records of each.
fn flows(lines: &[String]) -> Flows {
    let mut flows = BTreeMap::new();
    for lines in lines.split(|line| line.starts_with("pdu ")) {
        let mut told = String::new();
        let mut counts = [0; 2];
        // Behind the last of a datagram there are words of the next.
        let ends = |line: &&String| !line.contains(" bytes on wire ");
        for line in lines.iter().take_while(ends) {
            let number = |name| {
                let rest = line.strip_prefix(name)?;
                rest.parse::<u64>().ok()
            };
            if FIELDS.iter().any(|field| line.starts_with(field)) {
                told += line;
                told.push('\n');
            } else if let Some(packets) = number("Packets: ") {
                counts[0] = packets;
            } else if let Some(octets) = number("Octets: ") {
                counts[1] = octets;
            }
        }
        if told.contains("SrcAddr: 10.1.0.1") {
            let sum = flows.entry(told).or_insert([0; 2]);
            (sum[0], sum[1]) = (sum[0] + counts[0], sum[1] + counts[1]);
        }
    }
    flows
}

/// What is told of all frames.
fn told(deployment: &Deployment<'_, '_>) -> Result<(Vec<String>, Flows), Failure> {
    let mut collector = Collector::new(deployment.network)?;
    let target = collector.target();
    count(
        deployment,
        &format!("targets=\"{target}\" active_timeout=1"),
    )?;
    let host = deployment.network.host(1);
    deployment.network.context.wait_until("a flow", || {
        host.send(&[FIRST])?;
        let heard = collector.heard("cflow")?;
        Ok(heard.iter().any(|line| line.contains("10.9.0.1")))
    })?;
    for (frame, count) in FRAMES {
        host.send(&vec![frame; count])?;
    }
    let flows = collector.wait_for("cflow", "all frames", |lines| {
        let flows = flows(lines);
        let packets: u64 = flows.values().map(|[packets, _]| packets).sum();
        (packets >= TOLD).then_some(flows)
    })?;
    let mut engine = collector.heard("cflow")?;
    engine.retain(|line| line.starts_with("Engine") || line.starts_with("Sampl"));
    engine.sort_unstable();
    engine.dedup();
    Ok((engine, flows))
}

fn netflow_tells_of_flows_as_open_vswitch_does(context: &TestContext) -> TestResult {
    let [ours, theirs] = both(context, told)?;
    assert_eq!(ours, theirs);
    let packets: u64 = ours.1.values().map(|[packets, _]| packets).sum();
    assert_eq!(packets, TOLD, "{ours:?}");
    Ok(())
}

/// Flows are kept until nothing comes of them for a while: here they are told before.
fn what_is_kept_of_flows_is_told_when_their_row_goes(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    set_up(&deployment)?;
    let mut collector = Collector::new(&network)?;
    let target = collector.target();
    let with = format!(
        "targets=\"{target}\" active_timeout=-1 engine_id=3 engine_type=4 add_id_to_interface=true"
    );
    count(&deployment, &with)?;
    network.host(1).send(&[FRAMES[0].0; 5])?;
    context.wait_until("frames to pass", || {
        let flows = deployment.run_tool("ovs-ofctl dump-aggregate br0 in_port=1")?;
        Ok(flows.contains("packet_count=5 "))
    })?;
    deployment.vsctl("clear Bridge br0 netflow")?;
    let told = collector.wait_for("cflow", "the flow", |lines| {
        let flows = flows(lines);
        (!flows.is_empty()).then_some(flows)
    })?;
    let (what, counts) = told.first_key_value().expect("there is one");
    assert_eq!(counts[0], 5, "{told:?}");
    let (input, output) = (3 << 9 | 1, 3 << 9 | 2);
    let wanted = format!("InputInt: {input}\nOutputInt: {output}\n");
    assert!(what.contains(&wanted), "{what}");
    let heard = collector.heard("cflow")?;
    for told in ["EngineType: Unknown (4)", "EngineId: 3", "FlowSequence: 0"] {
        assert!(heard.iter().any(|line| line == told), "{heard:?}");
    }
    let counters = appctl(&deployment, "comporta/counters")?;
    assert!(counters.contains("control exports_sent 1\n"), "{counters}");
    Ok(())
}

fn what_is_kept_for_collectors_is_told_before_a_bridge_goes(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    set_up(&deployment)?;
    let (mut by_samples, mut by_flows) = (Collector::new(&network)?, Collector::new(&network)?);
    let kept = "cache_active_timeout=3600 cache_max_flows=100";
    tell_by_ipfix(&deployment, &by_samples, kept)?;
    count(&deployment, &format!("targets=\"{}\"", by_flows.target()))?;
    network.host(1).send(&[FRAMES[0].0; 5])?;
    context.wait_until("frames to be sampled", || {
        let told = deployment.run_tool("ovs-ofctl dump-ipfix-bridge br0")?;
        Ok(told.contains("ipv4 ok=10"))
    })?;
    deployment.vsctl("del-br br0")?;
    by_samples.wait_for("cflow", "sampled flows", |lines| {
        let flows = sflow_ipfix::flows(lines);
        (flows.len() == 2).then_some(())
    })?;
    by_flows.wait_for("cflow", "the flow", |lines| {
        let counts = flows(lines).into_values();
        counts.map(|[packets, _]| packets).find(|it| *it == 5)
    })?;
    Ok(())
}
