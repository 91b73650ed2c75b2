//! Bundles by the real `ovs-ofctl`: a bundle takes effect completely or not at all, also for frames
//! in flight.

use std::fs;
use std::time::Duration;

use openflow::{
    BundleAdd, BundleControl, BundleFeaturesRequest, BundleFlags, BundleId, BundleStep, Excerpt,
    Message, MultipartReply, MultipartRequest, Version, WallTime,
};
use testbed::Failure;

use crate::support::command::program;
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    bundle_of_flow_mods_takes_effect,
    failed_bundle_changes_nothing,
    frames_never_match_a_partial_bundle,
    bundle_of_several_message_types_takes_effect,
    scheduled_bundle_takes_effect_at_its_time,
];

/// `ovs-ofctl` command that sends lines of flow-mods as one bundle.
const SEND_BUNDLE: &str = "-O OpenFlow13 --bundle add-flows br0";

fn bundle_of_flow_mods_takes_effect(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let many: Vec<_> = (1..=2000)
        .map(|port| format!("add priority={port},tcp,tp_dst={port},actions=output:2"))
        .collect();
    let lines = [&many.join("\n"), "delete tcp,tp_dst=7", "add actions=drop"].join("\n");
    for version in [13, 14, 15] {
        switch.ofctl("del-flows br0")?;
        let send = format!("-O OpenFlow{version} --bundle add-flows br0");
        switch.ofctl(&format!("{send} {}", flow_file(context, &lines)?))?;
        assert_eq!(switch.flows("dump-flows br0")?.len(), 2000, "{version}");
    }
    Ok(())
}

/// Groups, rules and packet-outs in one bundle: a packet-out passes the tables as they are at its
/// place, and a bundle that fails sends no frame.
fn bundle_of_several_message_types_takes_effect(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for version in [14, 15] {
        let options = format!("-O OpenFlow{version}");
        switch.ofctl(&format!("{options} del-flows br0"))?;
        switch.ofctl(&format!("{options} del-groups br0"))?;
        let frame = "ffffffffffff020000000077800045";
        let lines = format!(
            "group add group_id=1,type=all,bucket=output:2\n\
             flow add priority=1,in_port=1,actions=group:1\n\
             flow add priority=1,actions=output:2\n\
             packet-out in_port=controller,packet={frame},actions=table"
        );
        switch.ofctl(&format!(
            "{options} bundle br0 {}",
            flow_file(context, &lines)?
        ))?;
        let flows = switch.flows(&format!("{options} dump-flows br0"))?;
        let matched = flows.iter().filter(|flow| flow.contains("n_packets=1,"));
        assert_eq!((flows.len(), matched.count()), (2, 1), "{flows:?}");
        let bad = format!("{lines}\nflow delete\nflow add actions=group:7");
        let refused = switch.ofctl_failure(&format!(
            "{options} bundle br0 {}",
            flow_file(context, &bad)?
        ))?;
        assert!(refused.contains("OFPBFC_MSG_FAILED"), "{refused}");
        let after = switch.flows(&format!("{options} dump-flows br0"))?;
        assert_eq!(after, flows);
    }
    Ok(())
}

/// The time of the commit is relative to the time that the switch reported before.
fn scheduled_bundle_takes_effect_at_its_time(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V15)?;
    let features_request = BundleFeaturesRequest {
        flags: BundleFeaturesRequest::TIMESTAMP,
        times: None,
    };
    let request = MultipartRequest::BundleFeatures(features_request);
    let reply = controller.request(&Message::MultipartRequest(request.clone()))?;
    let time = |reply: &Message| match reply {
        Message::MultipartReply {
            reply: MultipartReply::BundleFeatures(features),
            ..
        } => {
            features
                .times
                .expect("the switch supports scheduled bundles")
                .now
                .0
        }
        other => panic!("{other:?}"),
    };
    let due = time(&reply) + Duration::from_millis(300);
    let step = |step| BundleControl {
        bundle: BundleId(1),
        step,
        flags: BundleFlags::TIME,
        time: Some(WallTime(due)).filter(|_| step == BundleStep::CommitRequest),
    };
    controller.request(&Message::BundleControl(step(BundleStep::OpenRequest)))?;
    let rule = flow::text::parse_flow_line("actions=output:2").expect("the text is a flow");
    let add = BundleAdd {
        bundle: BundleId(1),
        flags: BundleFlags::TIME,
        message: Box::new(Message::FlowMod(rule)),
        excerpt: Excerpt::of(&[]),
        length: 0,
    };
    controller.send(&Message::BundleAdd(add))?;
    let commit = controller.send(&Message::BundleControl(step(BundleStep::CommitRequest)))?;
    assert!(switch.flows("dump-flows br0")?.is_empty());
    assert_eq!(controller.reply_xids(1)?, [commit]);
    let after = time(&controller.request(&Message::MultipartRequest(request))?);
    assert!(
        after >= due && after < due + Duration::from_secs(5),
        "{after:?} {due:?}"
    );
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    Ok(())
}

fn failed_bundle_changes_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl("add-flow br0 priority=1,actions=output:1")?;
    let before = switch.flows("dump-flows br0")?;
    let lines = "delete\nadd priority=2,ip,actions=output:2\n\
                 add check_overlap,priority=2,ip,nw_src=10.0.0.1,actions=output:1";
    let stderr = switch.ofctl_failure(&format!("{SEND_BUNDLE} {}", flow_file(context, lines)?))?;
    assert!(stderr.contains("OFPFMFC_OVERLAP"), "{stderr}");
    assert!(stderr.contains("OFPBFC_MSG_FAILED"), "{stderr}");
    assert_eq!(switch.flows("dump-flows br0")?, before);
    Ok(())
}

/// Two tables that forward only together: the first sets a number in the metadata that the second
/// matches, and each bundle changes it.
fn frames_never_match_a_partial_bundle(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    network.add_static_neighbours(1, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl("add-flow br0 in_port=2,actions=output:1")?;
    change_metadata(context, &switch, 0)?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let words = format!("fping -q -c 1000 -p 2 -t 5000 {}", two.address);
    let pings = program(&words)
        .inside(&one.namespace)
        .log(context.unique_path("fping.log"));
    let mut pings = context.spawner.start(pings)?;
    let mut bundle_count = 0;
    while pings.is_running() {
        bundle_count += 1;
        change_metadata(context, &switch, bundle_count)?;
    }
    pings.wait(WAIT_LIMIT)?;
    let output = pings.written()?;
    assert!(output.contains(" = 1000/1000/0%,"), "{output}");
    assert!(
        bundle_count > 10,
        "{bundle_count} bundles while frames crossed"
    );
    Ok(())
}

/// Changes the metadata value in both tables by one bundle.
fn change_metadata(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    number: u32,
) -> Result<(), Failure> {
    let old = number.wrapping_sub(1);
    let lines = format!(
        "delete table=1,metadata={old}\n\
         add table=0,in_port=1,actions=write_metadata:{number},goto_table:1\n\
         add table=1,metadata={number},actions=output:2"
    );
    switch.ofctl(&format!("{SEND_BUNDLE} {}", flow_file(context, &lines)?))?;
    Ok(())
}

/// Writes a file with these lines, and returns its path.
fn flow_file(context: &TestContext, lines: &str) -> Result<String, Failure> {
    let path = context.unique_path("flows");
    fs::write(&path, lines).map_err(Failure::to("write a file with flows"))?;
    Ok(path.display().to_string())
}
