//! `comporta capture`: frames at ingress and egress, with the rules that they matched.

use std::path::Path;

use testbed::{Failure, Process, Program};

use crate::support::command::{CommandOutput, comporta_program, program};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    capture_file_holds_frames_at_ingress_and_egress_with_their_rules,
    capture_ends_on_ctrl_c_or_without_a_reader,
    capture_errors_name_the_reason,
];

/// Fields that tshark prints for each frame.
const FIELDS: [&str; 6] = [
    "frame.interface_name",
    "frame.p2p_dir",
    "icmp.type",
    "ip.dst",
    "ip.ttl",
    "frame.comment",
];

/// Starts a switch that decrements the TTL of pings from host 1 in a second table, and forwards
/// replies by NORMAL.
fn start_switch<'g>(network: &TestNetwork<'g>) -> Result<SwitchProcess<'g>, Failure> {
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    network.add_static_neighbours(1, 2)?;
    let add_flow = "-O OpenFlow13 add-flow br0";
    switch.ofctl(&format!(
        "{add_flow} cookie=0x2a,priority=7,icmp,icmp_type=8,actions=goto_table:3"
    ))?;
    switch.ofctl(&format!(
        "{add_flow} table=3,priority=1,ip,actions=dec_ttl,output:2"
    ))?;
    switch.ofctl(&format!("{add_flow} priority=5,ip,actions=normal"))?;
    Ok(switch)
}

fn capture_program(switch: &SwitchProcess<'_>, words: &str) -> Program<'static> {
    comporta_program()
        .arg("capture")
        .args(words.split_whitespace())
        .env("OVS_RUNDIR", switch.file(""))
}

/// Fields of each frame of a capture file.
fn read_capture(context: &TestContext, file: &Path) -> Result<Vec<String>, Failure> {
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let tshark = program("tshark -T fields -E separator=;")
        .args(fields)
        .arg("-r")
        .arg(file);
    let output = CommandOutput::run(context, tshark)?.expect_success()?;
    Ok(output.lines().map(str::to_owned).collect())
}

/// Starts a capture, and waits until the workers capture.
fn start_capture(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    words: &str,
) -> Result<Process, Failure> {
    let program = capture_program(switch, words)
        .output(context.unique_path("captured"))
        .log(context.unique_path("capture"));
    start_capture_program(context, switch, program)
}

fn start_capture_program(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    program: Program<'_>,
) -> Result<Process, Failure> {
    let mut last = next_capture_number(switch)?;
    let process = context.spawner.start(program)?;
    // Captures have consecutive numbers: a gap in the numbers of this test's captures is the
    // tool's.
    switch.wait_until("the capture to start", |switch| {
        let before = std::mem::replace(&mut last, next_capture_number(switch)?);
        Ok(last > before + 1)
    })?;
    Ok(process)
}

/// Number of a capture that is started and stopped now.
fn next_capture_number(switch: &SwitchProcess<'_>) -> Result<u64, Failure> {
    let ctl = switch.file("br0.ctl");
    let run_appctl = |words: &[&str]| {
        let appctl = program("ovs-appctl -t")
            .arg(&ctl)
            .args(words.iter().copied());
        CommandOutput::run(switch.context, appctl)?.expect_success()
    };
    let number = run_appctl(&["comporta/capture-start", "br0", "udp,tp_dst=9", "64"])?;
    let number = number.trim();
    run_appctl(&["comporta/capture-stop", number])?;
    Ok(number.parse().unwrap_or_default())
}

/// Pings `count` times, and returns the number of frames that were interpreted because of a
/// capture.
fn ping_and_count_interpreted(
    switch: &SwitchProcess<'_>,
    from: &TestHost<'_>,
    to: &TestHost<'_>,
    count: u32,
) -> Result<u64, Failure> {
    from.ping(to.address, count)?;
    switch.counter("worker slow_path_capture")
}

fn capture_file_holds_frames_at_ingress_and_egress_with_their_rules(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    let (one, two) = network.host_pair();
    assert_eq!(
        ping_and_count_interpreted(&switch, one, two, 2)?,
        0,
        "there is no capture"
    );
    let file = context.unique_path("icmp.pcapng");
    let words = format!("br0 icmp -w {} -c 6", file.display());
    let mut process = start_capture(context, &switch, &words)?;
    ping_and_count_interpreted(&switch, one, two, 3)?;
    let status = process.wait(WAIT_LIMIT)?;
    assert!(status.success(), "{}", process.last_words());
    assert!(process.last_words().contains("6 frames captured"));
    let frames = read_capture(context, &file)?;
    let (first_rule, second_rule) = (
        "table=0,cookie=0x2a,priority=7,icmp,icmp_type=8",
        "table=3,priority=1,ip",
    );
    let (one_address, two_address) = (one.address, two.address);
    for pair in frames.chunks(4) {
        assert_eq!(
            pair,
            [
                format!("p1;1;8;{two_address};64;{first_rule} -> {second_rule}"),
                format!("p2;0;8;{two_address};63;{first_rule} -> {second_rule}"),
                format!("p2;1;0;{one_address};64;table=0,priority=5,ip"),
                format!("p1;0;0;{one_address};64;table=0,priority=5,ip"),
            ],
            "{frames:?}"
        );
    }
    assert_eq!(frames.len(), 12);
    // After the capture no frame is interpreted.
    let interpreted = switch.counter("worker slow_path_capture")?;
    assert_eq!(interpreted, 6);
    assert_eq!(
        ping_and_count_interpreted(&switch, one, two, 3)?,
        interpreted
    );
    check_text_output(context, &network, &switch)
}

/// The same as text lines, also for dropped frames.
fn check_text_output(
    context: &TestContext,
    network: &TestNetwork<'_>,
    switch: &SwitchProcess<'_>,
) -> TestResult {
    let output = context.unique_path("lines");
    let program = capture_program(switch, "br0 in_port=p1 --seconds 60 -c 2").output(&output);
    let mut process = start_capture_program(context, switch, program)?;
    network
        .host(1)
        .send(&["eth / arp", "eth / ipv4(dst=10.0.0.9,ttl=9) / icmp(type=8)"])?;
    assert!(process.wait(WAIT_LIMIT)?.success());
    let text = std::fs::read_to_string(output)?;
    let lines: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(
        lines[0].starts_with("in   p1 ") && lines[0].contains(" arp,"),
        "{lines:#?}"
    );
    assert!(lines[0].ends_with("| table=0, no rule"), "{lines:#?}");
    assert!(lines[1].starts_with("drop p1       no_match"), "{lines:#?}");
    assert!(
        lines[2].starts_with("in   p1 ") && lines[2].contains("nw_ttl=9,"),
        "{lines:#?}"
    );
    assert!(
        lines[3].starts_with("out  p2 ") && lines[3].contains("nw_ttl=8,"),
        "{lines:#?}"
    );
    assert!(lines[3].ends_with("-> table=3,priority=1,ip"), "{lines:#?}");
    Ok(())
}

fn capture_ends_on_ctrl_c_or_without_a_reader(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    let (one, two) = network.host_pair();
    let file = context.unique_path("all.pcapng");
    let mut process = start_capture(context, &switch, &format!("br0 -w {}", file.display()))?;
    one.ping(two.address, 5)?;
    let pid = process.id().to_string();
    CommandOutput::run(context, program("kill -INT").arg(pid))?.expect_success()?;
    assert!(process.wait(WAIT_LIMIT)?.success());
    let pings = |frames: &[String]| {
        let pings = frames.iter().filter(|frame| frame.contains(";8;"));
        pings.count()
    };
    assert_eq!(
        pings(&read_capture(context, &file)?),
        10,
        "each frame at ingress and egress"
    );
    // A capture whose reader was killed ends.
    let mut process = start_capture(context, &switch, &format!("br0 -w {}", file.display()))?;
    let interpreted = ping_and_count_interpreted(&switch, one, two, 1)?;
    assert!(interpreted > 0);
    process.kill()?;
    switch.wait_until("the capture to end", |switch| {
        let before = ping_and_count_interpreted(switch, one, two, 1)?;
        Ok(ping_and_count_interpreted(switch, one, two, 1)? == before)
    })?;
    // Its file up to then is readable.
    read_capture(context, &file)?;
    Ok(())
}

fn capture_errors_name_the_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    for (words, reason) in [
        ("br0 in_prt=1", "unknown key"),
        ("br0 --snaplen 0", "give a snaplen from 1 to 65535"),
        ("br0 table=3,ip", "table"),
        ("br0 -w /nowhere/x", "/nowhere/x"),
        ("br7", "br7.ctl"),
    ] {
        let stderr =
            CommandOutput::run(context, capture_program(&switch, words))?.expect_failure()?;
        assert!(stderr.contains(reason), "{words}: {stderr}");
    }
    // Four captures at a time are the limit.
    let running: Result<Vec<_>, _> = (0..4)
        .map(|_| switch.appctl("comporta/capture-start br0 ip 64"))
        .collect();
    assert_eq!(running?.len(), 4);
    let stderr = CommandOutput::run(context, capture_program(&switch, "br0"))?.expect_failure()?;
    assert!(stderr.contains("4 captures are running"), "{stderr}");
    let stderr = switch.appctl_failure("comporta/capture-read 77")?;
    assert!(stderr.contains("no capture 77"), "{stderr}");
    Ok(())
}
