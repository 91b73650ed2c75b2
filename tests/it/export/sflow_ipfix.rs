//! What collectors are told of frames: by the switch and by a real `ovs-vswitchd` beside it,
//! which are asked for the same, see the same frames, and are heard by tshark.

use std::collections::BTreeSet;

use testbed::{Failure, Process};

use crate::export::collector::Collector;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    sflow_tells_of_frames_and_ports_as_open_vswitch_does,
    ipfix_tells_of_flows_as_open_vswitch_does,
    what_is_asked_of_ipfix_is_answered,
];

/// Frames from host 1 to host 2, of several kinds.
pub(crate) const FRAMES: [&str; 4] = [
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv4(src=10.1.0.1,dst=10.1.0.2)/udp(src=1000,dst=2000)",
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv4(src=10.1.0.1,dst=10.1.0.2)/tcp(src=1001,dst=80,flags=S)",
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/vlan(vid=7,pcp=3)/ipv4(src=10.1.0.1,dst=10.1.0.3)/udp(src=5,dst=6)",
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01)/ipv6(src=fd00::1,dst=fd00::2)/udp(src=53,dst=53)",
];

/// Who they are from, as tshark says it.
const SOURCES: [&str; 2] = ["Src: 10.1.0.1,", "Src: fd00::1,"];

/// What becomes of them.
const FLOWS: [&str; 4] = [
    "priority=4,in_port=1,tcp,actions=mod_vlan_vid:9,output:2",
    "priority=3,in_port=1,dl_vlan=7,actions=output:2,output:local",
    "priority=2,in_port=1,udp6,actions=drop",
    "priority=1,in_port=1,actions=output:2",
];

/// A bridge with those flows, and a collector of what it tells.
pub(crate) fn set_up(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
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
    for flow in FLOWS {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    Ok(())
}

/// A switch of its own that runs: ours or theirs.
enum Runs<'s, 'g> {
    Ours(
        #[allow(dead_code, reason = "it runs as long as it is held")]
        crate::support::deployment::VswitchdProcess<'s, 'g>,
    ),
    Theirs(#[allow(dead_code, reason = "it runs as long as it is held")] Process),
}

/// What both tell, each asked by `ask` in a place of its own.
pub(crate) fn both<T>(
    context: &TestContext,
    ask: impl Fn(&Deployment<'_, '_>) -> Result<T, Failure>,
) -> Result<[T; 2], crate::support::context::TestError> {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let ours = Deployment::in_directory(&here, "ours")?;
    let running = Runs::Ours(ours.start_daemon()?);
    set_up(&ours)?;
    let told = ask(&ours)?;
    drop(running);
    let other = Deployment::in_directory(&there, "theirs")?;
    let _running = Runs::Theirs(start_ovs_vswitchd(&other, "")?);
    set_up(&other)?;
    Ok([told, ask(&other)?])
}

/// What of a sample is the same, whoever takes it: lines that begin so.
const SAMPLED: [&str; 17] = [
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

/// Samples of our frames, each as its lines. Hosts send of their own accord, too.
fn samples(lines: &[String]) -> BTreeSet<String> {
    let begins_sample =
        |line: &String| line.contains(" sample, seq ") || line.contains(" bytes on wire ");
    let samples = lines.split(begins_sample).map(|lines| {
        let told = lines.iter().filter(|line| {
            let mut begins = SAMPLED.iter();
            begins.any(|begin| line.starts_with(begin))
        });
        told.map(|line| format!("{line}\n")).collect::<String>()
    });
    let is_ours = |sample: &String| SOURCES.iter().any(|source| sample.contains(source));
    samples.filter(is_ours).collect()
}

/// The records of a sample of counters of port 1: the format and the bytes of each.
type Records = Vec<(u32, Vec<u8>)>;

/// The first sample of port 1 in these datagrams, whose name is in one of its records. (tshark does
/// not pass over records that it does not know.)
fn counters(datagrams: &[Vec<u8>]) -> Option<Records> {
    let samples = datagrams
        .iter()
        .flat_map(|datagram| records(&datagram[28..]));
    let counters = samples.filter(|(format, _)| *format == 2);
    let mut counters = counters.map(|(_, sample)| records(&sample[12..]));
    let name = (1005, [0, 0, 0, 2, b'p', b'1', 0, 0].to_vec());
    counters.find(|records| records.contains(&name))
}

/// Formats and what they hold, one behind the other.
fn records(mut bytes: &[u8]) -> Records {
    let word = |bytes: &[u8], at: usize| {
        let word = bytes[at..].first_chunk().expect("a word");
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

fn sflow_tells_of_frames_and_ports_as_open_vswitch_does(context: &TestContext) -> TestResult {
    let [ours, theirs] = both(context, |deployment| {
        let mut collector = Collector::new(deployment.network)?;
        deployment.vsctl(&format!(
            "-- --id=@s create sFlow targets=\"{}\" agent=lo header=64 sampling=1 polling=0 external_ids:of=others \
             -- set Bridge br0 sflow=@s",
            collector.target()
        ))?;
        deployment.network.context.wait_until("a sample", || {
            deployment.network.host(1).send(&[FRAMES[1]])?;
            Ok(!samples(&collector.heard("sflow")?).is_empty())
        })?;
        deployment.network.host(1).send(&FRAMES)?;
        let told = collector.wait_for("sflow", "samples of all frames", |lines| {
            let samples = samples(lines);
            (samples.len() >= FRAMES.len()).then_some(samples)
        })?;
        let mut counts = Collector::new(deployment.network)?;
        deployment.vsctl(&format!(
            "set sFlow . targets=\"{}\" polling=1",
            counts.target()
        ))?;
        let context = deployment.network.context;
        let counted = context.wait_for("counters", || Ok(counters(counts.datagrams())))?;
        Ok((told, counted))
    })?;
    assert_eq!(ours.0, theirs.0);
    let [ours, theirs] = [ours, theirs].map(|(_, counted)| counted);
    let formats = |records: &Records| {
        let formats: BTreeSet<u32> = records.iter().map(|(format, _)| *format).collect();
        formats
    };
    assert_eq!(formats(&ours), formats(&theirs));
    // Which interface it is, of what type, how fast, full duplex, and up: of that both tell the
    // same, and of its number at the bridge.
    for (format, places) in [(1, 0..24), (1004, 8..12)] {
        let part = |records: &Records| {
            let mut records = records.iter();
            let record = records.find(|(of, _)| *of == format);
            record.map(|(_, bytes)| bytes[places.clone()].to_vec())
        };
        assert_eq!(part(&ours), part(&theirs), "{format}");
    }
    Ok(())
}

/// What of a flow is the same, whoever tells it: what tshark calls it begins so. Packets that are
/// told at once are not told with the same times.
#[rustfmt::skip]
const TOLD: [&str; 24] = [
    "Observation Point Id", "Direction", "Source Mac Address", "Destination Mac Address", "Ethernet Type", "Ethernet Header Length",
    "Vlan Id", "Dot1q Vlan Id", "Dot1q Priority", "IPVersion", "IP TTL", "Protocol", "DSCP", "IP Precedence", "IP ToS", "SrcAddr",
    "DstAddr", "SrcPort", "DstPort", "Packets", "Octets", "Layer 2 Octet", "MinLength", "MaxLength",
];

/// Flows of our frames, each as its lines.
pub(crate) fn flows(lines: &[String]) -> BTreeSet<String> {
    let begins_flow = |line: &String| line.starts_with("Flow ") && line.split(' ').count() < 4;
    let flows = lines.split(begins_flow).map(|lines| {
        let ends = |line: &&String| !line.contains(" bytes on wire ") && !line.starts_with("Set ");
        let lines = lines.iter().take_while(ends);
        let told = lines.filter(|line| TOLD.iter().any(|begin| line.starts_with(begin)));
        let mut told: Vec<&str> = told.map(String::as_str).collect();
        // Templates have an order of their own each.
        told.sort_unstable();
        told.join("\n")
    });
    let is_ours = |flow: &String| {
        let mut sources = ["SrcAddr: 10.1.0.1", "SrcAddr: fd00::1"].iter();
        sources.any(|source| flow.contains(source))
    };
    flows.filter(is_ours).collect()
}

/// Has a bridge tell a collector by IPFIX.
pub(crate) fn tell_by_ipfix(
    deployment: &Deployment<'_, '_>,
    collector: &Collector<'_, '_>,
    with: &str,
) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "-- --id=@i create IPFIX targets=\"{}\" sampling=1 obs_domain_id=7 obs_point_id=8 {with} \
         -- set Bridge br0 ipfix=@i",
        collector.target()
    ))?;
    Ok(())
}

/// Each frame as it came, and as it left: one goes nowhere, and one out of two ports in the same
/// way.
const FLOWS_TOLD: usize = 2 * FRAMES.len() - 1;

fn ipfix_tells_of_flows_as_open_vswitch_does(context: &TestContext) -> TestResult {
    let [ours, theirs] = both(context, |deployment| {
        let mut collector = Collector::new(deployment.network)?;
        tell_by_ipfix(
            deployment,
            &collector,
            "other_config:virtual_obs_id=me external_ids:of=others",
        )?;
        deployment.network.context.wait_until("a flow", || {
            deployment.network.host(1).send(&[FRAMES[1]])?;
            Ok(!flows(&collector.heard("cflow")?).is_empty())
        })?;
        deployment.network.host(1).send(&FRAMES)?;
        collector.wait_for("cflow", "flows of all frames", |lines| {
            let flows = flows(lines);
            (flows.len() >= FLOWS_TOLD).then_some(flows)
        })
    })?;
    assert_eq!(ours, theirs);
    Ok(())
}

/// Flows are kept, added up, and told when they are old; and how many is told by OpenFlow.
fn what_is_asked_of_ipfix_is_answered(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    set_up(&deployment)?;
    let asked = || deployment.run_tool("ovs-ofctl dump-ipfix-bridge br0");
    let mut collector = Collector::new(&network)?;
    tell_by_ipfix(
        &deployment,
        &collector,
        "cache_active_timeout=3 cache_max_flows=100",
    )?;
    let stays = "other_config:enable-output-sampling=false";
    deployment.vsctl(&format!("set IPFIX . {stays}"))?;
    context.wait_until("IPFIX", || Ok(asked()?.contains("flows=")))?;
    network.host(1).send(&[FRAMES[0]; 5])?;
    let flows = collector.wait_for("cflow", "a flow of five frames", |lines| {
        let flows = flows(lines);
        flows
            .iter()
            .any(|flow| flow.contains("Packets: 5"))
            .then_some(flows)
    })?;
    assert_eq!(flows.len(), 1, "{flows:?}");
    context.wait_until("it to be counted", || {
        let told = asked()?;
        Ok(told.contains("ipv4 ok=5") && told.contains("current flows=0"))
    })?;
    Ok(())
}
