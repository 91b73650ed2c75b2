//! All subcommands of `ovs-ofctl` 3.1 for switches, in OpenFlow 1.0, 1.3, 1.4 and 1.5: the switch
//! supports the command or refuses it with the protocol's error. A subcommand that the tool's help
//! lists and the table omits fails the test.

use std::collections::BTreeSet;
use std::fs;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    ovs_ofctl_subcommands_are_all_covered,
    ovs_ofctl_subcommands_succeed_or_return_their_error,
];

/// Versions in which the commands run.
const VERSIONS: [&str; 4] = ["OpenFlow10", "OpenFlow13", "OpenFlow14", "OpenFlow15"];

/// Messages of the tool for a request that a version lacks.
const NOT_IN_VERSION: [&str; 3] = [
    "needs OpenFlow",
    "requires one of the OpenFlow versions",
    "none of the usable flow formats",
];

/// Subcommands that run until they are ended, with the tests that run them, and those that need
/// another socket.
const TESTED_ELSEWHERE: [(&str, &str); 2] = [
    (
        "monitor",
        "monitor_receives_packet_ins_removals_and_port_status",
    ),
    ("snoop", "the switch has no snoop socket"),
];

/// Arguments after `ovs-ofctl -O VERSION`, and the error that the switch may return, or an empty
/// text if the command must succeed. The order matters: later commands need the state of earlier
/// ones.
const COMMANDS: &[(&str, &str)] = &[
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
    ("meter-features br0", ""),
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

/// Subcommand in the arguments.
fn subcommand(arguments: &str) -> &str {
    let mut words = arguments.split_whitespace();
    let name = words.find(|word| !word.starts_with(['-', '[']));
    name.unwrap_or_default()
}

fn ovs_ofctl_subcommands_are_all_covered(context: &TestContext) -> TestResult {
    let help = CommandOutput::run(context, program("ovs-ofctl --help"))?.expect_success()?;
    let parts = help
        .split("\n\n")
        .filter(|part| part.starts_with("For OpenFlow switches"));
    let listed = parts.flat_map(str::lines);
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let listed: BTreeSet<&str> = listed.map(subcommand).collect();
    assert!(listed.len() > 45, "{listed:?}");
    let covered = COMMANDS.iter().map(|(arguments, _)| subcommand(arguments));
    let covered: BTreeSet<&str> = covered
        .chain(TESTED_ELSEWHERE.map(|(name, _)| name))
        .collect();
    let missing: Vec<_> = listed.difference(&covered).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    Ok(())
}

fn ovs_ofctl_subcommands_succeed_or_return_their_error(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let (flows, groups) = (
        context.unique_path("flows.txt"),
        context.unique_path("groups.txt"),
    );
    fs::write(&flows, "tcp,actions=output:2\nudp,actions=drop\n")?;
    fs::write(&groups, "group_id=7,type=all,bucket=output:1\n")?;
    let mut failures = Vec::new();
    let mut succeeded = BTreeSet::new();
    for version in VERSIONS {
        for (arguments, expected_error) in COMMANDS {
            let words = arguments
                .replace("FLOWS", &flows.display().to_string())
                .replace("GROUPS", &groups.display().to_string());
            match run_command(&switch, version, &words, expected_error) {
                Ok(true) => drop(succeeded.insert(*arguments)),
                Ok(false) => {}
                Err(output) => failures.push(format!("{version} {arguments}: {output}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Commands that no version supports have an expected error.
    let never = COMMANDS.iter().filter(|(arguments, expected_error)| {
        expected_error.is_empty() && !succeeded.contains(arguments)
    });
    let never: Vec<_> = never.map(|(arguments, _)| arguments).collect();
    // Only 1.1 and 1.2 support it.
    assert_eq!(never, [&"mod-table br0 0 controller"]);
    Ok(())
}

/// Returns true if the command succeeded, false if the version lacks it or the switch returned the
/// expected error, and the output for other errors.
fn run_command(
    switch: &SwitchProcess<'_>,
    version: &str,
    words: &str,
    expected_error: &str,
) -> Result<bool, String> {
    let result = switch.ofctl_output(&format!("-O {version} -t 10 {words}"));
    let result = result.map_err(|error| error.to_string())?;
    let output = format!("{}{}", result.stdout, result.stderr);
    if NOT_IN_VERSION.iter().any(|text| output.contains(text)) {
        return Ok(false);
    }
    if !expected_error.is_empty() && output.contains(expected_error) {
        return Ok(false);
    }
    let failure_texts = ["OFPT_ERROR", "WARN", "decode error", "ovs-ofctl:"];
    if failure_texts.iter().any(|text| output.contains(text)) || !result.status.success() {
        return Err(output);
    }
    Ok(true)
}
