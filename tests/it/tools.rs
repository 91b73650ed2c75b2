//! Comporta's own tools at a switch that runs, and beside `ovs-ofctl`.

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Ran, Rig, Switch, binary, program};

pub(crate) const RULES: &[Rule] = rules![
    rules_are_added_told_in_order_and_deleted,
    groups_meters_and_ports_are_told_as_ovs_ofctl_tells_them,
    ports_and_tables_are_called_by_their_names,
    a_text_becomes_the_message_that_ovs_ofctl_makes_of_it,
    what_a_tool_cannot_do_is_said_in_one_line,
];

/// Runs one of our subcommands beside the switch.
fn own(ground: &Ground, switch: &Switch<'_>, words: &[&str]) -> Result<Ran, testbed::Failure> {
    let own = program(binary().to_str().expect("a path is text"))
        .args(words.iter().copied())
        .env("OVS_RUNDIR", switch.file(""));
    Ran::of(ground, own)
}

fn rules_are_added_told_in_order_and_deleted(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for flow in [
        "priority=5,tcp,actions=output:2",
        "priority=9,udp,actions=set_field:10.0.0.1->ip_dst,output:1",
        "table=3,priority=7,arp,actions=drop",
    ] {
        own(ground, &switch, &["flows", "br0", "--add", flow])?.good()?;
    }
    let told = own(ground, &switch, &["flows", "br0", "--no-stats"])?.good()?;
    let wanted = " priority=9,udp actions=set_field:10.0.0.1->ip_dst,output:1
 priority=5,tcp actions=output:2
 table=3, priority=7,arp actions=drop
";
    assert_eq!(told, wanted);
    let told = own(ground, &switch, &["flows", "br0", "tcp"])?.good()?;
    assert!(
        told.contains("n_packets=0, n_bytes=0, ") && told.lines().count() == 1,
        "{told}"
    );
    own(ground, &switch, &["flows", "br0", "--delete", "table=0"])?.good()?;
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    own(ground, &switch, &["flows", "br0", "--delete", "all"])?.good()?;
    assert_eq!(own(ground, &switch, &["flows", "br0"])?.good()?, "");
    Ok(())
}

fn groups_meters_and_ports_are_told_as_ovs_ofctl_tells_them(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for group in [
        "group_id=9,type=all,bucket=output:1",
        "group_id=4,type=indirect,bucket=output:2",
    ] {
        own(ground, &switch, &["groups", "br0", "--add", group])?.good()?;
    }
    let meter = "meter=3,kbps,bands=type=drop,rate=100";
    own(ground, &switch, &["meters", "br0", "--add", meter])?.good()?;
    for (tool, words) in [
        ("groups", "-O OpenFlow15 dump-groups br0"),
        ("meters", "-O OpenFlow15 dump-meters br0"),
        ("ports", "-O OpenFlow15 dump-ports-desc br0"),
    ] {
        let ours = own(ground, &switch, &[tool, "br0"])?.good()?;
        let theirs = switch.ofctl(words)?;
        let (_, theirs) = theirs.split_once('\n').expect("a line names the reply");
        assert_eq!(ours, theirs, "{tool}");
        assert!(!ours.is_empty());
    }
    let counted = own(ground, &switch, &["groups", "br0", "--stats"])?.good()?;
    assert!(counted.starts_with(" group_id=4,duration="), "{counted}");
    own(ground, &switch, &["groups", "br0", "--delete", "all"])?.good()?;
    own(ground, &switch, &["meters", "br0", "--delete", "meter=3"])?.good()?;
    for tool in ["groups", "meters"] {
        assert_eq!(own(ground, &switch, &[tool, "br0"])?.good()?, "");
    }
    Ok(())
}

fn ports_and_tables_are_called_by_their_names(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch.ofctl("-O OpenFlow15 mod-table br0 2 name:acl")?;
    for flow in [
        "in_port=p1,actions=output:p2,p1,LOCAL,resubmit(p2,acl)",
        "table=acl,actset_output=\"p2\",actions=goto_table:3",
        "table=3,in_port=2,actions=bundle(eth_src,0,hrw,ofport,members:p1,2),learn(table=acl)",
    ] {
        own(ground, &switch, &["flows", "br0", "--add", flow])?.good()?;
    }
    let group = "group_id=1,type=ff,bucket=watch_port:p1,actions=output:p2";
    own(ground, &switch, &["groups", "br0", "--add", group])?.good()?;
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
            let ours = own(ground, &switch, &words)?.good()?;
            let theirs = switch.ofctl(&format!("-O OpenFlow15 {naming} {theirs}"))?;
            let rows = theirs.lines().filter(|row| !row.starts_with("OFPST"));
            let rows: String = rows.map(|row| format!("{row}\n")).collect();
            assert_eq!(ours, rows, "{words:?}");
        }
    }
    let told = own(ground, &switch, &["flows", "br0", "--names", "table=acl"])?.good()?;
    assert!(
        told.contains(", table=acl, ") && told.contains("actset_output=p2"),
        "{told}"
    );
    // To a file numbers are told, and read names are.
    let told = own(ground, &switch, &["flows", "br0", "in_port=p1"])?.good()?;
    assert!(
        told.contains("in_port=1 actions=output:2,output:1,LOCAL"),
        "{told}"
    );
    let counted = own(ground, &switch, &["ports", "br0", "--stats", "--names"])?.good()?;
    assert!(counted.contains("  port  p1: rx pkts="), "{counted}");
    let refused = own(
        ground,
        &switch,
        &["flows", "br0", "--no-names", "in_port=p1"],
    )?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.errors.contains("a port is wanted"),
        "{}",
        refused.errors
    );
    Ok(())
}

/// Flows of which we make another message, and why.
const OTHERWISE: [(&str, &str); 1] = [(
    "set_field:0x1005/0x100f->vlan_vid",
    "the tool leaves out the bit that says that there is a tag",
)];

fn a_text_becomes_the_message_that_ovs_ofctl_makes_of_it(ground: &Ground) -> Outcome {
    let comporta = binary();
    let comporta = comporta.to_str().expect("a path is text");
    let vectors = include_str!("../../crates/flow/vectors/flows.txt");
    let flows = vectors.lines().filter_map(|line| line.strip_prefix("< "));
    let flows = flows.filter(|flow| !OTHERWISE.iter().any(|(text, _)| flow.contains(text)));
    let mut made = 0;
    for flow in flows {
        for version in ["OpenFlow13", "OpenFlow15"] {
            let theirs = program("ovs-ofctl -voff parse-flow").args([flow, "-O", version]);
            let ours = program(comporta).args(["ofp-parse", "flow", flow, "-O", version]);
            // Which versions have words for a flow is for other tests to say.
            let (Ok(theirs), Ok(ours)) = (
                Ran::of(ground, theirs)?.good(),
                Ran::of(ground, ours)?.good(),
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

fn what_a_tool_cannot_do_is_said_in_one_line(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
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
        let complaint = own(ground, &switch, words)?.bad()?;
        assert!(complaint.contains(said), "{words:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
    Ok(())
}
