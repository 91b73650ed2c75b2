//! Every subcommand of `ovs-ofctl` 3.1 that talks to a switch, in OpenFlow 1.0, 1.3,
//! 1.4 and 1.5: the switch does it, or refuses it by the protocol's own error. What the
//! tool's help lists and the table here does not fails.

use std::collections::BTreeSet;
use std::fs;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    every_subcommand_of_ovs_ofctl_is_walked,
    every_subcommand_is_done_or_refused_by_its_name,
];

/// The versions that are walked.
const VERSIONS: [&str; 4] = ["OpenFlow10", "OpenFlow13", "OpenFlow14", "OpenFlow15"];

/// What the tool itself says where a version does not have what it is to ask.
const NOT_IN_VERSION: [&str; 3] = [
    "needs OpenFlow",
    "requires one of the OpenFlow versions",
    "none of the usable flow formats",
];

/// Subcommands that go on until they are ended, and the tests that do so; or that want
/// another socket.
const ELSEWHERE: [(&str, &str); 2] = [
    (
        "monitor",
        "monitor_receives_packet_ins_removals_and_port_status",
    ),
    ("snoop", "no socket of this switch lets others listen"),
];

/// What is typed behind `ovs-ofctl -O VERSION`, and the error that the switch may answer;
/// none if it must do it. In this order: what is asked for is there.
const WALK: &[(&str, &str)] = &[
    ("show br0", ""),
    ("dump-desc br0", ""),
    ("dump-tables br0", ""),
    ("dump-table-features br0", ""),
    ("dump-table-desc br0", ""),
    ("mod-port br0 p1 no-forward", ""),
    ("mod-port br0 p1 forward", ""),
    ("mod-port br0 p1 down", ""),
    ("mod-port br0 p1 up", ""),
    ("mod-table br0 0 controller", ""),
    ("mod-table br0 0 evict", ""),
    ("mod-table br0 0 noevict", ""),
    ("mod-table br0 0 vacancy:20,80", ""),
    ("mod-table br0 0 novacancy", ""),
    ("get-frags br0", ""),
    ("set-frags br0 drop", ""),
    ("set-frags br0 normal", ""),
    ("dump-ports br0", ""),
    ("dump-ports br0 1", ""),
    ("dump-ports-desc br0", ""),
    ("dump-ports-desc br0 1", ""),
    ("add-flow br0 tcp,actions=output:2", ""),
    ("add-flows br0 FLOWS", ""),
    ("--bundle add-flows br0 FLOWS", ""),
    ("dump-flows br0", ""),
    ("dump-flows br0 tcp", ""),
    ("dump-aggregate br0", ""),
    ("dump-aggregate br0 tcp", ""),
    ("mod-flows br0 tcp,actions=drop", ""),
    ("--strict mod-flows br0 tcp,actions=drop", ""),
    ("replace-flows br0 FLOWS", ""),
    ("diff-flows br0 FLOWS", ""),
    ("--strict del-flows br0 tcp", ""),
    ("del-flows br0 udp", ""),
    ("del-flows br0", ""),
    ("queue-stats br0", ""),
    ("queue-stats br0 1", ""),
    ("queue-stats br0 1 1", "OFPQOFC_BAD_QUEUE"),
    ("queue-get-config br0", ""),
    ("queue-get-config br0 1", ""),
    ("packet-out br0 1 output:2 ffffffffffff0200000000010806", ""),
    ("add-group br0 group_id=5,type=all,bucket=output:1", ""),
    ("add-groups br0 GROUPS", ""),
    (
        "--may-create mod-group br0 group_id=6,type=all,bucket=output:2",
        "",
    ),
    ("mod-group br0 group_id=5,type=all,bucket=output:2", ""),
    (
        "insert-buckets br0 group_id=5,command_bucket_id=last,bucket=bucket_id:9,actions=output:1",
        "",
    ),
    ("remove-buckets br0 group_id=5,command_bucket_id=last", ""),
    ("dump-group-features br0", ""),
    ("dump-groups br0", ""),
    ("dump-groups br0 5", ""),
    ("dump-group-stats br0", ""),
    ("dump-group-stats br0 group_id=5", ""),
    ("del-groups br0 group_id=5", ""),
    ("del-groups br0", ""),
    ("add-meter br0 meter=1,kbps,band=type=drop,rate=1000", ""),
    ("mod-meter br0 meter=1,kbps,band=type=drop,rate=2000", ""),
    ("dump-meters br0", ""),
    ("dump-meters br0 meter=1", ""),
    ("meter-stats br0", ""),
    // It expects the reply of 1.3 in 1.5 too, which is longer there (OF 1.5.1, 7.3.5.14).
    ("meter-features br0", "incorrect length"),
    ("del-meters br0 meter=1", ""),
    ("del-meters br0", ""),
    (
        "add-tlv-map br0 {class=0xffff,type=0,len=4}->tun_metadata0",
        "",
    ),
    ("del-tlv-map br0", ""),
    ("dump-tlv-map br0", ""),
    ("dump-ipfix-bridge br0", "NXST_NOT_CONFIGURED"),
    ("dump-ipfix-flow br0", "NXST_NOT_CONFIGURED"),
    ("ct-flush-zone br0 1", "OFPBRC_BAD_SUBTYPE"),
    ("ct-flush br0", "OFPBRC_BAD_SUBTYPE"),
    ("probe br0", ""),
    ("ping br0 10", ""),
    ("benchmark br0 10 5", ""),
];

/// The subcommand in what is typed.
fn subcommand(typed: &str) -> &str {
    let mut words = typed.split_whitespace();
    let named = words.find(|word| !word.starts_with(['-', '[']));
    named.unwrap_or_default()
}

fn every_subcommand_of_ovs_ofctl_is_walked(context: &TestContext) -> TestResult {
    let help = CommandOutput::run(context, program("ovs-ofctl --help"))?.expect_success()?;
    let parts = help
        .split("\n\n")
        .filter(|part| part.starts_with("For OpenFlow switches"));
    let listed = parts.flat_map(str::lines);
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let listed: BTreeSet<&str> = listed.map(subcommand).collect();
    assert!(listed.len() > 45, "{listed:?}");
    let walked = WALK.iter().map(|(typed, _)| subcommand(typed));
    let walked: BTreeSet<&str> = walked.chain(ELSEWHERE.map(|(name, _)| name)).collect();
    let missing: Vec<_> = listed.difference(&walked).collect();
    assert!(missing.is_empty(), "not walked: {missing:?}");
    Ok(())
}

fn every_subcommand_is_done_or_refused_by_its_name(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let (flows, groups) = (
        context.unique_path("flows.txt"),
        context.unique_path("groups.txt"),
    );
    fs::write(&flows, "tcp,actions=output:2\nudp,actions=drop\n")?;
    fs::write(&groups, "group_id=7,type=all,bucket=output:1\n")?;
    let mut wrong = Vec::new();
    let mut done = BTreeSet::new();
    for version in VERSIONS {
        for (typed, refusal) in WALK {
            let words = typed
                .replace("FLOWS", &flows.display().to_string())
                .replace("GROUPS", &groups.display().to_string());
            match walk(&switch, version, &words, refusal) {
                Ok(true) => drop(done.insert(*typed)),
                Ok(false) => {}
                Err(said) => wrong.push(format!("{version} {typed}: {said}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What no version does but by a refusal has one to expect.
    let never = WALK
        .iter()
        .filter(|(typed, refusal)| refusal.is_empty() && !done.contains(typed));
    let never: Vec<_> = never.map(|(typed, _)| typed).collect();
    // Only 1.1 and 1.2 know of it.
    assert_eq!(never, [&"mod-table br0 0 controller"]);
    Ok(())
}

/// Whether the switch has done it. An error is neither done nor refused as it may be.
fn walk(
    switch: &SwitchProcess<'_>,
    version: &str,
    words: &str,
    refusal: &str,
) -> Result<bool, String> {
    let ran = switch.ofctl_output(&format!("-O {version} -t 10 {words}"));
    let ran = ran.map_err(|error| error.to_string())?;
    let said = format!("{}{}", ran.stdout, ran.stderr);
    if NOT_IN_VERSION.iter().any(|text| said.contains(text)) {
        return Ok(false);
    }
    if !refusal.is_empty() && said.contains(refusal) {
        return Ok(false);
    }
    let complaint = ["OFPT_ERROR", "WARN", "decode error", "ovs-ofctl:"];
    if complaint.iter().any(|text| said.contains(text)) || !ran.status.success() {
        return Err(said);
    }
    Ok(true)
}
