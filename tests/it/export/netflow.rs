//! NetFlow: flows of which each packet is counted.

use std::collections::BTreeMap;

use testbed::Failure;

use crate::export::collector::TestCollector;
use crate::export::sflow_ipfix::{self, add_bridge, collect_from_both, create_ipfix};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    netflow_exports_the_flows_of_open_vswitch,
    netflow_exports_active_flows_when_its_row_is_removed,
    cached_flows_are_exported_before_a_bridge_is_removed,
];

/// Frames from host 1, and the number of copies of each.
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

/// Number of frames that NetFlow counts: those of IPv4.
const COUNTED_FRAMES: u64 = 17;

/// Frame that is sent until the first record arrives.
const FIRST: &str = "eth/ipv4(src=10.9.0.1,dst=10.1.0.2)/udp(src=1,dst=1)";

/// Further rules.
const MORE_FLOWS: [&str; 2] = [
    "priority=5,in_port=1,udp,tp_dst=9,actions=drop",
    "priority=5,in_port=1,udp,tp_dst=8,actions=normal",
];

/// Adds these rules, and enables NetFlow with these columns.
fn enable_netflow(deployment: &Deployment<'_, '_>, columns: &str) -> Result<(), Failure> {
    for flow in MORE_FLOWS {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    deployment.vsctl(&format!(
        "-- --id=@n create NetFlow {columns} -- set Bridge br0 netflow=@n"
    ))?;
    Ok(())
}

/// Beginnings of the lines of a record that both switches must report equally.
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

/// Fields of flows, and their packets and octets.
type NetflowFlows = BTreeMap<String, [u64; 2]>;

/// NetFlow flows of the tests' frames, with the sum of packets and octets over all records.
fn flows(lines: &[String]) -> NetflowFlows {
    let mut flows = BTreeMap::new();
    for lines in lines.split(|line| line.starts_with("pdu ")) {
        let mut fields = String::new();
        let mut counts = [0; 2];
        // The last record of a datagram is followed by the header of the next.
        let ends = |line: &&String| !line.contains(" bytes on wire ");
        for line in lines.iter().take_while(ends) {
            let value = |name| {
                let rest = line.strip_prefix(name)?;
                rest.parse::<u64>().ok()
            };
            if FIELDS.iter().any(|field| line.starts_with(field)) {
                fields += line;
                fields.push('\n');
            } else if let Some(packets) = value("Packets: ") {
                counts[0] = packets;
            } else if let Some(octets) = value("Octets: ") {
                counts[1] = octets;
            }
        }
        if fields.contains("SrcAddr: 10.1.0.1") {
            let sum = flows.entry(fields).or_insert([0; 2]);
            (sum[0], sum[1]) = (sum[0] + counts[0], sum[1] + counts[1]);
        }
    }
    flows
}

/// Sends all frames, and returns the engine's fields and the exported flows.
fn collect(deployment: &Deployment<'_, '_>) -> Result<(Vec<String>, NetflowFlows), Failure> {
    let mut collector = TestCollector::new(deployment.network)?;
    let target = collector.target();
    enable_netflow(
        deployment,
        &format!("targets=\"{target}\" active_timeout=1"),
    )?;
    let host = deployment.network.host(1);
    deployment.network.context.wait_until("a flow record", || {
        host.send(&[FIRST])?;
        let lines = collector.dissect("cflow")?;
        Ok(lines.iter().any(|line| line.contains("10.9.0.1")))
    })?;
    for (frame, enable_netflow) in FRAMES {
        host.send(&vec![frame; enable_netflow])?;
    }
    let flows = collector.wait_for("cflow", "records of all frames", |lines| {
        let flows = flows(lines);
        let packets: u64 = flows.values().map(|[packets, _]| packets).sum();
        (packets >= COUNTED_FRAMES).then_some(flows)
    })?;
    let mut engine_lines = collector.dissect("cflow")?;
    engine_lines.retain(|line| line.starts_with("Engine") || line.starts_with("Sampl"));
    engine_lines.sort_unstable();
    engine_lines.dedup();
    Ok((engine_lines, flows))
}

fn netflow_exports_the_flows_of_open_vswitch(context: &TestContext) -> TestResult {
    let [comporta, ovs] = collect_from_both(context, collect)?;
    assert_eq!(comporta, ovs);
    let packets: u64 = comporta.1.values().map(|[packets, _]| packets).sum();
    assert_eq!(packets, COUNTED_FRAMES, "{comporta:?}");
    Ok(())
}

/// An inactive flow is exported after a timeout; here it is exported before.
fn netflow_exports_active_flows_when_its_row_is_removed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    let mut collector = TestCollector::new(&network)?;
    let target = collector.target();
    let columns = format!(
        "targets=\"{target}\" active_timeout=-1 engine_id=3 engine_type=4 add_id_to_interface=true"
    );
    enable_netflow(&deployment, &columns)?;
    network.host(1).send(&[FRAMES[0].0; 5])?;
    context.wait_until("the counter of forwarded frames", || {
        let flows = deployment.run_tool("ovs-ofctl dump-aggregate br0 in_port=1")?;
        Ok(flows.contains("packet_count=5 "))
    })?;
    deployment.vsctl("clear Bridge br0 netflow")?;
    let records = collector.wait_for("cflow", "the flow record", |lines| {
        let flows = flows(lines);
        (!flows.is_empty()).then_some(flows)
    })?;
    let (fields, counts) = records
        .first_key_value()
        .expect("the collector received a flow");
    assert_eq!(counts[0], 5, "{records:?}");
    let (input, output) = (3 << 9 | 1, 3 << 9 | 2);
    let expected = format!("InputInt: {input}\nOutputInt: {output}\n");
    assert!(fields.contains(&expected), "{fields}");
    let lines = collector.dissect("cflow")?;
    for text in ["EngineType: Unknown (4)", "EngineId: 3", "FlowSequence: 0"] {
        assert!(lines.iter().any(|line| line == text), "{lines:?}");
    }
    let counters = appctl(&deployment, "comporta/counters")?;
    assert!(counters.contains("control exports_sent 1\n"), "{counters}");
    Ok(())
}

fn cached_flows_are_exported_before_a_bridge_is_removed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    let (mut ipfix_collector, mut netflow_collector) =
        (TestCollector::new(&network)?, TestCollector::new(&network)?);
    let cache_settings = "cache_active_timeout=3600 cache_max_flows=100";
    create_ipfix(&deployment, &ipfix_collector, cache_settings)?;
    enable_netflow(
        &deployment,
        &format!("targets=\"{}\"", netflow_collector.target()),
    )?;
    network.host(1).send(&[FRAMES[0].0; 5])?;
    context.wait_until("the counter of sampled frames", || {
        let output = deployment.run_tool("ovs-ofctl dump-ipfix-bridge br0")?;
        Ok(output.contains("ipv4 ok=10"))
    })?;
    deployment.vsctl("del-br br0")?;
    ipfix_collector.wait_for("cflow", "flow records of samples", |lines| {
        let flows = sflow_ipfix::flows(lines);
        (flows.len() == 2).then_some(())
    })?;
    netflow_collector.wait_for("cflow", "the flow record", |lines| {
        let counts = flows(lines).into_values();
        counts
            .map(|[packets, _]| packets)
            .find(|packets| *packets == 5)
    })?;
    Ok(())
}
