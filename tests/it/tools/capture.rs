//! Frames captured on their way through a switch, with the rules that took them.

use std::path::Path;

use testbed::{Failure, Process, Program};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_capture_has_frames_as_they_came_and_left_with_their_rules,
    a_capture_ends_by_ctrl_c_with_a_whole_file_and_by_itself_if_nobody_reads,
    what_cannot_be_captured_is_refused_with_a_reason,
];

/// What tshark is asked of each frame.
const FIELDS: [&str; 6] = [
    "frame.interface_name",
    "frame.p2p_dir",
    "icmp.type",
    "ip.dst",
    "ip.ttl",
    "frame.comment",
];

/// A switch that takes a hop off the pings from one host to the other, in a second table, and
/// sends answers as an ordinary switch does.
fn start<'g>(network: &TestNetwork<'g>) -> Result<SwitchProcess<'g>, Failure> {
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    network.add_static_neighbours(1, 2)?;
    let form = "-O OpenFlow13 add-flow br0";
    switch.ofctl(&format!(
        "{form} cookie=0x2a,priority=7,icmp,icmp_type=8,actions=goto_table:3"
    ))?;
    switch.ofctl(&format!(
        "{form} table=3,priority=1,ip,actions=dec_ttl,output:2"
    ))?;
    switch.ofctl(&format!("{form} priority=5,ip,actions=normal"))?;
    Ok(switch)
}

fn capture(switch: &SwitchProcess<'_>, words: &str) -> Program<'static> {
    program(comporta_binary().to_str().expect("a path is text"))
        .arg("capture")
        .args(words.split_whitespace())
        .env("OVS_RUNDIR", switch.file(""))
}

/// What a file has of each frame.
fn read(context: &TestContext, file: &Path) -> Result<Vec<String>, Failure> {
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let tshark = program("tshark -T fields -E separator=;")
        .args(fields)
        .arg("-r")
        .arg(file);
    let told = CommandOutput::run(context, tshark)?.expect_success()?;
    Ok(told.lines().map(str::to_owned).collect())
}

/// Starts it, and waits until workers are told what to watch.
fn begin(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    words: &str,
) -> Result<Process, Failure> {
    let program = capture(switch, words)
        .output(context.unique_path("captured"))
        .log(context.unique_path("capture"));
    begin_program(context, switch, program)
}

fn begin_program(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    program: Program<'_>,
) -> Result<Process, Failure> {
    let mut last = next(switch)?;
    let process = context.spawner.start(program)?;
    // Each that is started has the next number: when one is left out here, it is the tool's.
    switch.wait_until("the capture to begin", |switch| {
        let before = std::mem::replace(&mut last, next(switch)?);
        Ok(last > before + 1)
    })?;
    Ok(process)
}

/// The number that a capture has that is started, and stopped, now.
fn next(switch: &SwitchProcess<'_>) -> Result<u64, Failure> {
    let ctl = switch.file("br0.ctl");
    let ask = |words: &[&str]| {
        let asked = program("ovs-appctl -t")
            .arg(&ctl)
            .args(words.iter().copied());
        CommandOutput::run(switch.context, asked)?.expect_success()
    };
    let number = ask(&["comporta/capture-start", "br0", "udp,tp_dst=9", "64"])?;
    let number = number.trim();
    ask(&["comporta/capture-stop", number])?;
    Ok(number.parse().unwrap_or_default())
}

/// Pings so often; how many frames were interpreted since they were watched.
fn ping(
    switch: &SwitchProcess<'_>,
    from: &TestHost<'_>,
    to: &TestHost<'_>,
    count: u32,
) -> Result<u64, Failure> {
    from.ping(to.address, count)?;
    switch.counter("worker interpreted_watched")
}

fn a_capture_has_frames_as_they_came_and_left_with_their_rules(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    let (one, two) = network.host_pair();
    assert_eq!(ping(&switch, one, two, 2)?, 0, "nobody watches");
    let file = context.unique_path("icmp.pcapng");
    let words = format!("br0 icmp -w {} -c 6", file.display());
    let mut process = begin(context, &switch, &words)?;
    ping(&switch, one, two, 3)?;
    let status = process.wait(crate::support::context::WAIT_LIMIT)?;
    assert!(status.success(), "{}", process.last_words());
    assert!(process.last_words().contains("6 frames captured"));
    let frames = read(context, &file)?;
    let (of_first, of_second) = (
        "table=0,cookie=0x2a,priority=7,icmp,icmp_type=8",
        "table=3,priority=1,ip",
    );
    let (here, there) = (one.address, two.address);
    for pair in frames.chunks(4) {
        assert_eq!(
            pair,
            [
                format!("p1;1;8;{there};64;{of_first} -> {of_second}"),
                format!("p2;0;8;{there};63;{of_first} -> {of_second}"),
                format!("p2;1;0;{here};64;table=0,priority=5,ip"),
                format!("p1;0;0;{here};64;table=0,priority=5,ip"),
            ],
            "{frames:?}"
        );
    }
    assert_eq!(frames.len(), 12);
    // After its end it costs nothing any more.
    let watched = switch.counter("worker interpreted_watched")?;
    assert_eq!(watched, 6);
    assert_eq!(ping(&switch, one, two, 3)?, watched);
    lines_are_told(context, &network, &switch)
}

/// The same as lines, of what does not leave, too.
fn lines_are_told(
    context: &TestContext,
    network: &TestNetwork<'_>,
    switch: &SwitchProcess<'_>,
) -> TestResult {
    let output = context.unique_path("lines");
    let program = capture(switch, "br0 in_port=p1 --seconds 60 -c 2").output(&output);
    let mut process = begin_program(context, switch, program)?;
    network
        .host(1)
        .send(&["eth / arp", "eth / ipv4(dst=10.0.0.9,ttl=9) / icmp(type=8)"])?;
    assert!(process.wait(crate::support::context::WAIT_LIMIT)?.success());
    let told = std::fs::read_to_string(output)?;
    let told: Vec<_> = told
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let told: Vec<_> = told.into_iter().map(|(_, line)| line).collect();
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(
        told[0].starts_with("in   p1 ") && told[0].contains(" arp,"),
        "{told:#?}"
    );
    assert!(told[0].ends_with("| table=0, no rule"), "{told:#?}");
    assert!(told[1].starts_with("drop p1       no_match"), "{told:#?}");
    assert!(
        told[2].starts_with("in   p1 ") && told[2].contains("nw_ttl=9,"),
        "{told:#?}"
    );
    assert!(
        told[3].starts_with("out  p2 ") && told[3].contains("nw_ttl=8,"),
        "{told:#?}"
    );
    assert!(told[3].ends_with("-> table=3,priority=1,ip"), "{told:#?}");
    Ok(())
}

fn a_capture_ends_by_ctrl_c_with_a_whole_file_and_by_itself_if_nobody_reads(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    let (one, two) = network.host_pair();
    let file = context.unique_path("all.pcapng");
    let mut process = begin(context, &switch, &format!("br0 -w {}", file.display()))?;
    one.ping(two.address, 5)?;
    let pid = process.id().to_string();
    CommandOutput::run(context, program("kill -INT").arg(pid))?.expect_success()?;
    assert!(process.wait(crate::support::context::WAIT_LIMIT)?.success());
    let pings = |frames: &[String]| {
        let pings = frames.iter().filter(|frame| frame.contains(";8;"));
        pings.count()
    };
    assert_eq!(pings(&read(context, &file)?), 10, "each came and left");
    // One whose reader is killed is read no more, and ends.
    let mut process = begin(context, &switch, &format!("br0 -w {}", file.display()))?;
    let watched = ping(&switch, one, two, 1)?;
    assert!(watched > 0);
    process.kill()?;
    switch.wait_until("the capture to end", |switch| {
        let before = ping(switch, one, two, 1)?;
        Ok(ping(switch, one, two, 1)? == before)
    })?;
    // What it wrote until then can be read.
    read(context, &file)?;
    Ok(())
}

fn what_cannot_be_captured_is_refused_with_a_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    for (words, reason) in [
        ("br0 in_prt=1", "unknown key"),
        ("br0 --snaplen 0", "give a snaplen from 1 to 65535"),
        ("br0 table=3,ip", "table"),
        ("br0 -w /nowhere/x", "/nowhere/x"),
        ("br7", "br7.ctl"),
    ] {
        let said = CommandOutput::run(context, capture(&switch, words))?.expect_failure()?;
        assert!(said.contains(reason), "{words}: {said}");
    }
    // Four at once, and no more.
    let running: Result<Vec<_>, _> = (0..4)
        .map(|_| switch.appctl("comporta/capture-start br0 ip 64"))
        .collect();
    assert_eq!(running?.len(), 4);
    let said = CommandOutput::run(context, capture(&switch, "br0"))?.expect_failure()?;
    assert!(said.contains("4 captures run already"), "{said}");
    let said = switch.appctl_failure("comporta/capture-read 77")?;
    assert!(said.contains("no capture 77"), "{said}");
    Ok(())
}
