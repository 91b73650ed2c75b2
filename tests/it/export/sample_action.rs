//! The `sample` action and flow sample collector sets, compared with a real `ovs-vswitchd`.

use std::collections::BTreeSet;

use testbed::Failure;

use crate::export::collector::TestCollector;
use crate::export::sflow_ipfix::{FRAMES, add_bridge, collect_from_both, flows};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    sample_action_exports_the_flows_of_open_vswitch,
    sample_action_statistics_and_missing_collector_sets_are_counted,
];

/// Rules that sample frames; collector set 9 does not exist. All use one observation domain: Open
/// vSwitch sends no templates of a second one.
const SAMPLE_RULES: [&str; 4] = [
    "priority=9,in_port=1,udp,tp_src=1000,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=3,obs_point_id=4),output:2",
    "priority=9,in_port=1,tcp,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=3,sampling_port=2),mod_nw_tos:32,sample(probability=65535,collector_set_id=1,obs_domain_id=3,obs_point_id=6,sampling_port=2,egress),output:2",
    "priority=9,in_port=1,udp6,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=3,obs_point_id=7,sampling_port=2,ingress),output:2",
    "priority=9,in_port=1,dl_vlan=7,actions=sample(probability=65535,collector_set_id=9),output:2",
];

/// Adds these rules, and a collector set with these columns.
fn add_sampling(
    deployment: &Deployment<'_, '_>,
    collector: &TestCollector<'_, '_>,
    columns: &str,
) -> Result<(), Failure> {
    for flow in SAMPLE_RULES {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    deployment.vsctl(&format!(
        "-- --id=@b get Bridge br0 -- --id=@i create IPFIX targets=\"{}\" {columns} \
         -- create Flow_Sample_Collector_Set id=1 bridge=@b ipfix=@i",
        collector.target()
    ))?;
    Ok(())
}

/// Names of the values in `dump-ipfix-flow`, which both switches must report.
fn statistics_names(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let output = deployment.run_tool("ovs-ofctl dump-ipfix-flow br0")?;
    let lines = output.lines().skip(1);
    let words = lines.flat_map(|line| line.split([',', ':']));
    let names = words.filter_map(|word| word.split('=').next());
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// Trace of a frame of the first rule, without the datapath's port number at the end of the
/// actions, and without the megaflow.
fn trace(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let output = deployment.run_tool("ovs-appctl ofproto/trace br0 in_port=1,udp,udp_src=1000")?;
    let lines = output.lines().skip_while(|line| !line.starts_with(" 0."));
    let lines = lines.filter(|line| !line.starts_with("Megaflow"));
    let is_digit = |letter: char| letter.is_ascii_digit();
    let lines = lines.map(|line| match line.starts_with("Datapath actions") {
        true => line.trim_end_matches(is_digit),
        false => line,
    });
    Ok(lines.map(str::to_owned).collect())
}

/// Flow records, names of statistics, and traces before and after the collector set exists.
type SampleReport = (BTreeSet<String>, Vec<String>, [Vec<String>; 2]);

fn collect(deployment: &Deployment<'_, '_>) -> Result<SampleReport, Failure> {
    let mut collector = TestCollector::new(deployment.network)?;
    let before = trace(deployment)?;
    add_sampling(deployment, &collector, "external_ids:of=others")?;
    let host = deployment.network.host(1);
    deployment.network.context.wait_until("a flow record", || {
        host.send(&[FRAMES[0]])?;
        Ok(!flows(&collector.dissect("cflow")?).is_empty())
    })?;
    host.send(&FRAMES)?;
    let records = collector.wait_for("cflow", "records of all samples", |lines| {
        let flows = flows(lines);
        (flows.len() >= 4).then_some(flows)
    })?;
    Ok((
        records,
        statistics_names(deployment)?,
        [before, trace(deployment)?],
    ))
}

fn sample_action_exports_the_flows_of_open_vswitch(context: &TestContext) -> TestResult {
    let [comporta, ovs] = collect_from_both(context, collect)?;
    assert_eq!(comporta, ovs);
    assert_eq!(comporta.0.len(), 4, "{comporta:?}");
    assert!(
        comporta.2[1]
            .iter()
            .any(|line| line.contains("flow_sample("))
    );
    Ok(())
}

fn sample_action_statistics_and_missing_collector_sets_are_counted(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    let statistics = || deployment.run_tool("ovs-ofctl dump-ipfix-flow br0");
    let refused = statistics()?;
    assert!(refused.contains("NXST_NOT_CONFIGURED"), "{refused}");
    let mut collector = TestCollector::new(&network)?;
    add_sampling(
        &deployment,
        &collector,
        "cache_active_timeout=3600 cache_max_flows=100",
    )?;
    network.host(1).send(&[FRAMES[0]; 5])?;
    network.host(1).send(&[FRAMES[2]; 2])?;
    context.wait_until("the counter of sampled frames", || {
        Ok(statistics()?.contains("ipv4 ok=5"))
    })?;
    context.wait_until("the counter of frames without a collector", || {
        let counters = appctl(&deployment, "comporta/counters")?;
        Ok(counters
            .lines()
            .any(|line| line.ends_with("no_collector 2")))
    })?;
    assert!(statistics()?.contains("id   1"), "{}", statistics()?);
    // Packet-outs are sampled as well.
    let frame = "ovs-ofctl packet-out br0 in_port=1,packet=020000000002020000000001080045000014000000004011fab50a0900010a010002,actions=sample(probability=65535,collector_set_id=1),output:2";
    deployment.run_tool(frame)?;
    context.wait_until("the counter of the sampled packet-out", || {
        Ok(statistics()?.contains("ipv4 ok=6"))
    })?;
    deployment.vsctl("-- --all destroy Flow_Sample_Collector_Set")?;
    let records = collector.wait_for("cflow", "the cached flow", |lines| {
        let flows = flows(lines);
        (!flows.is_empty()).then_some(flows)
    })?;
    assert!(
        records.iter().all(|flow| flow.contains("Packets: 5")),
        "{records:?}"
    );
    Ok(())
}
