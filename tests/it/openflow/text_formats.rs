//! Texts and bytes both ways, beside `ovs-ofctl`: entries of matches, instructions, groups,
//! meters, captures, and files of rules. What we write the tool reads, what it writes we
//! read, and both mean the same.

use std::fmt::Write as _;
use std::fs;

use flow::text::parse_group_line;
use flow::{FlowMod, Match};
use openflow::{Detail, Message, MessagePart, Version};
use openflow::{encode_instructions, encode_match, parse_oxm_text, print, print_part};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    entries_mean_to_ovs_ofctl_what_they_mean_here,
    instructions_are_told_as_ovs_ofctl_tells_their_bytes,
    groups_become_the_messages_that_ovs_ofctl_makes_of_them,
    groups_and_meters_of_a_file_are_those_that_ovs_ofctl_adds,
    a_capture_is_printed_as_ovs_ofctl_prints_it,
    a_switch_comes_to_have_the_rules_of_a_file,
    rules_are_told_in_the_order_that_was_asked_for,
    a_bundle_of_rules_is_done_whole_or_not_at_all,
];

/// The rules that `ovs-ofctl` is known to read.
fn known_flows() -> Vec<FlowMod> {
    let vectors = include_str!("../../../crates/flow/vectors/flows.txt");
    let lines = vectors.lines().filter_map(|line| line.strip_prefix("< "));
    lines.filter_map(|line| line.parse().ok()).collect()
}

/// What the tool says to lines on its standard input, a line each.
fn answers(
    network: &TestNetwork<'_>,
    context: &TestContext,
    tool: &str,
    lines: &[String],
) -> Result<Vec<String>, testbed::Failure> {
    let (input, script) = (context.unique_path("lines"), context.unique_path("ask.sh"));
    let write = |path, text: String| {
        fs::write(path, text).map_err(testbed::Failure::to("write down what is asked"))
    };
    write(&input, lines.join("\n") + "\n")?;
    write(
        &script,
        format!("ovs-ofctl -voff {tool} < {}", input.display()),
    )?;
    let ran = network.run(&format!("bash {}", script.display()))?;
    Ok(ran.stdout.lines().map(str::to_owned).collect())
}

fn entries_mean_to_ovs_ofctl_what_they_mean_here(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let matches: Vec<Match> = known_flows()
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
            let told = print_part(MessagePart::Match, bytes, version);
            let (entries, meaning) = told.split_once('\n').expect("two lines");
            (entries.to_owned(), meaning.to_owned())
        };
        let bytes = matches
            .iter()
            .filter_map(|matching| encode_match(matching, version).ok());
        let ours: Vec<(String, String)> = bytes.map(|bytes| meaning(&bytes)).collect();
        let lines: Vec<String> = ours.iter().map(|(entries, _)| entries.clone()).collect();
        let theirs = answers(&network, context, tool, &lines)?;
        assert_eq!(theirs.len(), lines.len(), "{tool}");
        for ((entries, ours), theirs) in ours.iter().zip(theirs) {
            let bytes = parse_oxm_text(&theirs).map_err(|error| format!("{theirs}: {error}"))?;
            assert_eq!(meaning(&bytes).1, *ours, "{tool} {entries} is {theirs}");
        }
        assert!(lines.len() > 250, "only {} matches", lines.len());
    }
    Ok(())
}

/// Why the tool refuses lists that are told here: they do not fit a frame of which it knows
/// nothing, or are only for rules.
const JUDGED: [&str; 2] = ["OFPBAC_MATCH_INCONSISTENT", "OFPBIC_UNSUP_INST"];

/// The bit that says that there is a tag, which the tool does not load.
const TAGGED: &str = "->OXM_OF_VLAN_VID[12]";

fn instructions_are_told_as_ovs_ofctl_tells_their_bytes(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let flows = known_flows();
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
        let told = encoded
            .iter()
            .map(|bytes| print_part(MessagePart::Instructions, bytes, version));
        let ours: Vec<String> = told.collect();
        let mut theirs = String::new();
        for batch in encoded.chunks(BATCH) {
            let mut script = String::new();
            for bytes in batch {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(script, "ovs-ofctl -voff {tool} <<< {hex} | head -1");
            }
            let file = context.unique_path("ask.sh");
            fs::write(&file, script)?;
            theirs += &network.run(&format!("bash {}", file.display()))?.stdout;
        }
        let mut same = 0;
        for (theirs, ours) in theirs.lines().zip(&ours) {
            if JUDGED.iter().any(|reason| theirs.ends_with(reason)) || ours.contains(TAGGED) {
                continue;
            }
            assert_eq!(theirs, ours.trim_end(), "{tool}");
            same += 1;
        }
        assert_eq!(theirs.lines().count(), ours.len(), "{tool}");
        assert!(same > 40, "{tool}: only {same} lists");
    }
    Ok(())
}

/// What may stand in a bucket before its actions, for each kind of group.
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

/// And its actions.
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

/// Texts of groups: every bucket with all actions, alone and (but in groups of one) with
/// another.
fn groups() -> Vec<String> {
    let mut groups = Vec::new();
    for (kind, heads) in BUCKETS {
        for (index, (head, actions)) in heads
            .iter()
            .flat_map(|head| ACTIONS.map(|actions| (head, actions)))
            .enumerate()
        {
            let other = ACTIONS[(index * 3 + 1) % ACTIONS.len()];
            let alone = format!("group_id={},type={kind},bucket={head}{actions}", index + 1);
            if kind != "indirect" {
                let head = if kind == "ff" { "watch_port:4," } else { "" };
                groups.push(format!("{alone},bucket={head}{other}"));
            }
            groups.push(alone);
        }
        if kind != "indirect" {
            groups.push(format!("group_id=4294967040,type={kind}"));
        }
    }
    groups
}

fn groups_become_the_messages_that_ovs_ofctl_makes_of_them(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let groups = groups();
    for version in [Version::V11, Version::V13, Version::V14, Version::V15] {
        for groups in groups.chunks(BATCH) {
            compare_groups(&network, context, groups, version)?;
        }
    }
    assert!(groups.len() > 180, "only {} groups", groups.len());
    Ok(())
}

/// Lists or groups that one script asks the tool about.
const BATCH: usize = 40;

/// Fails for a group that the tool makes another message of.
fn compare_groups(
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
    let file = context.unique_path("ask.sh");
    fs::write(&file, script)?;
    let theirs = network.run(&format!("bash {}", file.display()))?.stdout;
    let end = format!("{END}\n");
    for (group, theirs) in groups.iter().zip(theirs.split(&end)) {
        let read = parse_group_line(group).map_err(|error| format!("{group}: {error}"))?;
        let mut bytes = Vec::new();
        Message::GroupMod(read).encode(base::Xid(1), version, &mut bytes)?;
        assert_eq!(print(&bytes, Detail::BRIEF), theirs, "{version} {group}");
    }
    Ok(())
}

/// What stands behind each answer of the tool.
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

/// Meters, as each is added.
const METERS: [&str; 5] = [
    "meter=1,kbps,bands=type=drop,rate=1000",
    "meter=2,pktps,burst,bands=type=drop,rate=10,burst_size=20",
    "meter=3,kbps,burst,stats,bands=type=drop,rate=100,burst_size=10,type=dscp_remark,rate=50,burst_size=5,prec_level=2",
    "meter=4 pktps stats band=type=dscp_remark,rate=7,prec_level=1",
    "meter=controller,pktps,bands=type=drop,rate=100",
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

fn groups_and_meters_of_a_file_are_those_that_ovs_ofctl_adds(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch =
        network.start_switch("--bridge br0 --bridge br1 --fail-mode secure --port p1 --port p2")?;
    let file = context.unique_path("groups.txt");
    fs::write(&file, GROUP_FILE)?;
    let file = file.display();
    switch.ofctl(&format!("-O OpenFlow15 add-groups br0 {file}"))?;
    own(
        context,
        &switch,
        &["groups", "br1", "--add", &format!("@{file}")],
    )?
    .expect_success()?;
    for meter in METERS {
        let theirs = program("ovs-ofctl -O OpenFlow15 add-meter").args([
            switch.file("br0.mgmt").to_str().expect("a path is text"),
            meter,
        ]);
        CommandOutput::run(context, theirs)?.expect_success()?;
        own(context, &switch, &["meters", "br1", "--add", meter])?.expect_success()?;
    }
    for tool in ["groups", "meters"] {
        let theirs = own(context, &switch, &[tool, "br0"])?.expect_success()?;
        let ours = own(context, &switch, &[tool, "br1"])?.expect_success()?;
        assert_eq!(ours, theirs, "{tool}");
        assert!(ours.lines().count() > 2, "{ours}");
    }
    let inserted = [
        "--insert-buckets",
        "group_id=4,command_bucket_id=last,bucket=bucket_id:5,watch_port:2,output:2",
    ];
    own(
        context,
        &switch,
        &[&["groups", "br1"][..], &inserted].concat(),
    )?
    .expect_success()?;
    let told = own(context, &switch, &["groups", "br1"])?.expect_success()?;
    assert!(
        told.contains("bucket_id:5,watch_port:2,actions=output:2"),
        "{told}"
    );
    let removed = ["--remove-buckets", "group_id=4,command_bucket_id=first"];
    own(
        context,
        &switch,
        &[&["groups", "br1"][..], &removed].concat(),
    )?
    .expect_success()?;
    let told = own(context, &switch, &["groups", "br1"])?.expect_success()?;
    assert!(!told.contains("watch_port:1"), "{told}");
    Ok(())
}

/// A frame of TCP between the two ends of a channel.
fn segment(up: bool, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let (controller, switch) = (([10, 0, 0, 2], 6653_u16), ([10, 0, 0, 1], 40_000_u16));
    let ((from, source), (to, destination)) = if up {
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
    let length = u16::try_from(20 + tcp.len()).expect("it is short");
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(length.to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 6, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    frame.extend(tcp);
    frame
}

fn a_capture_is_printed_as_ovs_ofctl_prints_it(context: &TestContext) -> TestResult {
    const SYN: u8 = 2;
    const ACK: u8 = 0x10;
    let network = TestNetwork::new(context, 0)?;
    let mut said = Vec::new();
    for message in [Message::FeaturesRequest, Message::BarrierRequest] {
        message.encode(base::Xid(7), Version::V13, &mut said)?;
    }
    let (front, back) = said.split_at(11);
    let frames = [
        segment(true, 99, SYN, &[]),
        segment(false, 499, SYN | ACK, &[]),
        segment(true, 100, ACK, front),
        segment(true, 111, ACK, back),
        // What is sent again is told once.
        segment(true, 111, ACK, back),
        segment(false, 500, ACK, &said),
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
    let theirs = network
        .run(&format!("ovs-ofctl ofp-parse-pcap {file}"))?
        .stdout;
    let comporta = comporta_binary();
    let comporta = comporta.display();
    let ours = network
        .run(&format!("{comporta} ofp-print --pcap {file}"))?
        .stdout;
    assert_eq!(ours, theirs);
    assert_eq!(
        ours.matches("OFPT_BARRIER_REQUEST (OF1.3) (xid=0x7):")
            .count(),
        2,
        "{ours}"
    );
    let elsewhere = network.run(&format!("{comporta} ofp-print --pcap {file} --port 80"))?;
    assert_eq!(elsewhere.stdout, "");
    Ok(())
}

/// Rules that a switch is to have, and others.
const OLD: &str = "priority=7,tcp,cookie=0x5,idle_timeout=60,actions=output:1\n\
    priority=3,arp,actions=normal\n\
    table=1,udp,actions=output:2\n";
const NEW: &str = "# what is wanted\n\
    priority=7,tcp,cookie=0x5,actions=output:1\n\
    priority=3,arp,actions=normal\n\
    table=2,in_port=1,importance=4,actions=drop\n";

fn a_switch_comes_to_have_the_rules_of_a_file(context: &TestContext) -> TestResult {
    const DIFFERENT: Option<i32> = Some(2);
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let (old, new) = (
        context.unique_path("old.txt"),
        context.unique_path("new.txt"),
    );
    fs::write(&old, OLD)?;
    fs::write(&new, NEW)?;
    let (old, new) = (old.display().to_string(), new.display().to_string());
    own(context, &switch, &["flows", "br0", "--replace", &old])?.expect_success()?;
    assert_eq!(
        own(context, &switch, &["flows", "br0", "--diff", &old])?.expect_success()?,
        ""
    );
    let ours = own(context, &switch, &["flows", "br0", "--diff", &new])?;
    assert_eq!(ours.status.code(), DIFFERENT, "{}", ours.stderr);
    let theirs = switch.ofctl_output(&format!("-O OpenFlow15 diff-flows br0 {new}"))?;
    assert_eq!(theirs.status.code(), DIFFERENT, "{}", theirs.stderr);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&ours.stdout), sorted(&theirs.stdout));
    own(
        context,
        &switch,
        &["flows", "br0", "--replace", &new, "--bundle"],
    )?
    .expect_success()?;
    let told = own(context, &switch, &["flows", "br0", "--no-stats"])?.expect_success()?;
    let wanted = " cookie=0x5, priority=7,tcp actions=output:1
 priority=3,arp actions=NORMAL
 table=2, importance=4, in_port=1 actions=drop
";
    assert_eq!(told, wanted);
    Ok(())
}

fn rules_are_told_in_the_order_that_was_asked_for(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let file = context.unique_path("rules.txt");
    let rules = "priority=4,in_port=2,tcp,tp_dst=80,actions=drop\n\
        priority=9,in_port=1,actions=drop\npriority=2,tcp,tp_dst=22,actions=drop\n\
        priority=5,in_port=2,actions=drop\n";
    fs::write(&file, rules)?;
    own(
        context,
        &switch,
        &["flows", "br0", "--add", &format!("@{}", file.display())],
    )?
    .expect_success()?;
    for order in [
        &["--sort"][..],
        &["--rsort"],
        &["--sort=in_port", "--rsort"],
        &["--rsort=in_port", "--sort=priority"],
        &["--rsort=tcp_dst", "--sort"],
    ] {
        let words = [&["flows", "br0", "--no-stats"][..], order].concat();
        let ours = own(context, &switch, &words)?.expect_success()?;
        let theirs = switch.ofctl(&format!("--no-stats {} dump-flows br0", order.join(" ")))?;
        assert_eq!(ours, theirs, "{order:?}");
    }
    let complaint = own(context, &switch, &["flows", "br0", "--sort=prot"])?.expect_failure()?;
    assert!(
        complaint.contains("`prot` is neither a field nor `priority`"),
        "{complaint}"
    );
    Ok(())
}

fn a_bundle_of_rules_is_done_whole_or_not_at_all(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let file = context.unique_path("rules.txt");
    fs::write(&file, "tcp,actions=output:1\nudp,actions=group:99\n")?;
    let add = format!("@{}", file.display());
    let complaint = own(
        context,
        &switch,
        &["flows", "br0", "--add", &add, "--bundle"],
    )?
    .expect_failure()?;
    assert!(
        complaint.contains("the switch refuses: no such group"),
        "{complaint}"
    );
    assert_eq!(
        own(context, &switch, &["flows", "br0"])?.expect_success()?,
        ""
    );
    own(context, &switch, &["flows", "br0", "--add", &add])?.expect_failure()?;
    let told = own(context, &switch, &["flows", "br0", "--no-stats"])?.expect_success()?;
    assert_eq!(told, " tcp actions=output:1\n");
    own(
        context,
        &switch,
        &["flows", "br0", "--delete", "priority=1,tcp", "--strict"],
    )?
    .expect_success()?;
    assert_eq!(
        own(context, &switch, &["flows", "br0"])?
            .expect_success()?
            .lines()
            .count(),
        1
    );
    fs::write(&file, "\n# rules\ntcp,actions=drop\ntpc,actions=drop\n")?;
    let complaint = own(context, &switch, &["flows", "br0", "--add", &add])?.expect_failure()?;
    let wanted = format!("{}: line 4, column 1, `tpc`", file.display());
    assert!(complaint.contains(&wanted), "{complaint}");
    Ok(())
}
