//! Text formats compared with `ovs-ofctl`: OXM matches, instructions, groups, meters, captures and
//! rule files. Each program reads the other's output with the same meaning.

use std::fmt::Write as _;
use std::fs;

use flow::text::parse_group_line;
use flow::{FlowMod, Match};
use openflow::{Detail, Message, MessagePart, Version};
use openflow::{encode_instructions, encode_match, parse_oxm_text, print, print_part};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    matches_have_the_same_meaning_in_ovs_ofctl,
    instructions_are_printed_like_ovs_ofctl,
    groups_are_encoded_like_ovs_ofctl,
    groups_and_meters_of_a_file_are_added_like_ovs_ofctl,
    capture_file_is_printed_like_ovs_ofctl,
    rules_of_a_file_replace_those_of_the_switch,
    rules_are_printed_in_the_requested_order,
    rule_file_is_added_as_a_bundle_or_not_at_all,
];

/// Flows that `ovs-ofctl` can parse.
fn parsed_by_ovs_ofctl() -> Vec<FlowMod> {
    let vectors = include_str!("../../../crates/flow/vectors/flows.txt");
    let lines = vectors.lines().filter_map(|line| line.strip_prefix("< "));
    lines.filter_map(|line| line.parse().ok()).collect()
}

/// Output lines of the tool for lines on its standard input.
fn run_ovs_ofctl(
    network: &TestNetwork<'_>,
    context: &TestContext,
    tool: &str,
    lines: &[String],
) -> Result<Vec<String>, testbed::Failure> {
    let (input, script) = (
        context.unique_path("lines"),
        context.unique_path("script.sh"),
    );
    let write =
        |path, text: String| fs::write(path, text).map_err(testbed::Failure::to("write a script"));
    write(&input, lines.join("\n") + "\n")?;
    write(
        &script,
        format!("ovs-ofctl -voff {tool} < {}", input.display()),
    )?;
    let result = network.run(&format!("bash {}", script.display()))?;
    Ok(result.stdout.lines().map(str::to_owned).collect())
}

fn matches_have_the_same_meaning_in_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let matches: Vec<Match> = parsed_by_ovs_ofctl()
        .into_iter()
        .map(|flow| flow.matching)
        .collect();
    for (tool, version) in [
        ("parse-nx-match", Version::V10),
        ("parse-oxm OpenFlow12", Version::V12),
        ("parse-oxm OpenFlow13", Version::V13),
        ("parse-oxm OpenFlow15", Version::V15),
    ] {
        let meaning = |bytes: &[u8]| {
            let output = print_part(MessagePart::Match, bytes, version);
            let (entries, meaning) = output.split_once('\n').expect("the text has two lines");
            (entries.to_owned(), meaning.to_owned())
        };
        let bytes = matches
            .iter()
            .filter_map(|matching| encode_match(matching, version).ok());
        let comporta: Vec<(String, String)> = bytes.map(|bytes| meaning(&bytes)).collect();
        let lines: Vec<String> = comporta
            .iter()
            .map(|(entries, _)| entries.clone())
            .collect();
        let ovs = run_ovs_ofctl(&network, context, tool, &lines)?;
        assert_eq!(ovs.len(), lines.len(), "{tool}");
        for ((entries, comporta), ovs) in comporta.iter().zip(ovs) {
            let bytes = parse_oxm_text(&ovs).map_err(|error| format!("{ovs}: {error}"))?;
            assert_eq!(
                meaning(&bytes).1,
                *comporta,
                "{tool} {entries} differs from {ovs}"
            );
        }
        assert!(lines.len() > 250, "only {} matches", lines.len());
    }
    Ok(())
}

/// Reasons for which the tool refuses instructions that Comporta prints: they are inconsistent with
/// the unknown match, valid in flow-mods only, or debug actions, which it decodes only for tests.
const REFUSED_BY_OVS_OFCTL: [&str; 3] = [
    "OFPBAC_MATCH_INCONSISTENT",
    "OFPBIC_UNSUP_INST",
    "OFPBAC_BAD_VENDOR_TYPE",
];

/// The bit of `VLAN_VID` that marks a present tag, which the tool does not load.
const VLAN_PRESENT: &str = "->OXM_OF_VLAN_VID[12]";

fn instructions_are_printed_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let flows = parsed_by_ovs_ofctl();
    for (tool, version) in [
        ("parse-actions OpenFlow10", Version::V10),
        ("parse-instructions OpenFlow11", Version::V11),
        ("parse-instructions OpenFlow13", Version::V13),
        ("parse-instructions OpenFlow15", Version::V15),
    ] {
        let encoded = flows
            .iter()
            .filter_map(|flow| encode_instructions(&flow.instructions, version).ok());
        let encoded: Vec<Vec<u8>> = encoded.filter(|bytes| !bytes.is_empty()).collect();
        let output = encoded
            .iter()
            .map(|bytes| print_part(MessagePart::Instructions, bytes, version));
        let comporta: Vec<String> = output.collect();
        let mut ovs = String::new();
        for batch in encoded.chunks(BATCH) {
            let mut script = String::new();
            for bytes in batch {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(script, "ovs-ofctl -voff {tool} <<< {hex} | head -1");
            }
            let file = context.unique_path("script.sh");
            fs::write(&file, script)?;
            ovs += &network.run(&format!("bash {}", file.display()))?.stdout;
        }
        let mut equal_count = 0;
        for (ovs, comporta) in ovs.lines().zip(&comporta) {
            if REFUSED_BY_OVS_OFCTL
                .iter()
                .any(|reason| ovs.ends_with(reason))
                || comporta.contains(VLAN_PRESENT)
            {
                continue;
            }
            assert_eq!(ovs, comporta.trim_end(), "{tool}");
            equal_count += 1;
        }
        assert_eq!(ovs.lines().count(), comporta.len(), "{tool}");
        assert!(equal_count > 40, "{tool}: only {equal_count} lists");
    }
    Ok(())
}

/// Parameters before the actions of a bucket, for each group type.
const BUCKETS: [(&str, &[&str]); 4] = [
    ("all", &["", "bucket_id:7,", "bucket_id=4294967040,"]),
    (
        "select",
        &[
            "",
            "weight:5,",
            "weight=0,bucket_id:3,",
            "watch_port:2,",
            "weight:65535,watch_group:9,",
        ],
    ),
    ("indirect", &["", "bucket_id:1,"]),
    (
        "ff",
        &[
            "watch_port:1,",
            "watch_group:4,",
            "bucket_id:2,watch_port=3,",
        ],
    ),
];

/// Actions of buckets.
const ACTIONS: [&str; 8] = [
    "output:1",
    "actions=output:2,output:3",
    "drop",
    "set_field:10.0.0.1->ip_src,dec_ttl,output:1",
    "push_vlan:0x8100,set_field:4097->vlan_vid,normal",
    "actions=group:8",
    "resubmit(,5),move:NXM_NX_REG0[]->NXM_NX_REG1[]",
    "mod_nw_tos:16,in_port",
];

/// Texts of groups: each bucket with all actions, alone and (except for indirect groups) with
/// another one.
fn groups() -> Vec<String> {
    let mut groups = Vec::new();
    for (kind, prefixes) in BUCKETS {
        for (index, (prefix, actions)) in prefixes
            .iter()
            .flat_map(|prefix| ACTIONS.map(|actions| (prefix, actions)))
            .enumerate()
        {
            let other = ACTIONS[(index * 3 + 1) % ACTIONS.len()];
            let group = format!(
                "group_id={},type={kind},bucket={prefix}{actions}",
                index + 1
            );
            if kind != "indirect" {
                let prefix = if kind == "ff" { "watch_port:4," } else { "" };
                groups.push(format!("{group},bucket={prefix}{other}"));
            }
            groups.push(group);
        }
        if kind != "indirect" {
            groups.push(format!("group_id=4294967040,type={kind}"));
        }
    }
    groups
}

fn groups_are_encoded_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let groups = groups();
    for version in [Version::V11, Version::V13, Version::V14, Version::V15] {
        for groups in groups.chunks(BATCH) {
            expect_equal_groups(&network, context, groups, version)?;
        }
    }
    assert!(groups.len() > 180, "only {} groups", groups.len());
    Ok(())
}

/// Number of instruction lists or groups in one script.
const BATCH: usize = 40;

/// Asserts that Comporta and the tool encode groups equally.
fn expect_equal_groups(
    network: &TestNetwork<'_>,
    context: &TestContext,
    groups: &[String],
    version: Version,
) -> TestResult {
    let mut script = String::new();
    for group in groups {
        let _ = writeln!(
            script,
            "ovs-ofctl -voff -O {version} parse-group '{group}' | tail -n +3; echo {END}"
        );
    }
    let file = context.unique_path("script.sh");
    fs::write(&file, script)?;
    let ovs = network.run(&format!("bash {}", file.display()))?.stdout;
    let end = format!("{END}\n");
    for (group, ovs) in groups.iter().zip(ovs.split(&end)) {
        let group_mod = parse_group_line(group).map_err(|error| format!("{group}: {error}"))?;
        let mut bytes = Vec::new();
        Message::GroupMod(group_mod).encode(base::Xid(1), version, &mut bytes)?;
        assert_eq!(print(&bytes, Detail::BRIEF), ovs, "{version} {group}");
    }
    Ok(())
}

/// Line after each output of the tool.
const END: &str = "==end==";

/// A file of groups, with all commands.
const GROUP_FILE: &str = "# groups\n\
    group_id=1,type=all,bucket=output:1,bucket=bucket_id:7,output:2\n\
    add group_id=2,type=select,bucket=weight:5,output:1,bucket=output:2\n\
    group_id=3,type=indirect,bucket=output:1\n\
    \n\
    modify group_id=3,type=indirect,bucket=output:2\n\
    insert_bucket group_id=1,command_bucket_id=first,bucket=bucket_id:9,output:1\n\
    insert_bucket group_id=1,command_bucket_id=7,bucket=bucket_id:8,drop\n\
    remove_bucket group_id=1,command_bucket_id=0\n\
    group_id=4,type=ff,bucket=watch_port:1,output:1\n\
    delete group_id=2\n";

/// Meters in the syntax of `add-meter`.
const METERS: [&str; 5] = [
    "meter=1,kbps,bands=type=drop,rate=1000",
    "meter=2,pktps,burst,bands=type=drop,rate=10,burst_size=20",
    "meter=3,kbps,burst,stats,bands=type=drop,rate=100,burst_size=10,type=dscp_remark,rate=50,burst_size=5,prec_level=2",
    "meter=4 pktps stats band=type=dscp_remark,rate=7,prec_level=1",
    "meter=controller,pktps,bands=type=drop,rate=100",
];

fn groups_and_meters_of_a_file_are_added_like_ovs_ofctl(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch =
        network.start_switch("--bridge br0 --bridge br1 --fail-mode secure --port p1 --port p2")?;
    let file = context.unique_path("groups.txt");
    fs::write(&file, GROUP_FILE)?;
    let file = file.display();
    switch.ofctl(&format!("-O OpenFlow15 add-groups br0 {file}"))?;
    switch
        .run_comporta(&["groups", "br1", "--add", &format!("@{file}")])?
        .expect_success()?;
    for meter in METERS {
        let ovs = program("ovs-ofctl -O OpenFlow15 add-meter").args([
            switch.file("br0.mgmt").to_str().expect("the path is UTF-8"),
            meter,
        ]);
        CommandOutput::run(context, ovs)?.expect_success()?;
        switch
            .run_comporta(&["meters", "br1", "--add", meter])?
            .expect_success()?;
    }
    for tool in ["groups", "meters"] {
        let ovs = switch.run_comporta(&[tool, "br0"])?.expect_success()?;
        let comporta = switch.run_comporta(&[tool, "br1"])?.expect_success()?;
        assert_eq!(comporta, ovs, "{tool}");
        assert!(comporta.lines().count() > 2, "{comporta}");
    }
    let inserted = [
        "--insert-buckets",
        "group_id=4,command_bucket_id=last,bucket=bucket_id:5,watch_port:2,output:2",
    ];
    switch
        .run_comporta(&[&["groups", "br1"][..], &inserted].concat())?
        .expect_success()?;
    let output = switch.run_comporta(&["groups", "br1"])?.expect_success()?;
    assert!(
        output.contains("bucket_id:5,watch_port:2,actions=output:2"),
        "{output}"
    );
    let removed = ["--remove-buckets", "group_id=4,command_bucket_id=first"];
    switch
        .run_comporta(&[&["groups", "br1"][..], &removed].concat())?
        .expect_success()?;
    let output = switch.run_comporta(&["groups", "br1"])?.expect_success()?;
    assert!(!output.contains("watch_port:1"), "{output}");
    Ok(())
}

/// A TCP frame between the two ends of an OpenFlow channel.
fn tcp_frame(is_from_switch: bool, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let (controller, switch) = (([10, 0, 0, 2], 6653_u16), ([10, 0, 0, 1], 40_000_u16));
    let ((from, source), (to, destination)) = if is_from_switch {
        (switch, controller)
    } else {
        (controller, switch)
    };
    let mut tcp = Vec::new();
    tcp.extend(source.to_be_bytes());
    tcp.extend(destination.to_be_bytes());
    tcp.extend(sequence.to_be_bytes());
    tcp.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(payload);
    let length = u16::try_from(20 + tcp.len()).expect("a segment is shorter than 64 KB");
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(length.to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 6, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    frame.extend(tcp);
    frame
}

fn capture_file_is_printed_like_ovs_ofctl(context: &TestContext) -> TestResult {
    const SYN: u8 = 2;
    const ACK: u8 = 0x10;
    let network = TestNetwork::new(context, 0)?;
    let mut messages = Vec::new();
    for message in [Message::FeaturesRequest, Message::BarrierRequest] {
        message.encode(base::Xid(7), Version::V13, &mut messages)?;
    }
    let (first_part, second_part) = messages.split_at(11);
    let frames = [
        tcp_frame(true, 99, SYN, &[]),
        tcp_frame(false, 499, SYN | ACK, &[]),
        tcp_frame(true, 100, ACK, first_part),
        tcp_frame(true, 111, ACK, second_part),
        // A TCP retransmission is printed once.
        tcp_frame(true, 111, ACK, second_part),
        tcp_frame(false, 500, ACK, &messages),
    ];
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    for frame in frames {
        let length = u32::try_from(frame.len())?.to_le_bytes();
        capture.extend([[0; 4], [0; 4], length, length].concat());
        capture.extend(frame);
    }
    let file = context.unique_path("channel.pcap");
    fs::write(&file, capture)?;
    let file = file.display();
    let ovs = network
        .run(&format!("ovs-ofctl ofp-parse-pcap {file}"))?
        .stdout;
    let binary = comporta_binary();
    let binary = binary.display();
    let comporta = network
        .run(&format!("{binary} ofp-print --pcap {file}"))?
        .stdout;
    assert_eq!(comporta, ovs);
    assert_eq!(
        comporta
            .matches("OFPT_BARRIER_REQUEST (OF1.3) (xid=0x7):")
            .count(),
        2,
        "{comporta}"
    );
    let other_port = network.run(&format!("{binary} ofp-print --pcap {file} --port 80"))?;
    assert_eq!(other_port.stdout, "");
    Ok(())
}

/// Rules that the switch has first, and the desired rules.
const OLD_RULES: &str = "priority=7,tcp,cookie=0x5,idle_timeout=60,actions=output:1\n\
    priority=3,arp,actions=normal\n\
    table=1,udp,actions=output:2\n";
const NEW_RULES: &str = "# desired rules\n\
    priority=7,tcp,cookie=0x5,actions=output:1\n\
    priority=3,arp,actions=normal\n\
    table=2,in_port=1,importance=4,actions=drop\n";

fn rules_of_a_file_replace_those_of_the_switch(context: &TestContext) -> TestResult {
    const DIFFERENT: Option<i32> = Some(2);
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let (old, new) = (
        context.unique_path("old.txt"),
        context.unique_path("new.txt"),
    );
    fs::write(&old, OLD_RULES)?;
    fs::write(&new, NEW_RULES)?;
    let (old, new) = (old.display().to_string(), new.display().to_string());
    switch
        .run_comporta(&["flows", "br0", "--replace", &old])?
        .expect_success()?;
    assert_eq!(
        switch
            .run_comporta(&["flows", "br0", "--diff", &old])?
            .expect_success()?,
        ""
    );
    let comporta = switch.run_comporta(&["flows", "br0", "--diff", &new])?;
    assert_eq!(comporta.status.code(), DIFFERENT, "{}", comporta.stderr);
    let ovs = switch.ofctl_output(&format!("-O OpenFlow15 diff-flows br0 {new}"))?;
    assert_eq!(ovs.status.code(), DIFFERENT, "{}", ovs.stderr);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&comporta.stdout), sorted(&ovs.stdout));
    switch
        .run_comporta(&["flows", "br0", "--replace", &new, "--bundle"])?
        .expect_success()?;
    let output = switch
        .run_comporta(&["flows", "br0", "--no-stats"])?
        .expect_success()?;
    let expected = " cookie=0x5, priority=7,tcp actions=output:1
 priority=3,arp actions=NORMAL
 table=2, importance=4, in_port=1 actions=drop
";
    assert_eq!(output, expected);
    Ok(())
}

fn rules_are_printed_in_the_requested_order(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let file = context.unique_path("rules.txt");
    let rules = "priority=4,in_port=2,tcp,tp_dst=80,actions=drop\n\
        priority=9,in_port=1,actions=drop\npriority=2,tcp,tp_dst=22,actions=drop\n\
        priority=5,in_port=2,actions=drop\n";
    fs::write(&file, rules)?;
    switch
        .run_comporta(&["flows", "br0", "--add", &format!("@{}", file.display())])?
        .expect_success()?;
    for order in [
        &["--sort"][..],
        &["--rsort"],
        &["--sort=in_port", "--rsort"],
        &["--rsort=in_port", "--sort=priority"],
        &["--rsort=tcp_dst", "--sort"],
    ] {
        let words = [&["flows", "br0", "--no-stats"][..], order].concat();
        let comporta = switch.run_comporta(&words)?.expect_success()?;
        let ovs = switch.ofctl(&format!("--no-stats {} dump-flows br0", order.join(" ")))?;
        assert_eq!(comporta, ovs, "{order:?}");
    }
    let stderr = switch
        .run_comporta(&["flows", "br0", "--sort=prot"])?
        .expect_failure()?;
    assert!(
        stderr.contains("`prot` is neither a field nor `priority`"),
        "{stderr}"
    );
    Ok(())
}

fn rule_file_is_added_as_a_bundle_or_not_at_all(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let file = context.unique_path("rules.txt");
    fs::write(&file, "tcp,actions=output:1\nudp,actions=group:99\n")?;
    let add = format!("@{}", file.display());
    let stderr = switch
        .run_comporta(&["flows", "br0", "--add", &add, "--bundle"])?
        .expect_failure()?;
    assert!(
        stderr.contains("the switch refuses: no such group"),
        "{stderr}"
    );
    assert_eq!(
        switch.run_comporta(&["flows", "br0"])?.expect_success()?,
        ""
    );
    switch
        .run_comporta(&["flows", "br0", "--add", &add])?
        .expect_failure()?;
    let output = switch
        .run_comporta(&["flows", "br0", "--no-stats"])?
        .expect_success()?;
    assert_eq!(output, " tcp actions=output:1\n");
    switch
        .run_comporta(&["flows", "br0", "--delete", "priority=1,tcp", "--strict"])?
        .expect_success()?;
    assert_eq!(
        switch
            .run_comporta(&["flows", "br0"])?
            .expect_success()?
            .lines()
            .count(),
        1
    );
    fs::write(&file, "\n# rules\ntcp,actions=drop\ntpc,actions=drop\n")?;
    let stderr = switch
        .run_comporta(&["flows", "br0", "--add", &add])?
        .expect_failure()?;
    let expected = format!("{}: line 4, column 1, `tpc`", file.display());
    assert!(stderr.contains(&expected), "{stderr}");
    Ok(())
}
