//! sFlow and IPFIX compared with a real `ovs-vswitchd`: both export samples of equal frames, which
//! tshark dissects.

use std::collections::BTreeSet;

use testbed::Failure;

use crate::export::collector::TestCollector;
use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    sflow_exports_the_samples_of_open_vswitch,
    ipfix_exports_the_flows_of_open_vswitch,
    ipfix_statistics_count_cached_and_exported_flows,
];

/// Frames of several types from host 1 to host 2.
pub(crate) const FRAMES: [&str; 4] = [
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv4(src=10.1.0.1,dst=10.1.0.2)/udp(src=1000,dst=2000)",
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv4(src=10.1.0.1,dst=10.1.0.2)/tcp(src=1001,dst=80,flags=S)",
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/vlan(vid=7,pcp=3)/ipv4(src=10.1.0.1,dst=10.1.0.3)/udp(src=5,dst=6)",
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv6(src=fd00::1,dst=fd00::2)/udp(src=53,dst=53)",
];

/// Source addresses of the frames in the words of tshark.
const SOURCES: [&str; 2] = ["Src: 10.1.0.1,", "Src: fd00::1,"];

/// Rules for these frames.
const RULES: [&str; 4] = [
    "priority=4,in_port=1,tcp,actions=mod_vlan_vid:9,output:2",
    "priority=3,in_port=1,dl_vlan=7,actions=output:2,output:local",
    "priority=2,in_port=1,udp6,actions=drop",
    "priority=1,in_port=1,actions=output:2",
];

/// Adds a bridge with these rules.
pub(crate) fn add_bridge(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2"
    ))?;
    deployment
        .network
        .run("ip link set br0 up")?
        .expect_success()?;
    deployment
        .network
        .run("ip link set lo up")?
        .expect_success()?;
    for flow in RULES {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    Ok(())
}

/// Runs `collect` with Comporta and with Open vSwitch, one after the other, and returns both
/// results.
pub(crate) fn collect_from_both<T>(
    context: &TestContext,
    collect: impl Fn(&Deployment<'_, '_>) -> Result<T, Failure>,
) -> Result<[T; 2], TestError> {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let comporta_result = {
        let _daemon = comporta.start_daemon()?;
        add_bridge(&comporta)?;
        collect(&comporta)?
    };
    let _ovs_vswitchd = start_ovs_vswitchd(&ovs, "")?;
    add_bridge(&ovs)?;
    Ok([comporta_result, collect(&ovs)?])
}

/// Beginnings of the lines of a sample that both switches must report equally.
const SAMPLE_LINES: [&str; 17] = [
    "Source ID class",
    "Sampling rate",
    "Dropped packets",
    "Input interface",
    "Output interface",
    "Multiple outputs",
    "Number of outputs",
    "Header protocol",
    "Frame Length",
    "Payload removed",
    "Original packet length",
    "Ethernet II",
    "Internet Protocol",
    "User Datagram",
    "Transmission Control",
    "Incoming 802.1Q",
    "Outgoing 802.1Q",
];

/// Samples of the tests' frames, each as its lines. Frames that hosts send on their own are left
/// out.
fn samples(lines: &[String]) -> BTreeSet<String> {
    let begins_sample =
        |line: &String| line.contains(" sample, seq ") || line.contains(" bytes on wire ");
    let samples = lines.split(begins_sample).map(|lines| {
        let lines = lines.iter().filter(|line| {
            let mut begins = SAMPLE_LINES.iter();
            begins.any(|begin| line.starts_with(begin))
        });
        lines.map(|line| format!("{line}\n")).collect::<String>()
    });
    let is_of_test = |sample: &String| SOURCES.iter().any(|source| sample.contains(source));
    samples.filter(is_of_test).collect()
}

/// Records of a counter sample: the format and the bytes of each.
type SampleRecords = Vec<(u32, Vec<u8>)>;

/// Returns the first counter sample with the name of port 1, or `None` if there is none yet.
/// (tshark stops at unknown records.)
fn port_counters(datagrams: &[Vec<u8>]) -> Option<SampleRecords> {
    let samples = datagrams
        .iter()
        .flat_map(|datagram| records(&datagram[28..]));
    let counters = samples.filter(|(format, _)| *format == 2);
    let mut counters = counters.map(|(_, sample)| records(&sample[12..]));
    let name = (1005, [0, 0, 0, 2, b'p', b'1', 0, 0].to_vec());
    counters.find(|records| records.contains(&name))
}

/// Splits bytes into records.
fn records(mut bytes: &[u8]) -> SampleRecords {
    let word = |bytes: &[u8], offset: usize| {
        let word = bytes[offset..]
            .first_chunk()
            .expect("a record consists of 32-bit words");
        u32::from_be_bytes(*word)
    };
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let (format, length) = (word(bytes, 0), word(bytes, 4) as usize);
        let (record, rest) = bytes[8..].split_at(length);
        records.push((format, record.to_vec()));
        bytes = rest;
    }
    records
}

fn sflow_exports_the_samples_of_open_vswitch(context: &TestContext) -> TestResult {
    let [comporta, ovs] = collect_from_both(context, |deployment| {
        let mut collector = TestCollector::new(deployment.network)?;
        deployment.vsctl(&format!(
            "-- --id=@s create sFlow targets=\"{}\" agent=lo header=64 sampling=1 polling=0 external_ids:of=others \
             -- set Bridge br0 sflow=@s",
            collector.target()
        ))?;
        deployment.network.context.wait_until("a sample", || {
            deployment.network.host(1).send(&[FRAMES[1]])?;
            Ok(!samples(&collector.dissect("sflow")?).is_empty())
        })?;
        deployment.network.host(1).send(&FRAMES)?;
        let samples = collector.wait_for("sflow", "samples of all frames", |lines| {
            let samples = samples(lines);
            (samples.len() >= FRAMES.len()).then_some(samples)
        })?;
        let mut counts = TestCollector::new(deployment.network)?;
        deployment.vsctl(&format!(
            "set sFlow . targets=\"{}\" polling=1",
            counts.target()
        ))?;
        let context = deployment.network.context;
        let counters = context.wait_for("counters", || Ok(port_counters(counts.datagrams())))?;
        Ok((samples, counters))
    })?;
    assert_eq!(comporta.0, ovs.0);
    let [comporta, ovs] = [comporta, ovs].map(|(_, counters)| counters);
    let formats = |records: &SampleRecords| {
        let formats: BTreeSet<u32> = records.iter().map(|(format, _)| *format).collect();
        formats
    };
    assert_eq!(formats(&comporta), formats(&ovs));
    // Both report the same interface number, type, speed, duplex and state, and the same OpenFlow
    // port number.
    for (format, bytes_range) in [(1, 0..24), (1004, 8..12)] {
        let part = |records: &SampleRecords| {
            let mut records = records.iter();
            let record = records.find(|(of, _)| *of == format);
            record.map(|(_, bytes)| bytes[bytes_range.clone()].to_vec())
        };
        assert_eq!(part(&comporta), part(&ovs), "{format}");
    }
    Ok(())
}

/// Beginnings of the lines of a flow that both switches must report equally. The times of packets
/// that are exported together differ.
#[rustfmt::skip]
const FLOW_LINES: [&str; 24] = [
    "Observation Point Id", "Direction", "Source Mac Address", "Destination Mac Address", "Ethernet Type", "Ethernet Header Length",
    "Vlan Id", "Dot1q Vlan Id", "Dot1q Priority", "IPVersion", "IP TTL", "Protocol", "DSCP", "IP Precedence", "IP ToS", "SrcAddr",
    "DstAddr", "SrcPort", "DstPort", "Packets", "Octets", "Layer 2 Octet", "MinLength", "MaxLength",
];

/// Flows of the tests' frames, each as its lines.
pub(crate) fn flows(lines: &[String]) -> BTreeSet<String> {
    let begins_flow = |line: &String| line.starts_with("Flow ") && line.split(' ').count() < 4;
    let flows = lines.split(begins_flow).map(|lines| {
        let ends = |line: &&String| !line.contains(" bytes on wire ") && !line.starts_with("Set ");
        let lines = lines.iter().take_while(ends);
        let lines = lines.filter(|line| FLOW_LINES.iter().any(|begin| line.starts_with(begin)));
        let mut lines: Vec<&str> = lines.map(String::as_str).collect();
        // Templates differ in the order of fields.
        lines.sort_unstable();
        lines.join("\n")
    });
    let is_of_test = |flow: &String| {
        let mut sources = ["SrcAddr: 10.1.0.1", "SrcAddr: fd00::1"].iter();
        sources.any(|source| flow.contains(source))
    };
    flows.filter(is_of_test).collect()
}

/// Exports a bridge's samples to a collector by IPFIX.
pub(crate) fn create_ipfix(
    deployment: &Deployment<'_, '_>,
    collector: &TestCollector<'_, '_>,
    columns: &str,
) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "-- --id=@i create IPFIX targets=\"{}\" sampling=1 obs_domain_id=7 obs_point_id=8 {columns} \
         -- set Bridge br0 ipfix=@i",
        collector.target()
    ))?;
    Ok(())
}

/// Number of flows: an ingress and an egress sample of each frame; one frame is dropped, and the
/// samples of one frame's two outputs are equal.
const FLOW_COUNT: usize = 2 * FRAMES.len() - 1;

fn ipfix_exports_the_flows_of_open_vswitch(context: &TestContext) -> TestResult {
    let [comporta, ovs] = collect_from_both(context, |deployment| {
        let mut collector = TestCollector::new(deployment.network)?;
        create_ipfix(
            deployment,
            &collector,
            "other_config:virtual_obs_id=me external_ids:of=others",
        )?;
        deployment.network.context.wait_until("a flow record", || {
            deployment.network.host(1).send(&[FRAMES[1]])?;
            Ok(!flows(&collector.dissect("cflow")?).is_empty())
        })?;
        deployment.network.host(1).send(&FRAMES)?;
        collector.wait_for("cflow", "flows of all frames", |lines| {
            let flows = flows(lines);
            (flows.len() >= FLOW_COUNT).then_some(flows)
        })
    })?;
    assert_eq!(comporta, ovs);
    Ok(())
}

/// Flows are aggregated in the cache, exported when they are old, and counted in OpenFlow
/// statistics.
fn ipfix_statistics_count_cached_and_exported_flows(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    let statistics = || deployment.run_tool("ovs-ofctl dump-ipfix-bridge br0");
    let mut collector = TestCollector::new(&network)?;
    create_ipfix(
        &deployment,
        &collector,
        "cache_active_timeout=3 cache_max_flows=100",
    )?;
    let columns = "other_config:enable-output-sampling=false";
    deployment.vsctl(&format!("set IPFIX . {columns}"))?;
    context.wait_until("IPFIX statistics", || Ok(statistics()?.contains("flows=")))?;
    network.host(1).send(&[FRAMES[0]; 5])?;
    let flows = collector.wait_for("cflow", "a flow of five frames", |lines| {
        let flows = flows(lines);
        flows
            .iter()
            .any(|flow| flow.contains("Packets: 5"))
            .then_some(flows)
    })?;
    assert_eq!(flows.len(), 1, "{flows:?}");
    context.wait_until("the counter of the exported flow", || {
        let output = statistics()?;
        Ok(output.contains("ipv4 ok=5") && output.contains("current flows=0"))
    })?;
    Ok(())
}
