//! Comporta's own tools at a switch that runs, and beside `ovs-ofctl`.

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    rules_are_added_told_in_order_and_deleted,
    groups_meters_and_ports_are_told_as_ovs_ofctl_tells_them,
    ports_and_tables_are_called_by_their_names,
    a_text_becomes_the_message_that_ovs_ofctl_makes_of_it,
    what_a_tool_cannot_do_is_said_in_one_line,
];

/// Runs one of our subcommands beside the switch.
fn own(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    words: &[&str],
) -> Result<CommandOutput, testbed::Failure> {
    let own = program(comporta_binary().to_str().expect("a path is text"))
        .args(words.iter().copied())
        .env("OVS_RUNDIR", switch.file(""));
    CommandOutput::run(context, own)
}

fn rules_are_added_told_in_order_and_deleted(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for flow in [
        "priority=5,tcp,actions=output:2",
        "priority=9,udp,actions=set_field:10.0.0.1->ip_dst,output:1",
        "table=3,priority=7,arp,actions=drop",
    ] {
        own(context, &switch, &["flows", "br0", "--add", flow])?.expect_success()?;
    }
    let told = own(context, &switch, &["flows", "br0", "--no-stats"])?.expect_success()?;
    let wanted = " priority=9,udp actions=set_field:10.0.0.1->ip_dst,output:1
 priority=5,tcp actions=output:2
 table=3, priority=7,arp actions=drop
";
    assert_eq!(told, wanted);
    let told = own(context, &switch, &["flows", "br0", "tcp"])?.expect_success()?;
    assert!(
        told.contains("n_packets=0, n_bytes=0, ") && told.lines().count() == 1,
        "{told}"
    );
    own(context, &switch, &["flows", "br0", "--delete", "table=0"])?.expect_success()?;
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    own(context, &switch, &["flows", "br0", "--delete", "all"])?.expect_success()?;
    assert_eq!(
        own(context, &switch, &["flows", "br0"])?.expect_success()?,
        ""
    );
    Ok(())
}

fn groups_meters_and_ports_are_told_as_ovs_ofctl_tells_them(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for group in [
        "group_id=9,type=all,bucket=output:1",
        "group_id=4,type=indirect,bucket=output:2",
    ] {
        own(context, &switch, &["groups", "br0", "--add", group])?.expect_success()?;
    }
    let meter = "meter=3,kbps,bands=type=drop,rate=100";
    own(context, &switch, &["meters", "br0", "--add", meter])?.expect_success()?;
    for (tool, words) in [
        ("groups", "-O OpenFlow15 dump-groups br0"),
        ("meters", "-O OpenFlow15 dump-meters br0"),
        ("ports", "-O OpenFlow15 dump-ports-desc br0"),
    ] {
        let ours = own(context, &switch, &[tool, "br0"])?.expect_success()?;
        let theirs = switch.ofctl(words)?;
        let (_, theirs) = theirs.split_once('\n').expect("a line names the reply");
        assert_eq!(ours, theirs, "{tool}");
        assert!(!ours.is_empty());
    }
    let counted = own(context, &switch, &["groups", "br0", "--stats"])?.expect_success()?;
    assert!(counted.starts_with(" group_id=4,duration="), "{counted}");
    own(context, &switch, &["groups", "br0", "--delete", "all"])?.expect_success()?;
    own(context, &switch, &["meters", "br0", "--delete", "meter=3"])?.expect_success()?;
    for tool in ["groups", "meters"] {
        assert_eq!(own(context, &switch, &[tool, "br0"])?.expect_success()?, "");
    }
    Ok(())
}

fn ports_and_tables_are_called_by_their_names(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch.ofctl("-O OpenFlow15 mod-table br0 2 name:acl")?;
    for flow in [
        "in_port=p1,actions=output:p2,p1,LOCAL,resubmit(p2,acl)",
        "table=acl,actset_output=\"p2\",actions=goto_table:3",
        "table=3,in_port=2,actions=bundle(eth_src,0,hrw,ofport,members:p1,2),learn(table=acl)",
    ] {
        own(context, &switch, &["flows", "br0", "--add", flow])?.expect_success()?;
    }
    let group = "group_id=1,type=ff,bucket=watch_port:p1,actions=output:p2";
    own(context, &switch, &["groups", "br0", "--add", group])?.expect_success()?;
    for naming in ["--names", "--no-names"] {
        for (words, theirs) in [
            ("flows br0 --no-stats", "--no-stats dump-flows br0"),
            (
                "flows br0 --no-stats in_port=1",
                "--no-stats dump-flows br0 in_port=1",
            ),
            ("groups br0", "dump-groups br0"),
            ("ports br0", "dump-ports-desc br0"),
        ] {
            let words: Vec<&str> = words.split(' ').chain([naming]).collect();
            let ours = own(context, &switch, &words)?.expect_success()?;
            let theirs = switch.ofctl(&format!("-O OpenFlow15 {naming} {theirs}"))?;
            let rows = theirs.lines().filter(|row| !row.starts_with("OFPST"));
            let rows: String = rows.map(|row| format!("{row}\n")).collect();
            assert_eq!(ours, rows, "{words:?}");
        }
    }
    let told =
        own(context, &switch, &["flows", "br0", "--names", "table=acl"])?.expect_success()?;
    assert!(
        told.contains(", table=acl, ") && told.contains("actset_output=p2"),
        "{told}"
    );
    // To a file numbers are told, and read names are.
    let told = own(context, &switch, &["flows", "br0", "in_port=p1"])?.expect_success()?;
    assert!(
        told.contains("in_port=1 actions=output:2,output:1,LOCAL"),
        "{told}"
    );
    let counted =
        own(context, &switch, &["ports", "br0", "--stats", "--names"])?.expect_success()?;
    assert!(counted.contains("  port  p1: rx pkts="), "{counted}");
    let refused = own(
        context,
        &switch,
        &["flows", "br0", "--no-names", "in_port=p1"],
    )?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("a port is wanted"),
        "{}",
        refused.stderr
    );
    Ok(())
}

/// Flows of which we make another message, and why.
const OTHERWISE: [(&str, &str); 1] = [(
    "set_field:0x1005/0x100f->vlan_vid",
    "the tool leaves out the bit that says that there is a tag",
)];

fn a_text_becomes_the_message_that_ovs_ofctl_makes_of_it(context: &TestContext) -> TestResult {
    let comporta = comporta_binary();
    let comporta = comporta.to_str().expect("a path is text");
    let vectors = include_str!("../../../crates/flow/vectors/flows.txt");
    let flows = vectors.lines().filter_map(|line| line.strip_prefix("< "));
    let flows = flows.filter(|flow| !OTHERWISE.iter().any(|(text, _)| flow.contains(text)));
    let mut made = 0;
    for flow in flows {
        for version in ["OpenFlow13", "OpenFlow15"] {
            let theirs = program("ovs-ofctl -voff parse-flow").args([flow, "-O", version]);
            let ours = program(comporta).args(["ofp-parse", "flow", flow, "-O", version]);
            // Which versions have words for a flow is for other tests to say.
            let (Ok(theirs), Ok(ours)) = (
                CommandOutput::run(context, theirs)?.expect_success(),
                CommandOutput::run(context, ours)?.expect_success(),
            ) else {
                continue;
            };
            let theirs = theirs.lines().find(|line| line.starts_with("OFPT_"));
            let ours = ours.lines().find(|line| line.starts_with("OFPT_"));
            assert_eq!(ours, theirs, "{version} {flow}");
            made += 1;
        }
    }
    assert!(made > 500, "only {made} messages");
    Ok(())
}

fn what_a_tool_cannot_do_is_said_in_one_line(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for (words, said) in [
        (&["flows", "br1"][..], "br1.mgmt"),
        (
            &["flows", "br0", "--add", "tpc,actions=drop"],
            "is `tcp` meant?",
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
        let complaint = own(context, &switch, words)?.expect_failure()?;
        assert!(complaint.contains(said), "{words:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
    Ok(())
}
