//! Rules that tell frames to sets of collectors: by the switch and by a real `ovs-vswitchd` beside
//! it.

use std::collections::BTreeSet;

use testbed::Failure;

use crate::export::collector::Collector;
use crate::export::sflow_ipfix::{FRAMES, both, flows, set_up};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    rules_tell_frames_to_collectors_as_with_open_vswitch,
    what_rules_have_told_is_answered_and_who_is_not_there_is_counted,
];

/// What rules have told; to the set 9 there is nobody. The domain is one: of a second Open vSwitch
/// tells no templates.
const SAMPLING: [&str; 4] = [
    "priority=9,in_port=1,udp,tp_src=1000,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=3,obs_point_id=4),output:2",
    "priority=9,in_port=1,tcp,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=3,sampling_port=2),mod_nw_tos:32,sample(probability=65535,collector_set_id=1,obs_domain_id=3,obs_point_id=6,sampling_port=2,egress),output:2",
    "priority=9,in_port=1,udp6,actions=sample(probability=65535,collector_set_id=1,obs_domain_id=3,obs_point_id=7,sampling_port=2,ingress),output:2",
    "priority=9,in_port=1,dl_vlan=7,actions=sample(probability=65535,collector_set_id=9),output:2",
];

/// Has those rules tell a collector.
fn sample(
    deployment: &Deployment<'_, '_>,
    collector: &Collector<'_, '_>,
    with: &str,
) -> Result<(), Failure> {
    for flow in SAMPLING {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    deployment.vsctl(&format!(
        "-- --id=@b get Bridge br0 -- --id=@i create IPFIX targets=\"{}\" {with} \
         -- create Flow_Sample_Collector_Set id=1 bridge=@b ipfix=@i",
        collector.target()
    ))?;
    Ok(())
}

/// What of the answers is the same, whoever gives them.
fn answer(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let told = deployment.run_tool("ovs-ofctl dump-ipfix-flow br0")?;
    let lines = told.lines().skip(1);
    let words = lines.flat_map(|line| line.split([',', ':']));
    let names = words.filter_map(|word| word.split('=').next());
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// What a trace tells of the first of those rules, but for the last number, which is the data path's
/// own of a port, and for what it has looked at.
fn trace(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let told = deployment.run_tool("ovs-appctl ofproto/trace br0 in_port=1,udp,udp_src=1000")?;
    let lines = told.lines().skip_while(|line| !line.starts_with(" 0."));
    let lines = lines.filter(|line| !line.starts_with("Megaflow"));
    let is_digit = |letter: char| letter.is_ascii_digit();
    let lines = lines.map(|line| match line.starts_with("Datapath actions") {
        true => line.trim_end_matches(is_digit),
        false => line,
    });
    Ok(lines.map(str::to_owned).collect())
}

type Told = (BTreeSet<String>, Vec<String>, [Vec<String>; 2]);

fn told(deployment: &Deployment<'_, '_>) -> Result<Told, Failure> {
    let mut collector = Collector::new(deployment.network)?;
    let before = trace(deployment)?;
    sample(deployment, &collector, "external_ids:of=others")?;
    let host = deployment.network.host(1);
    deployment.network.context.wait_until("a flow", || {
        host.send(&[FRAMES[0]])?;
        Ok(!flows(&collector.heard("cflow")?).is_empty())
    })?;
    host.send(&FRAMES)?;
    let told = collector.wait_for("cflow", "all that is sampled", |lines| {
        let flows = flows(lines);
        (flows.len() >= 4).then_some(flows)
    })?;
    Ok((told, answer(deployment)?, [before, trace(deployment)?]))
}

fn rules_tell_frames_to_collectors_as_with_open_vswitch(context: &TestContext) -> TestResult {
    let [ours, theirs] = both(context, told)?;
    assert_eq!(ours, theirs);
    assert_eq!(ours.0.len(), 4, "{ours:?}");
    assert!(ours.2[1].iter().any(|line| line.contains("flow_sample(")));
    Ok(())
}

fn what_rules_have_told_is_answered_and_who_is_not_there_is_counted(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    set_up(&deployment)?;
    let answers = || deployment.run_tool("ovs-ofctl dump-ipfix-flow br0");
    let refused = answers()?;
    assert!(refused.contains("NXST_NOT_CONFIGURED"), "{refused}");
    let mut collector = Collector::new(&network)?;
    sample(
        &deployment,
        &collector,
        "cache_active_timeout=3600 cache_max_flows=100",
    )?;
    network.host(1).send(&[FRAMES[0]; 5])?;
    network.host(1).send(&[FRAMES[2]; 2])?;
    context.wait_until("frames to be sampled", || {
        Ok(answers()?.contains("ipv4 ok=5"))
    })?;
    context.wait_until("frames to be counted that nobody hears of", || {
        let counters = appctl(&deployment, "comporta/counters")?;
        Ok(counters
            .lines()
            .any(|line| line.ends_with("no_collector 2")))
    })?;
    assert!(answers()?.contains("id   1"), "{}", answers()?);
    // A controller's frames go by the same rules.
    let frame = "ovs-ofctl packet-out br0 in_port=1,packet=020000000002020000000001080045000014000000004011fab50a0900010a010002,actions=sample(probability=65535,collector_set_id=1),output:2";
    deployment.run_tool(frame)?;
    context.wait_until("it to be sampled", || Ok(answers()?.contains("ipv4 ok=6")))?;
    deployment.vsctl("-- --all destroy Flow_Sample_Collector_Set")?;
    let told = collector.wait_for("cflow", "what was kept", |lines| {
        let flows = flows(lines);
        (!flows.is_empty()).then_some(flows)
    })?;
    assert!(
        told.iter().all(|flow| flow.contains("Packets: 5")),
        "{told:?}"
    );
    Ok(())
}
