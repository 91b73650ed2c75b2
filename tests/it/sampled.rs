//! Rules that tell frames to sets of collectors: by the switch and by a real `ovs-vswitchd` beside
//! it.

use std::collections::BTreeSet;

use testbed::Failure;

use crate::exporters::collector::Collector;
use crate::exporters::{FRAMES, both, flows, set_up};
use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::Rig;
use crate::site::Site;
use crate::unixctl::asked;

pub(crate) const RULES: &[Rule] = rules![
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
fn sample(site: &Site<'_, '_>, collector: &Collector<'_, '_>, with: &str) -> Result<(), Failure> {
    for flow in SAMPLING {
        site.tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    site.vsctl(&format!(
        "-- --id=@b get Bridge br0 -- --id=@i create IPFIX targets=\"{}\" {with} \
         -- create Flow_Sample_Collector_Set id=1 bridge=@b ipfix=@i",
        collector.target()
    ))?;
    Ok(())
}

/// What of the answers is the same, whoever gives them.
fn answer(site: &Site<'_, '_>) -> Result<Vec<String>, Failure> {
    let told = site.tool("ovs-ofctl dump-ipfix-flow br0")?;
    let lines = told.lines().skip(1);
    let words = lines.flat_map(|line| line.split([',', ':']));
    let names = words.filter_map(|word| word.split('=').next());
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// What a trace tells of the first of those rules, but for the last number, which is the data path's
/// own of a port, and for what it has looked at.
fn trace(site: &Site<'_, '_>) -> Result<Vec<String>, Failure> {
    let told = site.tool("ovs-appctl ofproto/trace br0 in_port=1,udp,udp_src=1000")?;
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

fn told(site: &Site<'_, '_>) -> Result<Told, Failure> {
    let mut collector = Collector::new(site.rig)?;
    let before = trace(site)?;
    sample(site, &collector, "external_ids:of=others")?;
    let host = site.rig.host(1);
    site.rig.ground.wait_until("a flow", || {
        host.send(&[FRAMES[0]])?;
        Ok(!flows(&collector.heard("cflow")?).is_empty())
    })?;
    host.send(&FRAMES)?;
    let told = collector.wait_for("cflow", "all that is sampled", |lines| {
        let flows = flows(lines);
        (flows.len() >= 4).then_some(flows)
    })?;
    Ok((told, answer(site)?, [before, trace(site)?]))
}

fn rules_tell_frames_to_collectors_as_with_open_vswitch(ground: &Ground) -> Outcome {
    let [ours, theirs] = both(ground, told)?;
    assert_eq!(ours, theirs);
    assert_eq!(ours.0.len(), 4, "{ours:?}");
    assert!(ours.2[1].iter().any(|line| line.contains("flow_sample(")));
    Ok(())
}

fn what_rules_have_told_is_answered_and_who_is_not_there_is_counted(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    set_up(&site)?;
    let answers = || site.tool("ovs-ofctl dump-ipfix-flow br0");
    let refused = answers()?;
    assert!(refused.contains("NXST_NOT_CONFIGURED"), "{refused}");
    let mut collector = Collector::new(&rig)?;
    sample(
        &site,
        &collector,
        "cache_active_timeout=3600 cache_max_flows=100",
    )?;
    rig.host(1).send(&[FRAMES[0]; 5])?;
    rig.host(1).send(&[FRAMES[2]; 2])?;
    ground.wait_until("frames to be sampled", || {
        Ok(answers()?.contains("ipv4 ok=5"))
    })?;
    ground.wait_until("frames to be counted that nobody hears of", || {
        let counters = asked(&site, "comporta/counters")?;
        Ok(counters
            .lines()
            .any(|line| line.ends_with("no_collector 2")))
    })?;
    assert!(answers()?.contains("id   1"), "{}", answers()?);
    // A controller's frames go by the same rules.
    let frame = "ovs-ofctl packet-out br0 in_port=1,packet=020000000002020000000001080045000014000000004011fab50a0900010a010002,actions=sample(probability=65535,collector_set_id=1),output:2";
    site.tool(frame)?;
    ground.wait_until("it to be sampled", || Ok(answers()?.contains("ipv4 ok=6")))?;
    site.vsctl("-- --all destroy Flow_Sample_Collector_Set")?;
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
