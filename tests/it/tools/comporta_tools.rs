//! Comporta's subcommands for rules, groups, meters and ports, compared with `ovs-ofctl`.

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    rules_are_added_listed_in_order_and_deleted,
    groups_meters_and_ports_are_listed_like_by_ovs_ofctl,
    names_of_ports_and_tables_are_accepted_and_printed,
    flows_are_encoded_like_ovs_ofctl,
    tool_errors_have_one_line,
];

fn rules_are_added_listed_in_order_and_deleted(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for flow in [
        "priority=5,tcp,actions=output:2",
        "priority=9,udp,actions=set_field:10.0.0.1->ip_dst,output:1",
        "table=3,priority=7,arp,actions=drop",
    ] {
        switch
            .run_comporta(&["flows", "br0", "--add", flow])?
            .expect_success()?;
    }
    let output = switch
        .run_comporta(&["flows", "br0", "--no-stats"])?
        .expect_success()?;
    let expected = " priority=9,udp actions=set_field:10.0.0.1->ip_dst,output:1
 priority=5,tcp actions=output:2
 table=3, priority=7,arp actions=drop
";
    assert_eq!(output, expected);
    let output = switch
        .run_comporta(&["flows", "br0", "tcp"])?
        .expect_success()?;
    assert!(
        output.contains("n_packets=0, n_bytes=0, ") && output.lines().count() == 1,
        "{output}"
    );
    switch
        .run_comporta(&["flows", "br0", "--delete", "table=0"])?
        .expect_success()?;
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    switch
        .run_comporta(&["flows", "br0", "--delete", "all"])?
        .expect_success()?;
    assert_eq!(
        switch.run_comporta(&["flows", "br0"])?.expect_success()?,
        ""
    );
    Ok(())
}

fn groups_meters_and_ports_are_listed_like_by_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for group in [
        "group_id=9,type=all,bucket=output:1",
        "group_id=4,type=indirect,bucket=output:2",
    ] {
        switch
            .run_comporta(&["groups", "br0", "--add", group])?
            .expect_success()?;
    }
    let meter = "meter=3,kbps,bands=type=drop,rate=100";
    switch
        .run_comporta(&["meters", "br0", "--add", meter])?
        .expect_success()?;
    for (tool, words) in [
        ("groups", "-O OpenFlow15 dump-groups br0"),
        ("meters", "-O OpenFlow15 dump-meters br0"),
        ("ports", "-O OpenFlow15 dump-ports-desc br0"),
    ] {
        let comporta = switch.run_comporta(&[tool, "br0"])?.expect_success()?;
        let ovs = switch.ofctl(words)?;
        let (_, ovs) = ovs
            .split_once('\n')
            .expect("the first line names the reply");
        assert_eq!(comporta, ovs, "{tool}");
        assert!(!comporta.is_empty());
    }
    let statistics = switch
        .run_comporta(&["groups", "br0", "--stats"])?
        .expect_success()?;
    assert!(
        statistics.starts_with(" group_id=4,duration="),
        "{statistics}"
    );
    switch
        .run_comporta(&["groups", "br0", "--delete", "all"])?
        .expect_success()?;
    switch
        .run_comporta(&["meters", "br0", "--delete", "meter=3"])?
        .expect_success()?;
    for tool in ["groups", "meters"] {
        assert_eq!(switch.run_comporta(&[tool, "br0"])?.expect_success()?, "");
    }
    Ok(())
}

fn names_of_ports_and_tables_are_accepted_and_printed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch.ofctl("-O OpenFlow15 mod-table br0 2 name:acl")?;
    for flow in [
        "in_port=p1,actions=output:p2,p1,LOCAL,resubmit(p2,acl)",
        "table=acl,actset_output=\"p2\",actions=goto_table:3",
        "table=3,in_port=2,actions=bundle(eth_src,0,hrw,ofport,members:p1,2),learn(table=acl)",
    ] {
        switch
            .run_comporta(&["flows", "br0", "--add", flow])?
            .expect_success()?;
    }
    let group = "group_id=1,type=ff,bucket=watch_port:p1,actions=output:p2";
    switch
        .run_comporta(&["groups", "br0", "--add", group])?
        .expect_success()?;
    for naming in ["--names", "--no-names"] {
        for (words, ovs) in [
            ("flows br0 --no-stats", "--no-stats dump-flows br0"),
            (
                "flows br0 --no-stats in_port=1",
                "--no-stats dump-flows br0 in_port=1",
            ),
            ("groups br0", "dump-groups br0"),
            ("ports br0", "dump-ports-desc br0"),
        ] {
            let words: Vec<&str> = words.split(' ').chain([naming]).collect();
            let comporta = switch.run_comporta(&words)?.expect_success()?;
            let ovs = switch.ofctl(&format!("-O OpenFlow15 {naming} {ovs}"))?;
            let rows = ovs.lines().filter(|row| !row.starts_with("OFPST"));
            let rows: String = rows.map(|row| format!("{row}\n")).collect();
            assert_eq!(comporta, rows, "{words:?}");
        }
    }
    let output = switch
        .run_comporta(&["flows", "br0", "--names", "table=acl"])?
        .expect_success()?;
    assert!(
        output.contains(", table=acl, ") && output.contains("actset_output=p2"),
        "{output}"
    );
    // A file receives numbers; names are accepted as input.
    let output = switch
        .run_comporta(&["flows", "br0", "in_port=p1"])?
        .expect_success()?;
    assert!(
        output.contains("in_port=1 actions=output:2,output:1,LOCAL"),
        "{output}"
    );
    let statistics = switch
        .run_comporta(&["ports", "br0", "--stats", "--names"])?
        .expect_success()?;
    assert!(statistics.contains("  port  p1: rx pkts="), "{statistics}");
    let refused = switch.run_comporta(&["flows", "br0", "--no-names", "in_port=p1"])?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("expected a port"),
        "{}",
        refused.stderr
    );
    Ok(())
}

/// Flows that Comporta encodes differently, and the reason.
const DIFFERENT_FLOWS: [(&str, &str); 2] = [
    (
        "set_field:0x1005/0x100f->vlan_vid",
        "ovs-ofctl leaves out the bit that marks a present tag",
    ),
    ("debug_", "ovs-ofctl decodes debug actions only for tests"),
];

fn flows_are_encoded_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let binary = comporta_binary();
    let binary = binary.to_str().expect("the path is UTF-8");
    let vectors = include_str!("../../../crates/flow/vectors/flows.txt");
    let flows = vectors.lines().filter_map(|line| line.strip_prefix("< "));
    let flows = flows.filter(|flow| !DIFFERENT_FLOWS.iter().any(|(text, _)| flow.contains(text)));
    let mut message_count = 0;
    for flow in flows {
        for version in ["OpenFlow13", "OpenFlow15"] {
            let ovs = program("ovs-ofctl -voff parse-flow").args([flow, "-O", version]);
            let comporta = program(binary).args(["ofp-parse", "flow", flow, "-O", version]);
            // Other tests cover which versions can express a flow.
            let (Ok(ovs), Ok(comporta)) = (
                CommandOutput::run(context, ovs)?.expect_success(),
                CommandOutput::run(context, comporta)?.expect_success(),
            ) else {
                continue;
            };
            let ovs = ovs.lines().find(|line| line.starts_with("OFPT_"));
            let comporta = comporta.lines().find(|line| line.starts_with("OFPT_"));
            assert_eq!(comporta, ovs, "{version} {flow}");
            message_count += 1;
        }
    }
    assert!(message_count > 500, "only {message_count} messages");
    Ok(())
}

fn tool_errors_have_one_line(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for (words, text) in [
        (&["flows", "br1"][..], "br1.mgmt"),
        (
            &["flows", "br0", "--add", "tpc,actions=drop"],
            "did you mean `tcp`?",
        ),
        (
            &["flows", "br0", "--add", "actions=group:99"],
            "the switch refuses: no such group",
        ),
        (&["ofp-print", "01zz"], "`z` is not hexadecimal"),
        (
            &[
                "ofp-parse",
                "meter",
                "meter=1 kbps bands=type=drop,rate=1",
                "-O",
                "OpenFlow10",
            ],
            "OpenFlow10 cannot express",
        ),
    ] {
        let stderr = switch.run_comporta(words)?.expect_failure()?;
        assert!(stderr.contains(text), "{words:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    Ok(())
}
